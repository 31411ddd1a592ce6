# SPDX-License-Identifier: Apache-2.0
"""The fields of a tensor map, from an encode call or from the 128 bytes that the stand-in runtime writes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

_MAGIC = 0x50414D54  # "TMAP"
_FORMAT = struct.Struct("<IBBBBQ5Q4Q5H5BBBB22s")

# The names of the CUDA driver's enums, without their common prefix, in the order of their codes.
DATA_TYPES = (
    "UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16",
    "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B",
)  # fmt: skip
INTERLEAVES = ("NONE", "16B", "32B")
SWIZZLES = ("NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
L2_PROMOTIONS = ("NONE", "L2_64B", "L2_128B", "L2_256B")
OOB_FILLS = ("NONE", "NAN_REQUEST_ZERO_FMA")


@dataclass(frozen=True, slots=True)
class TensorMapFields:
    """What a tensor map says. Dimension 0 is the innermost one."""

    address: int
    data_type: str  # "FLOAT16"
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # of dimensions 1 and up, bytes
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    interleave: str  # "NONE"
    swizzle: str  # "128B"
    l2_promotion: str  # "L2_128B"
    oob_fill: str  # "NONE"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def decode_tensor_map(data: bytes) -> TensorMapFields | None:
    """The map in 128 bytes of a parameter block; None if they hold no map (a kernel that never looks at it)."""
    if len(data) != _FORMAT.size:
        return None
    (magic, version, data_type, rank, interleave, address, *rest) = _FORMAT.unpack(data)
    if magic != _MAGIC or version != 1 or not 1 <= rank <= 5:
        return None
    dims, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
    swizzle, promotion, fill = rest[19:22]
    return TensorMapFields(
        address,
        name_of(DATA_TYPES, data_type),
        tuple(dims[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[:rank]),
        tuple(steps[:rank]),
        name_of(INTERLEAVES, interleave),
        name_of(SWIZZLES, swizzle),
        name_of(L2_PROMOTIONS, promotion),
        name_of(OOB_FILLS, fill),
    )


def from_event(event: Mapping[str, Any]) -> TensorMapFields:
    """The map that an encode call asked for, valid or not. Arrays that were null are empty."""

    def items(key: str) -> tuple[int, ...]:
        return tuple(event[key] or ())

    return TensorMapFields(
        address=event["address"],
        data_type=name_of(DATA_TYPES, event["data_type"]),
        dims=items("dims"),
        strides=items("strides"),
        box=items("box"),
        element_strides=items("element_strides"),
        interleave=name_of(INTERLEAVES, event["interleave"]),
        swizzle=name_of(SWIZZLES, event["swizzle"]),
        l2_promotion=name_of(L2_PROMOTIONS, event["l2_promotion"]),
        oob_fill=name_of(OOB_FILLS, event["oob_fill"]),
    )


def name_of(names: Sequence[str], code: int) -> str:
    """The name behind an enum's code; the code itself where no name belongs to it."""
    return names[code] if 0 <= code < len(names) else str(code)
