# SPDX-License-Identifier: Apache-2.0
"""mbarriers and named barriers that remember what those who arrived knew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tmagen.emu.checks.clocks import Clocks, Fences, Lanes, Observed, gathered_sights
from tmagen.emu.checks.flags import Publication, masked
from tmagen.emu.checks.rows import ORDER, SCOPE, TENSOR, Vector
from tmagen.emu.state.barriers import NamedBarrier
from tmagen.emu.state.cluster_barrier import ClusterBarrier
from tmagen.emu.state.mbarrier import MBarrier

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch


class WatchedBarrier(MBarrier):
    """An mbarrier. What arrivals of the current phase release gathers in `release`, what asynchronous operations have
    done in `ended` (component -> clock); at the end of a phase both become `done`.
    """

    __slots__ = (
        "blocked", "carried", "component", "done", "ended", "init", "init_clock", "release",
        "results", "uses", "watch",
    )  # fmt: skip

    def __init__(self, watch: Watch, address: int, count: int, agent: Lanes) -> None:
        super().__init__(address, count)
        self.watch = watch
        clocks = watch.clocks
        self.component = clocks.component(f"mbarrier at {watch.prefix}{watch.cta.place(address)}")
        self.init = agent.component
        self.init_clock = agent.known[agent.component]
        self.release: Vector = clocks.zeros()
        self.ended: dict[int, int] = {}
        self.carried: Vector | None = None
        self.done: Vector | None = None
        self.results: Vector | None = None
        self.blocked: list[tuple[Lanes, bool]] = []
        self.uses: dict[int, int] = {}

    def widen(self, capacity: int) -> None:
        clocks = self.watch.clocks
        self.release = clocks.widened(self.release, capacity)
        for name in ("carried", "done", "results"):
            vector = getattr(self, name)
            if vector is not None:
                setattr(self, name, clocks.widened(vector, capacity))

    def used_by(self, agent: Lanes) -> bool:
        """Note a use; whether the object's init is ordered before it."""
        self.uses[agent.component] = agent.known[agent.component]
        if agent.known[self.init] >= self.init_clock:
            return True
        knows = self.watch.clocks.partings.knows
        if knows(agent.vector, self.init, self.init_clock):
            return True
        return agent.inits is not None and knows(agent.inits, self.init, self.init_clock)

    def released_by(self, agent: Lanes, *, relaxed: bool, narrow: bool = False, far: bool = False) -> None:
        """An arrival publishes what the thread knows; a relaxed one publishes tensor memory, and what the thread knew
        at a fence before it. `far`: it comes from another CTA; `narrow`: and its scope does not include this one.
        """
        clocks = self.watch.clocks
        if relaxed:
            relaxed_release(self.release, agent, clocks, far=far)
        elif narrow:
            fenced_release(self.release, agent, clocks, far=far)
            np.maximum(self.release, masked(agent.vector, SCOPE, clocks.is_far), out=self.release)
        else:
            np.maximum(self.release, agent.vector, out=self.release)

    def arrives(self, commit: tuple[int, int]) -> None:
        """The arrive of a tcgen05.commit is on its way: (component, clock)."""
        self.uses[commit[0]] = commit[1]

    def carries(self, carried: Vector) -> None:
        """An operation that ends on this phase was issued by threads that knew this."""
        if self.carried is None:
            self.carried = carried
        else:
            np.maximum(self.carried, carried, out=self.carried)

    def ended_by(self, component: int, clock: int) -> None:
        """An arrival says that a stream of operations has come to `clock`."""
        if self.ended.get(component, 0) < clock:
            self.ended[component] = clock

    def complete_phase(self) -> None:
        ended = self.ended
        ended[self.component] = self.phase + 1  # the copies that complete on this phase
        clocks = self.watch.clocks
        capacity = clocks.capacity
        results = self.carried if self.carried is not None else clocks.zeros()
        for component, clock in ended.items():
            for row in (ORDER, TENSOR, SCOPE):
                at = row * capacity + component
                if results[at] < clock:
                    results[at] = clock
        np.maximum(self.release, results, out=self.release)
        self.done, self.results = self.release, results
        self.release, self.ended, self.carried = clocks.zeros(), {}, None
        if self.blocked:
            for agent, relaxed in self.blocked:
                self.acquire(agent, relaxed=relaxed)
            self.blocked.clear()
        super().complete_phase()

    def acquired_by(self, agent: Lanes, *, relaxed: bool) -> None:
        """A wait has seen the last phase complete."""
        self.acquire(agent, relaxed=relaxed)

    def acquire(self, agent: Lanes, *, relaxed: bool) -> None:
        """Learn what those knew who made the last phase complete."""
        if self.done is None:
            return
        agent.fenced = False
        capacity = self.watch.clocks.capacity
        if not relaxed:
            agent.join(self.done)
            return
        start = TENSOR * capacity
        part = agent.vector[start : start + capacity]
        np.maximum(part, self.done[start : start + capacity], out=part)
        if self.results is not None:
            agent.join(self.results)
        agent.observe(Publication(self.watch.number, self.watch.cta, 1, self.done, None), 1)


def fenced_release(into: Vector, agent: Lanes, clocks: Clocks, *, far: bool) -> None:
    """Add what a thread knew at its fences before; `far`: of a scope that reaches other CTAs."""
    for scope, vector in agent.released:
        if scope >= far:
            np.maximum(into, clocks.fitted(vector), out=into)


def relaxed_release(into: Vector, agent: Lanes, clocks: Clocks, *, far: bool) -> None:
    """Add what a relaxed arrive publishes: order of tensor memory, and what fences cover."""
    fenced_release(into, agent, clocks, far=far)
    start = TENSOR * clocks.capacity
    part = into[start : start + clocks.capacity]
    np.maximum(part, agent.vector[start : start + clocks.capacity], out=part)


class WatchedClusterBarrier(ClusterBarrier):
    """The barrier of a cluster. A relaxed arrive publishes mbarrier.init (PTX ISA, "fence.mbarrier_init"), what the
    thread knew at a fence before it, and order of tensor memory, as a relaxed arrive on an mbarrier does.
    """

    def __init__(self, cluster: Any, clocks: Clocks) -> None:
        super().__init__(cluster)
        self.clocks = clocks
        clocks.holders.append(self)
        self.gathered: Vector | None = None
        self.inits: Vector | None = None
        self.done: Vector | None = None
        self.done_inits: Vector | None = None
        self.blocked: list[Lanes] = []
        self.sites: dict[Any, Any] = {}  # of the last arrive, by warp

    def widen(self, capacity: int) -> None:
        """Replace all vectors by wider ones."""
        for name in ("gathered", "inits", "done", "done_inits"):
            vector = getattr(self, name)
            if vector is not None:
                setattr(self, name, self.clocks.widened(vector, capacity))

    def arrived_by(self, agent: Lanes, *, relaxed: bool) -> None:
        """Threads arrive."""
        if self.gathered is None:
            self.gathered = self.clocks.zeros()
        if relaxed:
            for known in (agent.vector, agent.inits):
                if known is not None:
                    self.inits = known.copy() if self.inits is None else np.maximum(self.inits, known)
            relaxed_release(self.gathered, agent, self.clocks, far=True)
        else:
            np.maximum(self.gathered, agent.vector, out=self.gathered)
        agent.tick(self.clocks.capacity)

    def acquired_by(self, agent: Lanes) -> None:
        """The last phase is complete for these threads."""
        if self.done is not None:
            agent.join(self.done)
        agent.learn_inits(self.done_inits)
        agent.fenced = False

    def recheck(self) -> None:
        before = bool(self.arrived)
        super().recheck()
        if before and not self.arrived:
            self._take_exited()
            self.done, self.done_inits = self.gathered, self.inits
            self.gathered = self.inits = None
            for agent in self.blocked:
                self.acquired_by(agent)
            self.blocked.clear()

    def _take_exited(self) -> None:
        """Warps that have exited count as arrived, as by a relaxed arrive: tensor memory that they have waited for may
        be freed behind the barrier (ThunderKittens leaves the barrier to one warp).
        """
        for cta in self.cluster.ctas:
            for warp in cta.warps:
                for lanes in () if warp.live else cta.watch.warps[warp.index].groups:
                    if self.gathered is None:
                        self.gathered = self.clocks.zeros()
                    relaxed_release(self.gathered, lanes, self.clocks, far=True)


class WatchedNamed(NamedBarrier):
    """A named barrier: those who synchronise learn what all participants knew. Fences are handed on too: a flag that
    one thread writes after the barrier tells of what others wrote before fences of their own, and what it has read is
    acquired by fences of theirs after it. Fences with .sc are in one order with those of the other side (PTX ISA,
    "Fence-SC"), and split-K kernels have all threads fence and one count.
    """

    __slots__ = ("arrivals", "before", "fences", "gathered", "number", "observed", "reduces", "syncing", "watch")

    def __init__(self, watch: Watch, number: int) -> None:
        super().__init__()
        self.watch = watch
        self.number = number
        self.gathered: Vector | None = None
        self.reduces = False  # whether those who have arrived in this phase take part in a reduction
        self.syncing: list[Lanes] = []
        self.fences: list[Fences] = []  # of those who have arrived
        self.observed: list[Observed] = []
        # (component, clock) of each arrival of this phase, and of the one before
        self.arrivals: list[tuple[int, int]] = []
        self.before: list[tuple[int, int]] = []

    def widen(self, capacity: int) -> None:
        if self.gathered is not None:
            self.gathered = self.watch.clocks.widened(self.gathered, capacity)

    def arrived_by(self, agent: Lanes, *, syncs: bool) -> None:
        """A warp arrives."""
        if self.gathered is None:
            self.gathered = agent.vector.copy()
        else:
            np.maximum(self.gathered, agent.vector, out=self.gathered)
        self.arrivals.append((agent.component, agent.known[agent.component]))
        if agent.released:
            self.fences.append(agent.released)
        if agent.observed:
            self.observed.append(agent.observed)
        self.watch.tick(agent)
        if syncs:
            self.syncing.append(agent)

    def is_early(self, agent: Lanes) -> bool:
        """Whether nothing orders an arrival after the phase before: it might have been of that one."""
        known = agent.known
        return any(known[component] < clock for component, clock in self.before)

    def release(self) -> tuple[int, int]:
        gathered = self.gathered
        if gathered is not None:
            for agent in self.syncing:
                agent.join(gathered)
                agent.fenced = False
        if self.fences:
            released = self.watch.clocks.gathered(self.fences)
            for agent in self.syncing:
                agent.released = released
            self.fences = []
        if self.observed:
            observed = gathered_sights(self.observed)
            for agent in self.syncing:
                agent.observed = observed
            self.observed = []
        self.gathered, self.syncing = None, []
        self.before, self.arrivals = self.arrivals, []
        return super().release()
