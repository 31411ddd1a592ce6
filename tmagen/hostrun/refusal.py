# SPDX-License-Identifier: Apache-2.0
"""Why the driver refuses a tensor map or a launch, in words: it answers with an error code alone.

The rules are those of the CUDA driver API, cuTensorMapEncodeTiled, and of cudaLaunchKernelEx; `runtime/` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from tmagen.hostrun.record import AttributeCall, Outcome
from tmagen.hostrun.tensor_map import TensorMapFields

_SMEM_ATTRIBUTE = 8  # cudaFuncAttributeMaxDynamicSharedMemorySize
_CLUSTER_ATTRIBUTE = 14  # cudaFuncAttributeNonPortableClusterSizeAllowed
_DEFAULT_SMEM = 48 << 10  # bytes that a kernel may have without asking
_PORTABLE_CLUSTER = 8  # CTAs
_LARGEST_CLUSTER = 16  # CTAs
_LARGEST_BLOCK = 1024  # threads
_LARGEST_GRID = (0x7FFFFFFF, 65535, 65535)  # CTAs
_LARGEST_BOX = 256  # elements along a dimension
_MAP_ALIGNMENT = 64  # bytes
_PADDED = ("16U4_ALIGN16B", "16U6_ALIGN16B")
_PADDED_ROW = 128  # elements
_SWIZZLE_SPAN = {"32B": 32, "64B": 64}  # bytes; 128 in every other mode but NONE


def why_map(fields: TensorMapFields, at: int = 0) -> str | None:
    """The first rule that a refused map breaks; None if it is none that has words here. `at` is where the CUtensorMap
    is to be written.
    """
    if at % _MAP_ALIGNMENT:
        return (
            f"the CUtensorMap is at {at:#x}, which is not a multiple of {_MAP_ALIGNMENT}: GCC without optimisation "
            "(nvcc without -O) misplaces one that a function template returns"
        )
    granule = 32 if fields.interleave == "32B" or fields.data_type in _PADDED else 16
    if fields.address % granule:
        return f"the address {fields.address:#x} is not a multiple of {granule}"
    for i, stride in enumerate(fields.strides, 1):
        if stride % granule:
            return f"the stride of dimension {i}, {stride:,} bytes, is not a multiple of {granule}"
        if stride >> 40:
            return f"the stride of dimension {i}, {stride:,} bytes, is not below 2^40"
    for i, extent in enumerate(fields.dims):
        if not 1 <= extent <= 1 << 32:
            return f"the extent of dimension {i} is {extent:,}: it is 1 to 2^32"
    for i, extent in enumerate(fields.box):
        if not 1 <= extent <= _LARGEST_BOX:
            return f"the box has {extent:,} elements along dimension {i}: it may have 1 to {_LARGEST_BOX}"
    for i, step in enumerate(fields.element_strides):
        if not 1 <= step <= 8:
            return f"the element stride of dimension {i} is {step}: it is 1 to 8"
    return _why_row(fields)


def _why_row(fields: TensorMapFields) -> str | None:
    """What is wrong with the innermost row of the box."""
    if fields.data_type in _PADDED:
        if fields.dims and fields.dims[0] % _PADDED_ROW:
            return f"the extent of dimension 0, {fields.dims[0]:,}, is not a multiple of {_PADDED_ROW}"
        if fields.box and fields.box[0] != _PADDED_ROW:
            return f"the box has {fields.box[0]:,} elements along dimension 0: {fields.data_type} takes {_PADDED_ROW}"
    width = _element_bytes(fields.data_type)
    if width is None or not fields.box or fields.interleave != "NONE":
        return None
    row = fields.box[0] * width
    if row % 16:
        return f"a row of the box has {row} bytes, which is not a multiple of 16"
    span = _SWIZZLE_SPAN.get(fields.swizzle, 128)
    if fields.swizzle != "NONE" and row > span:
        return f"a row of the box has {row} bytes: swizzle {fields.swizzle} takes at most {span}"
    return None


def _element_bytes(data_type: str) -> int | None:
    if data_type.startswith("16U"):
        return None
    return next((size for bits, size in (("16", 2), ("32", 4), ("64", 8), ("8", 1)) if bits in data_type), None)


def why_launch(
    grid: Sequence[int], block: Sequence[int], cluster: Sequence[int], smem: int, allowed: dict[int, int]
) -> str | None:
    """The first rule that a refused launch breaks; `allowed` is what cudaFuncSetAttribute set, by attribute. None if it
    is none that has words here.
    """
    if prod(block) > _LARGEST_BLOCK:
        return f"a block of {prod(block):,} threads: at most {_LARGEST_BLOCK:,}"
    if not all(1 <= extent <= most for extent, most in zip(grid, _LARGEST_GRID, strict=True)):
        return f"a grid of {_by(grid)} CTAs: at most {_by(_LARGEST_GRID)}, and none of them 0"
    if any(c == 0 or g % c for g, c in zip(grid, cluster, strict=True)):
        return f"a grid of {_by(grid)} CTAs cannot be divided into clusters of {_by(cluster)}"
    size = prod(cluster)
    if size > _LARGEST_CLUSTER:
        return f"a cluster of {size} CTAs: at most {_PORTABLE_CLUSTER}, or {_LARGEST_CLUSTER} where they are allowed"
    if size > _PORTABLE_CLUSTER and not allowed.get(_CLUSTER_ATTRIBUTE):
        return (
            f"a cluster of {size} CTAs: more than {_PORTABLE_CLUSTER} need cudaFuncSetAttribute("
            "cudaFuncAttributeNonPortableClusterSizeAllowed)"
        )
    raised = allowed.get(_SMEM_ATTRIBUTE)
    if smem > (_DEFAULT_SMEM if raised is None else raised):
        said = "was not called for it" if raised is None else f"asked for {raised:,} bytes"
        return (
            f"{smem:,} bytes of dynamic shared memory, and cudaFuncSetAttribute(cudaFuncAttributeMax"
            f"DynamicSharedMemorySize) {said}: without it a kernel gets {_DEFAULT_SMEM:,}"
        )
    return None


def _by(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def allowed_by(calls: Iterable[AttributeCall], kernel: str) -> dict[int, int]:
    """What the successful calls of cudaFuncSetAttribute set for a kernel, by attribute."""
    return {call.attribute: call.value for call in calls if call.kernel == kernel and call.error == "cudaSuccess"}


def reasons(outcome: Outcome) -> tuple[str, ...]:
    """Why each refused call of a request was refused, one line each."""
    found = [f"cuTensorMapEncodeTiled: {why}" for c in outcome.encodes if not c.accepted and (why := why_map(c.map))]
    for call in outcome.launches:
        if call.error == "cudaSuccess":
            continue
        allowed = allowed_by(outcome.attributes, call.kernel)
        why = why_launch(call.grid, call.block, call.cluster, call.dynamic_smem_bytes, allowed)
        if why is not None:
            found.append(f"cudaLaunchKernelEx: {why}")
    return tuple(found)
