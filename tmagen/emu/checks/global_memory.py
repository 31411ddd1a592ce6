# SPDX-License-Identifier: Apache-2.0
"""Who wrote, and who read, which bytes of global memory, in one CTA or another.

Each allocation has two arrays of one number per byte, sparse and shared between processes: the last write and the last
read. What is only ever read costs a note per box. CTAs of a launch are unordered, except where a kernel has atomics or
strong accesses in global memory: what CTAs tell each other that way is not followed, and is not judged.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import tma
from tmagen.emu.checks import races
from tmagen.emu.checks.clocks import GLOBAL, Lanes
from tmagen.emu.checks.predecessor import Before
from tmagen.emu.checks.races import GLOBAL_MEMORY, Verdict
from tmagen.emu.checks.shadow import Access
from tmagen.emu.isa.values import ND
from tmagen.emu.memory import Allocation, GlobalMemory
from tmagen.emu.state.convergence import Fragment, lane_set, pick
from tmagen.emu.tensormap import TensorMap

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch

_PROCESSES = 256
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


def _sparse(nbytes: int) -> Numbers:
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    return np.frombuffer(mmap.mmap(-1, max(4 * nbytes, 1), flags=flags), np.uint32, nbytes)


class GlobalShadow:
    """All of a launch's global memory."""

    def __init__(self, memory: GlobalMemory, before: Before | None = None, *, between_ctas: bool) -> None:
        self.memory = memory
        self.before = before
        self.between_ctas = between_ctas
        self.process = 0
        self._shadows = {id(allocation): _Shadow(allocation) for allocation in memory.allocations}
        self._accesses: list[Access] = []

    def _shadow(self, allocation: Allocation) -> _Shadow:
        found = self._shadows.get(id(allocation))
        if found is None:
            found = self._shadows[id(allocation)] = _Shadow(allocation)
        return found

    def _number(self, access: Access, watch: Watch) -> int:
        access.cluster = watch.number
        self._accesses.append(access)
        return len(self._accesses) * _PROCESSES + self.process

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

    def _of_map(self, tmap: TensorMap) -> _Shadow | None:
        try:
            return self._shadow(self.memory.find(tmap.address, 1))
        except Exception:
            return None

    # --- comparison ---------------------------------------------------------------------------------------------------

    def _touch(self, watch: Watch, agent: Lanes, note: Access, shadow: _Shadow, where: Any, storing: bool) -> None:
        written = bool(shadow.flags[0])
        if written:
            before = self._cells(shadow, shadow.writes, where)
            self._compare_all(watch, agent, note, before, "WAW" if storing else "RAW", shadow)
        if not storing:
            self._put(shadow, shadow.reads, where, self._number(note, watch))
            return
        if not written:
            shadow.flags[0] = 1
            self._replay(watch, shadow)
        before = self._cells(shadow, shadow.reads, where)
        self._compare_all(watch, agent, note, before, "WAR", shadow)
        self._put(shadow, shadow.writes, where, self._number(note, watch))

    def _replay(self, watch: Watch, shadow: _Shadow) -> None:
        """The allocation is written to for the first time: its reads so far have to be known byte by byte."""
        for tmap, coords, note in shadow.boxes.values():
            view = tma.global_view(tmap, self.memory, coords, storing=False)
            if view is not None and view.size:
                self._accesses.append(note)
                self._put(shadow, shadow.reads, view, len(self._accesses) * _PROCESSES + self.process)

    @staticmethod
    def _cells(shadow: _Shadow, numbers: Numbers, where: Any) -> Any:
        """The numbers of the bytes `where`: a slice, indices, or a view of the allocation's data."""
        if isinstance(where, slice) or where.dtype == np.int64:
            return numbers[where]
        offset = where.__array_interface__["data"][0] - shadow.base
        shape = (*where.shape, where.itemsize)
        strides = (*(4 * s for s in where.strides), 4)
        return np.ndarray(shape, np.uint32, numbers, 4 * offset, strides)

    def _put(self, shadow: _Shadow, numbers: Numbers, where: Any, value: int) -> None:
        if isinstance(where, slice) or where.dtype == np.int64:
            numbers[where] = value
        else:
            self._cells(shadow, numbers, where)[...] = value

    def _compare_all(
        self, watch: Watch, agent: Lanes, second: Access, before: Any, hazard: str, shadow: _Shadow
    ) -> None:
        if not before.any():
            return
        for number in np.unique(before).tolist():
            if number:
                self._compare(watch, agent, second, number, hazard, before, shadow)

    def _compare(
        self, watch: Watch, agent: Lanes, second: Access, number: int, hazard: str, before: Any, shadow: _Shadow
    ) -> None:
        index, process = divmod(number, _PROCESSES)
        first = self._accesses[index - 1] if process == self.process else None
        if first is None or first.cluster != watch.number:
            if self.between_ctas:
                self._across(watch, agent, first, second, hazard, int((before == number).sum()), shadow)
            return
        known, capacity = agent.known, watch.clocks.capacity
        if known[first.component] >= first.clock:
            if not first.generic or second.generic or known[GLOBAL * capacity + first.component] >= first.clock:
                return
            verdict = races.unfenced(watch, first, second, agent, hazard, GLOBAL_MEMORY)
        elif watch.may_overlap(first, second):
            return
        else:
            verdict = races.unordered(watch, first, second, agent, GLOBAL_MEMORY)
        self._report(watch, agent, verdict, first, second, hazard, before == number, shadow)

    def _across(
        self,
        watch: Watch,
        agent: Lanes,
        first: Access | None,
        second: Access,
        hazard: str,
        nbytes: int,
        shadow: _Shadow,
    ) -> None:
        """Another CTA touched the bytes before."""
        if first is not None and first.strong and second.strong:
            return
        level, rule = "E", "RC-02"
        edge = "CTAs of a launch run in any order, and at the same time"
        verdict = Verdict(rule, level, edge)
        collector = watch.session.collector
        if collector.seen(rule, level, second.site, first.site if first else None):
            return
        where = f"{nbytes:,} bytes of the allocation at {shadow.address:#x}"
        if first is None:
            verb = {"RAW": "reads what", "WAR": "overwrites what", "WAW": "overwrites what"}[hazard]
            end = "reads" if hazard == "WAR" else "writes"
            watch.lint(
                rule,
                level,
                f"{hazard}: {races.NOUNS[second.kind]} {verb} another CTA {end}: {where}; {edge}",
                site=second.site,
            )
        else:
            watch.found(verdict, first, second, agent, f"{hazard}", where + ", by another CTA")

    def _report(
        self, watch: Watch, agent: Lanes, verdict: Verdict, first: Access, second: Access, hazard: str, hit: Any,
        shadow: _Shadow,
    ) -> None:  # fmt: skip
        collector = watch.session.collector
        if not collector.wants(verdict.level):
            return
        if collector.seen(verdict.rule, verdict.level, second.site, first.site):
            return
        where = f"{int(hit.sum()):,} bytes of the allocation at {shadow.address:#x}"
        watch.found(verdict, first, second, agent, hazard, where)

    def ends(self, watch: Watch | None) -> None:
        """All CTAs have run, in every process: reads before another CTA's writes are known only now."""
        if watch is None or not self.between_ctas:
            return
        for shadow in self._shadows.values():
            if not shadow.flags[0]:
                continue
            for tmap, coords, note in shadow.boxes.values():
                view = tma.global_view(tmap, self.memory, coords, storing=False)
                if view is None or not view.size:
                    continue
                before = self._cells(shadow, shadow.writes, view)
                for number in np.unique(before).tolist() if before.any() else ():
                    index, process = divmod(number, _PROCESSES)
                    first = self._accesses[index - 1] if process == self.process else None
                    if number and (first is None or first.cluster != note.cluster):
                        agent = watch.warps[0].groups[0]
                        self._across(watch, agent, first, note, "RAW", int((before == number).sum()), shadow)
