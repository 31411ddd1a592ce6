# SPDX-License-Identifier: Apache-2.0
"""mbarrier objects: phases, pending arrivals, transaction bytes, and who waits (PTX ISA, "mbarrier")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.compile_emit import SHARED_WINDOW
from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import ND, _each
from tmagen.emu.report import instruction_place
from tmagen.emu.state.convergence import again, pick
from tmagen.emu.state.fragments import BLOCK, SWITCH, WAIT, Fragment

RANK_SHIFT = 24  # an address of the shared::cluster window carries the rank of its CTA from this bit on
LIMIT = (1 << 20) - 1
"""Largest count of arrivals, and of transaction bytes either way (PTX ISA, "Contents of the mbarrier object")."""


class MBarrier:
    """One object. `phase` counts completed phases; the parity that a wait names is its low bit. `eye` is told of
    arrivals, bytes and phases in an observed run. `last_waited` is `phase` when a wait last saw one complete;
    `init_line`, `expect_line` and `arrive_line` are the lines of generated code that made the object, and that last
    expected bytes and arrived. `raised` counts the arrivals of this phase that nobody had expected before they were
    made: cp.async.mbarrier.arrive without .noinc.
    """

    __slots__ = (
        "address", "arrive_line", "expect_line", "expected", "eye", "init_line", "last_waited", "pending", "phase",
        "raised", "tx", "waiters",
    )  # fmt: skip

    def __init__(self, address: int, count: int) -> None:
        self.address = address
        self.expected = count
        self.pending = count
        self.tx = 0
        self.phase = 0
        self.last_waited = 0
        self.raised = 0
        self.init_line = 0
        self.expect_line = 0
        self.arrive_line = 0
        self.eye: Any = None
        self.waiters: list[Fragment] = []

    def __str__(self) -> str:
        return (
            f"mbarrier at shared {self.address:#x}: phase {self.phase} (parity {self.phase & 1}), "
            f"pending arrivals {self.pending} of {self.expected}, tx bytes {self.tx:,}"
        )

    def arrive(self, count: int = 1) -> None:
        """Raises Fault where more arrive than the phase still expects."""
        if count > self.pending:
            raise Fault(
                f"mbarrier.arrive of {count} where the phase expects {self.pending} more: too many arrivals ({self})"
                if self.pending
                else f"mbarrier.arrive after the last expected one, while tx bytes are outstanding ({self})",
                rule="MB-04",
            )
        self.pending -= count
        if self.eye is not None:
            self.eye.touched(f"arrive {count}" if count > 1 else "arrive")
        if not self.pending and not self.tx:
            self.complete_phase()

    def expect(self, nbytes: int) -> None:
        """Raise the bytes that the phase waits for."""
        self._add(nbytes)

    def expect_first(self, nbytes: int) -> None:
        """The expect_tx of an arrival: one step with it, so that it does not complete the phase by itself."""
        self.tx += nbytes
        self._check()

    def complete(self, nbytes: int) -> None:
        """Bytes have arrived. The count may be negative until the matching expect_tx."""
        self._add(-nbytes)

    def _add(self, nbytes: int) -> None:
        self.tx += nbytes
        self._check()
        if self.eye is not None:
            self.eye.touched(f"expect {nbytes:,} bytes" if nbytes > 0 else f"{-nbytes:,} bytes")
        if not self.pending and not self.tx:
            self.complete_phase()

    def _check(self) -> None:
        if not -LIMIT <= self.tx <= LIMIT:
            raise Fault(f"tx-count out of range: {self.tx:,} is outside -(2^20-1) to 2^20-1 ({self})", rule="MB-05")

    def complete_phase(self) -> None:
        self.phase += 1
        self.pending = self.expected
        self.raised = 0
        if self.eye is not None:
            self.eye.phase_ended()
        waiters = self.waiters
        if waiters:
            self.waiters = []
            self.last_waited = self.phase
            for fragment in waiters:
                fragment.wake()


class PhaseWait:
    """Why a fragment is blocked: it waits for a phase of an mbarrier."""

    def __init__(self, barrier: MBarrier, parity: int, number: int) -> None:
        self.barrier = barrier
        self.parity = parity
        self.number = number

    def describe(self, cta: Any) -> str:
        """A line of what it waits for, and a line of each thing more that may tell why."""
        b = self.barrier
        lines = [
            f"waits for the phase of parity {self.parity} of the mbarrier at {cta.place(b.address)}: "
            f"current phase {b.phase} (parity {b.phase & 1}), pending arrivals {b.pending} of {b.expected}, "
            f"tx bytes {b.tx:,}"
        ]
        if b.tx and b.expect_line:
            more = "" if b.tx > 0 else "more bytes have arrived than were expected; "
            lines.append(f"{more}the last expect_tx: {_place(cta, b.expect_line)}")
        if (unseen := b.phase - b.last_waited) > 1:
            lines.append(f"no wait has seen its last {unseen} phases complete: too many arrivals, or too few waits")
        if b.arrive_line and (unseen > 1 or 0 < b.pending < b.expected):
            lines.append(f"its last arrival: {_place(cta, b.arrive_line)}")
        if b.raised and b.pending:
            raising = "by cp.async.mbarrier.arrive without .noinc, which adds to the count what it brings"
            lines.append(f"{b.raised} of the phase's arrivals are {raising}")
        if b.init_line:
            lines.append(f"its mbarrier.init: {_place(cta, b.init_line)}")
        return "\n".join(lines)


def _place(cta: Any, line: int) -> str:
    return instruction_place(cta.program.instruction_at(line))


def shared_address(value: Any, *, shared_too: bool = False) -> Any:
    """A generic address of shared memory as an address in the shared window. Raises Fault for other addresses.

    `shared_too`: one that is in the window already counts as well. tcgen05.commit without a state space takes the low
    half of the address, and ThunderKittens gives it addresses of the window.
    """

    def one(address: int) -> int:
        if shared_too and address < 1 << 32:
            return address
        if not 0 <= address - SHARED_WINDOW < 1 << 32:
            raise Fault(f"generic address {address:#x} is not in shared memory", rule="MB-11")
        return address - SHARED_WINDOW

    return _each(one, "u4", value)


def barrier_at(cta: Any, address: int) -> MBarrier:
    """The live object at a shared address. Raises Fault where there is none."""
    barrier = cta.mbarriers.get(address)
    if barrier is None:
        if cta.cluster.size == 1 and 0 < address >> RANK_SHIFT <= 0xFF:
            cta.no_cta(address >> RANK_SHIFT)
        if not 0 <= address < 1 << 24:
            raise Fault(
                f"an mbarrier operation on the memory of another CTA ({address & 0xFFFFFFFF:#x} from the start of the "
                "own): .shared::cluster arrive, arrive_drop, expect_tx and complete_tx alone may name it",
                rule="MB-12",
            )
        if address & 7:
            raise Fault(f"mbarrier address {cta.place(address)} is not a multiple of 8", rule="MB-11")
        whole = address + cta.base
        if cta.rank != (rank := whole >> RANK_SHIFT) and 0 <= rank < cta.cluster.size:
            raise Fault(
                f"mbarrier address {whole:#x} is in the CTA of rank {rank}, and this is an operation on an mbarrier of "
                f"the own CTA, of rank {cta.rank}: arrive, arrive_drop, expect_tx and complete_tx reach another CTA "
                "by .shared::cluster",
                rule="MB-11",
            )
        raise Fault(f"no initialised mbarrier at {cta.place(address)}", rule="MB-01")
    return barrier  # type: ignore[no-any-return]


def complete_bytes(cta: Any, at: int, phase: int, nbytes: int) -> None:
    """Bytes arrive on a barrier. The phase that they were issued in expects them, so it cannot have ended before."""
    barrier = barrier_at(cta, at)
    if barrier.phase != phase:
        raise Fault(
            f"a copy of {nbytes:,} bytes issued in phase {phase} completes in phase {barrier.phase}: the phase ended "
            f"without its bytes, which nobody had expected ({barrier})",
            rule="MB-07",
        )
    barrier.complete(nbytes)


def mbar_init(fragment: Fragment, cta: Any, address: Any, count: Any) -> None:
    line = cta.line()
    for lane in fragment.lanes.lanes:
        a, n = pick(address, lane), pick(count, lane)
        if a & 7:
            raise Fault(f"mbarrier.init at {cta.place(a)}, which is not a multiple of 8", rule="MB-11")
        if not 1 <= n <= LIMIT:
            raise Fault(f"mbarrier.init with count {n}: a count is 1 to 2^20-1", rule="MB-03")
        cta.check_shared(a, 8, "mbarrier.init")
        if a in cta.mbarriers:
            raise Fault(
                f"mbarrier.init of the live object at {cta.place(a)}: it was not invalidated first", rule="MB-02"
            )
        barrier = MBarrier(a, n)
        barrier.init_line = line
        cta.add_barrier(barrier)


def mbar_inval(fragment: Fragment, cta: Any, address: Any) -> None:
    for lane in fragment.lanes.lanes:
        barrier = barrier_at(cta, pick(address, lane))
        if barrier.waiters:
            raise Fault(f"mbarrier.inval while threads wait ({barrier})", rule="MB-45")
        cta.remove_barrier(barrier)


def mbar_arrive(fragment: Fragment, cta: Any, address: Any, count: Any, expect: Any) -> Any:
    """arrive and arrive.expect_tx (`expect` not None). The token of the phase that each lane arrived in."""
    tokens = []
    line = cta.line()
    for lane in fragment.lanes.lanes:
        barrier = barrier_at(cta, pick(address, lane))
        barrier.arrive_line = line
        if expect is not None:
            barrier.expect_line = line
            barrier.expect_first(pick(expect, lane))
        tokens.append(token(barrier))
        n = pick(count, lane)
        if n < 1:
            raise Fault("mbarrier.arrive with count 0", rule="MB-04")
        barrier.arrive(n)
    return scatter(fragment, tokens)


def mbar_stays_open(fragment: Fragment, cta: Any, address: Any, count: Any) -> None:
    """arrive.noComplete: raises Fault where the arrivals that follow would complete the phase."""
    coming: dict[int, int] = {}
    for lane in fragment.lanes.lanes:
        at = pick(address, lane)
        coming[at] = coming.get(at, 0) + pick(count, lane)
    for at, arrivals in coming.items():
        barrier = barrier_at(cta, at)
        if arrivals == barrier.pending and not barrier.tx:
            raise Fault(f"mbarrier.arrive.noComplete that completes the phase ({barrier})", rule="MB-10")


def mbar_pending(fragment: Fragment, cta: Any, state: Any) -> Any:
    """The pending count in a state."""
    return state & 0xFFFFF


def mbar_drop(fragment: Fragment, cta: Any, address: Any, count: Any, expect: Any = None) -> Any:
    """arrive_drop: later phases expect `count` fewer. With `expect`, bytes of this phase are expected first."""
    tokens = []
    for lane in fragment.lanes.lanes:
        barrier = barrier_at(cta, pick(address, lane))
        n = pick(count, lane)
        if n > barrier.expected:
            raise Fault(f"mbarrier.arrive_drop of {n} ({barrier})", rule="MB-04")
        if expect is not None:
            barrier.expect_first(pick(expect, lane))
        tokens.append(token(barrier))
        barrier.expected -= n
        barrier.arrive(n)
    return scatter(fragment, tokens)


def mbar_expect(fragment: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for lane in fragment.lanes.lanes:
        barrier = barrier_at(cta, pick(address, lane))
        barrier.expect_line = cta.line()
        barrier.expect(pick(nbytes, lane))


def mbar_complete(fragment: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for lane in fragment.lanes.lanes:
        barrier_at(cta, pick(address, lane)).complete(pick(nbytes, lane))


def token(barrier: MBarrier) -> int:
    """The opaque state that an arrive returns: its phase and pending count."""
    return (barrier.phase & 0xFFFFFFFF) << 32 | barrier.pending


def scatter(fragment: Fragment, items: list[int]) -> Any:
    """A 64-bit value from one item per active lane."""
    if len(items) == 1 or len(set(items)) == 1:
        return items[0]
    out = np.zeros(32, np.uint64)
    for lane, item in zip(fragment.lanes.lanes, items, strict=True):
        out[lane] = item
    return out


def is_complete(cta: Any, address: int, state: int, by_parity: bool) -> bool:
    """Whether the phase that `state` (a parity or a token) names has completed."""
    barrier = barrier_at(cta, address)
    if by_parity:
        if not (barrier.phase ^ state) & 1:
            return False
        barrier.last_waited = barrier.phase
        return True
    behind = (barrier.phase - (state >> 32)) & 0xFFFFFFFF
    if behind > 1:
        raise Fault(
            f"mbarrier wait with the state of another phase than the current or the last one ({barrier})", rule="MB-13"
        )
    if behind == 1:
        barrier.last_waited = barrier.phase
    return behind == 1


def mbar_test(fragment: Fragment, cta: Any, address: Any, state: Any, by_parity: bool) -> Any:
    """One look at a barrier: a predicate."""
    if address.__class__ is not ND and state.__class__ is not ND:
        seen = is_complete(cta, address, state, by_parity)
        if seen and cta.refusals is not None:
            return not cta.refusals.refuses(fragment, address, cta.mbarriers[address].phase)
        return seen
    out = np.zeros(32, bool)
    for lane in fragment.lanes.lanes:
        out[lane] = is_complete(cta, pick(address, lane), pick(state, lane), by_parity)
    return out


def mbar_wait(
    fragment: Fragment, cta: Any, address: Any, state: Any, by_parity: bool, next_block: int, number: int
) -> int:
    """A wait in a spin loop: block until the phase completes. Lanes that wait for different phases become fragments of
    their own.
    """
    if address.__class__ is ND or state.__class__ is ND:
        return _wait_apart(fragment, cta, address, state, by_parity, next_block, number)
    barrier = cta.mbarriers.get(address)
    if barrier is None:
        barrier = barrier_at(cta, address)
    if (barrier.phase ^ state) & 1 if by_parity else is_complete(cta, address, state, False):
        if cta.refusals is not None and cta.refusals.refuses(fragment, address, barrier.phase):
            return again(fragment.pc)
        barrier.last_waited = barrier.phase
        return again(next_block)
    fragment.pc = next_block
    fragment.state = WAIT
    fragment.wait = PhaseWait(barrier, state & 1 if by_parity else state >> 32 & 1, number)
    barrier.waiters.append(fragment)
    return BLOCK


def _wait_apart(
    fragment: Fragment, cta: Any, address: Any, state: Any, by_parity: bool, next_block: int, number: int
) -> int:
    """The lanes of a wait with per-lane operands, grouped by what they wait for."""
    groups: dict[tuple[int, int], int] = {}
    for lane in fragment.lanes.lanes:
        key = (pick(address, lane), pick(state, lane))
        groups[key] = groups.get(key, 0) | 1 << lane
    if len(groups) == 1:
        (a, s), _ = groups.popitem()
        return mbar_wait(fragment, cta, a, s, by_parity, next_block, number)
    open_lanes, closed = 0, []
    for (a, s), mask in groups.items():
        if is_complete(cta, a, s, by_parity):
            open_lanes |= mask
        else:
            closed.append((a, s, mask))
    warp = fragment.warp
    for a, s, mask in closed:
        part = Fragment(warp, mask, fragment.R.copy(), next_block)
        part.clock = fragment.clock
        warp.fragments.append(part)
        mbar_wait(part, cta, a, s, by_parity, next_block, number)
    if not open_lanes:
        warp.fragments.remove(fragment)
        return SWITCH
    fragment.set_lanes(open_lanes)
    fragment.pc = next_block
    return again(next_block)


def look(fragment: Fragment, cta: Any, next_block: int) -> int:
    """After a strong load or an atomic: another thread may have to run before it gives something else."""
    cta.polls += 1
    return again(next_block)


def poll(fragment: Fragment, cta: Any, seen: Any, next_block: int) -> int:
    """After a wait that is only a look: when it was false, let the others run before the program goes on."""
    if seen.__class__ is ND:
        seen = bool(seen[fragment.lanes.where].any())
    if seen:
        return next_block
    cta.polls += 1
    return again(next_block)
