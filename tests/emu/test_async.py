# SPDX-License-Identifier: Apache-2.0
"""Bulk and tensor copies, bulk groups and tensor cores from PTX, under every completion policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.emu.ptx import HEADER, LANE, execute
from tmagen.emu import EmulatorError, Fault, GlobalMemory, Launch, TensorMap, parse, run
from tmagen.emu.policy import THOROUGH
from tmagen.emu.tensormap import DataType, SwizzleMode

POLICIES = [*THOROUGH, "timed"]
SHARED = ".shared .align 8 .b64 bar;\n.shared .align 1024 .b8 tile[4096];\n"
START = (
    "mov.u32 %r90, tile;\nmov.u32 %r91, bar;\nsetp.ne.u32 %p9, %r0, 0;\n@%p9 bra $ready;\n"
    "mbarrier.init.shared::cta.b64 [%r91], 1;\n$ready:\nbar.sync 0;\n"
)
WAIT = "{\n.reg .pred P;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 P, [%r91], 0;\n@!P bra L;\n}\n"
LOAD = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r91], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd2], 256, [%r91];\n"
)
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r90], 256;\ncp.async.bulk.commit_group;\n"
DATA = np.arange(64, dtype=np.uint32) * 3


def one(n: int, text: str) -> str:
    return f"setp.ne.u32 %p8, %r0, 0;\n@%p8 bra $past{n};\n{text}$past{n}:\n"


@pytest.mark.parametrize("completion", POLICIES)
def test_a_tile_in_and_out(completion: str) -> None:
    body = LANE + START + one(1, LOAD) + WAIT + one(2, STORE + "cp.async.bulk.wait_group 0;\n")
    for seed in range(3):
        got = execute(body, DATA, threads=64, declarations=SHARED, completion=completion, seed=seed)
        assert got.view(np.uint32)[:64].tolist() == DATA.tolist()


# A wait left out: the shared memory that the lanes copy out is still poison where the load completes late.
LANES_COPY = "shl.b32 %r1, %r0, 2;\nadd.u32 %r1, %r1, %r90;\nld.shared.u32 %r5, [%r1];\nst.global.u32 [%rd41], %r5;\n"


def test_reading_without_the_wait_shows_under_lazy_completion() -> None:
    body = LANE + START + one(1, LOAD) + LANES_COPY + WAIT
    assert execute(body, DATA, declarations=SHARED).view(np.uint32)[:32].tolist() == DATA[:32].tolist()
    late = execute(body, DATA, declarations=SHARED, completion="lazy").view(np.uint32)[:32]
    assert late.tolist() == [0xFFFFFFFF] * 32


@pytest.mark.parametrize(
    ("wait", "right"),
    [
        ("cp.async.bulk.wait_group.read 0;\n", True),
        ("cp.async.bulk.wait_group 0;\n", True),
        ("cp.async.bulk.wait_group 1;\n", False),  # keeps the newest group outstanding
        ("", False),
    ],
)
def test_source_is_overwritten_after_the_wait(wait: str, right: bool) -> None:
    clear = "mov.u32 %r6, 9;\nst.shared.u32 [%r90], %r6;\ncp.async.bulk.wait_group 0;\n"
    body = LANE + START + one(1, LOAD) + WAIT + one(2, STORE + wait + clear)
    got = execute(body, DATA, declarations=SHARED, completion="lazy").view(np.uint32)
    assert got[0] == (0 if right else 9)


def test_groups_belong_to_one_thread() -> None:
    # Thread 0 stores, thread 1 waits: that waits for nothing.
    other = (
        "setp.ne.u32 %p7, %r0, 1;\n@%p7 bra $o;\ncp.async.bulk.wait_group 0;\nmov.u32 %r6, 9;\n"
        "st.shared.u32 [%r90], %r6;\n$o:\n"
    )
    body = LANE + START + one(1, LOAD) + WAIT + one(2, STORE) + other + one(3, "cp.async.bulk.wait_group 0;\n")
    assert execute(body, DATA, declarations=SHARED, completion="lazy").view(np.uint32)[0] == 9


@pytest.mark.parametrize("completion", POLICIES)
def test_a_store_that_nobody_waited_for_lands_after_the_exit(completion: str) -> None:
    body = LANE + START + one(1, LOAD) + WAIT + one(2, STORE)
    assert execute(body, DATA, declarations=SHARED, completion=completion).view(np.uint32)[1] == 3


def test_exit_with_a_load_outstanding_is_a_fault() -> None:
    with pytest.raises(Fault, match=r"copies to its shared memory outstanding") as caught:
        execute(LANE + START + one(1, LOAD), DATA, declarations=SHARED, completion="lazy")
    assert caught.value.instruction.startswith("cp.async.bulk.shared::cluster")  # type: ignore[union-attr]


def test_bytes_that_nobody_expected_land_in_a_later_phase() -> None:
    second = LOAD.split("\n", 1)[1]
    again = WAIT.replace("[%r91], 0", "[%r91], 1")
    with pytest.raises(Fault, match="issued in phase 0 completes in phase 1"):
        execute(LANE + START + one(1, LOAD + second) + WAIT + again, DATA, declarations=SHARED, completion="lazy")
    with pytest.raises(Fault, match="tx bytes are outstanding"):
        execute(LANE + START + one(1, LOAD + second) + WAIT, DATA, declarations=SHARED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOAD.replace(", 256, [%r91]", ", 24, [%r91]"), "multiples of 16"),
        (LOAD.replace("[%r90]", "[%r90+8]"), "multiples of 16"),
        (LOAD.replace("[%rd2], 256", "[%rd2], 512"), "outside every allocation"),
        (LOAD.replace("[%r90]", "[%r91]"), "overwrites the live mbarrier"),
        (LOAD.replace("[%r91];", "[%r90];", 2), "no initialised mbarrier"),
        (STORE.replace("[%r90]", "[%r90+65536]"), "outside the CTA's shared memory"),
    ],
)
def test_misuse_of_bulk_copies(text: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        execute(LANE + START + one(1, text), DATA, declarations=SHARED)


# --- tensor copies --------------------------------------------------------------------------------------------------

TENSOR = (
    HEADER
    + """
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 bar;
.visible .entry k(.param .align 64 .b8 source[128], .param .align 64 .b8 target[128])
{{
.reg .pred %p<10>; .reg .b32 %r<99>; .reg .b64 %rd<9>;
mov.u32 %r0, %tid.x;
"""
    + START.replace("{", "{{")
    + """
mov.b64 %rd1, source; cvta.param.u64 %rd3, %rd1;
mov.b64 %rd2, target; cvta.param.u64 %rd4, %rd2;
prefetch.tensormap [%rd3];
mov.u32 %r10, {x}; mov.u32 %r11, {y}; mov.u32 %r12, {x2}; mov.u32 %r13, {y2};
setp.ne.u32 %p1, %r0, 0;
@%p1 bra $w;
mbarrier.arrive.expect_tx.shared.b64 _, [%r91], {bytes};
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
    [%r90], [%rd3, {{%r10, %r11}}], [%r91], %rd4;
$w:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r91], 0;
@!%p2 bra $w;
@%p1 bra $end;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {{%r12, %r13}}], [%r90];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
$end:
ret;
}}
"""
)


def copy(
    completion: str = "eager", swizzle: SwizzleMode = SwizzleMode.B128, text: str = TENSOR, **values: int
) -> npt.NDArray[np.uint16]:
    fields = {"x": 64, "y": 8, "x2": 0, "y2": 0, "bytes": 1024, **values}
    memory = GlobalMemory()
    source, target = memory.allocate(2 * 100 * 40), memory.allocate(2 * 64 * 8)
    source.data.view(np.uint16)[:] = np.arange(1, 4001)
    maps = (
        TensorMap(DataType.FLOAT16, 2, source.address, (100, 40), (200,), (64, 8), (1, 1), swizzle=swizzle),
        TensorMap(DataType.FLOAT16, 2, target.address, (64, 8), (128,), (64, 8), (1, 1), swizzle=swizzle),
    )
    # 200 bytes per row is no multiple of 16: dims stay, the stride becomes that of 104 elements.
    wide = memory.allocate(208 * 40)
    wide.data.view(np.uint16).reshape(40, 104)[:, :100] = np.arange(1, 4001).reshape(40, 100)
    maps = (
        TensorMap(DataType.FLOAT16, 2, wide.address, (100, 40), (208,), (64, 8), (1, 1), swizzle=swizzle),
        maps[1],
    )
    params = b"".join(m.encode() for m in maps)
    launch = Launch("k", (1, 1, 1), (32, 1, 1), params=params)
    run(parse(text.format(**fields)), launch, memory, completion=completion)
    return target.data.view(np.uint16).reshape(8, 64)


@pytest.mark.parametrize("completion", POLICIES)
@pytest.mark.parametrize("swizzle", [SwizzleMode.B128, SwizzleMode.NONE])
def test_tensor_copy_with_zero_fill(completion: str, swizzle: SwizzleMode) -> None:
    want = np.zeros((8, 64), np.uint16)
    want[:, :36] = np.arange(1, 4001).reshape(40, 100)[8:16, 64:]
    np.testing.assert_array_equal(copy(completion, swizzle), want)


def test_stores_are_clipped() -> None:
    want = np.zeros((8, 64), np.uint16)
    want[6:, 48:] = np.arange(1, 4001).reshape(40, 100)[0:2, 0:16]
    np.testing.assert_array_equal(copy(x=0, y=0, x2=48, y2=6), want)


def test_a_prefetch_changes_nothing_but_starts_at_a_chunk() -> None:
    after = "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra $w;"
    prefetch = "mov.u32 %r14, {p};\ncp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd3, {{%r14, %r11}}];\n"
    text = TENSOR.replace(after, prefetch + after)
    np.testing.assert_array_equal(copy(text=text, p=-800), copy())
    with pytest.raises(Fault, match="prefetch that starts inside a 16-byte chunk"):
        copy(text=text, p=3)


def test_wrong_bytes_and_maps() -> None:
    with pytest.raises(EmulatorError, match="parity 0"):
        copy(bytes=2048)
    with pytest.raises(EmulatorError):
        copy(bytes=512)
    text = TENSOR.format(x=0, y=0, x2=0, y2=0, bytes=1024)
    launch = Launch("k", (1, 1, 1), (32, 1, 1), params=bytes(256))
    with pytest.raises(Fault, match="no tensor map here"):
        run(parse(text), launch, GlobalMemory())


# --- tensor cores ---------------------------------------------------------------------------------------------------

M, N, K = 128, 32, 64
MMA = (
    HEADER
    + """
.shared .align 1024 .b8 tiles[20480];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 taddr;
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{{
.reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<30>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [d];
mov.u32 %r0, %tid.x; mov.u32 %r90, tiles; mov.u32 %r91, bar; mov.u32 %r92, taddr;
shr.u32 %r1, %r0, 5;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $alloced;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], 32;
{relinquish}
$alloced:
setp.ne.u32 %p2, %r0, 0;
@%p2 bra $loaded;
mbarrier.init.shared.b64 [%r91], 1;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r91], 20480;
mbarrier.arrive.shared.b64 _, [%r91];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd1], 16384, [%r91];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90+16384], [%rd2], 4096, [%r91];
$loaded:
bar.sync 0;
$w0: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r91], 0;
@!%p3 bra $w0;
ld.shared.u32 %r10, [%r92];
@%p2 bra $issued;
mov.b64 %rd10, {desc_a}; mov.b64 %rd11, {desc_b}; mov.u32 %r11, {idesc};
mov.u32 %r12, 0;
$next:
setp.ne.u32 %p4, %r12, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r10], %rd10, %rd11, %r11, %p4;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2;
add.u32 %r12, %r12, 1;
setp.lt.u32 %p5, %r12, 4;
@%p5 bra $next;
{commit}
$issued:
{wait}
tcgen05.fence::after_thread_sync;
shl.b32 %r13, %r1, 21; add.u32 %r14, %r10, %r13;
mul.wide.u32 %rd20, %r0, 128; add.s64 %rd21, %rd3, %rd20;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}}, [%r14+8];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%rd21+32], {{%r20, %r21, %r22, %r23}};
st.global.v4.b32 [%rd21+48], {{%r24, %r25, %r26, %r27}};
bar.sync 0;
@%p1 bra $end;
{dealloc}
$end:
ret;
}}
"""
)
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r91];"
COMMIT_WAIT = "$w1: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r91], 1;\n@!%p3 bra $w1;"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"


def swizzled(rows: npt.NDArray[np.float16]) -> npt.NDArray[np.uint8]:
    """Rows of 128 bytes as the 128-byte swizzle keeps them: 16-byte chunk c of row r at chunk c ^ (r % 8)."""
    chunks = np.ascontiguousarray(rows).view(np.uint8).reshape(rows.shape[0], 8, 16)
    out = np.empty_like(chunks)
    for r in range(rows.shape[0]):
        for c in range(8):
            out[r, c ^ (r % 8)] = chunks[r, c]
    return out.reshape(-1)


def product(
    completion: str = "eager", seed: int = 0, **change: Any
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """(columns 8 to 15 of the emulated D, of the right D)."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (rows, K)).astype(np.float16) for rows in (M, N))
    memory = GlobalMemory()
    buffers = [memory.allocate(n) for n in (16384, 4096, M * 128)]
    buffers[0].data[:], buffers[1].data[:] = swizzled(a), swizzled(b)
    # Start >> 4, stride 1024 >> 4 at bit 32, constant 1 at bit 46, swizzle 128B = 2 at bit 61 (PTX ISA, tcgen05).
    descriptor = 64 << 32 | 1 << 46 | 2 << 61
    fields = {
        "desc_a": 1024 >> 4 | descriptor, "desc_b": (1024 + 16384) >> 4 | descriptor,
        "idesc": 1 << 4 | (N >> 3) << 17 | (M >> 4) << 24,  # D f32, A and B f16, K-major
        "commit": COMMIT, "wait": COMMIT_WAIT, "dealloc": DEALLOC, "relinquish": RELINQUISH, **change,
    }  # fmt: skip
    params = b"".join(buffer.address.to_bytes(8, "little") for buffer in buffers)
    run(
        parse(MMA.format(**fields)),
        Launch("k", (1, 1, 1), (128, 1, 1), params=params),
        memory,
        completion=completion,
        seed=seed,
    )
    got = buffers[2].data.view(np.float32).reshape(M, 32)[:, 8:16]
    return got, (a.astype(np.float32) @ b.astype(np.float32).T)[:, 8:16]


def test_a_commit_that_names_no_state_space() -> None:
    """It takes a generic address, and as hardware does the place in the shared window; no other memory's."""
    wide = "{{.reg .b64 A;\ncvt.u64.u32 A, %r91;\n{}{};\n}}"
    commit = COMMIT.replace(".shared::cluster", "").replace("%r91", "A").rstrip(";")
    for made in ("", "cvta.shared.u64 A, A;\n"):
        got, want = product(commit=wide.format(made, commit))
        np.testing.assert_array_equal(got, want)
    with pytest.raises(Fault, match="is not in shared memory"):
        product(commit=wide.format("add.s64 A, A, 0x700000000;\n", commit))


# One warp drives both phases of a barrier that four look at: nothing keeps it from lapping the others.
LAPPING = ("producer-first", "starve")


@pytest.mark.parametrize("completion", [policy for policy in POLICIES if policy not in LAPPING])
def test_mma_commit_and_load(completion: str) -> None:
    for seed in range(3):
        got, want = product(completion, seed)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("completion", LAPPING)
def test_a_warp_that_is_lapped_waits_for_ever(completion: str) -> None:
    with pytest.raises(EmulatorError, match=r"parity 0 of the mbarrier .*: current phase 2"):
        product(completion, 1)


def test_reading_before_the_commit_shows_poison() -> None:
    got, _ = product("lazy", wait="", dealloc=COMMIT_WAIT + "\n" + DEALLOC)
    assert np.isnan(got).all()
    with pytest.raises(Fault, match="allocated columns: none") as caught:
        product("lazy", wait="")
    assert caught.value.instruction.startswith("tcgen05.mma")  # type: ignore[union-attr]


def test_missing_commit_is_a_deadlock() -> None:
    with pytest.raises(EmulatorError, match="parity 1"):
        product(commit="")


def test_commit_of_a_thread_without_mmas_arrives_at_once() -> None:
    # The commit moves to a thread that issued nothing: under newest-first order it still is early or late, never lost.
    got, want = product("eager", commit=COMMIT)
    np.testing.assert_array_equal(got, want)


FAULTS = {
    "leak": ({"dealloc": ""}, "tensor memory allocated"),
    "wrong count": ({"dealloc": DEALLOC.replace("32;", "64;")}, "dealloc of 64"),
    "alloc after relinquish": (
        {"relinquish": RELINQUISH + "\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], 32;"},
        "after tcgen05.relinquish",
    ),
    "columns": ({"relinquish": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r92], 48;"}, "power of two"),
    "version bits": ({"desc_a": 1024 >> 4 | 64 << 32 | 2 << 61}, "bits 46-48"),
    "instruction descriptor": ({"idesc": 1 << 4 | (N >> 3) << 17 | 3 << 24}, "M "),
}


@pytest.mark.parametrize("name", list(FAULTS))
@pytest.mark.parametrize("completion", ["eager", "lazy"])
def test_misuse_of_tensor_memory(name: str, completion: str) -> None:
    change, message = FAULTS[name]
    with pytest.raises(Fault, match=message) as caught:
        product(completion, **change)
    if name not in ("leak",):
        assert caught.value.ptx_line is not None
    if "descriptor" in name or "bits" in name:
        assert caught.value.instruction.startswith("tcgen05.mma")  # type: ignore[union-attr]


def test_alloc_waits_for_columns() -> None:
    # Warp 1 takes all 512 columns only when warp 0 has given its 32 back.
    text = (
        HEADER
        + """
    .shared .align 4 .b32 one; .shared .align 4 .b32 two;
    .visible .entry k() { .reg .pred %p<3>; .reg .b32 %r<9>;
    mov.u32 %r0, %tid.x; setp.ge.u32 %p1, %r0, 32; mov.u32 %r1, one; mov.u32 %r2, two;
    @%p1 bra $second;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
    bar.sync 0;
    ld.shared.u32 %r3, [%r1];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
    ret;
    $second:
    bar.sync 0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 512;
    ld.shared.u32 %r3, [%r2];
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 512;
    ret; }
    """
    )
    for completion in POLICIES:
        run(parse(text), Launch("k", (1, 1, 1), (64, 1, 1)), GlobalMemory(), completion=completion)
    broken = text.replace("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;", "")
    with pytest.raises(EmulatorError, match="512 columns of tensor memory: 32 of 512"):
        run(parse(broken), Launch("k", (1, 1, 1), (64, 1, 1)), GlobalMemory())
