# SPDX-License-Identifier: Apache-2.0
"""Who wrote, and who read, which bytes of global memory, in one CTA or another.

Each allocation has two arrays of one number per byte, sparse and shared between processes: the last write and the reads
since, or several writes that need no order among themselves. A number stands for one access or for a set of them. What
is only ever read costs a note per box. CTAs of different clusters are ordered by what they tell each other through
global memory alone (`flags`); where a kernel has nothing to tell with, the CTAs of a launch may be split over
processes, and an access of another process is one of another CTA.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import tensormap, tma
from tmagen.emu.checks import races
from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.hit import Hit
from tmagen.emu.checks.parting import Places
from tmagen.emu.checks.predecessor import Before
from tmagen.emu.checks.races import GLOBAL_MEMORY, Verdict
from tmagen.emu.checks.rows import GLOBAL, MAPS, ORDER, SCOPE
from tmagen.emu.checks.shadow import Access, covers
from tmagen.emu.isa.values import ND
from tmagen.emu.memory import Allocation, GlobalMemory
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment, lane_set
from tmagen.emu.tensormap import TensorMap

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch

_PROCESSES = 256
_MOST = 64  # accesses of one byte that are kept where nothing orders them
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
Numbers = npt.NDArray[np.uint32]


class _Shadow:
    """The shadow of one allocation."""

    __slots__ = ("address", "allocation", "base", "boxes", "flags", "reads", "writes")

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.address = allocation.address
        self.base: int = allocation.data.ctypes.data
        self.writes = _sparse(allocation.nbytes)
        self.reads = _sparse(allocation.nbytes)
        self.flags: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(-1, 1), np.uint8)  # [0]: written to
        self.boxes: dict[tuple[int, tuple[int, ...]], tuple[TensorMap, tuple[int, ...], Access]] = {}

    def hit(self, where: Any, which: Any) -> Hit:
        return Hit(self.address, self.base, where, which)


def _sparse(nbytes: int) -> Numbers:
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, max(4 * nbytes, 1), flags=flags), np.uint32, nbytes)


class GlobalShadow:
    """All of a launch's global memory."""

    def __init__(self, memory: GlobalMemory, before: Before | None = None, *, follows: bool) -> None:
        self.memory = memory
        self.before = before
        self.follows = follows  # CTAs may tell each other something through global memory
        self.process = 0
        self.is_split = False  # other processes run CTAs of the launch too
        self._shadows = {id(allocation): _Shadow(allocation) for allocation in memory.allocations}
        self._accesses: list[Access | tuple[int, ...]] = []  # one access, or the numbers of several

    def _shadow(self, allocation: Allocation) -> _Shadow:
        found = self._shadows.get(id(allocation))
        if found is None:
            found = self._shadows[id(allocation)] = _Shadow(allocation)
        return found

    def _number(self, access: Access | tuple[int, ...]) -> int:
        self._accesses.append(access)
        return len(self._accesses) * _PROCESSES + self.process

    def _members(self, number: int) -> tuple[int, ...]:
        """The accesses that a number stands for. Those of another process are one that is not known."""
        index, process = divmod(number, _PROCESSES)
        if process != self.process:
            return (number,)
        entry = self._accesses[index - 1]
        return entry if entry.__class__ is tuple else (number,)

    def _access(self, number: int) -> Access | None:
        """One access; None for one of another process."""
        index, process = divmod(number, _PROCESSES)
        return self._accesses[index - 1] if process == self.process else None  # type: ignore[return-value]

    # --- what accesses there are --------------------------------------------------------------------------------------

    def lanes(self, watch: Watch, frag: Fragment, address: Any, nbytes: int, kind: str) -> None:
        """An ordinary access of a warp's lanes."""
        strong = kind == "atom" or watch.site_of(frag).strong
        for agent in watch.agents(frag):
            mask = agent.mask & frag.lanes.mask
            if address.__class__ is not ND:
                places = [address]
            else:
                places = [pick(address, lane) for lane in lane_set(mask).lanes]
            low, high = min(places), max(places) + nbytes
            note = watch.access(kind, agent, strong=strong)
            note.places = Places(mask, address, nbytes)
            if self.before is not None:
                self.before.touch(watch, agent, note, places, nbytes, storing=kind != "ld")
            try:
                shadow = self._shadow(self.memory.find(low, high - low))
            except Exception:
                continue  # lanes in several allocations
            cells = (np.array(places, np.int64)[:, None] - shadow.address + np.arange(nbytes)).ravel()
            self._touch(watch, agent, note, shadow, cells, kind != "ld")

    def span(self, watch: Watch, agent: Lanes, note: Access, address: int, nbytes: int, *, storing: bool) -> None:
        """A bulk copy."""
        if self.before is not None:
            self.before.touch(watch, agent, note, (address,), nbytes, storing=storing)
        shadow = self._shadow(self.memory.find(address, nbytes))
        start = address - shadow.address
        self._touch(watch, agent, note, shadow, slice(start, start + nbytes), storing)

    def box(
        self, watch: Watch, agent: Lanes, note: Access, tmap: TensorMap, coords: tuple[int, ...], *, storing: bool
    ) -> None:
        """A tensor copy."""
        if self.before is not None:
            self.before.touch(watch, agent, note, (tmap.address,), tmap.footprint, storing=storing)
        if not storing:
            shadow = self._of_map(tmap)
            if shadow is not None and not shadow.flags[0]:
                note.cluster = watch.number
                shadow.boxes[id(tmap), coords] = (tmap, coords, note)
                return
        if tmap.problems:
            return
        view = tma.global_view(tmap, self.memory, coords, storing=storing)
        if view is None or not view.size:
            return
        shadow = self._of_map(tmap)
        if shadow is not None:
            self._touch(watch, agent, note, shadow, view, storing)

    def map_read(self, watch: Watch, agent: Lanes, note: Access, address: int) -> None:
        """A tensor copy reads a map that lies in global memory."""
        shadow = self._shadow(self.memory.find(address, tensormap.NBYTES))
        start = address - shadow.address
        where = slice(start, start + tensormap.NBYTES)
        note.cluster = watch.number
        if shadow.flags[0]:
            before = shadow.writes[where]
            for number in np.unique(before).tolist() if before.any() else ():
                for member in self._members(number) if number else ():
                    self._check_map(
                        watch, agent, note, self._access(member), address, shadow.hit(where, before == number)
                    )
        if shadow.flags[0] or watch.session.makes_maps:
            self._add(shadow, shadow.reads, where, note, agent)

    def _check_map(
        self, watch: Watch, agent: Lanes, second: Access, first: Access | None, address: int, hit: Hit
    ) -> None:
        """The map was written during the launch."""
        if first is None:
            self._across(watch, agent, first, second, "RAW", hit)
            return
        what, change = races.NOUNS[second.kind].rstrip(","), races.NOUNS[first.kind]
        if not self._knows(watch, agent.known, first, hit):
            edge = f"nothing orders the {what} after the {change}"
        else:
            knows = watch.clocks.partings.knows
            acquired = [v for at, clock, v in watch.maps.get(address, ()) if knows(agent.vector, at, clock)]
            if any(self._knows(watch, vector, first, hit, MAPS) for vector in acquired):
                return
            if any(self._knows(watch, vector, first, hit) for vector in acquired):
                edge = (
                    "no fence.proxy.tensormap::generic.release and no tensormap.cp_fenceproxy stands between the "
                    f"{change} and the fence.proxy.tensormap::generic.acquire of the map"
                )
            else:
                edge = (
                    f"no fence.proxy.tensormap::generic.acquire of the map at {address:#x}, by a thread of the CTA, "
                    f"stands between the {change} and the copy"
                )
        self._report(watch, agent, Verdict("PX-12", "E", edge), first, second, "RAW", hit)

    def _knows(self, watch: Watch, vector: Any, first: Access, hit: Hit, row: int = ORDER) -> bool:
        """Whether who knows `vector` is ordered after an access, of whatever cluster, and after a fence of `row`."""
        if first.cluster != watch.number:
            return watch.session.flags.knows(watch.number, vector, first, hit.cells, row)
        return watch.clocks.partings.covers(vector, first, hit.cells, row)

    def _of_map(self, tmap: TensorMap) -> _Shadow | None:
        try:
            return self._shadow(self.memory.find(tmap.address, 1))
        except Exception:
            return None

    # --- comparison ---------------------------------------------------------------------------------------------------

    def _touch(self, watch: Watch, agent: Lanes, note: Access, shadow: _Shadow, where: Any, storing: bool) -> None:
        note.cluster = watch.number
        written = bool(shadow.flags[0])
        if written:
            before = self._cells(shadow, shadow.writes, where)
            self._compare_all(watch, agent, note, before, "WAW" if storing else "RAW", shadow, where)
        if not storing:
            self._add(shadow, shadow.reads, where, note, agent)
            return
        if not written:
            shadow.flags[0] = 1
            self._replay(shadow)
        before = self._cells(shadow, shadow.reads, where)
        self._compare_all(watch, agent, note, before, "WAR", shadow, where)
        if note.strong:
            self._add(shadow, shadow.writes, where, note, agent)
        else:
            self._put(shadow, shadow.writes, where, self._number(note))
        if before.any():
            self._put(shadow, shadow.reads, where, 0)

    def _replay(self, shadow: _Shadow) -> None:
        """The allocation is written to for the first time: its reads so far have to be known byte by byte."""
        for tmap, coords, note in shadow.boxes.values():
            view = tma.global_view(tmap, self.memory, coords, storing=False)
            if view is not None and view.size:
                self._add(shadow, shadow.reads, view, note, None)

    def _add(self, shadow: _Shadow, numbers: Numbers, where: Any, note: Access, agent: Lanes | None) -> None:
        """Put an access beside those before it that nothing orders with it."""
        number = self._number(note)
        before = self._cells(shadow, numbers, where)
        if not before.any():
            self._put(shadow, numbers, where, number)
            return
        values, inverse = np.unique(before, return_inverse=True)
        joined = np.array([self._joined(value, number, note, agent) for value in values.tolist()], np.uint32)
        self._put(shadow, numbers, where, joined[inverse].reshape(before.shape))

    def _joined(self, old: int, number: int, note: Access, agent: Lanes | None) -> int:
        if not old:
            return number
        kept = [member for member in self._members(old) if not self._is_covered(member, note, agent)]
        if not self.follows:
            # Nothing orders CTAs of different clusters, so that one access of another cluster stands for all of them.
            others = [member for member in kept if (at := self._access(member)) is None or at.cluster != note.cluster]
            kept = [*others[-1:], *(member for member in kept if member not in others)]
        return self._number((*kept[-_MOST:], number)) if kept else number

    def _is_covered(self, member: int, note: Access, agent: Lanes | None) -> bool:
        """Whether who is ordered after `note` is ordered after an access before it too."""
        old = self._access(member)
        if old is None or old.strong != note.strong or old.cluster != note.cluster:
            return False
        if covers(note, old):
            return True
        return agent is not None and note.generic and old.generic and bool(agent.known[old.component] >= old.clock)

    @staticmethod
    def _cells(shadow: _Shadow, numbers: Numbers, where: Any) -> Any:
        """The numbers of the bytes `where`: a slice, indices, or a view of the allocation's data."""
        if isinstance(where, slice) or where.dtype == np.int64:
            return numbers[where]
        offset = where.__array_interface__["data"][0] - shadow.base
        shape = (*where.shape, where.itemsize)
        strides = (*(4 * s for s in where.strides), 4)
        return np.ndarray(shape, np.uint32, numbers, 4 * offset, strides)

    def _put(self, shadow: _Shadow, numbers: Numbers, where: Any, value: Any) -> None:
        if isinstance(where, slice) or where.dtype == np.int64:
            numbers[where] = value
        else:
            self._cells(shadow, numbers, where)[...] = value

    def _compare_all(
        self,
        watch: Watch,
        agent: Lanes,
        second: Access,
        before: Any,
        hazard: str,
        shadow: _Shadow,
        where: Any,
    ) -> None:
        if not before.any():
            return
        for number in np.unique(before).tolist():
            accesses = [self._access(member) for member in self._members(number)] if number else []
            counted = len(accesses) > 1 and any(_has_counted(watch, agent, access) for access in accesses)
            for first in accesses:
                if counted and first is not None and first.strong and first.cluster != watch.number:
                    continue
                self._compare(watch, agent, second, first, hazard, shadow.hit(where, before == number))

    def _compare(self, watch: Watch, agent: Lanes, second: Access, first: Access | None, hazard: str, hit: Hit) -> None:
        if first is None or first.cluster != watch.number:
            self._across(watch, agent, first, second, hazard, hit)
            return
        covers, vector = watch.clocks.partings.covers, agent.vector
        if covers(vector, first, hit.cells):
            narrow = watch.prefix and watch.is_narrow(first, second, agent)
            if narrow and not covers(vector, first, hit.cells, SCOPE):
                verdict = races.narrow(first, second, formal=hazard != "RAW")
            elif not first.generic or second.generic or covers(vector, first, hit.cells, GLOBAL):
                return
            else:
                verdict = races.unfenced(watch, first, second, agent, hazard, GLOBAL_MEMORY)
        elif watch.may_overlap(first, second):
            return
        else:
            verdict = races.unordered(watch, first, second, agent, GLOBAL_MEMORY)
        self._report(watch, agent, verdict, first, second, hazard, hit)

    def _across(self, watch: Watch, agent: Lanes, first: Access | None, second: Access, hazard: str, hit: Hit) -> None:
        """A CTA of another cluster touched the bytes before."""
        flags = watch.session.flags
        if first is not None:
            if watch.may_overlap(first, second):
                return
            if flags.knows(watch.number, agent.known, first, hit.cells):
                unfenced = first.generic and not second.generic
                if unfenced and not flags.knows(watch.number, agent.known, first, hit.cells, GLOBAL):
                    verdict = races.unfenced(watch, first, second, agent, hazard, GLOBAL_MEMORY)
                    self._report(watch, agent, verdict, first, second, hazard, hit)
                return
        collector = watch.session.collector
        if collector.seen("RC-02", "E", second.site, first.site if first else None):
            return
        edge = "CTAs of a launch run in any order, and at the same time"
        if first is not None:
            edge = flags.shortfall(first, hit.cells) or races.scope_edge(first, second) or edge
            verdict = Verdict("RC-02", "E", edge)
            if first.kind == "map_read":
                verdict = races.unordered(watch, first, second, agent, GLOBAL_MEMORY)
            watch.found(verdict, first, second, agent, hazard, f"{hit}, by another CTA")
            return
        verb, end = ("reads", "writes") if hazard == "RAW" else ("overwrites", "reads" if hazard == "WAR" else "writes")
        message = f"{hazard}: {races.NOUNS[second.kind]} {verb} what another CTA {end}: {hit}; {edge}"
        watch.lint("RC-02", "E", message, site=second.site)

    def _report(
        self, watch: Watch, agent: Lanes, verdict: Verdict, first: Access, second: Access, hazard: str, hit: Hit
    ) -> None:
        collector = watch.session.collector
        if not collector.wants(verdict.level):
            return
        if collector.seen(verdict.rule, verdict.level, second.site, first.site):
            return
        watch.found(verdict, first, second, agent, hazard, str(hit))

    def ends(self, watch: Watch | None) -> None:
        """All CTAs have run, in every process: what other processes wrote to bytes that this one only read."""
        if watch is None or not self.is_split:
            return
        agent = watch.warps[0].groups[0]
        for shadow in self._shadows.values():
            for tmap, coords, note in shadow.boxes.values() if shadow.flags[0] else ():
                view = tma.global_view(tmap, self.memory, coords, storing=False)
                if view is None or not view.size:
                    continue
                before = self._cells(shadow, shadow.writes, view)
                for number in np.unique(before).tolist() if before.any() else ():
                    first = self._access(self._members(number)[-1]) if number else note
                    if first is None or first.cluster != note.cluster:
                        self._across(watch, agent, first, note, "RAW", shadow.hit(view, before == number))


def _has_counted(watch: Watch, agent: Lanes, access: Access | None) -> bool:
    """Whether an access is an atomic of this cluster that a thread is ordered after. It has seen the strong accesses
    of earlier clusters at its place, so the thread is ordered after those too (PTX ISA, "Causality Order": what an
    operation observes comes before what follows it): the last to arrive may set a counter back by a plain store.
    """
    return (
        access is not None
        and access.kind == "atom"
        and access.cluster == watch.number
        and access.site.instruction.parts[0] != "red"
        and bool(agent.known[access.component] >= access.clock)
    )
