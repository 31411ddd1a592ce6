# SPDX-License-Identifier: Apache-2.0
"""Who touched which bytes last: the shadow of shared and of tensor memory.

Bytes that no footprint so far tells apart are one part. An access touches whole parts, so a tile of 16 KiB costs as
much as a word once its footprint is known; a new footprint splits the parts that it covers in part. Parts belong to
the launch, what happened to them to a CTA.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.checks.parting import Places
from tmagen.emu.checks.sites import Site
from tmagen.emu.checks.stored import Stored

Index = npt.NDArray[np.intp]


Who = tuple[int, int, Any]
"""Warp, lanes and CTA."""


class Access:
    """One access, or the part of an asynchronous operation that touches memory.

    It is over for whoever knows `component` at `clock`. `base` is the same for the thread's own step: the issue, where
    that is something else. `generic` is the ordinary proxy; operations of one `pipeline` component follow each other.
    """

    __slots__ = (
        "base", "base_clock", "clock", "cluster", "component", "generic", "kind", "pipeline", "places", "site",
        "stored", "strong", "tmap", "who",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        site: Site,
        who: Who,
        component: int,
        clock: int,
        base: int,
        base_clock: int,
        *,
        generic: bool = False,
        pipeline: bool = False,
        strong: bool = False,
    ) -> None:
        self.kind = kind
        self.site = site
        self.who = who
        self.component = component
        self.clock = clock
        self.base = base
        self.base_clock = base_clock
        self.generic = generic
        self.pipeline = pipeline
        self.strong = strong
        self.cluster = -1
        self.stored: Stored | None = None
        self.places: Places | None = None  # of an ordinary access, by lane
        self.tmap: Any = None  # of a tensor copy


class Footprint:
    """The parts that an access touches."""

    __slots__ = ("parts", "take")

    def __init__(self, parts: list[int]) -> None:
        self.parts = parts
        self.take: Callable[[Any], Any] = itemgetter(*parts)

    def replace(self, parts: list[int]) -> None:
        self.parts = parts
        self.take = itemgetter(*parts)

    def of(self, table: list[Any]) -> Iterable[Any]:
        """What `table` holds for the parts."""
        return self.take(table) if len(self.parts) > 1 else (table[self.parts[0]],)


class Parts:
    """The partition of a memory of `size` cells by all footprints so far."""

    def __init__(self, size: int) -> None:
        self.part_of: npt.NDArray[np.int32] = np.zeros(size, np.int32)
        self.sizes = [size]
        self.parents = [0]  # of each part, the one it was split from
        self._users: list[set[Footprint]] = [set()]
        self._known: dict[Hashable, Footprint] = {}

    def known(self, key: Hashable) -> Footprint | None:
        """The footprint with this key, if it is known."""
        return self._known.get(key)

    def add(self, key: Hashable, cells: Index) -> Footprint:
        """A footprint of `cells`, which may repeat; `key` finds it again."""
        cells = np.unique(cells)
        at = self.part_of[cells]
        found, counts = np.unique(at, return_counts=True)
        parts = []
        for part, count in zip(found.tolist(), counts.tolist(), strict=True):
            if count == self.sizes[part]:
                parts.append(part)
            else:
                parts.append(self._split(part, cells[at == part]))
        footprint = Footprint(parts)
        for part in parts:
            self._users[part].add(footprint)
        self._known[key] = footprint
        return footprint

    def _split(self, part: int, cells: Index) -> int:
        new = len(self.sizes)
        self.part_of[cells] = new
        self.sizes.append(cells.size)
        self.sizes[part] -= cells.size
        self.parents.append(part)
        users = self._users[part]
        self._users.append(set(users))
        for footprint in users:
            footprint.replace([*footprint.parts, new])
        return new

    def cells_of(self, parts: Iterable[int]) -> Index:
        """The cells of some parts."""
        return np.flatnonzero(np.isin(self.part_of, list(parts)))


Readers = tuple[Access, ...]


class Shadow:
    """One memory of one CTA: for each part the last write, and the reads since."""

    def __init__(self, parts: Parts, cta: Any, *, tensor: bool) -> None:
        self.parts = parts
        self.cta = cta
        self.is_tensor = tensor
        self.version = 0  # another one after every access
        self.writes: list[Access | None] = [None] * len(parts.sizes)
        self.reads: list[Readers] = [()] * len(parts.sizes)

    def grow(self) -> None:
        """Parts that were split since have the history of what they were split from."""
        writes, reads, parents = self.writes, self.reads, self.parts.parents
        for part in range(len(writes), len(parents)):
            writes.append(writes[parents[part]])
            reads.append(reads[parents[part]])

    def footprint(self, key: Hashable, cells: Callable[[], Index]) -> Footprint:
        """The footprint with this key; `cells` gives its cells where it is new."""
        return self.parts.known(key) or self.parts.add(key, cells())

    def last_writes(self, footprint: Footprint) -> dict[Access | None, None]:
        """Each once, in the order of the parts: what is reported first is the same in every run."""
        if len(self.writes) != len(self.parts.sizes):
            self.grow()
        return dict.fromkeys(footprint.of(self.writes))

    def last_reads(self, footprint: Footprint) -> dict[Readers, None]:
        """Likewise."""
        return dict.fromkeys(footprint.of(self.reads))

    def wrote(self, footprint: Footprint, access: Access | None) -> None:
        """`access` is the last write from now on, with no reads after it."""
        if len(self.writes) != len(self.parts.sizes):
            self.grow()
        self.version += 1
        writes, reads = self.writes, self.reads
        for part in footprint.parts:
            writes[part] = access
            reads[part] = ()

    def read(self, footprint: Footprint, access: Access) -> None:
        """Note a read. An earlier one of the same stream is over when this one is."""
        self.version += 1
        reads = self.reads
        new: dict[Readers, Readers] = {(): (access,)}
        for part in footprint.parts:
            old = reads[part]
            joined = new.get(old)
            if joined is None:
                joined = new[old] = (*(r for r in old if not covers(access, r)), access)
            reads[part] = joined

    def touched_by(self, footprint: Footprint, access: Access) -> Index:
        """The cells of the footprint that `access` touched last, for reports."""
        parts = [p for p in footprint.parts if self.writes[p] is access or access in self.reads[p]]
        return self.parts.cells_of(parts)


def covers(new: Access, old: Access) -> bool:
    """Whether `old` is over when `new` is, as both are of one stream or one thread."""
    return new.component == old.component and new.strong == old.strong and (new.site is old.site or not old.generic)
