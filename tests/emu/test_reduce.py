# SPDX-License-Identifier: Apache-2.0
"""Bulk reductions into global memory, by bytes and by boxes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.ptx import HEADER
from tmagen.emu import EmulatorError, Fault, GlobalMemory, Launch, NotJudged, TensorMap, parse, run
from tmagen.emu.policy import THOROUGH
from tmagen.emu.tensormap import DataType, SwizzleMode

POLICIES = [*THOROUGH, "timed"]
TEXT = (
    HEADER
    + """
.shared .align 1024 .b8 tile[4096];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 source)
{{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [source]; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
mov.u32 %r0, %tid.x; mov.u32 %r2, tile; mov.u32 %r5, {x}; mov.u32 %r6, {y};
shl.b32 %r3, %r0, 4; cvt.u64.u32 %rd4, %r3; add.s64 %rd4, %rd2, %rd4; add.u32 %r3, %r2, %r3;
ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd4];
st.shared.v4.u32 [%r3], {{%r10, %r11, %r12, %r13}};
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p1, %r0, 0;
@%p1 bra $end;
{reduction}
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
$end:
ret;
}}
"""
)
BULK = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}.{kind} [%rd1], [%r2], 512;"
TENSOR = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{name}.tile.bulk_group [%rd3, {{%r5, %r6}}], [%r2];"
MAP = TensorMap(DataType.FLOAT16, 2, 4096, (8, 8), (16,), (8, 8), (1, 1))


def reduced(reduction: str, old: Any, new: Any, tmap: Any = None, *, completion: str = "eager", **fields: int) -> Any:
    memory = GlobalMemory()
    out, source = memory.allocate(old.nbytes), memory.allocate(512)
    out.data[:] = old.reshape(-1).view(np.uint8)
    source.data[: new.nbytes] = new.reshape(-1).view(np.uint8)
    raw = (MAP if tmap is None else tmap(out.address)).encode()
    params = raw + out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    text = TEXT.format(reduction=reduction, **{"x": 0, "y": 0, **fields})
    run(parse(text), Launch("k", (1, 1, 1), (32, 1, 1), params=params), memory, completion=completion)
    return out.data.view(old.dtype).reshape(old.shape)


RNG = np.random.default_rng(3)
CASES = [
    ("add", "u32", np.uint32, lambda a, b: a + b),
    ("add", "s32", np.int32, lambda a, b: a + b),
    ("add", "u64", np.uint64, lambda a, b: a + b),
    ("add", "f32", np.float32, lambda a, b: a + b),
    ("add", "f64", np.float64, lambda a, b: a + b),
    ("add.noftz", "f16", np.float16, lambda a, b: a + b),
    ("add.noftz", "bf16", ml_dtypes.bfloat16, lambda a, b: a + b),
    ("min", "s32", np.int32, np.minimum),
    ("max", "s64", np.int64, np.maximum),
    ("min", "f16", np.float16, np.minimum),
    ("inc", "u32", np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)),
    ("dec", "u32", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),
    ("and", "b32", np.uint32, np.bitwise_and),
    ("or", "b64", np.uint64, np.bitwise_or),
    ("xor", "b32", np.uint32, np.bitwise_xor),
]


@pytest.mark.parametrize(("name", "kind", "dtype", "combine"), CASES, ids=[f"{c[0]}.{c[1]}" for c in CASES])
def test_contiguous_bytes(name: str, kind: str, dtype: Any, combine: Any) -> None:
    count = 512 // np.dtype(dtype).itemsize
    low = -50 if np.dtype(dtype).kind != "u" else 0
    old, new = (RNG.integers(low, 51, count).astype(dtype) for _ in range(2))
    # The operation stands before .noftz and the type.
    got = reduced(BULK.format(name=name, kind=kind), old, new)
    assert got.tobytes() == combine(old, new).astype(dtype).tobytes()


def test_float32_keeps_subnormals() -> None:
    """An H200 does, though the ISA says otherwise."""
    tiny = np.float32(1e-40)
    old, new = np.full(128, tiny, np.float32), np.full(128, tiny, np.float32)
    assert (reduced(BULK.format(name="add", kind="f32"), old, new) == tiny + tiny).all()


@pytest.mark.parametrize(("kind", "one", "nan"), [("f16", 0x3C00, 0x7E01), ("bf16", 0x3F80, 0xFFC1)])
def test_nan_gives_way_to_numbers_and_zeros_have_an_order(kind: str, one: int, nan: int) -> None:
    old, new = np.zeros(256, np.uint16), np.zeros(256, np.uint16)
    old[:5], new[:5] = (nan, one, nan, 0, 0x8000), (one, nan, nan, 0x8000, 0)
    assert reduced(BULK.format(name="min", kind=kind), old, new)[:5].tolist() == [one, one, 0x7FFF, 0x8000, 0x8000]
    assert reduced(BULK.format(name="max", kind=kind), old, new)[:5].tolist() == [one, one, 0x7FFF, 0, 0]
    infinity = 0x7C00 if kind == "f16" else 0x7F80
    old[:2], new[:2] = (infinity, nan), (infinity | 0x8000, one)
    assert reduced(BULK.format(name="add.noftz", kind=kind), old, new)[:2].tolist() == [0x7FFF, 0x7FFF]


@pytest.mark.parametrize("completion", POLICIES)
@pytest.mark.parametrize("swizzle", [SwizzleMode.NONE, SwizzleMode.B128, SwizzleMode.B32])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (16, 4), (24, 11), (40, 0)])
def test_a_box_adds_up_to_the_edges(completion: str, swizzle: SwizzleMode, x: int, y: int) -> None:
    """32 columns by 12 rows, of which 30 columns exist; the box is 16 by 4 with rows at the swizzle's pitch.

    The last two columns are in the 16-byte chunk in which a row ends, and are added to: an H200 does so.
    """
    old = RNG.integers(-9, 10, (12, 32)).astype(np.float16)
    box = RNG.integers(-9, 10, (4, 16)).astype(np.float16)
    pitch = {SwizzleMode.NONE: 32, SwizzleMode.B128: 128, SwizzleMode.B32: 32}[swizzle]
    shared = np.zeros(512, np.uint8)
    raw = box.view(np.uint8).reshape(4, 32)
    for row in range(4):
        for chunk in range(2):
            at = row * pitch + 16 * chunk
            bits = {SwizzleMode.NONE: 0, SwizzleMode.B128: at >> 7 & 7, SwizzleMode.B32: at >> 7 & 1}[swizzle]
            shared[(at ^ bits << 4) : (at ^ bits << 4) + 16] = raw[row, 16 * chunk : 16 * chunk + 16]

    def tmap(address: int) -> TensorMap:
        return TensorMap(DataType.FLOAT16, 2, address, (30, 12), (64,), (16, 4), (1, 1), swizzle=swizzle)

    got = reduced(TENSOR.format(name="add"), old, shared, tmap, completion=completion, x=x, y=y)
    want = old.copy()
    part = want[y : y + 4, x : x + 16]
    part += box[: part.shape[0], : part.shape[1]]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("reduction", "error", "message"),
    [
        (BULK.format(name="add", kind="f32").replace("512", "24"), Fault, "multiples of 16"),
        (BULK.format(name="add", kind="f32").replace("[%rd1]", "[%rd1+65536]"), Fault, "outside every allocation"),
        (BULK.format(name="add", kind="f16"), NotJudged, "add"),
        (BULK.format(name="min", kind="f32"), NotJudged, "min"),
    ],
)
def test_misuse(reduction: str, error: type[EmulatorError], message: str) -> None:
    with pytest.raises(error, match=message):
        reduced(reduction, np.zeros(128, np.float32), np.zeros(128, np.float32))


def test_element_strides_spread_the_rows() -> None:
    old, box = np.zeros((10, 8), np.uint32), np.arange(32, dtype=np.uint32).reshape(4, 8)

    def tmap(address: int) -> TensorMap:
        return TensorMap(DataType.UINT32, 2, address, (8, 10), (32,), (8, 12), (1, 3))

    got = reduced(TENSOR.format(name="add"), old, box.view(np.uint8).ravel(), tmap, y=2)
    want = old.copy()
    want[[2, 5, 8]] = box[:3]
    np.testing.assert_array_equal(got, want)


def test_a_flushing_map_flushes() -> None:
    """Subnormal operands and results become zeros of their sign; a plain map keeps them."""
    old, new = np.zeros(128, np.uint32), np.zeros(128, np.uint32)
    old[:4], new[:4] = (
        (0x00800001, 0x00800001, 0x00000001, 0x80000000),
        (0x80800000, 0x807FFFFF, 0x80800000, 0x807FFFFF),
    )
    for kind, want in (
        (DataType.FLOAT32_FTZ, [0, 0x00800001, 0x80800000, 0x80000000]),
        (DataType.FLOAT32, [1, 2, 0x807FFFFF, 0x807FFFFF]),
    ):

        def tmap(address: int, kind: DataType = kind) -> TensorMap:
            return TensorMap(kind, 2, address, (16, 8), (64,), (16, 4), (1, 1))

        got = reduced(TENSOR.format(name="add"), old.reshape(8, 16), new.view(np.uint8), tmap)
        assert got.ravel()[:4].tolist() == want


def test_a_start_inside_a_chunk_is_a_fault() -> None:
    def tmap(address: int) -> TensorMap:
        return TensorMap(DataType.UINT32, 2, address, (8, 10), (32,), (8, 4), (1, 1))

    with pytest.raises(Fault, match="reduction that starts inside a 16-byte chunk"):
        reduced(TENSOR.format(name="add"), np.zeros((10, 8), np.uint32), np.zeros(256, np.uint8), tmap, x=2)


def test_negative_coordinates_are_a_fault() -> None:
    with pytest.raises(Fault, match="negative start"):
        reduced(TENSOR.format(name="add"), np.zeros(128, np.float32), np.zeros(128, np.float32), x=-1)


@pytest.mark.parametrize("seed", range(8))
def test_pieces_of_a_reduction_cut_no_element(seed: int) -> None:
    """A carry goes through a whole element, wherever a copy is cut."""
    memory = GlobalMemory()
    out, source = memory.allocate(512), memory.allocate(512)
    out.data.view(np.uint32)[:] = source.data.view(np.uint32)[:] = 0x00FFFFFF
    params = MAP.encode() + out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    text = TEXT.format(reduction=BULK.format(name="add", kind="u32"), x=0, y=0)
    launch = Launch("k", (1, 1, 1), (32, 1, 1), params=params)
    run(parse(text), launch, memory, completion="split", seed=seed)
    assert (out.data.view(np.uint32) == 0x01FFFFFE).all()
