# SPDX-License-Identifier: Apache-2.0
"""One CTA under observation: its clocks, its shadow memories, and the comparison of two accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmagen.emu.checks import exits, peers, races, tensor_rules
from tmagen.emu.checks.barriers import WatchedBarrier, WatchedNamed
from tmagen.emu.checks.clocks import Clocks, Lanes, WarpLanes
from tmagen.emu.checks.finding import Finding, place_of
from tmagen.emu.checks.flags import Publication, scope_needed
from tmagen.emu.checks.hints import hints
from tmagen.emu.checks.places import shared_text, tensor_text, thread_text
from tmagen.emu.checks.races import COPIES, NOUNS, SHARED_MEMORY, TENSOR_MEMORY, Verdict
from tmagen.emu.checks.rows import GLOBAL, MAPS, ORDER, SCOPE, SHARED, TENSOR, Vector
from tmagen.emu.checks.shadow import Access, Footprint, Shadow
from tmagen.emu.checks.sites import Site
from tmagen.emu.checks.streams import Stream
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.tmem import COLUMNS

if TYPE_CHECKING:
    from tmagen.emu.checks.session import Session

_VERBS = {"RAW": ("reads", "writes"), "WAR": ("overwrites", "reads"), "WAW": ("overwrites", "writes")}
FIRST_CAPACITY = 48


class Watch:
    """Everything that the checks know about one CTA."""

    def __init__(self, session: Session, cta: Any, clocks: Clocks, number: int) -> None:
        self.session = session
        self.cta = cta
        self.actor = cta  # whose thread acts: of this CTA, or of another of the cluster
        self.number = number  # of the cluster
        self.sites = session.sites
        self.clocks = clocks
        clocks.holders.append(self)
        self.prefix = "" if cta.cluster.size == 1 else f"{cta.title} "
        self.barriers: list[WatchedBarrier] = []
        self.named = [WatchedNamed(self, number) for number in range(16)]
        self.flags: dict[int, Publication] = {}  # in shared memory, by place
        self.warps: list[WarpLanes] = []
        for index in range(cta.nwarps):
            mask = (1 << min(32, cta.nthreads - 32 * index)) - 1
            self.warps.append(WarpLanes(clocks, index, mask, self.prefix))
        self.starts = [warp.groups[0].component for warp in self.warps]
        self.visits: dict[tuple[int, int], peers.Visit] = {}  # of other CTAs, by their threads and asynchronous work
        # By mbarrier, the last copy out of this CTA's memory to another's, and that CTA.
        self.leaving: dict[int, tuple[Watch, peers.Visit]] = {}
        self.pair_log: list[tuple[str, int, Site]] = []  # what was allocated and freed for the CTA pair
        self.shared = Shadow(session.shared_parts, cta, tensor=False)
        self.tensor = Shadow(session.tensor_parts, cta, tensor=True)
        self.tensor_work: dict[int, Stream] = {}  # by thread
        self.commits: dict[int, list[int]] = {}  # by thread: component and count of its tcgen05.commit
        self.bulk: dict[int, Stream] = {}
        self.copies: dict[tuple[int, int], Stream] = {}  # cp.async of a warp and some lanes of it
        self.smallest_alloc = COLUMNS
        # By address of a tensor map: (component, clock, what was known) of each acquire of it.
        self.maps: dict[int, list[tuple[int, int, Vector]]] = {}
        self.tokens: set[int] = set()  # states that arrives have returned, with strict rules
        self.landing: dict[int, tuple[WatchedBarrier, Access]] = {}  # by mbarrier, the last copy to this CTA's memory
        self.unfenced_inits: dict[int, int] = {}  # by warp, lanes whose mbarrier.init no fence.mbarrier_init follows
        self.others_fenced = False  # lanes with no such mbarrier.init executed a fence.mbarrier_init
        self.wgmma_fenced: set[int] = set()  # warps that executed wgmma.fence since they last waited
        self.groups: dict[int, int] = {}  # component of each warpgroup
        # By warpgroup: (warp, how many setmaxnreg before) -> its component and clock then.
        self.register_marks: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}
        self.refusals: list[tuple[Any, int, int]] = []  # who has seen a request for a cluster fail: warp, its clock

    # --- agents -------------------------------------------------------------------------------------------------------

    def widen(self, capacity: int) -> None:
        """Replace all vectors by wider ones."""
        self.session.capacity = capacity
        clocks = self.clocks
        for warp in self.warps:
            for group in warp.groups:
                group.adopt(clocks.widened(group.vector, capacity))
                group.inits = None if group.inits is None else clocks.widened(group.inits, capacity)
        for barrier in self.barriers:
            barrier.widen(capacity)
        for named in self.named:
            named.widen(capacity)

    def agents(self, frag: Fragment) -> tuple[Lanes, ...]:
        """The lanes of a fragment, in groups that have the same past."""
        warp = frag.warp
        self.actor = actor = warp.cta
        watch: Watch = actor.watch
        return watch.warps[warp.index].of(frag.lanes.mask, warp.live)

    def agent(self, frag: Fragment, lane: int) -> Lanes:
        """The group of one lane of a fragment."""
        for group in self.agents(frag):
            if group.mask >> lane & 1:
                return group
        raise AssertionError("every lane of a fragment is in a group")

    def together(self, frag: Fragment) -> Lanes:
        """The fragment's lanes come together."""
        warp = frag.warp
        self.actor = actor = warp.cta
        watch: Watch = actor.watch
        return watch.warps[warp.index].merge(frag.lanes.mask, warp.live)

    @property
    def site(self) -> Site:
        """The instruction that runs."""
        number: int = self.actor.site
        return self.sites[number]

    def site_of(self, frag: Fragment) -> Site:
        """The instruction that a fragment runs, which may be of another CTA."""
        number: int = frag.warp.cta.site
        return self.sites[number]

    def tick(self, agent: Lanes) -> None:
        agent.tick(self.clocks.capacity)

    def access(self, kind: str, agent: Lanes, *, strong: bool = False) -> Access:
        """An ordinary access of some lanes."""
        component = agent.component
        clock = agent.known[component]
        agent.touch()
        who = (agent.warp.index, agent.mask, self.actor)
        return Access(kind, self.site, who, component, clock, component, clock, generic=True, strong=strong)

    def operation(
        self, kind: str, agent: Lanes, lane: int, component: int, clock: int, *, pipeline: bool = False
    ) -> Access:
        """An asynchronous operation of one lane, over for whoever knows `component` at `clock`."""
        base = agent.component
        who = (agent.warp.index, 1 << lane if lane >= 0 else agent.mask, self.actor)
        return Access(kind, self.site, who, component, clock, base, agent.known[base], pipeline=pipeline)

    def lands(self, barrier: WatchedBarrier, copy: Access) -> None:
        """A copy to shared memory of this CTA completes on a barrier."""
        self.landing[barrier.component] = barrier, copy
        barrier.uses[copy.component] = copy.clock

    def commit(self, warp: int, lane: int) -> tuple[int, int]:
        """A tcgen05.commit of a thread is issued: what its arrive brings to whoever waits for it. The arrives of a
        thread's commits come in their order.
        """
        found = self.commits.get(32 * warp + lane)
        if found is None:
            component = self.clocks.component(f"commits of {self.prefix}warp {warp} lane {lane}")
            found = self.commits[32 * warp + lane] = [component, 0]
        found[1] += 1
        return found[0], found[1]

    def mma_stream(self, warp: int, lane: int) -> Stream:
        """The tensor core work of one thread."""
        thread = 32 * warp + lane
        found = self.tensor_work.get(thread)
        if found is None:
            component = self.clocks.component(f"MMAs of {self.prefix}warp {warp} lane {lane}")
            found = self.tensor_work[thread] = Stream(component, component)
        return found

    def bulk_stream(self, warp: int, lane: int) -> Stream:
        """The bulk stores of one thread."""
        thread = 32 * warp + lane
        found = self.bulk.get(thread)
        if found is None:
            name = f"bulk stores of {self.prefix}warp {warp} lane {lane}"
            found = self.bulk[thread] = Stream(
                self.clocks.component(f"{name}, read"), self.clocks.component(f"{name}, complete")
            )
        return found

    def copy_stream(self, warp: int, mask: int) -> Stream:
        """The non-bulk copies of some lanes."""
        found = self.copies.get((warp, mask))
        if found is None:
            component = self.clocks.component(f"cp.async of {self.prefix}{thread_text(warp, mask)}", generic=True)
            found = self.copies[warp, mask] = Stream(component, component)
        return found

    # --- comparison ---------------------------------------------------------------------------------------------------

    def reads(self, memory: Shadow, footprint: Footprint, access: Access, agent: Lanes) -> None:
        """`access` of `agent` reads."""
        self.check_read(memory, footprint, access, agent)
        memory.read(footprint, access)

    def check_read(self, memory: Shadow, footprint: Footprint, access: Access, agent: Lanes) -> None:
        for write in memory.last_writes(footprint):
            if write is not None:
                self.compare(write, access, agent, "RAW", memory, footprint)

    def writes(self, memory: Shadow, footprint: Footprint, access: Access, agent: Lanes) -> None:
        """`access` of `agent` writes."""
        for write in memory.last_writes(footprint):
            if write is not None:
                self.compare(write, access, agent, "WAW", memory, footprint)
        for readers in memory.last_reads(footprint):
            for read in readers:
                self.compare(read, access, agent, "WAR", memory, footprint)
        memory.wrote(footprint, access)

    def compare(
        self, first: Access, second: Access, agent: Lanes, hazard: str, memory: Shadow, footprint: Footprint
    ) -> None:
        """Two accesses of which one writes."""
        known, capacity = agent.known, self.clocks.capacity
        if memory.is_tensor:
            if known[TENSOR * capacity + first.component] >= first.clock:
                return
            space = TENSOR_MEMORY
        else:
            space = SHARED_MEMORY
            place = (memory, footprint)
            if known[first.component] >= first.clock or self._knows_parts(first, agent, *place):
                narrow = self.prefix and self.is_narrow(first, second, agent)
                if narrow and not self._knows_parts(first, agent, *place, SCOPE):
                    fenced = self._knows_parts(first, agent, *place, SHARED)
                    stays = first.who[2] is memory.cta and not second.generic and fenced
                    verdict = races.narrow(first, second, formal=hazard != "RAW" or stays)
                    self.report(verdict, first, second, agent, hazard, memory, footprint)
                    return
                if first.generic == second.generic or known[SHARED * capacity + first.component] >= first.clock:
                    return
                if self._knows_parts(first, agent, *place, SHARED):
                    return
                if first.generic or races.is_bare(first, hazard):
                    verdict = races.unfenced(self, first, second, agent, hazard, space)
                    self.report(verdict, first, second, agent, hazard, memory, footprint)
                return
        if self.may_overlap(first, second):
            return
        if memory.is_tensor and second.pipeline and tensor_rules.handed_over(self, first, agent):
            return
        self.report(races.unordered(self, first, second, agent, space), first, second, agent, hazard, memory, footprint)

    def _knows_parts(
        self, first: Access, agent: Lanes, memory: Shadow, footprint: Footprint, row: int = ORDER
    ) -> bool:
        """Whether `agent` knows of the parts that lanes, which have parted since, had in what `first` did here."""
        return self.clocks.partings.covers(agent.vector, first, lambda: memory.touched_by(footprint, first), row)

    def may_overlap(self, first: Access, second: Access) -> bool:
        """Whether no order is needed: both are atomic, or both run down one pipeline."""
        if first.strong and second.strong:
            needed = scope_needed(first.cluster, first.who[2], second.cluster, second.who[2])
            return min(first.site.scope, second.site.scope) >= needed
        return first.pipeline and second.pipeline and first.component == second.component

    def is_narrow(self, first: Access, second: Access, agent: Lanes) -> bool:
        """Whether what orders an access of another CTA before the next is too narrow a scope."""
        if not first.generic or first.kind in COPIES or first.who[2] is second.who[2]:
            return False
        return bool(agent.known[SCOPE * self.clocks.capacity + first.component] < first.clock)

    def phase_edge(self, first: Access, agent: Lanes, what: str, ends: str = "load completes") -> str:
        """Why an operation that completes on an mbarrier is not known to be complete."""
        name = self.clocks.names[first.component]
        last = agent.known[first.component]
        seen = f"the last phase that it knows of is {last - 1}" if last else "it knows of no phase"
        done = f"phase {first.clock - 1} of the {name}, on which the {ends}"
        return f"no wait orders the {what} after {done}; {seen}"

    # --- reports ------------------------------------------------------------------------------------------------------

    def name(self, access: Access) -> str:
        """Who it was."""
        warp, mask, cta = access.who
        return f"{cta.title} {thread_text(warp, mask)}"

    def thread(self, access: Access) -> str:
        """The same, without the CTA where there is but one."""
        return self.name(access) if self.prefix else thread_text(*access.who[:2])

    def report(
        self,
        verdict: Verdict,
        first: Access,
        second: Access,
        agent: Lanes,
        hazard: str,
        memory: Shadow,
        footprint: Footprint,
    ) -> None:
        collector = self.session.collector
        if not collector.wants(verdict.level):
            return
        if collector.seen(verdict.rule, verdict.level, second.site, first.site):
            return
        cells = memory.touched_by(footprint, first)
        where = tensor_text(cells) if memory.is_tensor else shared_text(memory.cta, cells)
        self.found(verdict, first, second, agent, hazard, where)

    def found(self, verdict: Verdict, first: Access, second: Access, agent: Lanes, hazard: str, where: str) -> None:
        """Enter a finding about two accesses."""
        now, then = _VERBS[hazard]
        mine, theirs = NOUNS[second.kind], NOUNS[first.kind]
        message = (
            f"{hazard}: the {mine} of {self.thread(second)} {now} what the {theirs} of {self.thread(first)} {then}"
        )
        finding = Finding(
            verdict.rule, verdict.level, message, place_of(second.site.instruction, self.name(second)),
            place_of(first.site.instruction, self.name(first)), where, verdict.edge, hints(self, first, agent),
        )  # fmt: skip
        self.session.collector.add(finding, second.site, first.site)

    def lint(
        self, rule: str, level: str, message: str, frag: Fragment | None = None, *, site: Site | None = None
    ) -> None:
        """Enter a finding about one instruction."""
        collector = self.session.collector
        if not collector.wants(level):
            return
        site = site or (self.site if frag is None else self.site_of(frag))
        if collector.seen(rule, level, site, None):
            return
        who = self.cta.title
        if frag is not None:
            who = f"{frag.warp.cta.title} {thread_text(frag.warp.index, frag.lanes.mask)}"
        collector.add(Finding(rule, level, message, place_of(site.instruction, who)), site, None)

    # --- what has no function of its own ------------------------------------------------------------------------------

    def fence(self, frag: Fragment, name: str) -> None:
        """fence and membar."""
        capacity = self.clocks.capacity
        if name.startswith("fence.mbarrier_init"):
            self._fence_inits(frag)
        for agent in self.agents(frag):
            if name.startswith("fence.proxy.async"):
                space = name.removeprefix("fence.proxy.async").removeprefix(".")
                if space in ("", "shared::cta", "shared::cluster") or space.startswith("::generic"):
                    agent.fence(SHARED, capacity)
                if space in ("", "global"):
                    agent.fence(GLOBAL, capacity)
                agent.tick(capacity)
            elif name.startswith("fence.proxy.tensormap"):
                agent.fence(MAPS, capacity)
                agent.release(self.site.scope)
                agent.tick(capacity)
            elif not name.startswith(("fence.proxy", "fence.mbarrier_init")):
                if not name.startswith("fence.release"):
                    self.acquires(agent, frag)
                if not name.startswith("fence.acquire"):
                    agent.release(self.site.scope)
                agent.tick(capacity)

    def acquires(self, agent: Lanes, frag: Fragment) -> None:
        """A fence acquires what relaxed loads before it have seen, as far as its scope goes."""
        scope, flags = self.site.scope, self.session.flags
        left = []
        for publication, seen in agent.observed:
            if not flags.acquire(self, agent, publication, min(scope, seen), frag.warp.cta) and scope < seen:
                left.append((publication, seen))
        agent.observed = tuple(left)

    def _fence_inits(self, frag: Fragment) -> None:
        index = frag.warp.index
        inits = self.unfenced_inits.get(index, 0)
        if inits & frag.lanes.mask:
            self.unfenced_inits[index] = inits & ~frag.lanes.mask
        elif any(self.unfenced_inits.values()):
            self.others_fenced = True

    def meets(self, frag: Fragment) -> None:
        """The fragment's lanes have executed an instruction that none leaves before all have come to it. It hands on
        nothing from one lane to another, but what they did together is over for all of them.
        """
        warp = frag.warp
        for group in warp.cta.watch.warps[warp.index].groups:
            if not group.mask & warp.live & ~frag.mask:
                group.meet(self.clocks)

    def warp_sync(self, frag: Fragment, members: Any) -> None:
        self.together(frag)

    def tmem_wait(self, frag: Fragment, name: str) -> None:
        """tcgen05.wait::ld and ::st: of this warp's own accesses."""
        agent = self.together(frag)
        warp = agent.warp
        if name == "wait::ld":
            if warp.loads >= 0:
                agent.learn(warp.loads, warp.loads_at, self.clocks.capacity)
        elif warp.stores >= 0:
            agent.learn(warp.stores, warp.stores_at, self.clocks.capacity)

    def tcgen05_fence(self, frag: Fragment, name: str) -> None:
        if name == "fence::after_thread_sync":
            for agent in self.agents(frag):
                agent.fenced = True
        else:
            tensor_rules.hands_over(self, frag)

    def wgmma_fence(self, frag: Fragment) -> None:
        self.together(frag)
        self.wgmma_fenced.add(frag.warp.index)

    # --- the end ------------------------------------------------------------------------------------------------------

    def ends(self) -> None:
        """The CTA has ended."""
        exits.check(self)

    def tmem_relinquish(self, frag: Fragment) -> None:
        """tcgen05.relinquish_alloc_permit, before its effect."""
        self.meets(frag)
        if self.cta.tmem.relinquished:
            self.lint("TA-09", "W", "the permit to allocate tensor memory was given back before", frag)

    def exit_finding(self, rule: str, level: str, message: str) -> None:
        """A finding about what is left when a CTA has ended."""
        if self.session.collector.wants(level):
            site = self.session.sites[-1]
            if not self.session.collector.seen(rule, level, site, None):
                self.session.collector.add(
                    Finding(rule, level, message, place_of(site.instruction, self.cta.title)), site, None
                )
