# SPDX-License-Identifier: Apache-2.0
"""Named barriers of a CTA: bar / barrier (PTX ISA, "bar, barrier")."""

from __future__ import annotations

from typing import Any

from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import M32, ND
from tmagen.emu.state.convergence import again, converge, pick, stay_apart, uniform
from tmagen.emu.state.fragments import BLOCK, CTA_BARRIER, JOINS, MET, WAIT, Fragment


class NamedBarrier:
    """One of 16. Threads are counted by whole warps; `expected` None: all threads of the CTA that have not exited."""

    __slots__ = ("arrived", "expected", "holds", "open", "threads", "waiters")

    def __init__(self) -> None:
        self.open = False
        self.expected: int | None = None
        self.arrived = 0
        self.holds = self.threads = 0  # of a reduction: threads whose predicate holds, of all that have arrived
        self.waiters: list[Fragment] = []

    def release(self) -> tuple[int, int]:
        """Let all go on; those of a reduction are told what came of it."""
        waiters, self.waiters = self.waiters, []
        counts = self.holds, self.threads
        self.open, self.arrived, self.expected = False, 0, None
        self.holds = self.threads = 0
        for fragment in waiters:
            reduces = fragment.wait.reduces
            fragment.wake()
            if reduces:
                fragment.wait = counts
        return counts


class BarrierWait:
    """Why a fragment is blocked: it waits at a named barrier."""

    def __init__(self, index: int, barrier: NamedBarrier, number: int, reduces: bool = False) -> None:
        self.reduces = reduces
        self.index = index
        self.barrier = barrier
        self.number = number

    def describe(self, cta: Any) -> str:
        expected = self.barrier.expected if self.barrier.expected is not None else 32 * cta.live_warps
        text = f"waits at named barrier {self.index}: {self.barrier.arrived} of {expected} threads have arrived"
        if self.rule_of(cta) is None:
            return text
        return f"{text}, and {cta.nwarps - cta.live_warps} of the CTA's {cta.nwarps} warps have exited"

    def rule_of(self, cta: Any) -> str | None:
        """The rule that a deadlock with this wait is about: those that have exited are still counted."""
        barrier = self.barrier
        if barrier.expected is None:
            return None
        come = {fragment.warp for fragment in barrier.waiters}
        return "NB-09" if barrier.arrived + 32 * (cta.live_warps - len(come)) < barrier.expected else None


def parted(fragment: Fragment, index: Any, count: Any, this: int, apart: bool) -> int:
    """0 where the warp is together, or its lanes are at several barriers of this number; else the code to return."""
    if fragment.mask == fragment.warp.live or fragment.wait is MET or fragment.wait is JOINS:
        return 0
    if not apart:
        return converge(fragment, this)
    which = (uniform(fragment, index, "the barrier's number"), None if count is None else pick(count, 0))
    return stay_apart(fragment, this, CTA_BARRIER, M32, *which)


def bar_sync(
    fragment: Fragment, cta: Any, index: Any, count: Any, this: int, next_block: int, number: int, apart: bool
) -> int:
    """Arrive and wait. `count` None: the whole CTA. `apart`: lanes of a warp may be at several such barriers."""
    if code := parted(fragment, index, count, this, apart):
        return code
    index = uniform(fragment, index, "the barrier's number")
    joins, fragment.wait = fragment.wait is JOINS, None
    barrier = cta.named[index] if joins else _arrive(fragment, cta, index, count)
    if not joins and _is_full(cta, barrier):
        barrier.release()
        return again(next_block)
    fragment.pc = next_block
    fragment.state = WAIT
    fragment.wait = BarrierWait(index, barrier, number)
    barrier.waiters.append(fragment)
    return BLOCK


def bar_red(
    fragment: Fragment, cta: Any, index: Any, count: Any, holds: Any, name: str, this: int, number: int
) -> Any:
    """Arrive and wait, then a count or a truth; until then the code to return, in a tuple. A fragment that waits comes
    to block `this` again, with the counts in `wait`.
    """
    if fragment.wait is not None:
        (true, total), fragment.wait = fragment.wait, None
        return _reduced(name, true, total)
    if fragment.mask != fragment.warp.live:
        return (converge(fragment, this),)
    index = uniform(fragment, index, "the barrier's number")
    barrier = _arrive(fragment, cta, index, count)
    lanes = fragment.lanes
    barrier.threads += lanes.count
    barrier.holds += int(holds[lanes.where].sum()) if holds.__class__ is ND else lanes.count * bool(holds)
    if _is_full(cta, barrier):
        return _reduced(name, *barrier.release())
    fragment.pc = this
    fragment.state = WAIT
    fragment.wait = BarrierWait(index, barrier, number, reduces=True)
    barrier.waiters.append(fragment)
    return (BLOCK,)


def _reduced(name: str, true: int, total: int) -> int | bool:
    return true if name == "popc" else true == total if name == "and" else true > 0


def bar_arrive(fragment: Fragment, cta: Any, index: Any, count: Any) -> None:
    """Arrive and go on."""
    barrier = _arrive(fragment, cta, uniform(fragment, index, "the barrier's number"), count)
    if _is_full(cta, barrier):
        barrier.release()


def _arrive(fragment: Fragment, cta: Any, index: int, count: Any) -> NamedBarrier:
    if not 0 <= index < 16:
        raise Fault(f"named barrier {index}: a CTA has 16, numbered 0 to 15", rule="NB-01")
    barrier: NamedBarrier = cta.named[index]
    expected = None if count is None else uniform(fragment, count, "the barrier's thread count")
    if expected is not None:
        if expected % 32 or not expected:
            raise Fault(f"named barrier {index} with {expected} threads: a count is a multiple of 32", rule="NB-01")
        if expected > 32 * cta.nwarps:
            raise Fault(
                f"named barrier {index} expects {expected} threads, but the CTA has {cta.nthreads}", rule="NB-01"
            )
    full = 32 * cta.live_warps
    if not barrier.open:
        barrier.open, barrier.expected = True, expected
    elif (barrier.expected if barrier.expected is not None else full) != (expected if expected is not None else full):
        raise Fault(
            f"named barrier {index} with {expected if expected is not None else full} threads, "
            f"but those who arrived before gave {barrier.expected if barrier.expected is not None else full}",
            rule="NB-03",
        )
    barrier.arrived += 32
    if barrier.expected is not None and barrier.arrived > barrier.expected:
        raise Fault(
            f"named barrier {index}: {barrier.arrived} threads arrived where {barrier.expected} are expected",
            rule="NB-03",
        )
    return barrier


def _is_full(cta: Any, barrier: NamedBarrier) -> bool:
    expected = barrier.expected if barrier.expected is not None else 32 * cta.live_warps
    return barrier.arrived >= expected


def recheck(cta: Any) -> None:
    """A warp has exited: barriers of the whole CTA no longer wait for it."""
    for barrier in cta.named:
        if barrier.open and barrier.expected is None and barrier.waiters and _is_full(cta, barrier):
            barrier.release()
