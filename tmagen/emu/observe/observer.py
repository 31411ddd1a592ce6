# SPDX-License-Identifier: Apache-2.0
"""What is told of an observed run, for one cluster: it keeps the time and hands on to the recorder of a trace.

The time of a timed run is the cycle of what happens; of any other it is a count of steps: each instruction that does
more than compute registers, and each completion, is one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tmagen.emu.observe.work import OTHER, Work
from tmagen.emu.state.barriers import BarrierWait
from tmagen.emu.state.cluster_barrier import ClusterWait
from tmagen.emu.state.fragments import RUN, WAIT, Fragment
from tmagen.emu.state.mbarrier import MBarrier, PhaseWait
from tmagen.emu.timing.latency import Table
from tmagen.emu.timing.units import Units

if TYPE_CHECKING:
    from tmagen.emu.observe.recorder import Recorder


class Eye:
    """What one mbarrier is seen by."""

    __slots__ = ("barrier", "cta", "ended", "observer", "time")

    def __init__(self, observer: Observer, cta: Any, barrier: MBarrier) -> None:
        self.observer = observer
        self.cta = cta
        self.barrier = barrier
        self.time = 0  # of the latest arrival of the phase
        self.ended = 0  # the end of the last phase

    def touched(self, what: str) -> None:
        observer = self.observer
        self.time = max(self.time, observer.now, self.ended + 1)
        if observer.recorder is not None:
            observer.recorder.touched(self, what, max(observer.now, self.ended + 1))

    def phase_ended(self) -> None:
        observer = self.observer
        self.ended = observer.now = self.time
        if observer.recorder is not None:
            observer.recorder.phase_ended(self)


class Observer:
    """Of one cluster."""

    def __init__(self, table: Table | None, recorder: Recorder | None) -> None:
        self.table = table
        self.timed = table is not None
        self.recorder = recorder
        self.now = 0
        self.end = 0
        self.works: deque[Work] = deque()  # of the instruction that runs, in the order in which it issues them
        self._units: dict[int, Units] = {}
        self._bars: dict[tuple[int, int], int] = {}

    def units(self, cta: Any) -> Units:
        """The units of a CTA's SM."""
        found = self._units.get(cta.rank)
        if found is None:
            assert self.table is not None
            found = self._units[cta.rank] = Units(self.table)
        return found

    # --- instructions -------------------------------------------------------------------------------------------------

    def step(self, frag: Fragment, cta: Any, site: int, before: int, own: int) -> None:
        """An instruction is about to run: `before` cycles after the last one of the block, for `own` cycles."""
        if self.timed:
            begin = frag.clock + before
            frag.clock = self.now = begin + own
        else:
            begin, own = self.now, 1
            self.now = begin + 1
        if self.now > self.end:
            self.end = self.now
        if self.recorder is not None:
            self.recorder.instruction(cta, frag, site, begin, begin + max(own, 1))

    def woken(self, frag: Fragment) -> None:
        """What a fragment waits for has happened."""
        wait, now = frag.wait, self.now
        if frag.state != WAIT:
            frag.clock = max(frag.clock, now) if self.timed else frag.clock
            return
        cost = 1
        if self.timed:
            assert self.table is not None
            if wait.__class__ is PhaseWait:
                cost = self.table["mbarrier_wake"]
            elif wait.__class__ is BarrierWait:
                cost = self.table["barrier"]
            elif wait.__class__ is ClusterWait:
                cost = self.table["cluster_barrier"]
            else:
                cost = self.table["group_wake"]
            frag.clock = max(frag.clock, now) + cost
            if frag.clock > self.end:
                self.end = frag.clock
        if self.recorder is not None and wait is not None:
            self.recorder.woken(frag, frag.clock if self.timed else now, cost)

    def passed(self, cta: Any, frag: Fragment, address: int) -> None:
        """A wait for a phase that had ended already."""
        eye = cta.mbarriers[address].eye
        if eye is None:
            return
        if self.timed and frag.clock < eye.ended:
            frag.clock = eye.ended
        if self.recorder is not None:
            self.recorder.passed(frag, eye)

    def arrives(self, cta: Any, frag: Fragment, number: int) -> None:
        """A warp comes to a named barrier."""
        key = (cta.rank, number)
        if self.timed:
            self._bars[key] = self.now = max(self._bars.get(key, 0), frag.clock)

    def arrived(self, cta: Any, frag: Fragment, number: int, waits: bool) -> None:
        """It has been counted, or waits for its other lanes; where it was the last, it goes on with the others."""
        key = (cta.rank, number)
        if self.timed and frag.state == RUN and 0 <= number < 16 and not cta.named[number].open and key in self._bars:
            assert self.table is not None
            end = self._bars.pop(key) + self.table["barrier"]
            if waits:
                frag.clock = max(frag.clock, end)

    # --- operations ---------------------------------------------------------------------------------------------------

    def expects_wgmma(self, cta: Any, ops: list[Any]) -> None:
        """A warpgroup starts these instructions next."""
        self.works.clear()
        for op in ops:
            form = op.form
            place = (op.b if form.a_in_registers else op.a) & 0x3FFF
            shape = (64, form.n, form.k)
            self.works.append(Work("wgmma", 0, place << 4, None, None, shape, form.a.nbytes, not form.a_in_registers))

    def issued(self, cta: Any, frag: Any, lane: int, operation: Any) -> None:
        """An operation is under way."""
        work = self.works.popleft() if self.works else OTHER
        begin = self.now
        if self.timed:
            begin, operation.ends = self.units(cta).schedule(work, self.now, (frag.warp.index, lane))
        if self.recorder is not None:
            operation.seen = self.recorder.issued(cta, frag, lane, work, self.now, begin)

    def completes(self, cta: Any, operation: Any) -> None:
        """An operation is about to take effect."""
        self.now = operation.ends if self.timed else self.now + 1
        self.end = max(self.end, self.now)
        if self.recorder is not None and operation.seen is not None:
            self.recorder.completes(operation.seen, self.now)

    def at_once(self, cta: Any, frag: Any, lane: int, kind: str, run: Any) -> None:
        """An operation that takes effect as it is issued."""
        work = self.works.popleft() if self.works else OTHER
        seen = None
        if self.recorder is not None:
            seen = self.recorder.issued(cta, frag, lane, work, self.now, self.now)
        self.now += 1
        self.end = max(self.end, self.now)
        if self.recorder is not None:
            self.recorder.completes(seen, self.now)
        if run is not None:
            run()

    # --- barriers -----------------------------------------------------------------------------------------------------

    def made(self, cta: Any, barrier: MBarrier) -> None:
        """An mbarrier has been initialised."""
        eye = Eye(self, cta, barrier)
        eye.ended = eye.time = self.now
        barrier.eye = eye
        if self.recorder is not None:
            self.recorder.made(eye)
