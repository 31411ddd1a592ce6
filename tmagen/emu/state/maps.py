# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes: fields replaced one by one, and copies (PTX ISA, "tensormap.replace",
"tensormap.cp_fenceproxy").

The maps have the layout that `tensormap` describes; a replacement marks the bytes as one of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import tensormap
from tmagen.emu.compile_emit import SHARED_WINDOW
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.state.convergence import pick, uniform
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.tensormap import DataType, SwizzleMode

Bytes = npt.NDArray[np.uint8]

# Codes of elemtype in the order of the PTX ISA, which is not the driver's.
_ELEMENTS = (
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.INT32, DataType.UINT64, DataType.INT64,
    DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT32_FTZ, DataType.FLOAT64, DataType.BFLOAT16,
    DataType.TFLOAT32, DataType.TFLOAT32_FTZ, DataType.U4_ALIGN8B, DataType.U4_ALIGN16B, DataType.U6_ALIGN16B,
)  # fmt: skip
_ATOMS = (SwizzleMode.B128, SwizzleMode.B128_ATOM_32B, SwizzleMode.B128_ATOM_32B_FLIP_8B, SwizzleMode.B128_ATOM_64B)
# field -> (offset of the first item, bytes of one, items)
_ARRAYS = {
    "global_address": (8, 8, 1),
    "global_dim": (16, 8, 5),
    "global_stride": (56, 8, 4),
    "box_dim": (88, 2, 5),
    "element_stride": (98, 1, 5),
}
_RANK, _TYPE, _INTERLEAVE, _SWIZZLE, _FILL = 6, 5, 7, 103, 105


def map_bytes(cta: Any, space: str, address: int, *, writes: bool) -> Bytes:
    """The 128 bytes of a map in shared or global memory. Raises Fault where they are not."""
    if space == "generic":
        space = "global"
        if SHARED_WINDOW <= address < SHARED_WINDOW + (1 << 32):
            space, address = "shared", cta.own(address - SHARED_WINDOW)
    if address % tensormap.ALIGNMENT:
        raise Fault(f"tensor map at {address:#x}, which is not a multiple of {tensormap.ALIGNMENT}")
    if space == "global":
        found: Bytes = cta.memory.view(address, tensormap.NBYTES)
        return found
    cta.check_shared(address, tensormap.NBYTES, "tensor map access")
    if writes:
        cta.check_overwrite(address, tensormap.NBYTES, "tensormap.replace")
    found = cta.smem[address : address + tensormap.NBYTES]
    return found


def map_replace(frag: Fragment, cta: Any, space: str, address: Any, field: str, ordinal: int, value: Any) -> None:
    """Put a field into a map, in each lane."""
    for lane in frag.lanes.lanes:
        raw = map_bytes(cta, space, pick(address, lane), writes=True)
        raw[:5] = np.frombuffer(tensormap.MAGIC.to_bytes(4, "little") + bytes((tensormap.VERSION,)), np.uint8)
        _put(raw, field, ordinal, pick(value, lane))


def _put(raw: Bytes, field: str, ordinal: int, value: int) -> None:
    if field in _ARRAYS:
        first, size, count = _ARRAYS[field]
        if ordinal >= count:
            raise Fault(f"tensormap.replace of {field} {ordinal}: there are {count}")
        if value >> 8 * size:
            raise Fault(f"tensormap.replace of {field} with {value:,}, which has no room in {size} bytes")
        at = first + ordinal * size
        raw[at : at + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
    elif field == "rank":
        raw[_RANK] = _code(field, value, 5) + 1  # one less than the rank is given
    elif field == "elemtype":
        raw[_TYPE] = _ELEMENTS[_code(field, value, len(_ELEMENTS))]
    elif field == "interleave_layout":
        raw[_INTERLEAVE] = _code(field, value, 3)
    elif field == "fill_mode":
        raw[_FILL] = _code(field, value, 2)
    elif field == "swizzle_mode":
        if value == 4:
            raise NotJudged("tensormap.replace of swizzle_mode with 4: 96-byte swizzling")
        # The atom of a 128-byte swizzle is a field of its own; the map has one code for both.
        if _code(field, value, 4) != SwizzleMode.B128 or raw[_SWIZZLE] not in _ATOMS:
            raw[_SWIZZLE] = value
    else:
        if raw[_SWIZZLE] not in _ATOMS and value:
            raise NotJudged("tensormap.replace of swizzle_atomicity before a swizzle_mode of 128 bytes")
        if raw[_SWIZZLE] in _ATOMS:
            raw[_SWIZZLE] = _ATOMS[_code(field, value, len(_ATOMS))]


def _code(field: str, value: int, count: int) -> int:
    if value >= count:
        raise Fault(f"tensormap.replace of {field} with {value}: the values are 0 to {count - 1}")
    return value


def map_copy(frag: Fragment, cta: Any, target: Any, source: Any) -> None:
    """Copy a map from shared to global memory."""
    at = uniform(frag, target, "the target of tensormap.cp_fenceproxy")
    start = uniform(frag, source, "the source of tensormap.cp_fenceproxy")
    raw = map_bytes(cta, "shared", start, writes=False)
    map_bytes(cta, "global", at, writes=True)[:] = raw


def map_acquire(frag: Fragment, cta: Any, address: Any) -> None:
    """The operand of an acquire is memory that a map may be in."""
    for lane in frag.lanes.lanes:
        map_bytes(cta, "generic", pick(address, lane), writes=False)
