# SPDX-License-Identifier: Apache-2.0
"""Lanes of a warp that part without having met since they did something together.

Instructions that lanes execute together are of one component of the clocks. Each lane knows of its own part in them at
once; of what the others did it knows after bar.warp.sync, a barrier of the CTA, or a wait for what all of them
released (PTX ISA, "Causality Order": the threads of a warp are threads like others). So when lanes part, either side
takes a new component, and of the old one it keeps what came before the last meeting. What came after is its share: the
bytes that its own lanes touched. Whoever is ordered after a side's first step is ordered after its share.

Records are looked at where the plain comparison of clocks has failed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tmagen.emu.checks.rows import FENCE_ROWS, ORDER, ROWS, Vector
from tmagen.emu.state.fragments import lane_set

if TYPE_CHECKING:
    from tmagen.emu.checks.clocks import Clocks
    from tmagen.emu.checks.shadow import Access, Index


_MOST = 2_000
"""Of one component so many partings are known, and steps without a release: whoever has not met the lanes since would
have to ask for an older one."""


class Share(NamedTuple):
    """Lanes, and the step after which whoever is ordered knows of their part. `fenced` are the rows in which they had
    fenced all of it by then.
    """

    mask: int
    component: int
    clock: int
    fenced: tuple[int, ...] = ()


class Parting:
    """The steps of `component` after `since` up to `until`, by lanes `mask` of which none knows more than its own part.
    `fenced` says by row of the proxy fences up to which step each lane had fenced its part before the lanes parted.
    """

    __slots__ = ("_shares", "component", "fenced", "mask", "since", "until")

    def __init__(self, component: int, since: int, until: int, mask: int, fenced: dict[int, int]) -> None:
        self.component = component
        self.since = since
        self.until = until
        self.mask = mask
        self.fenced = fenced
        self._shares: dict[tuple[int, int, tuple[int, ...]], Share] = {}

    def add(self, share: Share, vector: Vector | None = None) -> None:
        """Lanes take a component of their own; `vector` is what they knew before. Of a component that they take again
        the first step is enough.
        """
        if vector is not None:
            mine = share.mask & self.mask
            rows = tuple(row for row in FENCE_ROWS if not mine & ~self.known(vector, self.until, row))
            share = share._replace(fenced=rows)
        self._shares.setdefault((share.mask, share.component, share.fenced), share)

    @property
    def shares(self) -> Collection[Share]:
        return self._shares.values()

    def known(self, vector: Vector, clock: int, row: int = ORDER) -> int:
        """The lanes whose part in step `clock` a vector knows of: a fence of it, where the row is one of fences."""
        capacity = len(vector) // ROWS
        early = clock <= self.fenced.get(row, -1)
        mask = 0
        for share in self.shares:
            at = share.component
            if at >= capacity:
                continue
            told = vector[row * capacity + at] >= share.clock
            if told or ((early or row in share.fenced) and vector[at] >= share.clock):
                mask |= share.mask
        return mask

    def forget(self, vector: Vector) -> None:
        """Leave in a vector of one side what both knew when they last met."""
        column = vector.reshape(ROWS, -1)[:, self.component]
        np.minimum(column, self.since, out=column)

    def told(self, vector: Vector, share: Share, clocks: Clocks) -> Vector:
        """What a fence that released before has told, seen from one side: of these steps its own share."""
        if self.component >= len(vector) // ROWS or vector[self.component] <= self.since:
            return vector
        vector = clocks.fitted(vector)
        table = vector.reshape(ROWS, -1)
        table[table[:, self.component] > self.since, share.component] = share.clock
        self.forget(vector)
        return vector

    def close(self, vector: Vector, live: int) -> None:
        """All have met, and know of all shares."""
        capacity = len(vector) // ROWS
        missing = self.mask & live
        for row in range(ROWS):
            at = row * capacity + self.component
            upto = self.fenced.get(row, self.since)
            if not missing & ~self.known(vector, self.until, row):
                upto = self.until
            vector[at] = max(vector[at], upto)


class Partings:
    """All partings of a cluster's warps, by component."""

    def __init__(self) -> None:
        self._table: dict[int, list[Parting]] = {}
        # By component: the steps after which it went on although nothing was released.
        self._quiet: dict[int, list[int]] = {}

    def add(self, parting: Parting) -> None:
        kept = self._table.setdefault(parting.component, [])
        kept.append(parting)
        if len(kept) > 2 * _MOST:
            del kept[:_MOST]

    def of(self, component: int, clock: int) -> Parting | None:
        """The parting that says who knows of a step; None where clocks say it all."""
        found = self._table.get(component)
        if found is None:
            return None
        place = bisect_left(found, clock, key=lambda parting: parting.until)
        return found[place] if place < len(found) and found[place].since < clock else None

    def knows(self, vector: Vector, component: int, clock: int, row: int = ORDER) -> bool:
        """Whether who knows `vector` comes after what every lane of a component did for itself at `clock`, as a wait;
        and after a fence of `row`. The vector may be narrower than they are now.
        """
        capacity = len(vector) // ROWS
        if component < capacity and vector[row * capacity + component] >= clock:
            return True
        parting = self.of(component, clock)
        return parting is not None and bool(parting.known(vector, clock, row))

    def covers(self, vector: Vector, access: Access, cells: Callable[[], Index], row: int = ORDER) -> bool:
        """Whether who knows `vector` comes after what an access did to `cells`, and after a fence of `row`."""
        capacity = len(vector) // ROWS
        if access.component < capacity and vector[row * capacity + access.component] >= access.clock:
            return True
        parting = self.of(access.component, access.clock)
        return parting is not None and did_all(access, parting.known(vector, access.clock, row), cells())

    def lanes(self, vector: Vector, access: Access) -> int:
        """The lanes of an access that who knows `vector` comes after, where that is not all of them; or 0."""
        parting = self.of(access.component, access.clock)
        return 0 if parting is None else parting.known(vector, access.clock) & access.who[1]

    def went_on(self, component: int, clock: int) -> None:
        """A component goes on from `clock`, and has released nothing."""
        quiet = self._quiet.setdefault(component, [])
        quiet.append(clock)
        if len(quiet) > 2 * _MOST:
            del quiet[:_MOST]

    def releases(self, vector: Vector, row: int, component: int, clock: int) -> int:
        """How many times a thread has released between step `clock` of its component and what `vector` knows of it;
        -1 where that is before `clock`.
        """
        capacity = len(vector) // ROWS
        known = int(vector[row * capacity + component])
        if known >= clock:
            return known - clock - self._quiet_between(component, clock, known)
        parting = self.of(component, clock)
        if parting is None:
            return -1
        before = parting.until - clock - self._quiet_between(component, clock, parting.until)
        found = -1
        for share in parting.shares:
            later = int(vector[row * capacity + share.component]) if share.component < capacity else -1
            if later >= share.clock:
                after = later - share.clock - self._quiet_between(share.component, share.clock, later)
                found = max(found, before + 1 + after)  # to part is a step too
        return found

    def _quiet_between(self, component: int, first: int, last: int) -> int:
        quiet = self._quiet.get(component, [])
        return bisect_left(quiet, last) - bisect_left(quiet, first)


def did_all(access: Access, mask: int, cells: Index) -> bool:
    """Whether lanes `mask` did all that an access did to some cells. Where lanes store to one place by one instruction,
    the value of one of them stays, so one that is known is enough.
    """
    places = access.places
    if places is None:
        return not access.who[1] & ~mask
    others = places.mask & ~mask
    if not others:
        return True
    if access.kind == "st":
        return bool(np.isin(cells, places.cells(mask)).all())
    return not np.isin(cells, places.cells(others)).any()


class Places(NamedTuple):
    """Where lanes of an access touched memory: `nbytes` at each address. There may be several rows of lanes."""

    mask: int
    addresses: object  # an int, or an array whose last axis is the lanes
    nbytes: int

    def cells(self, mask: int) -> Index:
        """The bytes of some of the lanes."""
        lanes = lane_set(self.mask & mask).lanes
        starts = np.asarray(self.addresses, np.int64)
        if starts.ndim:
            starts = starts[..., list(lanes)]
        elif not lanes:
            starts = starts[None][:0]
        found: Index = (starts.reshape(-1, 1) + np.arange(self.nbytes, dtype=np.int64)).ravel()
        return found
