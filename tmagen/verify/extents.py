# SPDX-License-Identifier: Apache-2.0
"""Whether the tensor maps that a host part encoded stay inside the matrices that it was given.

A map that covers more than its matrix reads or writes what belongs to others. Often that changes no value, since what
is read too much only feeds rows and columns that are clipped, so the result alone would not show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmagen.hostrun import EncodeCall, TensorMapFields
from tmagen.verify.buffers import Buffer


def outside(encodes: Sequence[EncodeCall], buffers: Sequence[Buffer]) -> tuple[str, ...]:
    """One line for each accepted map that covers bytes of no matrix, or more than its matrix."""
    found = []
    for call in encodes:
        if not call.accepted:
            continue
        owner = next((one for one in buffers if one.address <= call.map.address < one.address + one.span), None)
        if owner is None:
            found.append(f"a tensor map starts at {call.map.address:#x}, which is in none of the matrices")
        elif (past := end_of(call.map, owner) - (owner.address + owner.span)) > 0:
            found.append(
                f"the tensor map of {owner.name} covers {call.map.dims} elements, innermost first, "
                f"{past:,} bytes past the end of {owner.name} ({owner.rows} rows of {owner.columns})"
            )
    return tuple(found)


def end_of(tensor_map: TensorMapFields, owner: Buffer) -> int:
    """The address behind the last element that the map covers."""
    rows = sum((dim - 1) * stride for dim, stride in zip(tensor_map.dims[1:], tensor_map.strides, strict=True))
    return tensor_map.address + rows + tensor_map.dims[0] * owner.element.bytes
