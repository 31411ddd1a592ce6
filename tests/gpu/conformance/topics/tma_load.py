# SPDX-License-Identifier: Apache-2.0
"""TMA: loads of boxes, edges and fill."""

from __future__ import annotations

from tests.gpu.conformance.question import Question
from tests.gpu.conformance.tensors import EDGES, MARGIN, load, tensor
from tmagen.emu.tensormap import DataType, OobFill

F16, F32, U8 = DataType.FLOAT16, DataType.FLOAT32, DataType.UINT8
NAN = OobFill.NAN_REQUEST_ZERO_FMA

# Bit patterns of float32 around what a type may round or flush: ties and halves of tf32, subnormals, NaN, infinity.
SINGLES = (
    0x3F800000, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x3F802FFF, 0xBF801000, 0xBF803000,
    0x00000001, 0x807FFFFF, 0x00400000, 0x80001000, 0x007FF000, 0x00800000, 0x00800FFF, 0x80801000,
    0x7F7FF000, 0x7F7FFFFF, 0xFF7FEFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF,
    0x7F801000, 0xFF802000, 0x00000000, 0x80000000, 0x3FFFFFFF, 0x4B7FF7FF, 0x33333333, 0xCCCCCCCC,
)  # fmt: skip


def _singles(name: str, dtype: DataType, asks: str) -> Question:
    """A row of float32 patterns loaded with a type that may change them."""
    words = (0,) * (MARGIN // 4) + SINGLES
    raw = tuple(byte for word in words for byte in word.to_bytes(4, "little"))
    return load(name, asks, tensor(dtype, (30,), (32,)), [((0,), 0)], 128, fill=raw, ptx="tensormap.replace .elemtype")


def _nan(kind: str, dtype: DataType) -> Question:
    asks = f"Which NaN fills elements of {kind} out of bounds?"
    width, chunk = 256 // dtype.bits, 128 // dtype.bits
    map_ = tensor(dtype, (width + 1, 3), (width, 4), oob_fill=NAN)
    return load(
        f"tma-load-nan-{kind}", asks, map_, [((chunk, 1), 0)], 128, ptx=EDGES, shows="the last is {w[31]:#010x}"
    )


_PLANE = tensor(F16, (67, 33), (32, 8))

QUESTIONS = (
    load(
        "tma-load-rank-1",
        "What is behind the end of a tensor of rank 1?",
        tensor(F16, (77,), (32,)),
        [((64,), 0), ((-8,), 128)],
        256,
        ptx=EDGES,
    ),
    load(
        "tma-load-lower-corner",
        "Where do elements go when both coordinates are negative?",
        _PLANE,
        [((-8, -3), 0)],
        512,
        ptx=EDGES,
    ),
    load(
        "tma-load-upper-corner",
        "Does a load past both upper edges end with the element, where the row's bytes are no multiple of 16?",
        _PLANE,
        [((48, 29), 0)],
        512,
        ptx=EDGES,
    ),
    load(
        "tma-load-rank-3",
        "In which order do the planes and rows of a box of rank 3 lie?",
        tensor(F16, (24, 5, 6), (16, 3, 2)),
        [((8, 1, 2), 0)],
        256,
    ),
    load(
        "tma-load-rank-4",
        "Are the edges of four dimensions independent: negative in two, past the end in two?",
        tensor(F16, (20, 3, 4, 5), (16, 2, 3, 2)),
        [((-8, 2, -1, 4), 0), ((16, -1, 2, -1), 512)],
        1024,
        ptx=EDGES,
    ),
    load(
        "tma-load-rank-5",
        "Do all five coordinates of a box of rank 5 move it, each by its own stride?",
        tensor(U8, (40, 3, 2, 4, 3), (16, 2, 2, 2, 2)),
        [((16, 1, 0, 2, 1), 0), ((32, 2, 1, 3, 2), 256)],
        512,
    ),
    load(
        "tma-load-outside",
        "Do boxes wholly outside the tensor, on each of its four sides, complete all of their bytes as zeros?",
        _PLANE,
        [((72, 0), 0), ((0, 33), 512), ((-32, 4), 1024), ((8, -8), 1536)],
        2048,
        ptx=EDGES,
    ),
    load(
        "tma-load-far-outside",
        "Do coordinates at the limits of 32 bits wrap into the tensor?",
        _PLANE,
        [((2**31 - 8, 0), 0), ((0, 2**31 - 1), 512), ((-(2**31) + 8, 0), 1024), ((0, -(2**31) + 4), 1536)],
        2048,
        ptx=EDGES,
    ),
    load(
        "tma-load-small-tensor",
        "What if the tensor is smaller than the box in each dimension?",
        tensor(U8, (5, 2, 1), (32, 4, 2)),
        [((0, 0, 0), 0), ((-16, -2, -1), 256)],
        512,
        ptx=EDGES,
    ),
    load(
        "tma-load-256-wide",
        "Is a row of 256 elements, the most that a box may have, whole?",
        tensor(U8, (300, 6), (256, 4)),
        [((48, 1), 0)],
        1024,
    ),
    load(
        "tma-load-256-rows",
        "Are 256 rows, the most that a box may have, all there?",
        tensor(F16, (24, 300), (8, 256)),
        [((8, 60), 0)],
        4096,
    ),
    load(
        "tma-load-8-byte-elements",
        "Do coordinates count elements of 8 bytes?",
        tensor(DataType.UINT64, (9, 5), (4, 3)),
        [((6, 3), 0)],
        128,
        ptx=EDGES,
    ),
    load(
        "tma-load-overlapping-rows",
        "May rows of a tensor overlap, with a stride that is less than a row?",
        tensor(F16, (64, 10), (32, 4), strides=(16,)),
        [((16, 5), 0)],
        256,
        ptx="cuTensorMapEncodeTiled: globalStrides",
    ),
    _nan("f16", F16),
    _nan("bf16", DataType.BFLOAT16),
    _nan("f32", F32),
    _nan("f64", DataType.FLOAT64),
    _nan("tf32", DataType.TFLOAT32),
    load(
        "tma-load-stride-2",
        "How many rows has a box of 7 at element stride 2, and how many bytes complete?",
        tensor(F16, (40, 40), (32, 7), element_strides=(1, 2)),
        [((0, 3), 0)],
        512,
        ptx="cuTensorMapEncodeTiled: elementStrides",
    ),
    load(
        "tma-load-stride-lower-edge",
        "From a negative start, does an element stride of 3 keep its phase at the edge?",
        tensor(F16, (40, 40), (32, 12), element_strides=(1, 3)),
        [((8, -4), 0)],
        256,
        ptx="cuTensorMapEncodeTiled: elementStrides",
    ),
    load(
        "tma-load-stride-upper-edge",
        "Which rows at an element stride of 3 are past the upper edge?",
        tensor(F16, (40, 17), (32, 12), element_strides=(1, 3)),
        [((8, 10), 0)],
        256,
        ptx="cuTensorMapEncodeTiled: elementStrides",
    ),
    load(
        "tma-load-stride-two-dimensions",
        "Do element strides of 8 and 5 in the outer dimensions of rank 3 act each on its own?",
        tensor(U8, (32, 20, 12), (16, 16, 10), element_strides=(1, 8, 5)),
        [((16, 2, 1), 0)],
        128,
        ptx="cuTensorMapEncodeTiled: elementStrides",
    ),
    load(
        "tma-load-stride-dimension-0",
        "Is the element stride of dimension 0 ignored without interleave?",
        tensor(F16, (64, 8), (16, 4), element_strides=(2, 1)),
        [((8, 1), 0)],
        256,
        ptx="cuTensorMapEncodeTiled: elementStrides",
    ),
    _singles("tma-load-float32-ftz", DataType.FLOAT32_FTZ, "Does a load of type FLOAT32_FTZ flush subnormal numbers?"),
    _singles("tma-load-tfloat32", DataType.TFLOAT32, "How does a load of type TFLOAT32 round?"),
    _singles("tma-load-tfloat32-ftz", DataType.TFLOAT32_FTZ, "How does a load of type TFLOAT32_FTZ round and flush?"),
    load(
        "tma-load-to-cta-window",
        "Is the .shared::cta form the same as .shared::cluster with an address of the own CTA?",
        _PLANE,
        [((48, 29), 0)],
        512,
        space="cta",
    ),
    load(
        "tma-load-prefetch",
        "Do prefetches of a map and of a box that is out of bounds change anything?",
        _PLANE,
        [((8, 1), 0)],
        512,
        ptx="prefetch.tensormap; cp.async.bulk.prefetch.tensor",
        rows=(
            'asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");\n    '
            'asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];"\n'
            '                 ::"l"(&map), "r"(-40), "r"(33) : "memory");\n    '
        ),
    ),
    load(
        "tma-load-cache-hint",
        "Does an L2 policy that evicts first change what is copied?",
        _PLANE,
        [((8, 1), 0)],
        1024,
        complete=1024,
        rows=(
            "const u64 policy = 0x12F0000000000000;  // evict first, as CUTLASS has it\n    "
            'asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"\n'
            '                 ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;"\n                 '
            '::"r"(smem(dynamic_smem + 512)), "l"(&map), "r"(bar), "r"(48), "r"(2), "l"(policy) : "memory");\n    '
        ),
    ),
    *(
        load(
            f"tma-load-inside-chunk-{name}",
            f"Does a load trap that starts inside a 16-byte chunk of the row, {where}?",
            tensor(dtype, (67, 33), (256 // dtype.bits, 8)),
            [((start, 1), 0)],
            512,
            ptx=EDGES,
            may_trap=True,
            fault="starts inside a 16-byte chunk",
        )
        for name, dtype, start, where in (
            ("u8", U8, 8, "at byte 8"),
            ("f32", F32, 1, "at its second element"),
            ("negative", F16, -3, "before its first"),
            ("outside", F16, 76, "with nothing of the box in bounds"),
        )
    ),
    load(
        "tma-prefetch-inside-chunk",
        "Does a prefetch trap that starts inside a 16-byte chunk of the row?",
        _PLANE,
        [((8, 1), 0)],
        512,
        ptx="cp.async.bulk.prefetch.tensor",
        may_trap=True,
        fault="starts inside a 16-byte chunk",
        rows=(
            'asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];"\n'
            '                 ::"l"(&map), "r"(3), "r"(1) : "memory");\n    '
        ),
    ),
    load(
        "tma-load-64-aligned",
        "Does a load to shared memory trap that is aligned to 64 bytes only?",
        _PLANE,
        [((0, 0), 64)],
        1024,
        ptx="cp.async.bulk.tensor: dstMem",
        may_trap=True,
        fault="not a multiple of 128",
    ),
    load(
        "tma-load-rank-mismatch",
        "Does a copy with two coordinates trap, given a map of rank 3?",
        tensor(F16, (24, 5, 6), (16, 3, 2)),
        [((8, 1), 0)],
        1024,
        ptx="cp.async.bulk.tensor: tensorCoords",
        may_trap=True,
        fault="2d tensor copy with a tensor map of rank 3",
    ),
)
