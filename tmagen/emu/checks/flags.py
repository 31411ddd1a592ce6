# SPDX-License-Identifier: Apache-2.0
"""Order that strong accesses and atomics make (PTX ISA, "Release and Acquire Patterns", "Scope").

A strong store after a release publishes, at its place, what its writer knew; an atomic after it keeps what was there
and adds to it. A strong load before an acquire takes all of it, as far as the scopes of both sides include the other
thread. Within a cluster that is a join of clocks. What another cluster published is an event of the acquiring thread:
the event is ordered like an access, so whoever is ordered after it knows what it brought.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.rows import ORDER, ROWS, Vector
from tmagen.emu.checks.shadow import Access, Index
from tmagen.emu.checks.sites import SCOPE_NAMES
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment, lane_set

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch

_MOST_SHORTFALLS = 256


class Publication:
    """What threads knew when they released, and those that an atomic found at the place before."""

    __slots__ = ("cta", "earlier", "number", "scope", "vector")

    def __init__(self, number: int, cta: Any, scope: int, vector: Vector, earlier: Publication | None) -> None:
        self.number = number  # of the cluster
        self.cta = cta
        self.scope = scope
        self.vector = vector
        self.earlier = earlier


class _Event(NamedTuple):
    """Threads have acquired what another cluster published."""

    component: int
    clock: int
    head: Publication
    scope: int
    cta: Any


def scope_needed(number: int, cta: Any, other_number: int, other_cta: Any) -> int:
    """The narrowest scope in which a thread of one CTA includes those of another."""
    if number != other_number:
        return 2
    return 0 if cta is other_cta else 1


class Flags:
    """All places of a launch at which threads have published something."""

    def __init__(self) -> None:
        self.memory: dict[int, Publication] = {}  # of global memory; those of shared memory are the CTA's
        self._events: dict[int, list[_Event]] = {}  # by cluster
        self._by_head: dict[tuple[int, int], list[_Event]] = {}  # by cluster and identity of what was published
        self._shortfalls: list[tuple[Publication, int]] = []

    def touch(
        self, watch: Watch, frag: Fragment, table: dict[int, Publication], address: Any, *, loads: bool, stores: bool
    ) -> None:
        """A strong access, or an atomic (`loads` and `stores`), of lanes of `frag` at places of `table`."""
        site = watch.site_of(frag)
        cta = frag.warp.cta
        for agent in watch.agents(frag):
            for place in {pick(address, lane) for lane in lane_set(agent.mask & frag.lanes.mask).lanes}:
                seen = table.get(place)
                if loads and seen is not None:
                    if site.acquires:
                        self.acquire(watch, agent, seen, site.scope, cta)
                    elif site.instruction.parts[0] != "red":
                        agent.observe(seen, site.scope)
                if not stores:
                    continue
                new = seen if loads else None
                for scope, vector in agent.released:
                    if seen is not None and seen.vector is vector and seen.scope == min(scope, site.scope):
                        continue  # an atomic of the same thread has published it here before
                    new = Publication(watch.number, cta, min(scope, site.scope), vector, new)
                if site.releases:
                    new = Publication(watch.number, cta, site.scope, agent.vector.copy(), new)
                if new is None:
                    table.pop(place, None)
                else:
                    table[place] = new
            if stores and site.releases:
                watch.tick(agent)

    def acquire(self, watch: Watch, agent: Lanes, head: Publication, scope: int, cta: Any) -> bool:
        """Learn what was published. False where a scope is too narrow for some of it."""
        number = watch.number
        whole, others = True, False
        node: Publication | None = head
        while node is not None:
            if min(node.scope, scope) < scope_needed(number, cta, node.number, node.cta):
                whole = False
                if len(self._shortfalls) < _MOST_SHORTFALLS:
                    self._shortfalls.append((node, scope))
            elif node.number == number:
                agent.join(watch.clocks.fitted(node.vector) if node.vector.size != agent.vector.size else node.vector)
            else:
                others = True
            node = node.earlier
        if others:
            self._note(number, agent, head, scope, cta)
        return whole

    def _note(self, number: int, agent: Lanes, head: Publication, scope: int, cta: Any) -> None:
        known = agent.known
        of_head = self._by_head.setdefault((number, id(head)), [])
        if not any(e.scope >= scope and known[e.component] >= e.clock for e in of_head):
            event = _Event(agent.component, known[agent.component], head, scope, cta)
            of_head.append(event)
            self._events.setdefault(number, []).append(event)

    def knows(self, number: int, vector: Any, first: Access, cells: Callable[[], Index], row: int = ORDER) -> bool:
        """Whether a thread of cluster `number` that knows `vector` is ordered after what an access in another cluster
        did to `cells`; with `row`, after a proxy fence of that row too, which may be anywhere on the way.
        """
        work = [(number, vector, row == ORDER)]
        seen: set[tuple[int, bool]] = set()
        while work:
            number, vector, fenced = work.pop()
            for event in self._events.get(number, ()):
                partings = event.cta.watch.clocks.partings
                if not partings.knows(vector, event.component, event.clock):
                    continue
                passed = fenced or partings.knows(vector, event.component, event.clock, row)
                node: Publication | None = event.head
                while node is not None:
                    needed = scope_needed(number, event.cta, node.number, node.cta)
                    if (id(node), passed) not in seen and min(node.scope, event.scope) >= needed:
                        seen.add((id(node), passed))
                        way = ORDER if passed else row
                        if node.number == first.cluster and _covers(node.vector, first, cells, way):
                            return True
                        work.append((node.number, node.vector, passed))
                    node = node.earlier
        return False

    def shortfall(self, first: Access, cells: Callable[[], Index]) -> str | None:
        """What was published about an access and not acquired, as a scope was too narrow."""
        for node, scope in self._shortfalls:
            if node.number == first.cluster and _covers(node.vector, first, cells, ORDER):
                release, acquire = SCOPE_NAMES[node.scope], SCOPE_NAMES[scope]
                return (
                    f"a release of .{release} scope and an acquire of .{acquire} scope would order them, but a scope "
                    "has to include the thread on the other side"
                )
        return None


def _covers(vector: Vector, first: Access, cells: Callable[[], Index], row: int) -> bool:
    """Whether who knows `vector` knows of what an access of its cluster did to some cells, and of a proxy fence after
    it where `row` is not that of order.
    """
    partings = first.who[2].watch.clocks.partings
    return all(partings.covers(vector, first, cells, each) for each in {ORDER, row})


def masked(vector: Vector, row: int, mask: Vector) -> Vector:
    """A copy of a vector of which one row is multiplied with `mask`."""
    capacity = len(vector) // ROWS
    out = vector.copy()
    part = out[row * capacity : (row + 1) * capacity]
    np.multiply(part, mask, out=part)
    return out
