# SPDX-License-Identifier: Apache-2.0
"""What TVM makes of a script, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class EncodedMap:
    """The arguments of the cuTensorMapEncodeTiled call for one kernel parameter, dimension 0 innermost.

    Enumerators are numbers of the CUDA driver: CUtensorMapInterleave, ...Swizzle, ...L2promotion, ...FloatOOBfill.
    """

    parameter: str
    buffer: str  # A, B or D
    offset_bytes: int  # into that buffer
    dtype: str  # "float16"
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    oob_fill: int


@dataclass(frozen=True, slots=True)
class TirxKernel:
    """A kernel of TVM, and how TVM's host function launches it."""

    text: str  # CUDA C++
    kernel: str  # its symbol
    grid: Dim3
    block: Dim3
    dynamic_smem_bytes: int
    maps: tuple[EncodedMap, ...]  # one per parameter, in order


def kernel_from_json(data: Mapping[str, Any]) -> TirxKernel:
    """Reads what the worker printed."""
    return TirxKernel(
        text=data["text"],
        kernel=data["kernel"],
        grid=_dim3(data["grid"]),
        block=_dim3(data["block"]),
        dynamic_smem_bytes=data["dynamic_smem_bytes"],
        maps=tuple(
            EncodedMap(
                parameter=fields["parameter"],
                buffer=fields["buffer"],
                offset_bytes=fields["offset"],
                dtype=fields["dtype"],
                dims=tuple(fields["dims"]),
                strides=tuple(fields["strides"]),
                box=tuple(fields["box"]),
                element_strides=tuple(fields["element_strides"]),
                interleave=fields["interleave"],
                swizzle=fields["swizzle"],
                l2_promotion=fields["l2_promotion"],
                oob_fill=fields["oob_fill"],
            )
            for fields in data["maps"]
        ),
    )


def _dim3(values: list[int]) -> Dim3:
    x, y, z = values
    return x, y, z
