# SPDX-License-Identifier: Apache-2.0
"""Tensor copies of the TMA unit between global memory and one CTA's shared memory, tiled mode.

Shared memory is a uint8 array, indexed by absolute shared::cta address. A copy is done whole when called; when that is,
is the machine's choice. A copy moves bytes, and fills what is out of bounds; only loads of the tf32 types round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.memory import Bytes, GlobalMemory
from tmagen.emu.swizzle import REPEAT_BYTES, Index, box_units
from tmagen.emu.tensormap import DataType, Interleave, TensorMap

SMEM_ALIGNMENT = 128
CHUNK_BYTES = 16
_ROUNDED = (DataType.TFLOAT32, DataType.TFLOAT32_FTZ)
# These are spread on the way: 16 elements take 16 bytes of shared memory.
_UNJUDGED_TYPES = (DataType.U4_ALIGN16B, DataType.U6_ALIGN16B)
# complex128 stands for 16 opaque bytes: NumPy moves it fastest.
_UNIT_DTYPE: dict[int, np.dtype[Any]] = {
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
}
_ELEMENT_DTYPE: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


class _Clip(NamedTuple):
    """What of a box is in bounds, outermost dimension first: positions in the box, and these elements in place."""

    where: tuple[slice, ...]
    view: npt.NDArray[Any]


def load(tmap: TensorMap, memory: GlobalMemory, smem: Bytes, dst: int, coords: tuple[int, ...]) -> int:
    """Copy the box at `coords` (signed, innermost first) to shared address `dst`; return the bytes that complete.

    Writes the whole box: elements outside the tensor become zero or NaN (PTX ISA, "Tensor access modes: out-of-bound
    access"). Rows of a swizzled box lie at the swizzle's span, and what a narrower row leaves free stays as it was.
    tf32 is rounded to nearest even; the types with FTZ do not flush here, as an H200 does not.
    Raises Fault for a map or an operand that cannot be and for bytes outside an allocation or shared memory; NotJudged
    for interleaved element types and those that are spread.
    """
    check(tmap, smem, dst, coords, "load")
    check_start(tmap, coords, "load")
    tmap, coords = _in_bytes(tmap, coords)
    units = _units(tmap, dst)
    window = _window(tmap, smem, dst)
    if _is_inside(tmap, coords) and tmap.pattern.unit == 16:
        view = _box_view(tmap, memory, coords, "load")
        if tmap.data_type in _ROUNDED:
            view = _rounded(np.ascontiguousarray(view)).view(view.dtype)
        window[units if tmap.rank <= 2 else units.reshape(view.shape)] = view
        return tmap.box_bytes
    dtype = _ELEMENT_DTYPE[tmap.element_bytes]
    tile = np.full(tmap.counts[::-1], tmap.fill, dtype)
    clip = _clip(tmap, tmap.dims, memory, coords, "load")
    if clip:
        tile[clip.where] = _rounded(clip.view) if tmap.data_type in _ROUNDED else clip.view
    window[units] = tile.reshape(tmap.rows, -1).view(window.dtype)
    return tmap.box_bytes


def store(tmap: TensorMap, memory: GlobalMemory, smem: Bytes, src: int, coords: tuple[int, ...]) -> None:
    """Copy the box at shared address `src` to `coords` of the tensor; what lies past an upper edge is dropped.

    Rows are written in whole 16-byte chunks, as an H200 does: a box that crosses the upper edge of dimension 0 also
    writes its elements from there to the next multiple of 16 bytes of the row. A box that starts at or past an edge
    writes nothing. Element strides spread the rows of a box, as they gather those of a load. Loads are exact to the
    element. Raises Fault for what `load` does, and for a start that is negative, on which an H200 traps.
    """
    check(tmap, smem, src, coords, "store")
    check_target(tmap, coords, "store")
    tmap, coords = _in_bytes(tmap, coords)
    units = _units(tmap, src)
    window = _window(tmap, smem, src)
    if _is_inside(tmap, coords) and tmap.pattern.unit == 16:
        view = _box_view(tmap, memory, coords, "store")
        view[...] = window[units].reshape(view.shape)
        return
    if coords[0] >= tmap.dims[0]:
        return
    clip = _clip(tmap, _stored_dims(tmap), memory, coords, "store")
    if clip:
        tile = window[units].view(_ELEMENT_DTYPE[tmap.element_bytes]).reshape(tmap.counts[::-1])
        clip.view[...] = tile[clip.where]


def check_target(tmap: TensorMap, coords: tuple[int, ...], what: str) -> None:
    """Where a store or reduction may start."""
    if min(coords) < 0:
        raise Fault(f"TMA {what} with a negative start coordinate: {coords}", rule="BG-10")
    check_start(tmap, coords, what)


def check_start(tmap: TensorMap, coords: tuple[int, ...], what: str) -> None:
    """A box starts with a 16-byte chunk of a row, also where nothing of it is in bounds: else an H200 traps."""
    if coords[0] * tmap.data_type.bits % (8 * CHUNK_BYTES):
        where = f"coordinate 0 is {coords[0]} of {tmap.data_type.bits}-bit elements"
        raise Fault(f"TMA {what} that starts inside a 16-byte chunk of the row: {where}", rule="TM-38")


def _in_bytes(tmap: TensorMap, coords: tuple[int, ...]) -> tuple[TensorMap, tuple[int, ...]]:
    """A copy of 4-bit elements that lie dense on both sides is one of bytes: all of its extents are even (PTX ISA,
    "Packed element types", .b4x16).
    """
    if tmap.data_type is not DataType.U4_ALIGN8B or len(coords) != tmap.rank:
        return tmap, coords
    return tmap.of_bytes, (coords[0] // 2, *coords[1:])


def _rounded(words: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return numeric.tf32_round(words.view(np.uint32))


def shared_units(tmap: TensorMap, address: int) -> tuple[int, Index]:
    """A box in shared memory: a first byte, and indices of `tmap.pattern.unit`-byte units counted from it."""
    return address // REPEAT_BYTES * REPEAT_BYTES, _units(tmap, address)


def global_view(
    tmap: TensorMap, memory: GlobalMemory, coords: tuple[int, ...], *, storing: bool
) -> npt.NDArray[Any] | None:
    """What of a box is read or, `storing`, written in global memory, in place; None where nothing is."""
    what = "store" if storing else "load"
    tmap, coords = _in_bytes(tmap, coords)
    if _is_inside(tmap, coords) and tmap.pattern.unit == 16:
        return _box_view(tmap, memory, coords, what)
    dims = tmap.dims
    if storing:
        if coords[0] >= dims[0]:
            return None
        dims = _stored_dims(tmap)
    clip = _clip(tmap, dims, memory, coords, what)
    return clip.view if clip else None


def _stored_dims(tmap: TensorMap) -> tuple[int, ...]:
    """The extents that a store keeps to: its rows end with a whole chunk."""
    chunk = CHUNK_BYTES // tmap.element_bytes
    return (-(-tmap.dims[0] // chunk) * chunk, *tmap.dims[1:])


def check(tmap: TensorMap, smem: Bytes, address: int, coords: tuple[int, ...], what: str) -> None:
    """What load and store ask of their operands alike."""
    if tmap.problems:
        raise Fault(f"TMA {what} with an invalid tensor map: {'; '.join(tmap.problems)}", rule="TM-23")
    if tmap.interleave is not Interleave.NONE:
        raise NotJudged(f"TMA {what} with interleave {tmap.interleave.name}")
    if tmap.data_type in _UNJUDGED_TYPES or (what == "reduction" and tmap.data_type.bits < 8):
        raise NotJudged(f"TMA {what} of element type {tmap.data_type.name}")
    if len(coords) != tmap.rank:
        raise Fault(f"TMA {what} of {len(coords)} coordinates with a tensor map of rank {tmap.rank}", rule="TM-08")
    if address % SMEM_ALIGNMENT:
        raise Fault(
            f"TMA {what}: shared memory address {address:#x} is not a multiple of {SMEM_ALIGNMENT}", rule="TM-02"
        )
    if not 0 <= address <= smem.size - tmap.footprint:
        box = f"box of {tmap.footprint:,} bytes at shared memory address {address:#x}"
        raise Fault(f"TMA {what}: {box} leaves the {smem.size:,} bytes of the CTA", rule="TM-12")


def _units(tmap: TensorMap, address: int) -> Index:
    """The box's units in shared memory, counted from `address` rounded down to 1024."""
    phase = address % REPEAT_BYTES
    units = tmap.units.get(phase)
    if units is None:
        units = tmap.units[phase] = box_units(tmap.pattern, phase, tmap.rows, tmap.row_bytes, tmap.pitch)
    return units


def _window(tmap: TensorMap, smem: Bytes, address: int) -> npt.NDArray[np.generic]:
    """Shared memory from the 1024-byte line of `address` on, as units."""
    line = address // REPEAT_BYTES * REPEAT_BYTES
    view: npt.NDArray[np.generic] = smem[line:].view(_UNIT_DTYPE[tmap.pattern.unit])
    return view


def _is_inside(tmap: TensorMap, coords: tuple[int, ...]) -> bool:
    """Whether the whole box is in bounds and without element strides."""
    for start, box, dim in zip(coords, tmap.counts, tmap.dims, strict=True):
        if start < 0 or start + box > dim:
            return False
    return tmap.counts[1:] == tmap.box[1:]


def _box_view(tmap: TensorMap, memory: GlobalMemory, coords: tuple[int, ...], what: str) -> npt.NDArray[np.generic]:
    """A box that is wholly in bounds, in place in global memory: 16-byte units, outermost dimension first."""
    start = tmap.address + coords[0] * tmap.element_bytes
    extent = tmap.row_bytes
    for coord, stride, count in zip(coords[1:], tmap.strides, tmap.counts[1:], strict=True):
        start += coord * stride
        extent += (count - 1) * stride
    data, offset = _find(memory, start, extent, coords, what)
    shape = (*tmap.counts[:0:-1], tmap.row_bytes // 16)
    return np.ndarray(shape, _UNIT_DTYPE[16], data, offset, (*tmap.strides[::-1], 16))


def _clip(
    tmap: TensorMap, dims: tuple[int, ...], memory: GlobalMemory, coords: tuple[int, ...], what: str
) -> _Clip | None:
    """The part of a box below `dims`, by elements; None where nothing of it is."""
    steps = (1, *tmap.element_strides[1:])
    strides = (tmap.element_bytes, *tmap.strides)
    start, extent = tmap.address, tmap.element_bytes
    where: list[slice] = []
    for coord, step, count, dim, stride in zip(coords, steps, tmap.counts, dims, strides, strict=True):
        first = max(0, -(coord // step)) if coord < 0 else 0  # the first e with coord + e * step >= 0
        end = min(count, -((coord - dim) // step))  # the first e with coord + e * step >= dim
        if end <= first:
            return None
        where.append(slice(first, end))
        start += (coord + first * step) * stride
        extent += (end - 1 - first) * step * stride
    data, offset = _find(memory, start, extent, coords, what)
    where.reverse()
    byte_steps = tuple(step * stride for step, stride in zip(steps, strides, strict=True))[::-1]
    view = np.ndarray(
        tuple(s.stop - s.start for s in where), _ELEMENT_DTYPE[tmap.element_bytes], data, offset, byte_steps
    )
    return _Clip(tuple(where), view)


def _find(memory: GlobalMemory, start: int, extent: int, coords: tuple[int, ...], what: str) -> tuple[Bytes, int]:
    try:
        allocation = memory.find(start, extent)
    except Fault as fault:
        raise Fault(f"TMA {what} of the box at {coords}: {fault}", rule="TM-20") from fault
    return allocation.data, start - allocation.address
