# SPDX-License-Identifier: Apache-2.0
"""Which memory an address belongs to, in the words of whoever allocated it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ADDRESS = re.compile(r"\b0x[0-9a-f]{5,16}\b")
_NEAR = 1 << 30


@dataclass(frozen=True, slots=True)
class Place:
    """Memory with a name, such as "buffer A"."""

    name: str
    address: int
    nbytes: int


def explained(message: str, places: Iterable[Place]) -> tuple[str, ...]:
    """A line for the first address in `message` that lies in a place or near one."""
    known = list(places)
    for text in _ADDRESS.findall(message):
        address = int(text, 16)
        place = min(known, key=lambda one: _distance(one, address), default=None)
        if place is not None and _distance(place, address) < _NEAR:
            return (f"{text} is {_where(place, address)}",)
    return ()


def _distance(place: Place, address: int) -> int:
    return max(place.address - address, address - (place.address + place.nbytes) + 1, 0)


def _where(place: Place, address: int) -> str:
    size = f"{place.name} ({place.nbytes:,} bytes)"
    into = address - place.address
    if into < 0:
        return f"{-into:,} bytes before {size}"
    if into < place.nbytes:
        return f"byte {into:,} of {size}"
    past = into - place.nbytes
    return f"{past:,} bytes past the end of {size}" if past else f"just past the end of {size}"
