# SPDX-License-Identifier: Apache-2.0
"""What stores write, kept until somebody has to know whether two of them write the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import lane_set


class Stored(NamedTuple):
    """Stores of some lanes: at each address a vector of values of `nbytes` each."""

    mask: int
    addresses: tuple[Any, ...]
    vectors: tuple[tuple[Any, ...], ...]
    nbytes: int

    def content(self) -> dict[int, int | None]:
        """The bytes by address; None where the lanes themselves disagree."""
        found: dict[int, int | None] = {}
        for lane in lane_set(self.mask).lanes:
            for address, vector in zip(self.addresses, self.vectors, strict=True):
                at = int(pick(address, lane))
                for value in vector:
                    raw = int(pick(value, lane)) & ((1 << 8 * self.nbytes) - 1)
                    for byte in raw.to_bytes(self.nbytes, "little"):
                        found[at] = byte if found.get(at, byte) == byte else None
                        at += 1
        return found


def same(first: Stored | None, second: Stored | None) -> bool:
    """Whether two stores write the same to all bytes that both write."""
    if first is None or second is None:
        return False
    one, other = first.content(), second.content()
    return all(one[at] is not None and one[at] == other[at] for at in one.keys() & other.keys())
