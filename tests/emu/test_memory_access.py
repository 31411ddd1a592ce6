# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and atomics in every state space, and where they may not go."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import HEADER, LANE, execute, lanes, words
from tmagen.emu import Fault, GlobalMemory, Launch, parse, run

SHARED = ".shared .align 16 .b8 cell[4096];\n"
AT = "mov.u32 %r90, cell;\nshl.b32 %r1, %r0, {shift};\nadd.u32 %r91, %r90, %r1;\n"
STORE = "st.global.u32 [%rd41], %r5;\n"


def test_shared_bytes_and_sign_extension() -> None:
    body = (
        LANE
        + AT.format(shift=0)
        + (
            "add.u32 %r2, %r0, 240;\nst.shared.u8 [%r91], %r2;\nld.shared.u8 %r3, [%r91];\nld.shared.s8 %r4, [%r91];\n"
            "shl.b32 %r3, %r3, 16;\nand.b32 %r4, %r4, 65535;\nor.b32 %r5, %r3, %r4;\n" + STORE
        )
    )

    def expected(i: int) -> int:
        byte = (240 + i) & 0xFF
        return byte << 16 | ((byte | 0xFF00) if byte & 0x80 else byte)

    assert words(body, declarations=SHARED) == lanes(expected)


@pytest.mark.parametrize("space", ["shared", "generic", "global"])
@pytest.mark.parametrize("how", ["lanes", "one"])
def test_vectors_of_four(space: str, how: str) -> None:
    base = {"shared": "add.u32 %r91, %r90, %r1;\n",
            "generic": "cvt.u64.u32 %rd20, %r1;\ncvta.shared.u64 %rd21, cell;\nadd.s64 %rd22, %rd21, %rd20;\n",
            "global": "cvt.u64.u32 %rd20, %r1;\nadd.s64 %rd22, %rd1, %rd20;\nadd.s64 %rd22, %rd22, 1024;\n"
            ""}[space]  # fmt: skip
    place = {"shared": "[%r91]", "generic": "[%rd22]", "global": "[%rd22]"}[space]
    dot = "" if space == "generic" else f".{space}"
    only = "setp.ne.u32 %p1, %r0, 9;\n@%p1 bra $end;\n" if how == "one" else ""
    body = (
        LANE
        + "mov.u32 %r90, cell;\nshl.b32 %r1, %r0, 4;\n"
        + base
        + only
        + (
            "mul.lo.u32 %r2, %r0, 3;\nadd.u32 %r3, %r0, 1000;\n"
            f"st{dot}.v4.b32 {place}, {{%r0, %r2, %r3, 7}};\n".replace(", 7}", ", %r6}").replace(
                "st", "mov.u32 %r6, 7;\nst", 1
            )
            + f"ld{dot}.v4.u32 {{%r10, %r11, %r12, %r13}}, {place};\n"
            + f"ld{dot}.v2.b64 {{%rd30, %rd31}}, {place};\ncvt.u32.u64 %r14, %rd31;\n"
            "add.u32 %r5, %r10, %r11;\nadd.u32 %r5, %r5, %r12;\nadd.u32 %r5, %r5, %r13;\nadd.u32 %r5, %r5, %r14;\n"
            + STORE
            + "$end:\n"
        )
    )
    want = lanes(lambda i: i + 3 * i + i + 1000 + 7 + i + 1000)
    got = words(body, declarations=SHARED, out_bytes=8192)
    assert got == (want if how == "lanes" else [want[9] if i == 9 else 0 for i in range(32)])


def test_shared_memory_starts_poisoned_and_after_the_reserved_kilobyte() -> None:
    assert (
        words(LANE + AT.format(shift=2) + "ld.shared.u32 %r5, [%r91];\n" + STORE, declarations=SHARED)
        == [0xFFFFFFFF] * 32
    )
    assert words(LANE + "mov.u32 %r5, cell;\n" + STORE, declarations=SHARED) == [1024] * 32


def test_extern_arrays_share_one_offset_after_static_ones() -> None:
    declarations = (
        ".shared .align 4 .b8 cell[100];\n.extern .shared .align 16 .b8 a[];\n.extern .shared .align 256 .b8 b[];\n"
    )
    body = (
        LANE
        + "mov.u32 %r5, a;\nmov.u32 %r6, b;\nmov.u32 %r7, cell;\nsub.u32 %r6, %r6, %r5;\nadd.u32 %r5, %r5, %r6;\n"
        + STORE
    )
    assert words(body, declarations=declarations, smem=64) == [1280] * 32


def test_local_memory_belongs_to_a_thread() -> None:
    body = LANE + (
        ".local .align 8 .b8 depot[64];\nmov.u64 %rd20, depot;\ncvta.local.u64 %rd21, %rd20;\n"
        "and.b32 %r1, %r0, 3;\nshl.b32 %r1, %r1, 2;\n"
        "cvt.u64.u32 %rd22, %r1;\nadd.s64 %rd23, %rd21, %rd22;\nst.u32 [%rd23], %r0;\nst.local.u32 [%rd20+32], %r1;\n"
        "add.s64 %rd24, %rd20, %rd22;\nld.local.u32 %r3, [%rd24];\nld.u32 %r4, [%rd21+32];\nadd.u32 %r5, %r3, %r4;\n"
        + STORE
    )
    assert words(body) == lanes(lambda i: i + 4 * (i % 4))


@pytest.mark.parametrize("first", [0, 1])
def test_generic_addresses_of_two_state_spaces(first: int) -> None:
    """Even lanes name shared memory and odd ones global, or the other way round."""
    place = (
        "mul.wide.u32 %rd20, %r0, 8;\ncvta.shared.u64 %rd21, cell;\nadd.s64 %rd21, %rd21, %rd20;\n"
        "add.s64 %rd22, %rd1, %rd20;\nadd.s64 %rd22, %rd22, 1024;\n"
        f"and.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, {first};\nselp.b64 %rd23, %rd21, %rd22, %p1;\n"
    )
    body = (
        LANE
        + place
        + "add.u32 %r2, %r0, 100;\nst.v2.u32 [%rd23], {%r2, %r0};\natom.add.u32 %r3, [%rd23], 5;\n"
        + "ld.u32 %r4, [%rd23];\nld.v2.u32 {%r6, %r7}, [%rd23];\nst.u32 [%rd23+4], %r4;\n"
        + "ld.u32 %r8, [%rd23+4];\nadd.u32 %r5, %r3, %r4;\nmad.lo.u32 %r5, %r6, 1000, %r5;\n"
        + "mad.lo.u32 %r5, %r7, 1000000, %r5;\nadd.u32 %r5, %r5, %r8;\n"
        + STORE
    )
    expected = lanes(lambda i: (i + 100) + 2 * (i + 105) + 1000 * (i + 105) + 1000000 * i)
    assert words(body, declarations=SHARED) == expected


def test_parameters_by_offset_and_generic_address() -> None:
    text = HEADER + (
        ".visible .entry k(.param .u64 out, .param .align 8 .b8 s[16])\n"
        "{ .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %rs<3>;\n"
        "ld.param.u64 %rd1, [out];\nmov.b64 %rd2, s;\nld.param.u32 %r1, [%rd2+4];\ncvta.param.u64 %rd3, %rd2;\n"
        "ld.u32 %r2, [%rd3+8];\n"
        "ld.param.u16 %rs1, [s+12];\ncvt.u32.u16 %r3, %rs1;\nst.global.v2.u32 [%rd1], {%r1, %r2};\n"
        "st.global.u32 [%rd1+8], %r3;\n"
        "ld.param.v2.u32 {%r4, %r5}, [s];\nst.global.u32 [%rd1+12], %r5;\nret; }"
    )
    memory = GlobalMemory()
    out = memory.allocate(64)
    params = out.address.to_bytes(8, "little") + np.array([1, 2, 3, 0xABCD0004], np.uint32).tobytes()
    run(parse(text), Launch("k", (1, 1, 1), (1, 1, 1), params=params), memory)
    assert out.data.view(np.uint32)[:4].tolist() == [2, 3, 4, 2]


def test_global_variables_and_constants() -> None:
    declarations = ".global .align 4 .u32 counter[2] = {5, 6};\n.const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    body = LANE + (
        "and.b32 %r1, %r0, 3;\nmul.wide.u32 %rd20, %r1, 4;\nmov.u64 %rd21, table;\n"
        "add.s64 %rd22, %rd21, %rd20;\nld.const.u32 %r2, [%rd22];\n"
        "ld.global.u32 %r3, [counter+4];\nadd.u32 %r5, %r2, %r3;\n" + STORE
    )
    assert words(body, declarations=declarations) == lanes(lambda i: 10 * (i % 4 + 1) + 6)


ATOMS = {
    "add.u32": (lambda v: sum(v), "%r0"), "min.s32": (lambda v: 0, "%r0"), "max.u32": (lambda v: 31, "%r0"),
    "or.b32": (lambda v: 31, "%r0"), "xor.b32": (lambda v: 0, "%r0"), "exch.b32": (lambda v: 31, "%r0"),
}  # fmt: skip


@pytest.mark.parametrize("op", list(ATOMS))
@pytest.mark.parametrize("space", ["shared", "global"])
def test_atomics_apply_every_lane(op: str, space: str) -> None:
    place = "[cell]" if space == "shared" else "[%rd1+512]"
    store = "st.shared.u32 [cell], %r6;\n" if space == "shared" else ""
    body = (
        LANE
        + "mov.u32 %r6, 0;\n"
        + store
        + f"atom.{space}.{op} %r7, {place}, %r0;\nbar.warp.sync -1;\nld.{space}.u32 %r5, {place};\n"
        + STORE
    )
    assert words(body, declarations=SHARED) == [ATOMS[op][0](range(32))] * 32


def test_cas_inc_and_red() -> None:
    body = LANE + (
        "atom.global.cas.b32 %r5, [%rd1+512], 0, %r0;\natom.global.inc.u32 %r6, [%rd1+516], 9;\n"
        "red.global.add.u32 [%rd1+520], 2;\n"
        "add.u32 %r5, %r6, 0;\n" + STORE
    )
    out = execute(body).view(np.uint32)
    assert out[:32].tolist() == lanes(lambda i: i % 10)
    assert out[130] == 64


FAULTS = {
    "ld.shared.u32 %r5, [%r90+4096];": "outside the CTA's shared memory",
    "ld.shared.u32 %r5, [%r90+2];": "not aligned",
    "mov.u32 %r2, 512;\nld.shared.u32 %r5, [%r2];": "outside",
    "shl.b32 %r2, %r0, 8;\nadd.u32 %r2, %r2, %r90;\nst.shared.u32 [%r2], %r0;": "outside",
    "shl.b32 %r2, %r0, 1;\nadd.u32 %r2, %r2, %r90;\nst.shared.u32 [%r2], %r0;": "not aligned",
    "ld.global.u32 %r5, [%rd1+4096];": "outside every allocation",
    "ld.global.u32 %r5, [%rd1+1];": "not aligned",
    "mul.wide.u32 %rd5, %r0, 1024;\nadd.s64 %rd5, %rd5, %rd1;\nst.global.u32 [%rd5], %r0;": "outside every allocation",
    "mov.u64 %rd5, 0;\nld.u32 %r5, [%rd5];": "outside every allocation",
    "st.global.v4.b32 [%rd1+8], {%r0, %r0, %r0, %r0};": "not aligned",
}


@pytest.mark.parametrize("text", list(FAULTS))
def test_bad_accesses_are_faults_with_their_place(text: str) -> None:
    with pytest.raises(Fault, match=FAULTS[text]) as caught:
        words(LANE + "mov.u32 %r90, cell;\n" + text + "\n", declarations=SHARED)
    assert caught.value.instruction == text.split("\n")[-1].removesuffix(";")


def test_lanes_that_are_off_do_not_access() -> None:
    body = LANE + (
        "mov.u32 %r5, 1;\nsetp.lt.u32 %p1, %r0, 8;\nmul.wide.u32 %rd5, %r0, 512;\nadd.s64 %rd5, %rd5, %rd1;\n"
        "@%p1 st.global.u32 [%rd5], %r5;\n"
    )
    got = execute(body).view(np.uint32)
    assert got[::128].tolist() == [1] * 8


@pytest.mark.parametrize("spread", [0, 1, 4], ids=["one place", "pairs", "apart"])
@pytest.mark.parametrize("some", [False, True], ids=["all lanes", "some lanes"])
def test_sums_of_f32_by_atomics(spread: int, some: bool) -> None:
    """Lane i adds i to word i * spread / 4 of 32 words of 100."""
    guard = "setp.lt.u32 %p1, %r0, 21;\n@!%p1 bra $skip;\n" if some else ""
    body = LANE + (
        "mov.f32 %f1, 0f42C80000;\nst.global.f32 [%rd41], %f1;\nbar.warp.sync -1;\n"
        f"mul.lo.u32 %r1, %r0, {spread};\nshr.u32 %r1, %r1, 2;\n"
        "mul.wide.u32 %rd20, %r1, 4;\nadd.s64 %rd21, %rd1, %rd20;\n"
        f"cvt.rn.f32.u32 %f2, %r0;\n{guard}atom.global.add.f32 %f3, [%rd21], %f2;\n"
        "st.global.f32 [%rd41+512], %f3;\n$skip:\n"
    )
    got = execute(body)[: 2 * 512].view(np.float32)
    want, before = np.full(32, 100.0), np.zeros(32)
    for lane in range(21 if some else 32):
        before[lane] = want[lane * spread // 4]
        want[lane * spread // 4] += lane
    assert got[:32].tolist() == want.tolist()
    assert got[128:160].tolist() == before.tolist()


def test_generic_addresses_where_shared_ones_are_named() -> None:
    """The low half of a 64-bit register is the place in the shared window."""
    body = (
        LANE + "mov.u32 %r5, word;\ncvt.u64.u32 %rd10, %r5;\ncvta.shared.u64 %rd10, %rd10;\n"
        "st.shared.u32 [%rd10+4], 7;\natom.shared.add.u32 %r6, [%rd10+4], 0;\n"
        "mbarrier.init.shared::cta.b64 [%rd10+8], 1;\nmbarrier.arrive.shared::cta.b64 _, [%rd10+8];\n"
        "ld.shared.u32 %r6, [word+4];\nst.global.u32 [%rd41], %r6;\n"
    )
    got = execute(body, threads=1, declarations=".shared .align 8 .b32 word[4];\n")
    assert got.view(np.uint32)[0] == 7


def test_cache_policies_are_hints() -> None:
    body = (
        LANE + "mov.f32 %f1, 0f3F800000;\ncreatepolicy.fractional.L2::evict_first.b64 %rd10, %f1;\n"
        "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd11, 0.5;\n"
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd12, [%rd2], 64, 128;\n"
        "ld.global.L2::cache_hint.u32 %r5, [%rd2], %rd11;\nst.global.L2::cache_hint.u32 [%rd41], %r5, %rd10;\n"
    )
    assert execute(body, np.full(32, 9, np.uint32), threads=1).view(np.uint32)[0] == 9
