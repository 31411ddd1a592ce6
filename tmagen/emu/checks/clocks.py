# SPDX-License-Identifier: Apache-2.0
"""Vector clocks of threads and asynchronous work.

A component of a clock belongs to a set of lanes that have done the same so far, to an mbarrier (its completed phases),
or to a stream of asynchronous operations that end in an order that somebody waits for: the MMAs of a thread, its bulk
stores, a warp's loads of tensor memory. So one number says how much of a stream is known to be complete.

Lanes of which some act alone part, and no longer know what the others have done since they last met (`parting`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from tmagen.emu.checks.parting import Parting, Partings, Share
from tmagen.emu.checks.rows import FENCE_ROWS, ORDER, ROWS, SCOPE, SHARED, TENSOR, Vector

_MOST_OBSERVED = 64
Fences = tuple[tuple[int, Vector], ...]
"""What was known at fences that release: (scope, vector)."""
Observed = tuple[tuple[Any, int], ...]
"""What relaxed loads have seen, and nobody has acquired yet: (publication, scope)."""


class Holder(Protocol):
    """Something that keeps vectors."""

    def widen(self, capacity: int) -> None:
        """Replace them by vectors with room for more components."""


class Clocks:
    """The components of a cluster. `capacity` is how many a vector has room for, `holders` who has vectors."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.names: list[str] = []
        self.is_async: Vector = np.zeros(capacity, np.int64)  # 1 for components that are no threads
        self.is_far: Vector = np.zeros(capacity, np.int64)  # 1 where an arrive of any scope tells other CTAs of it
        self.holders: list[Holder] = []
        # By component of a thread's tensor core work: up to where others may go on in its pipeline.
        self.handed: dict[int, int] = {}
        self.partings = Partings()

    def component(self, name: str, *, threads: bool = False, generic: bool = False) -> int:
        """A new component, of threads or of asynchronous work, which may be of the ordinary proxy. Vectors that have
        no room for it are replaced.
        """
        if len(self.names) == self.capacity:
            for holder in self.holders:
                holder.widen(2 * self.capacity)
            self.is_async = np.concatenate([self.is_async, np.zeros(self.capacity, np.int64)])
            self.is_far = np.concatenate([self.is_far, np.zeros(self.capacity, np.int64)])
            self.capacity *= 2
        self.is_async[len(self.names)] = not threads
        self.is_far[len(self.names)] = not (threads or generic)
        self.names.append(name)
        return len(self.names) - 1

    def zeros(self) -> Vector:
        """A vector that knows nothing."""
        return np.zeros(ROWS * self.capacity, np.int64)

    def fitted(self, vector: Vector) -> Vector:
        """A copy of a vector that may be older than the last widening."""
        columns = len(vector) // ROWS
        if columns == self.capacity:
            return vector.copy()
        wide = np.zeros((ROWS, self.capacity), np.int64)
        wide[:, :columns] = vector.reshape(ROWS, columns)
        return wide.reshape(-1)

    def gathered(self, fences: Sequence[Fences]) -> Fences:
        """What threads that have met knew at their fences: one vector for each scope, which stays the same object where
        all had the same.
        """
        found: dict[int, Vector] = {}
        for scope, vector in (entry for each in fences for entry in each):
            other = found.get(scope)
            if other is None:
                found[scope] = vector
            elif other is not vector:
                found[scope] = np.maximum(self.fitted(other), self.fitted(vector))
        return tuple(found.items())

    def widened(self, vector: Vector, capacity: int) -> Vector:
        """A vector with room for more components."""
        wide = np.zeros((ROWS, capacity), np.int64)
        wide[:, : self.capacity] = vector.reshape(ROWS, self.capacity)
        return wide.reshape(-1)


def gathered_sights(observed: Sequence[Observed]) -> Observed:
    """What threads that have met had seen, the last of it."""
    found: dict[int, tuple[Any, int]] = {}
    for publication, scope in (entry for each in observed for entry in each):
        other = found.get(id(publication))
        if other is None or other[1] < scope:
            found[id(publication)] = (publication, scope)
    return tuple(found.values())[-_MOST_OBSERVED:]


class Lanes:
    """Lanes of a warp that have done the same since they last were together: one thread as far as order goes.

    `known` is `vector`, read and written one by one faster. What the lanes did up to step `met` of their component each
    of them knows of; that they have done something since is `touched`. `apart` are partings from lanes that they have
    not met again.
    """

    __slots__ = (
        "apart", "component", "fenced", "inits", "known", "mask", "met", "observed", "released", "touched", "vector",
        "warp",
    )  # fmt: skip

    def __init__(self, warp: WarpLanes, mask: int, component: int, vector: Vector) -> None:
        self.warp = warp
        self.mask = mask
        self.component = component
        self.adopt(vector)
        self.released: Fences = ()  # the last ones
        self.observed: Observed = ()
        self.inits: Vector | None = None  # up to which clocks of other threads their mbarrier.init is visible
        self.fenced = True  # a tcgen05.fence::after_thread_sync has followed the last wait
        self.met = 0
        self.touched = False
        self.apart: tuple[Parting, ...] = ()

    def adopt(self, vector: Vector) -> None:
        self.vector = vector
        self.known: Any = memoryview(vector)  # type: ignore[arg-type]

    def join(self, other: Vector) -> None:
        """Learn what `other` knows. What these lanes have told all of them know."""
        np.maximum(self.vector, other, out=self.vector)
        if self.touched and other[self.component] > self.met:
            self.met = int(other[self.component])

    def touch(self) -> None:
        """The lanes access memory: nothing of this step is known to all of them any more."""
        if not self.touched:
            self.touched = True
            self.met = self.known[self.component] - 1

    def meet(self, clocks: Clocks) -> None:
        """Each of these lanes learns what the others have done."""
        if self.touched:
            self.touched = False
            clocks.partings.went_on(self.component, self.known[self.component])
            self.tick(clocks.capacity)

    def release(self, scope: int) -> None:
        """A fence that releases."""
        self.released = (*(entry for entry in self.released if entry[0] > scope), (scope, self.vector.copy()))

    def observe(self, publication: Any, scope: int) -> None:
        """A relaxed load has seen what was published; a fence may acquire it."""
        if not any(seen is publication and wide >= scope for seen, wide in self.observed):
            self.observed = (*self.observed, (publication, scope))[-_MOST_OBSERVED:]

    def learn_inits(self, inits: Vector | None) -> None:
        """Learn which mbarrier.init are visible."""
        if inits is not None:
            self.inits = inits if self.inits is None else np.maximum(self.inits, inits)

    def learn(self, component: int, clock: int, capacity: int) -> None:
        """Learn that a stream has come to `clock`."""
        known = self.known
        if known[component] < clock:
            known[component] = clock
        for place in (component + TENSOR * capacity, component + SCOPE * capacity):
            if known[place] < clock:
                known[place] = clock

    def carried(self, clocks: Clocks) -> Vector:
        """What the end of an operation that these lanes issue now implies: asynchronous work that they know to be
        complete, and ordinary accesses that the asynchronous proxy sees. It says nothing of other accesses.
        """
        capacity = clocks.capacity
        rows = clocks.zeros()
        fenced = self.vector[SHARED * capacity : (SHARED + 1) * capacity]
        order = rows[:capacity]
        np.multiply(self.vector[:capacity], clocks.is_async, out=order)
        np.maximum(order, fenced, out=order)
        rows[SHARED * capacity : (SHARED + 1) * capacity] = fenced
        rows[TENSOR * capacity : (TENSOR + 1) * capacity] = order
        rows[SCOPE * capacity : (SCOPE + 1) * capacity] = order
        return rows

    def tick(self, capacity: int) -> None:
        """What these lanes do from now on is not part of what they have published."""
        known, at = self.known, self.component
        known[at] += 1
        known[TENSOR * capacity + at] = known[SCOPE * capacity + at] = known[at]

    def fence(self, row: int, capacity: int) -> None:
        """A proxy fence: all that is known by now is visible to the asynchronous proxy."""
        start = row * capacity
        part = self.vector[start : start + capacity]
        np.maximum(part, self.vector[:capacity], out=part)


class WarpLanes:
    """The lanes of one warp, in groups that split where lanes act alone and merge where the warp comes together."""

    __slots__ = ("_by_mask", "_free", "clocks", "groups", "index", "loads", "loads_at", "name", "stores", "stores_at")

    def __init__(self, clocks: Clocks, index: int, mask: int, prefix: str) -> None:
        self.clocks = clocks
        self.index = index
        self.name = f"{prefix}warp {index}"
        component = clocks.component(self.name, threads=True)
        vector = clocks.zeros()
        for row in (ORDER, TENSOR, SCOPE):
            vector[row * clocks.capacity + component] = 1
        self.groups = [Lanes(self, mask, component, vector)]
        self._by_mask: dict[int, tuple[Lanes, ...]] = {}
        self._free: list[tuple[int, int]] = []  # components, and the last step of each
        self.loads = self.stores = -1  # streams of tcgen05.ld and tcgen05.st
        self.loads_at = self.stores_at = 0

    def of(self, mask: int, live: int) -> tuple[Lanes, ...]:
        """The groups that the lanes `mask` make up; a group of which they are a part is split."""
        found = self._by_mask.get(mask)
        if found is None:
            found = tuple(self._split(mask, live))
            self._by_mask[mask] = found
        return found

    def _split(self, mask: int, live: int) -> Iterator[Lanes]:
        for group in tuple(self.groups):
            both = group.mask & mask
            if not both:
                continue
            if both == group.mask & live:
                yield group
                continue
            component = self._component(group)
            other = self._component(group) if group.touched else -1
            part = Lanes(self, both, component, group.vector.copy())
            part.released, part.observed, part.fenced = group.released, group.observed, group.fenced
            part.inits, part.apart = group.inits, group.apart
            group.mask &= ~both
            self.groups.append(part)
            self._by_mask.clear()
            # What the others do from now on is not known to the part, nor the other way round.
            if other >= 0:
                self._part(group, part, other)
            else:
                group.tick(self.clocks.capacity)
                part.tick(self.clocks.capacity)
            yield part

    def _component(self, group: Lanes) -> int:
        """One for lanes of a group: one that is free again, if the group knows all that was done under it."""
        for place, (component, last) in enumerate(self._free):
            if group.known[component] >= last:
                del self._free[place]
                return component
        return self.clocks.component(f"{self.name}, some lanes", threads=True)

    def _part(self, group: Lanes, part: Lanes, component: int) -> None:
        """`part` leaves `group`, which goes on as `component`, after both did what not all of them know of."""
        capacity = self.clocks.capacity
        old, known = group.component, group.known
        fenced = {row: known[row * capacity + old] for row in FENCE_ROWS}
        parting = Parting(old, group.met, known[old], group.mask | part.mask, fenced)
        self.clocks.partings.add(parting)
        group.component = component
        partings = (*group.apart, parting)
        for side in (group, part):
            side.tick(capacity)
            clock = side.known[side.component]
            share = Share(side.mask, side.component, clock)
            for each in group.apart:
                each.add(share, part.vector)
            parting.add(share)
            side.released = tuple((scope, parting.told(v, share, self.clocks)) for scope, v in side.released)
            side.touched, side.met = True, clock - 1
        for side in (group, part):
            side.apart = partings
            parting.forget(side.vector)

    def merge(self, mask: int, live: int) -> Lanes:
        """The lanes `mask` come together: each knows what all of them know."""
        found = self.of(mask, live)
        first = found[0]
        if len(found) > 1:
            apart = dict.fromkeys(parting for group in found for parting in group.apart)
            for other in found[1:]:
                if other.mask.bit_count() > first.mask.bit_count():
                    first = other
            for other in found:
                if other is not first:
                    first.join(other.vector)
                    first.mask |= other.mask
                    first.learn_inits(other.inits)
                    if first.released is not other.released:
                        first.released = self.clocks.gathered((first.released, other.released))
                    if first.observed is not other.observed:
                        first.observed = gathered_sights((first.observed, other.observed))
                    first.fenced = first.fenced and other.fenced
                    self.groups.remove(other)
                    self._free.append((other.component, first.known[other.component]))
            self._by_mask.clear()
            first.apart = tuple(apart)
        if first.apart:
            self._close(first, live)
        first.meet(self.clocks)
        return first

    def _close(self, group: Lanes, live: int) -> None:
        """End the partings of which all lanes are together again, the last ones first; forget those of others."""
        left = []
        for parting in sorted(group.apart, key=lambda parting: parting.mask.bit_count()):
            lanes = parting.mask & live
            if lanes & ~group.mask:
                left += [parting] if lanes & group.mask else []
            elif lanes:
                parting.close(group.vector, live)
                self._free.append((parting.component, parting.until))
        group.apart = tuple(left)
