# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes: every field, and a copy with a map that was made this way."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from tests.emu.ptx import HEADER
from tmagen.emu import EmulatorError, Fault, GlobalMemory, Launch, Module, NotJudged, TensorMap, parse, run
from tmagen.emu.tensormap import DataType, Interleave, OobFill, SwizzleMode

TEXT = (
    HEADER
    + """
.shared .align 128 .b8 made[128]; .shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out, .param .u64 source)
{{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [source];
mov.u32 %r0, %tid.x; mov.u32 %r1, made; mov.u32 %r2, tile; mov.u32 %r3, bar; cvt.u64.u32 %rd3, %r1;
shl.b32 %r4, %r0, 2; add.u32 %r4, %r1, %r4; st.shared.u32 [%r4], 0;
bar.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra $made;
{fields}
mbarrier.init.shared.b64 [%r3], 1;
$made:
bar.sync 0;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;
fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
{use}
ret;
}}
"""
)
PLAIN = {
    "global_address.shared::cta.b1024.b64": "%rd2",
    "rank.shared::cta.b1024.b32": "1",
    "box_dim.shared::cta.b1024.b32": ("64", "4"),
    "global_dim.shared::cta.b1024.b32": ("100", "40"),
    "global_stride.shared::cta.b1024.b64": ("208",),
    "element_stride.shared::cta.b1024.b32": ("1", "1"),
    "elemtype.shared::cta.b1024.b32": "6",
    "interleave_layout.shared::cta.b1024.b32": "0",
    "swizzle_mode.shared::cta.b1024.b32": "3",
    "fill_mode.shared::cta.b1024.b32": "0",
}


def replacements(fields: dict[str, str | tuple[str, ...]]) -> str:
    lines = []
    for name, value in fields.items():
        if isinstance(value, str):
            lines.append(f"tensormap.replace.tile.{name} [%rd3], {value};")
        else:
            lines += [f"tensormap.replace.tile.{name} [%rd3], {i}, {item};" for i, item in enumerate(value)]
    return "\n".join(lines)


@lru_cache(maxsize=64)
def module(fields: str, use: str) -> Module:
    return parse(TEXT.format(fields=fields, use=use))


def made(use: str = "", **changes: str | tuple[str, ...]) -> tuple[TensorMap, np.ndarray, int]:
    """(the map, the output after its first 128 bytes, the source's address)."""
    fields = dict(PLAIN)
    for name, value in changes.items():
        fields[next((key for key in fields if key.startswith(name + ".")), name)] = value
    memory = GlobalMemory()
    out, source = memory.allocate(4096), memory.allocate(208 * 40)
    source.data.view(np.uint16)[:] = np.arange(104 * 40)
    params = out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    run(module(replacements(fields), use), Launch("k", (1, 1, 1), (32, 1, 1), params=params), memory)
    return TensorMap.decode(out.data[:128].tobytes()), out.data[128:], source.address


def test_every_field() -> None:
    tmap, _, address = made()
    assert tmap == TensorMap(
        DataType.FLOAT16, 2, address, (100, 40), (208,), (64, 4), (1, 1), Interleave.NONE, SwizzleMode.B128
    )


ELEMENTS = (
    "UINT8 UINT16 UINT32 INT32 UINT64 INT64 FLOAT16 FLOAT32 FLOAT32_FTZ FLOAT64 BFLOAT16 TFLOAT32 TFLOAT32_FTZ "
    "U4_ALIGN8B U4_ALIGN16B U6_ALIGN16B"
).split()
"""In the order of the PTX ISA's table of elemtype values."""


@pytest.mark.parametrize(("code", "name"), list(enumerate(ELEMENTS)), ids=ELEMENTS)
def test_element_types(code: int, name: str) -> None:
    assert made(elemtype=str(code))[0].data_type is DataType[name]


def test_swizzles_and_fill() -> None:
    for code, mode in enumerate((SwizzleMode.NONE, SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128)):
        assert made(swizzle_mode=str(code))[0].swizzle is mode
    atoms = (
        SwizzleMode.B128,
        SwizzleMode.B128_ATOM_32B,
        SwizzleMode.B128_ATOM_32B_FLIP_8B,
        SwizzleMode.B128_ATOM_64B,
    )
    for code, mode in enumerate(atoms):
        assert made(**{"swizzle_atomicity.shared::cta.b1024.b32": str(code)})[0].swizzle is mode
    assert made(fill_mode="1")[0].oob_fill is OobFill.NAN_REQUEST_ZERO_FMA
    assert made(interleave_layout="2")[0].interleave is Interleave.B32


USE = """
@%p1 bra $end;
mov.u32 %r5, 64; mov.u32 %r6, 2;
mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r5, %r6}], [%r3];
$w: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
@!%p2 bra $w;
cp.async.bulk.global.shared::cta.bulk_group [%rd1+128], [%r2], 512;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
$end:
"""


def test_a_copy_with_it() -> None:
    got = made(USE, swizzle_mode="0")[1].view(np.uint16)[:256].reshape(4, 64)
    want = np.zeros((4, 64), np.uint16)
    want[:, :36] = np.arange(104 * 40).reshape(40, 104)[2:6, 64:100]
    np.testing.assert_array_equal(got, want)


def test_a_map_in_global_memory_may_change() -> None:
    change = (
        "mov.u32 %r7, 16;\ntensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, %r7;\n"
        "tensormap.replace.tile.box_dim.b1024.b32 [%rd1], 1, %r7;\nfence.proxy.tensormap::generic.release.gpu;\n"
    )
    assert made("@%p1 bra $end;\n" + change + "$end:\n")[0].box == (16, 16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": "5"}, "rank with 5"),
        ({"box_dim": ("1", "1", "1", "1", "1", "1")}, "box_dim 5"),
        ({"swizzle_mode": "5"}, "swizzle_mode with 5"),
        ({"box_dim": ("65536",)}, "no room in 2 bytes"),
        ({"global_address": "%rd1"}, None),
    ],
)
def test_values_that_cannot_be(changes: dict[str, str | tuple[str, ...]], message: str | None) -> None:
    if message is None:
        made(**changes)
        return
    with pytest.raises(Fault, match=message):
        made(**changes)


def test_what_is_not_known() -> None:
    with pytest.raises(NotJudged, match="96-byte"):
        made(swizzle_mode="4")
    with pytest.raises(EmulatorError):
        made(USE, global_dim=("0", "40"))
