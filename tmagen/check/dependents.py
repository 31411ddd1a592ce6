# SPDX-License-Identifier: Apache-2.0
"""Programmatic dependent launch of host programs: what the grid before a launch has written and may still be writing.

A launch with cudaLaunchAttributeProgrammaticStreamSerialization may start when every CTA of the launch before it in
the stream has executed griddepcontrol.launch_dependents or has ended. What that one changed in memory is compared;
what it read, and what it wrote without a change, is not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import GlobalMemory, Predecessor
from tmagen.emu.module import Entry

_Ranges = tuple[tuple[int, int], ...]


class Dependents:
    """The last launch of each stream that lets the next one start early, and the bytes that it changed."""

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory
        self._changed: dict[int, _Ranges] = {}
        self._kept: dict[int, npt.NDArray[np.uint8]] | None = None

    def before(self, event: dict[str, Any]) -> Predecessor | None:
        """The grid before this launch, where it may still run when this one starts."""
        if not event["attributes"].get("programmatic_stream_serialization"):
            return None
        changed = self._changed.get(event["stream"])
        return None if changed is None else Predecessor(changed, ())

    def starts(self, entry: Entry) -> None:
        """A launch of this kernel is about to run."""
        early = any(instruction.opcode == "griddepcontrol.launch_dependents" for instruction in entry.body)
        self._kept = {each.address: each.data.copy() for each in self.memory.allocations} if early else None

    def ended(self, event: dict[str, Any]) -> None:
        """The launch has run."""
        if self._kept is None:
            self._changed.pop(event["stream"], None)
            return
        found: list[tuple[int, int]] = []
        for each in self.memory.allocations:
            old = self._kept.get(each.address)
            if old is None or old.size != each.data.size:
                continue
            # Edges of each run of bytes that differ.
            differs = np.concatenate(([False], old != each.data, [False]))
            edges = np.flatnonzero(differs[1:] != differs[:-1])
            found += [(each.address + int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        self._changed[event["stream"]] = _joined(found)
        self._kept = None


def _joined(ranges: list[tuple[int, int]]) -> _Ranges:
    """Ranges that are less than 16 bytes apart as one: a number that did not change in a part is still written."""
    joined: list[tuple[int, int]] = []
    for start, size in ranges:
        if joined and start - sum(joined[-1]) < 16:
            joined[-1] = (joined[-1][0], start + size - joined[-1][0])
        else:
            joined.append((start, size))
    return tuple(joined)
