# SPDX-License-Identifier: Apache-2.0
"""Questions about one tensor and its map: what both directions of TMA share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tests.gpu.conformance.question import Buffer, Fill, Map, Question, out
from tests.gpu.conformance.tensor_text import Copies, load_kernel, smem_bytes, store_kernel
from tmagen.emu.tensormap import DataType

MARGIN = 512
"""Bytes of the buffer on either side of the tensor: what a copy takes or writes there shows."""

TILED = "cp.async.bulk.tensor; Tensors, Tiled Mode"
EDGES = "Tensors, Tiled Mode: out-of-boundary access"
SWIZZLING = "Tensors, Swizzling Modes"


def strides_of(dtype: DataType, dims: Sequence[int]) -> tuple[int, ...]:
    """Bytes of dimensions 1 and up where each begins at the next multiple of 16 bytes."""
    strides: list[int] = []
    extent = dims[0] * dtype.bits // 8
    for dim in dims[1:]:
        strides.append(-(-extent // 16) * 16)
        extent = strides[-1] * dim
    return tuple(strides)


def extent_of(tensor: Map) -> int:
    """Bytes of the buffer that holds a tensor between its margins."""
    last = sum((dim - 1) * stride for dim, stride in zip(tensor.dims[1:], tensor.strides, strict=True))
    whole = tensor.offset + last + -(-tensor.dims[0] * tensor.data_type.bits // 8 // 16) * 16
    return whole + MARGIN


def tensor(dtype: DataType, dims: tuple[int, ...], box: tuple[int, ...], **options: Any) -> Map:
    """A map over the buffer `in`, whose rows lie as `strides_of` says unless `strides` are given."""
    strides = options.pop("strides", None) or strides_of(dtype, dims)
    return Map("in", dtype, dims, strides, box, offset=MARGIN, **options)


def complete_bytes(tensor: Map) -> int:
    """Bytes that a load of one box completes: all of its elements, wherever they are."""
    steps = (1, *tensor.steps[1:])
    counts = [-(-extent // step) for extent, step in zip(tensor.box, steps, strict=True)]
    return prod(counts) * tensor.data_type.bits // 8


def load(
    id: str, asks: str, map_: Map, loads: Copies, dumped: int, *, ptx: str = TILED, fill: Fill = "bytes", **options: Any
) -> Question:
    """Boxes are loaded to memory full of 0xEE; the answer is what is there then, and whether the barrier completed."""
    text = {name: options.pop(name) for name in ("space", "rows") if name in options}
    complete = options.pop("complete", complete_bytes(map_) * len(loads))
    return Question(
        id,
        asks,
        ptx,
        load_kernel(loads, complete, dumped, **text),
        (out(dumped // 4 + 1), Buffer("in", "u1", extent_of(map_), fill), map_),
        smem=smem_bytes(dumped),
        **options,
    )


def store(
    id: str,
    asks: str,
    map_: Map,
    stores: Copies,
    filled: int,
    *,
    ptx: str = TILED,
    source: Fill = "bytes",
    dtype: str = "u1",
    before: Fill = "poison",
    reduction: str = "",
    **options: Any,
) -> Question:
    """Boxes are stored from memory that holds `source`; the answer is the buffer around the tensor, margins and all.

    `source` and `before` are elements of `dtype`.
    """
    size = int(dtype[-1])
    tensor_of_out = Map("out", *(getattr(map_, name) for name in _FIELDS))
    return Question(
        id,
        asks,
        ptx,
        store_kernel(stores, filled, reduction=reduction),
        (out(extent_of(map_) // size, dtype, fill=before), Buffer("in", dtype, filled // size, source), tensor_of_out),
        smem=filled,
        **options,
    )


_FIELDS = (
    "data_type",
    "dims",
    "strides",
    "box",
    "element_strides",
    "interleave",
    "swizzle",
    "oob_fill",
    "offset",
)
