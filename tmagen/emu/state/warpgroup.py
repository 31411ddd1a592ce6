# SPDX-License-Identifier: Apache-2.0
"""Warpgroups: what block functions call for wgmma (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

The warps of a warpgroup execute the same sequence of wgmma.mma_async, each in its own time; an instruction starts when
the fourth has come to it. The kernel's accumulator registers live here, per warp: while a warp "holds" an accumulator,
the matrix of the warpgroup has its value and the registers are stale. The compiler has every other access to such a
register preceded by `settle`, which brings them up to date, or raises where no wait covers what is in flight.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from tmagen.emu import wgmma as datapath
from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import M32, ND, where32
from tmagen.emu.state.convergence import pick, uniform
from tmagen.emu.state.engine import TENSOR
from tmagen.emu.state.fragments import BLOCK, WAIT, Fragment
from tmagen.emu.wgmma import ROWS, WARPS, Op


class Member:
    """One warp of a warpgroup. Positions count the wgmma.mma_async that it has executed."""

    __slots__ = ("commits", "covered", "group", "held", "issued", "last", "last_a", "rank", "registers")

    def __init__(self, group: Warpgroup, rank: int, registers: list[Any]) -> None:
        self.group = group
        self.rank = rank
        self.registers = registers
        self.issued = 0
        self.commits: list[int] = []  # `issued` at each commit whose group is not waited for
        self.covered = 0  # a wait has covered the instructions below this position
        self.last: dict[int, int] = {}  # accumulator -> position of the last instruction that writes it
        self.last_a: dict[int, int] = {}  # set of registers that holds A -> the last instruction that reads it
        self.held: set[int] = set()


class Warpgroup:
    """Four consecutive warps."""

    def __init__(self, cta: Any, index: int) -> None:
        self.index = index
        self.pending: list[Op] = []  # executed by some of the warps
        self.runs: dict[int, Any] = {}  # position -> what the first warp there executed in a row
        self.started = 0
        self.completed = 0
        self.matrices: dict[int, Any] = {}
        self.waiters: list[tuple[int, Fragment]] = []
        # Operations of a warpgroup complete in order, which the engine knows as those of one thread.
        self.leader: Any = SimpleNamespace(warp=SimpleNamespace(index=WARPS * index, role=0))
        registers = cta.program.wgmma.first
        self.members = [Member(self, rank, list(registers)) for rank in range(WARPS)]

    def complete(self, count: int) -> None:
        self.completed += count
        waiters = self.waiters
        if waiters:
            self.waiters = []
            for end, fragment in waiters:
                if self.completed >= end:
                    fragment.wake()
                else:
                    self.waiters.append((end, fragment))

    def behind(self) -> str:
        """Which warps have not executed the first instruction that waits to start; for reports."""
        warps = [4 * self.index + m.rank for m in self.members if m.issued == self.started]
        return f"warp{'s' if len(warps) > 1 else ''} {', '.join(map(str, warps))}"

    def check_exit(self) -> None:
        """Raises Fault for an instruction that only some of the warps have executed."""
        if self.pending:
            raise Fault(
                f"the CTA exits while {self.behind()} of warpgroup {self.index} did not execute a wgmma.mma_async "
                "that the others did",
                rule="WG-01",
            )


def members_of(cta: Any, warps: int) -> list[Member]:
    """The members of all warps of a CTA; none where the kernel has no wgmma."""
    if not cta.program.wgmma.accumulators:
        return []
    return [member for index in range(-(-warps // WARPS)) for member in Warpgroup(cta, index).members]


def wgmma(
    frag: Fragment,
    cta: Any,
    number: int,
    a: Any,
    b: Any,
    accumulate: Any,
    registers: tuple[Any, ...] | None,
    a_set: int,
) -> None:
    """A warp executes a wgmma.mma_async. `registers` hold A, or are None where `a` is a descriptor."""
    warp = frag.warp
    me: Member = cta.members[warp.index]
    group = me.group
    if frag.mask != M32:
        raise Fault("wgmma.mma_async in a warp with threads that have exited or never were", rule="WG-01")
    if a.__class__ is ND:
        a = uniform(frag, a, "the descriptor of A")
    if b.__class__ is ND:
        b = uniform(frag, b, "the descriptor of B")
    if accumulate.__class__ is ND:
        accumulate = bool(uniform(frag, accumulate, "scale-d"))
    form = cta.program.wgmma.forms[number]
    position = me.issued - group.started
    if position == len(group.pending):
        if not position and not group.started and cta.nwarps < WARPS * (group.index + 1):
            raise Fault(f"wgmma.mma_async in warpgroup {group.index}, which has fewer than four warps", rule="WG-01")
        op = Op(form, a, b, accumulate, group.matrices, sys._getframe(1 + cta.frames).f_lineno)
        group.pending.append(op)
    else:
        op = group.pending[position]
        if op.a != a or op.b != b or op.form is not form or op.accumulate != accumulate:
            raise _mismatch(group, warp.index, op, form, a, b, accumulate)
    accumulator = form.accumulator
    for other in form.overlaps:
        if other in me.held:
            _settle(cta, me, other)
    if accumulator not in me.held:
        if accumulate:
            table = cta.program.wgmma
            values = [me.registers[i] for i in table.accumulators[accumulator]]
            if op.initial is None:
                op.initial = {}
            op.initial[me.rank] = datapath.d_from_registers(form.d, values)
        me.held.add(accumulator)
    if registers is not None:
        rows = datapath.a_from_registers(form.a, registers)
        if op.fragments is None:
            op.fragments = [rows] * WARPS
        op.fragments[me.rank] = rows
        me.last_a[a_set] = me.issued
    me.last[accumulator] = me.issued
    me.issued += 1
    op.arrived += 1
    if op.arrived == WARPS:
        del group.pending[0]
        _start(cta, group, [op])


def wgmma_run(frag: Fragment, cta: Any, number: int, items: tuple[tuple[Any, Any, Any], ...]) -> bool:
    """A warp executes several wgmma.mma_async in a row: (descriptor of A, of B, scale-d) of each.

    False, with nothing done, where that is more than repeating what another warp did: one by one then.
    """
    me: Member = cta.members[frag.warp.index]
    group = me.group
    here = me.issued
    position = here - group.started
    if position == len(group.pending):
        group.runs[here] = (number, items)
        return False
    run = cta.program.wgmma.runs[number]
    try:
        if frag.mask != M32 or not run.accumulators <= me.held or group.runs.get(here) != (number, items):
            return False
    except ValueError:  # arrays are neither equal nor not
        return False
    for accumulator, offset in run.last:
        me.last[accumulator] = here + offset
    end = position + run.count
    me.issued = here + run.count
    ops = group.pending[position:end]
    for op in ops:
        op.arrived += 1
    if ops[0].arrived == WARPS:
        # The instructions before have started: this warp has executed them too.
        del group.pending[:end]
        _start(cta, group, ops)
    return True


def _start(cta: Any, group: Warpgroup, ops: list[Op]) -> None:
    """All four warps have executed these instructions."""
    group.started += len(ops)
    if not group.pending:
        group.runs.clear()
    for op in ops:
        op.check(cta.smem.size)
    if cta.observer is not None:
        cta.observer.expects_wgmma(cta, ops)
    if cta.eager:
        cta.mma_queue += ops
        cta.mma_lines += [op.line for op in ops]
        if cta.observer is not None:
            for _ in ops:
                cta.observer.at_once(cta, group.leader, 0, TENSOR, None)
        group.complete(len(ops))
        return
    for op in ops:

        def run(op: Op = op) -> None:
            cta.mma_queue.append(op)
            cta.mma_lines.append(op.line)
            group.complete(1)

        operation = cta.engine.issue(group.leader, 0, TENSOR, run)
        if operation is not None:
            operation.line = op.line


def _mismatch(group: Warpgroup, warp: int, op: Op, form: Any, a: int, b: int, accumulate: bool) -> Fault:
    who = f"warp {warp} executes a wgmma.mma_async"
    others = f"other warps of warpgroup {group.index}"
    if op.form is not form:
        return Fault(f"{who} where {others} execute another one", rule="WG-01")
    for name, mine, theirs in (("A", a, op.a), ("B", b, op.b)):
        if mine != theirs:
            return Fault(f"{who} with descriptor {mine:#018x} of {name}, {others} with {theirs:#018x}", rule="WG-01")
    return Fault(f"{who} with scale-d {accumulate}, {others} with {op.accumulate}", rule="WG-01")


def wgmma_commit(frag: Fragment, cta: Any) -> None:
    """The instructions since the last commit become a group, which may be empty."""
    if cta.members:
        me = cta.members[frag.warp.index]
        me.commits.append(me.issued)


class GroupWait:
    """Why a fragment is blocked: it waits for wgmma groups."""

    def __init__(self, group: Warpgroup, end: int, number: int) -> None:
        self.group = group
        self.end = end
        self.number = number

    def describe(self, cta: Any) -> str:
        group = self.group
        text = f"waits for {self.end - group.completed} wgmma.mma_async of warpgroup {group.index}"
        return f"{text}, of which {group.behind()} did not execute the first" if group.pending else text


def wgmma_wait(frag: Fragment, cta: Any, count: int, next_block: int, number: int) -> int:
    """Wait until all groups but the newest `count` are complete."""
    if not cta.members:
        return next_block
    me: Member = cta.members[frag.warp.index]
    ended = len(me.commits) - count
    if ended <= 0:
        return next_block
    end = me.commits[ended - 1]
    del me.commits[:ended]
    me.covered = max(me.covered, end)
    if me.group.completed >= end:
        return next_block
    frag.pc = next_block
    frag.state = WAIT
    frag.wait = GroupWait(me.group, end, number)
    me.group.waiters.append((end, frag))
    return BLOCK


def settle(frag: Fragment, cta: Any, accumulator: int) -> list[Any]:
    """Bring the registers of an accumulator up to date before they are read or written; what the fragment reads.

    Raises Fault where an instruction that writes them may still be in flight (PTX ISA, "wgmma.wait_group").
    """
    me: Member = cta.members[frag.warp.index]
    if accumulator in me.held:
        _settle(cta, me, accumulator)
    one = frag.one
    return me.registers if one < 0 else [pick(value, one) for value in me.registers]


def _settle(cta: Any, me: Member, accumulator: int) -> None:
    if me.last[accumulator] >= me.covered:
        raise Fault(
            "accumulator registers are used while a wgmma.mma_async on them is in flight: no wait_group covers it",
            rule="WG-03",
        )
    if cta.mma_queue:
        cta.flush_mma()
    rows = me.group.matrices[accumulator][ROWS * me.rank : ROWS * (me.rank + 1)]
    table, registers = cta.program.wgmma, me.registers
    values = datapath.d_to_registers(table.formats[accumulator], rows)
    for i, value in zip(table.accumulators[accumulator], values, strict=True):
        registers[i] = value
    me.held.discard(accumulator)


def keep(frag: Fragment, cta: Any, seen: list[Any], number: int, value: Any) -> None:
    """Give an accumulator register a new value in the fragment's lanes. `seen` is what `settle` returned."""
    kept = cta.members[frag.warp.index].registers
    kept[number] = value if frag.mask == frag.warp.live else where32(frag.lanes.where, value, kept[number])
    if seen is not kept:
        seen[number] = value


def check_a(frag: Fragment, cta: Any, a_set: int) -> None:
    """Registers that hold A are about to be written. Raises Fault where a wgmma.mma_async may still read them."""
    me: Member = cta.members[frag.warp.index]
    if me.last_a.get(a_set, -1) >= me.covered:
        raise Fault(
            "registers that hold A are written while a wgmma.mma_async that reads them is in flight: "
            "no wgmma.wait_group covers it",
            rule="WG-03",
        )
