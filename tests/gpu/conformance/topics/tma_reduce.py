# SPDX-License-Identifier: Apache-2.0
"""TMA: reductions into a tensor."""

from __future__ import annotations

from itertools import product

from tests.gpu.conformance.question import Question
from tests.gpu.conformance.tensors import EDGES, store, tensor
from tmagen.emu.tensormap import DataType

PTX = "cp.reduce.async.bulk.tensor"

# What is there and what comes, by type: each with each. Ties of rounding, the largest number and half of its last
# place, subnormal numbers, zeros, infinities and NaN of either kind.
_VALUES = {
    DataType.FLOAT16: (
        "u2",
        (0x3C00, 0x3C01, 0x6800, 0x7BFF, 0x0001, 0x8000, 0x7C00, 0x7E55),
        (0x1000, 0x1001, 0x3C00, 0x4C00, 0x83FF, 0x0000, 0xFC00, 0xFD23),
    ),
    DataType.BFLOAT16: (
        "u2",
        (0x3F80, 0x3F81, 0x4380, 0x7F7F, 0x0001, 0x8000, 0x7F80, 0x7FD5),
        (0x3B80, 0x3B81, 0x3F80, 0x7B00, 0x807F, 0x0000, 0xFF80, 0xFF91),
    ),
    DataType.FLOAT32: (
        "u4",
        (0x3F800000, 0x3F800001, 0x00800001, 0x7F7FFFFF, 0x00000001, 0x80000000, 0x7F800000, 0x7FC12345),
        (0x33800000, 0x33800001, 0x80800000, 0x73000000, 0x807FFFFF, 0x80000000, 0xFF800000, 0xFF812345),
    ),
    DataType.FLOAT64: (
        "u8",
        (0x3FF0000000000001, 0x0010000000000001, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000012345),
        (0x3CA0000000000000, 0x8010000000000000, 0x7C90000000000000, 0x8000000000000001),
    ),
    DataType.UINT32: (
        "u4",
        (0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x0F0F0F0F, 0xDEADBEEF),
        (0, 1, 4, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x00FF00FF),
    ),
    DataType.UINT64: (
        "u8",
        (0, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
        (1, 0xFFFFFFFF, 0x8000000000000000, 0xFFFF0000FFFF0000),
    ),
}
_VALUES[DataType.FLOAT32_FTZ] = _VALUES[DataType.FLOAT32]
_VALUES[DataType.INT32] = _VALUES[DataType.UINT32]
_VALUES[DataType.INT64] = _VALUES[DataType.UINT64]


def _pairs(operation: str, dtype: DataType, asks: str) -> Question:
    """Each old value with each new one: element i of the tensor is pair i."""
    kind, old, new = _VALUES[dtype]
    pairs = list(product(old, new))
    count = len(pairs)
    return store(
        f"tma-reduce-{operation}-{dtype.name.lower().replace('_', '-')}",
        asks,
        tensor(dtype, (count,), (count,)),
        [((0,), 0)],
        count * dtype.bits // 8,
        ptx=PTX,
        source=tuple(b for _, b in pairs),
        before=tuple(a for a, _ in pairs),
        dtype=kind,
        reduction=operation,
    )


QUESTIONS = (
    _pairs("add", DataType.FLOAT16, "How does a sum of f16 round, and what becomes of NaN?"),
    _pairs("add", DataType.BFLOAT16, "How does a sum of bf16 round, and are subnormal numbers kept?"),
    _pairs("add", DataType.FLOAT32, "Does a sum of f32 flush subnormal operands and results?"),
    _pairs("add", DataType.FLOAT32_FTZ, "Does a sum of f32 flush with a map of type FLOAT32_FTZ?"),
    _pairs("add", DataType.FLOAT64, "Does a sum of f64 keep subnormal numbers?"),
    _pairs("add", DataType.UINT32, "Does a sum of u32 wrap?"),
    _pairs("add", DataType.UINT64, "Does a sum of u64 carry between its words?"),
    _pairs("min", DataType.FLOAT16, "What is the minimum of a NaN and a number, and of zeros of either sign, in f16?"),
    _pairs("max", DataType.FLOAT16, "What is the maximum of a NaN and a number, and of zeros of either sign, in f16?"),
    _pairs("min", DataType.BFLOAT16, "Does the minimum of bf16 flush subnormal numbers?"),
    _pairs("max", DataType.BFLOAT16, "What is the maximum of infinity, NaN and numbers in bf16?"),
    _pairs("min", DataType.INT32, "Is the minimum of s32 signed?"),
    _pairs("max", DataType.UINT32, "Is the maximum of u32 unsigned?"),
    _pairs("min", DataType.INT64, "Is the minimum of s64 signed?"),
    _pairs("max", DataType.UINT64, "Is the maximum of u64 unsigned?"),
    _pairs("inc", DataType.UINT32, "From which value does inc wrap to 0?"),
    _pairs("dec", DataType.UINT32, "When does dec give the new value?"),
    _pairs("and", DataType.UINT64, "Is and done on 64 bits?"),
    _pairs("or", DataType.UINT32, "Is or done bit by bit?"),
    _pairs("xor", DataType.INT32, "Is xor allowed on a map of s32?"),
    store(
        "tma-reduce-chunk-f32",
        "Are elements of f32 behind the end of a row reduced where they share its last 16-byte chunk?",
        tensor(DataType.FLOAT32, (5, 2), (8, 2)),
        [((0, 0), 0)],
        128,
        ptx=EDGES,
        source=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
        before=(0.5,),
        dtype="f4",
        reduction="add",
    ),
    store(
        "tma-reduce-chunk-u32",
        "Are elements of u32 behind the end of a row reduced, in a chunk of which only one is in bounds?",
        tensor(DataType.UINT32, (1, 3), (4, 2)),
        [((0, 2), 0)],
        128,
        ptx=EDGES,
        source=(1, 2, 3, 4),
        before=(100,),
        dtype="u4",
        reduction="add",
    ),
    store(
        "tma-reduce-inside-chunk",
        "Does a reduction trap that starts inside a 16-byte chunk of the row?",
        tensor(DataType.FLOAT32, (16, 2), (8, 2)),
        [((2, 0), 0)],
        128,
        ptx=EDGES,
        source=(1.0,),
        before=(0.5,),
        dtype="f4",
        reduction="add",
        may_trap=True,
        fault="starts inside a 16-byte chunk",
    ),
    store(
        "tma-reduce-negative",
        "Does a reduction trap that starts at a negative coordinate?",
        tensor(DataType.FLOAT32, (16, 2), (8, 2)),
        [((0, -1), 0)],
        128,
        ptx=EDGES,
        source=(1.0,),
        before=(0.5,),
        dtype="f4",
        reduction="add",
        may_trap=True,
        fault="negative start coordinate",
    ),
    store(
        "tma-reduce-element-stride",
        "Where do the rows of a reduction go at an element stride of 3, past the upper edge too?",
        tensor(DataType.UINT32, (8, 10), (8, 12), element_strides=(1, 3)),
        [((0, 2), 0)],
        128,
        ptx="cuTensorMapEncodeTiled: elementStrides",
        source=tuple(range(1, 33)),
        before=(1000,),
        dtype="u4",
        reduction="add",
    ),
    store(
        "tma-reduce-twice",
        "Do two reductions of one thread to the same place both count?",
        tensor(DataType.UINT32, (16, 4), (8, 4)),
        [((8, 0), 0), ((8, 0), 128), ((8, 2), 0)],
        256,
        ptx=PTX,
        source=tuple(range(64)),
        before=(1000,),
        dtype="u4",
        reduction="add",
    ),
)
