# SPDX-License-Identifier: Apache-2.0
"""Warps as fragments: sets of lanes at one program counter, which split where a branch diverges and merge where they
meet.

The fragment with the lowest program counter runs first, so that lanes which left a loop or took the shorter way wait
for the others at the first block in the text that both reach. A blocked fragment does not hold the others up
(independent thread scheduling); collectives wait until their lanes are together.

Block functions return the next block's number or a negative code: BLOCK (the fragment waits for something), SWITCH (the
set of fragments changed), GONE (the fragment has exited), or at most AGAIN: continue at block AGAIN - code after the
other warps had their turn. `convergence` holds what they call.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.isa.values import M32, ND, UNSIGNED

RUN, CONVERGE, WAIT = 0, 1, 2
PRODUCER, MIDDLE, CONSUMER = 0, 1, 2  # a warp that issues loads; one that issues tensor work alone; the others
BLOCK, SWITCH, GONE = -1, -2, -3
AGAIN = -16
FAR = 1 << 60
WARP_BARRIER, CTA_BARRIER = "bar.warp.sync", "barrier.sync"
MET, JOINS, PARTED = object(), object(), object()
"""What `wait` says of a fragment whose lanes have met others at a barrier elsewhere in the text: it may go on; for a
barrier of the CTA it is counted by another fragment. PARTED: it has left lanes that name another membermask at the same
instruction, and is not merged with them before it has executed that.
"""
LONG_TURN, LONG_WAY = 55_440, 5_040
"""Blocks, and waits or divergences, after which a turn ends that nothing else has ended. A loop of a few is then where
it was before: they are multiples of many numbers."""


class LaneSet:
    """A set of lanes in the forms that execution needs."""

    __slots__ = ("count", "first", "index", "lanes", "mask", "where")

    def __init__(self, mask: int) -> None:
        self.mask = mask
        self.lanes = tuple(i for i in range(32) if mask >> i & 1)
        self.count = len(self.lanes)
        self.first = self.lanes[0] if self.lanes else 0
        self.index: npt.NDArray[np.intp] | None = None if mask == M32 else np.array(self.lanes, np.intp)
        self.where = np.array([bool(mask >> i & 1) for i in range(32)])


@lru_cache(maxsize=4096)
def lane_set(mask: int) -> LaneSet:
    return LaneSet(mask)


class Fragment:
    """Lanes of one warp that run together. `R` holds the registers; `wait` says what it waits for, for reports.

    `one` is the lane of a fragment of one lane, else -1. Such a fragment sees ints: blocks take the lane's item of an
    array when they load it, and what they do not change stays the array that the other lanes hold too. `clock` is the
    cycle that it has come to, in a timed run.
    """

    __slots__ = ("R", "clock", "lanes", "mask", "one", "pc", "state", "wait", "warp")

    def __init__(self, warp: Warp, mask: int, registers: list[Any], pc: int) -> None:
        self.warp = warp
        self.R = registers
        self.pc = pc
        self.clock = 0
        self.state = RUN
        self.wait: Any = None
        self.set_lanes(mask)

    def set_lanes(self, mask: int) -> None:
        """These lanes, from now on."""
        self.mask = mask
        self.lanes = lanes = lane_set(mask)
        self.one = lanes.first if lanes.count == 1 else -1

    def wake(self) -> None:
        """What the fragment waits for has happened."""
        warp = self.warp
        observer = warp.cta.observer
        if observer is not None:
            observer.woken(self)
        self.state = RUN
        self.wait = None
        if not warp.queued:
            warp.queued = True
            warp.queue.append(warp)


class Warp:
    """32 threads: fragments, and who still lives. `run` goes on until nothing can or another warp has its turn."""

    __slots__ = (
        "bulk",
        "copies",
        "cta",
        "fragments",
        "index",
        "lane",
        "live",
        "live_slots",
        "local",
        "program",
        "queue",
        "queued",
        "role",
        "tx",
        "ty",
        "tz",
    )

    def __init__(self, cta: Any, index: int, mask: int, tid: tuple[Any, Any, Any], program: Any) -> None:
        self.cta = cta
        self.index = index
        self.live = mask
        self.lane = _LANES
        self.tx, self.ty, self.tz = tid
        self.program = program
        self.live_slots = program.live
        self.queue = cta.queue
        self.queued = False
        self.role = CONSUMER  # until it does other work
        self.bulk: dict[int, Any] = {}  # lane -> its bulk groups
        self.copies: dict[int, Any] = {}  # lane -> its groups of other copies
        self.local: npt.NDArray[np.uint8] | None = None
        self.fragments = [Fragment(self, mask, list(cta.launch.registers), 0)]

    def run(self) -> None:
        """Run until all fragments wait, or one gives way to the other warps."""
        cta, blocks, fragments = self.cta, self.program.blocks, self.fragments
        for _ in repeat(None, LONG_WAY):
            if len(fragments) == 1:
                fragment = fragments[0]
                if fragment.state == CONVERGE and not self._released(fragment):
                    return
                if fragment.state:
                    return
                pc = fragment.pc
                for _ in repeat(None, LONG_TURN):
                    fragment.pc = pc
                    pc = blocks[pc](fragment, cta)
                    if pc < 0:
                        break
                else:
                    fragment.pc = pc
                    return self._give_way()
            else:
                chosen = self._choose()
                if chosen is None:
                    return
                fragment, limit, stops = chosen
                pc = fragment.pc
                for _ in repeat(None, LONG_TURN):
                    fragment.pc = pc
                    pc = blocks[pc](fragment, cta)
                    if not 0 <= pc < limit or pc in stops:
                        break
                else:
                    fragment.pc = pc
                    return self._give_way()
                if pc >= 0:
                    fragment.pc = pc
                    continue
            if pc <= AGAIN:
                fragment.pc = AGAIN - pc
                if self.queue:
                    if not self.queued:
                        self.queued = True
                        self.queue.append(self)
                    return
                if cta.polls:
                    cta.idle()
            elif not fragments:
                return
        self._give_way()

    def _give_way(self) -> None:
        """A turn has become so long that it may be endless: let the others run, and have the cluster looked at."""
        self.cta.cluster.watch_from = 0
        if not self.queued:
            self.queued = True
            self.queue.append(self)

    def _released(self, fragment: Fragment) -> bool:
        """Whether a lone fragment that waits for lanes has all that are alive."""
        if fragment.mask == self.live:
            fragment.state = RUN
            fragment.wait = None
            return True
        return False

    def _choose(self) -> tuple[Fragment, int, Collection[int]] | None:
        """Merge fragments that have met; the one to run, the lowest counter among the others, and where some wait to be
        joined.
        """
        fragments = self.fragments
        if len(fragments) == 2:
            # By far the most frequent case: one lane left the others for a while.
            a, b = fragments
            if not a.state and not b.state:
                if a.pc == b.pc:
                    if a.wait is None and b.wait is None:
                        return self._merge(a, b), FAR, ()
                    return (a if a.wait is not None else b), 0, ()
                return (a, b.pc, ()) if a.pc < b.pc else (b, a.pc, ())
        at: dict[int, Fragment] = {}
        for fragment in list(fragments):
            if fragment.state == WAIT:
                continue
            if fragment.state == RUN and fragment.wait is not None:
                return fragment, 0, ()
            other = at.get(fragment.pc)
            at[fragment.pc] = fragment if other is None else self._merge(other, fragment)
        running = sorted(pc for pc, fragment in at.items() if fragment.state == RUN)
        if not running:
            return self._choose() if self._meet() else None
        stops = {pc for pc, fragment in at.items() if fragment.state == CONVERGE}
        return at[running[0]], running[1] if len(running) > 1 else FAR, stops

    def _meet(self) -> bool:
        """Let go fragments that stand at several barriers of one kind, if they are all that are waited for."""
        parted: dict[tuple[Any, ...], list[Fragment]] = {}
        for fragment in self.fragments:
            if fragment.state == CONVERGE and fragment.wait is not None:
                parted.setdefault(fragment.wait, []).append(fragment)
        for (kind, members, *_), those in parted.items():
            mask = 0
            for fragment in those:
                mask |= fragment.mask
            if members & self.live & ~mask:
                continue
            those.sort(key=lambda fragment: fragment.pc)
            for fragment in those:
                fragment.state = RUN
                fragment.wait = MET if kind == WARP_BARRIER or fragment is those[-1] else JOINS
            if self.cta.watch is not None:
                self.cta.watch.warps[self.index].merge(mask, self.live)
            return True
        return False

    def _merge(self, a: Fragment, b: Fragment) -> Fragment:
        """Join two fragments at one program counter; the larger one stays."""
        if b.lanes.count > a.lanes.count:
            a, b = b, a
        ra, rb = a.R, b.R
        where = b.lanes.where
        for slot in self.live_slots[a.pc]:
            x, y = ra[slot], rb[slot]
            if x is y:
                continue
            if x.__class__ is not ND:
                if y.__class__ is not ND and x == y:
                    continue
                width = self.program.widths[slot]
                out = np.full(32, x, bool if width == 1 else UNSIGNED[width])
            else:
                out = x.copy()
            out[where] = y[where] if y.__class__ is ND else y
            ra[slot] = out
        a.set_lanes(a.mask | b.mask)
        if b.clock > a.clock:
            a.clock = b.clock
        a.state = RUN
        a.wait = None
        self.fragments.remove(b)
        return a


_LANES = np.arange(32, dtype=np.uint32)
