# SPDX-License-Identifier: Apache-2.0
"""Warps as fragments: sets of lanes at one program counter, which split where a branch diverges and merge where they
meet.

The fragment with the lowest program counter runs first, so that lanes which left a loop or took the shorter way wait
for the others at the first block in the text that both reach. A blocked fragment does not hold the others up
(independent thread scheduling); collectives wait until their lanes are together.

Block functions return the next block's number or a negative code: BLOCK (the fragment waits for something), SWITCH (the
set of fragments changed), GONE (the fragment has exited), or `again(n)`: continue at block n after the other warps had
their turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import M32, ND, UNSIGNED

RUN, CONVERGE, WAIT = 0, 1, 2
PRODUCER, MIDDLE, CONSUMER = 0, 1, 2  # a warp that issues loads; one that issues tensor work alone; the others
BLOCK, SWITCH, GONE = -1, -2, -3
_AGAIN = -16
_ALL, _NONE = b"\x01" * 32, b"\x00" * 32
FAR = 1 << 60
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
            if pc <= _AGAIN:
                fragment.pc = _AGAIN - pc
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


def resumed(code: int) -> int | None:
    """The block that the code of `again` names; None for the other codes."""
    return _AGAIN - code if code <= _AGAIN else None


def again(number: int) -> int:
    """The code for: continue at block `number` when the other warps had their turn."""
    return _AGAIN - number


def branch(fragment: Fragment, p: Any, taken: int, other: int) -> int:
    """A conditional branch on an array predicate."""
    raw = p.tobytes()
    if raw == _ALL:
        return taken
    if raw == _NONE:
        return other
    mask = fragment.mask
    yes = int.from_bytes(np.packbits(p, bitorder="little").tobytes(), "little") & mask
    if yes == mask:
        return taken
    if not yes:
        return other
    split(fragment, [(taken, yes), (other, mask & ~yes)] if taken != other else [(taken, mask)])
    return SWITCH


def _size(way: tuple[int, int]) -> int:
    return way[1].bit_count()


def split(fragment: Fragment, ways: Iterable[tuple[int, int]]) -> list[Fragment]:
    """Give each group of lanes (`ways`: block and lanes) its own fragment; the largest keeps this one."""
    order = sorted(ways, key=_size)
    warp = fragment.warp
    parts = [fragment]
    for pc, mask in order[:-1]:
        part = Fragment(warp, mask, fragment.R.copy(), pc)
        part.clock = fragment.clock
        warp.fragments.append(part)
        parts.append(part)
    fragment.pc, mask = order[-1]
    fragment.set_lanes(mask)
    return parts


def branch_index(fragment: Fragment, index: Any, targets: tuple[int, ...]) -> int:
    """brx.idx: a branch to the target that `index` selects. An index past the list is undefined in PTX: a fault."""
    if index.__class__ is not ND:
        if index >= len(targets):
            raise Fault(f"brx.idx with index {index}, but the list has {len(targets)} targets")
        target: int = targets[index]
        return target
    ways: dict[int, int] = {}
    for lane in fragment.lanes.lanes:
        number = branch_index(fragment, index.item(lane), targets)
        ways[number] = ways.get(number, 0) | 1 << lane
    if len(ways) == 1:
        return next(iter(ways))
    split(fragment, ways.items())
    return SWITCH


def converge(fragment: Fragment, pc: int) -> int:
    """The collective at the start of block `pc` needs lanes that are not here yet."""
    fragment.pc = pc
    fragment.state = CONVERGE
    fragment.wait = None
    return BLOCK


WARP_BARRIER, CTA_BARRIER = "bar.warp.sync", "barrier.sync"


def stay_apart(fragment: Fragment, pc: int, kind: str, members: int, *which: Any) -> int:
    """Wait at the barrier at the start of block `pc` for lanes that are at another one of the same kind."""
    fragment.pc = pc
    fragment.state = CONVERGE
    fragment.wait = (kind, members, *which)
    return BLOCK


def warp_barrier(fragment: Fragment, members: Any, pc: int) -> int:
    """bar.warp.sync: 0 to go on, or the code that block `pc` returns (PTX ISA, "bar.warp.sync")."""
    if fragment.wait is MET:
        fragment.wait = None
        return 0
    if _part(fragment, members, pc):
        return SWITCH
    if _together(fragment, members):
        return 0
    return stay_apart(fragment, pc, WARP_BARRIER, uniform(fragment, members, "membermask"))


def whole(fragment: Fragment) -> bool:
    """Whether all live lanes of the warp are in the fragment."""
    return fragment.mask == fragment.warp.live


def gather(fragment: Fragment, members: Any, pc: int) -> int:
    """0 where the live lanes of `members` are all here, else the code that block `pc` returns. Lanes that name other
    masks execute the instruction on their own, as the tiles of a warp do in cooperative groups.
    """
    if _part(fragment, members, pc):
        return SWITCH
    return 0 if _together(fragment, members) else converge(fragment, pc)


def _part(fragment: Fragment, members: Any, pc: int) -> bool:
    """Give the lanes that name one membermask a fragment of their own, where the lanes name several."""
    if fragment.wait is PARTED:
        fragment.wait = None
    if members.__class__ is not ND:
        return False
    masks: dict[int, int] = {}
    for lane in fragment.lanes.lanes:
        named = members.item(lane)
        masks[named] = masks.get(named, 0) | 1 << lane
    if len(masks) == 1:
        return False
    for part in split(fragment, [(pc, lanes) for lanes in masks.values()]):
        part.wait = PARTED
    return True


def _together(fragment: Fragment, members: Any) -> bool:
    """Whether the live lanes of `members` are all here. Raises Fault where an executing lane is not a member."""
    if members.__class__ is ND:
        members = uniform(fragment, members, "membermask")
    if fragment.mask & ~members:
        raise Fault(
            f"lanes {fragment.mask & ~members:#010x} execute a .sync instruction whose membermask {members:#010x} "
            "does not name them",
            rule="NB-11",
        )
    return not (members & fragment.warp.live & ~fragment.mask)


def uniform(fragment: Fragment, value: Any, what: str) -> int:
    """A value that has to be the same in all executing lanes, as an int. Raises Fault where it is not."""
    if value.__class__ is not ND:
        return value  # type: ignore[no-any-return]
    active = value if fragment.lanes.index is None else value[fragment.lanes.index]
    first: int = active.item(0)
    if not (active == first).all():
        raise Fault(f"{what} differs between the lanes of a warp: {sorted(set(active.tolist()))[:4]}...", rule="NB-05")
    return first


def own(fragment: Fragment, value: Any) -> Any:
    """A value of the warp's lanes, as the fragment sees it."""
    return value if fragment.one < 0 or value.__class__ is not ND else value.item(fragment.one)


def pick(value: Any, lane: int) -> Any:
    """The value in one lane."""
    return value.item(lane) if value.__class__ is ND else value


def exit_lanes(fragment: Fragment) -> int:
    """These lanes end."""
    warp = fragment.warp
    warp.live &= ~fragment.mask
    warp.fragments.remove(fragment)
    for other in warp.fragments:
        if other.state == CONVERGE:
            other.wake()
    if not warp.live:
        warp.cta.warp_ended(warp)
    return GONE


def trap(fragment: Fragment) -> int:
    raise Fault("the kernel executed trap")


def failed_assert() -> None:
    raise Fault("an assertion of the kernel failed")
