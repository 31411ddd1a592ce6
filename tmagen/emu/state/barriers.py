# SPDX-License-Identifier: Apache-2.0
"""Named barriers of a CTA: bar / barrier (PTX ISA, "bar, barrier")."""

from __future__ import annotations

from typing import Any

from tmagen.emu.errors import Fault
from tmagen.emu.state.convergence import BLOCK, WAIT, Fragment, again, converge, uniform


class NamedBarrier:
    """One of 16. Threads are counted by whole warps; `expected` None: all threads of the CTA that have not exited."""

    __slots__ = ("arrived", "expected", "open", "waiters")

    def __init__(self) -> None:
        self.open = False
        self.expected: int | None = None
        self.arrived = 0
        self.waiters: list[Fragment] = []

    def release(self) -> None:
        waiters, self.waiters = self.waiters, []
        self.open, self.arrived, self.expected = False, 0, None
        for fragment in waiters:
            fragment.wake()


class BarrierWait:
    """Why a fragment is blocked: it waits at a named barrier."""

    def __init__(self, index: int, barrier: NamedBarrier, number: int) -> None:
        self.index = index
        self.barrier = barrier
        self.number = number

    def describe(self, cta: Any) -> str:
        expected = self.barrier.expected if self.barrier.expected is not None else 32 * cta.live_warps
        return f"waits at named barrier {self.index}: {self.barrier.arrived} of {expected} threads have arrived"


def bar_sync(fragment: Fragment, cta: Any, index: Any, count: Any, this: int, next_block: int, number: int) -> int:
    """Arrive and wait. `count` None: the whole CTA."""
    if fragment.mask != fragment.warp.live:
        return converge(fragment, this)
    index = uniform(fragment, index, "the barrier's number")
    barrier = _arrive(fragment, cta, index, count)
    if _is_full(cta, barrier):
        barrier.release()
        return again(next_block)
    fragment.pc = next_block
    fragment.state = WAIT
    fragment.wait = BarrierWait(index, barrier, number)
    barrier.waiters.append(fragment)
    return BLOCK


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
