# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and tensor cores under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tmagen.emu import block_scale
from tmagen.emu import mma as datapath
from tmagen.emu.checks import layouts, tensor_rules
from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.hooks_barrier import use
from tmagen.emu.checks.shadow import Access, Footprint, Index
from tmagen.emu.checks.streams import Stream
from tmagen.emu.checks.watch import Watch
from tmagen.emu.instr_descriptor import Format, InstrDescriptor, Kind, decode
from tmagen.emu.isa.values import M32
from tmagen.emu.smem_descriptor import UNIT, Major, Operand, SmemDescriptor, locate
from tmagen.emu.state import issue, warpgroup
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.engine import TENSOR as TENSOR_WORK
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.tmem import COLUMNS, LANES, LANES_OF_A_PAIR
from tmagen.emu.wgmma import M as WGMMA_M
from tmagen.emu.wgmma_descriptor import decode as decode_wgmma
from tmagen.emu.wgmma_descriptor import locate as locate_wgmma


def _columns(watch: Watch, first: int, count: int) -> Footprint | None:
    """All lanes of some columns."""
    if first < 0 or first + count > COLUMNS:
        return None
    key = ("columns", first, count)
    return watch.tensor.footprint(key, lambda: np.arange(first * LANES, (first + count) * LANES, dtype=np.intp))


# --- allocation -------------------------------------------------------------------------------------------------------


def tmem_alloc(frag: Fragment, cta: Any, place: Any, columns: Any, this: int, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    code = issue.tmem_alloc(frag, cta, place, columns, this, next_block, number)
    if code < 0:
        return code
    agent = watch.together(frag)
    footprint = watch.shared.footprint((at := cta.own(pick(place, 0)), 4), lambda: np.arange(at, at + 4, dtype=np.intp))
    watch.writes(watch.shared, footprint, watch.access("alloc", agent), agent)
    agent.meet(watch.clocks)
    count = pick(columns, 0)
    if count > watch.smallest_alloc:
        watch.lint("TA-05", "W", f"tcgen05.alloc of {count} columns after one of {watch.smallest_alloc}", frag)
    watch.smallest_alloc = count
    _logs(watch, "tcgen05.alloc", count)
    return code


def tmem_dealloc(frag: Fragment, cta: Any, address: Any, columns: Any) -> None:
    watch: Watch = cta.watch
    agent = watch.together(frag)
    count = pick(columns, 0)
    footprint = _columns(watch, pick(address, 0) & 0xFFFF, count)
    issue.tmem_dealloc(frag, cta, address, columns)
    _logs(watch, "tcgen05.dealloc", count)
    if footprint is not None:
        watch.writes(watch.tensor, footprint, watch.access("dealloc", agent), agent)
        watch.tensor.wrote(footprint, None)
        agent.meet(watch.clocks)


def _logs(watch: Watch, what: str, count: int) -> None:
    """Allocations of a CTA pair are of both its CTAs."""
    if "cta_group::2" in watch.site.instruction.parts:
        watch.pair_log.append((what, count, watch.site))


# --- loads and stores -------------------------------------------------------------------------------------------------


def _words(watch: Watch, frag: Fragment, shape: str, number: int, address: Any, halves: bool, split: int) -> Footprint:
    taddr = pick(address, frag.lanes.first)
    if (lane := taddr >> 16) & LANES_OF_A_PAIR:
        watch.lint("TL-02", "W", f"lane {lane} of tensor memory, which has {LANES}: hardware ignores that bit", frag)
    key = (shape, number, taddr, frag.warp.index, halves, split)

    def cells() -> Index:
        columns, lanes = watch.cta.tmem.cells(shape, number, taddr, frag.warp.index, halves=halves, split=split)
        every: Index = (columns * LANES + lanes).ravel()
        return every

    return watch.tensor.footprint(key, cells)


def tmem_ld(frag: Fragment, cta: Any, shape: str, number: int, address: Any, pack: bool, split: int) -> Any:
    values = issue.tmem_ld(frag, cta, shape, number, address, pack, split)
    watch: Watch = cta.watch
    agent = watch.together(frag)
    warp = agent.warp
    if warp.loads < 0:
        warp.loads = watch.clocks.component(f"tcgen05.ld of warp {warp.index}")
    warp.loads_at += 1
    note = watch.operation("tmem_ld", agent, -1, warp.loads, warp.loads_at)
    footprint = _words(watch, frag, shape, number, address, pack, split)
    watch.reads(watch.tensor, footprint, note, agent)
    _after_fence(watch, frag, agent, footprint, "tcgen05.ld")
    if watch.session.collector.strict:
        tensor_rules.clobbers(watch, frag)
    return values


def tmem_st(
    frag: Fragment, cta: Any, shape: str, number: int, address: Any, values: tuple[Any, ...], unpack: bool, split: int
) -> None:
    issue.tmem_st(frag, cta, shape, number, address, values, unpack, split)
    watch: Watch = cta.watch
    agent = watch.together(frag)
    warp = agent.warp
    if warp.stores < 0:
        warp.stores = watch.clocks.component(f"tcgen05.st of warp {warp.index}")
    warp.stores_at += 1
    note = watch.operation("tmem_st", agent, -1, warp.stores, warp.stores_at, pipeline=True)
    footprint = _words(watch, frag, shape, number, address, unpack, split)
    watch.writes(watch.tensor, footprint, note, agent)
    _after_fence(watch, frag, agent, footprint, "tcgen05.st")


def _after_fence(watch: Watch, frag: Fragment, agent: Lanes, footprint: Footprint, what: str) -> None:
    """The formal fence between a wait and the use of what it waited for."""
    if agent.fenced or not watch.session.collector.strict:
        return
    for access in watch.tensor.last_writes(footprint):
        if access is not None and access.kind in ("mma", "tmem_cp"):
            watch.lint("TC-08", "W", f"{what} with no tcgen05.fence::after_thread_sync since the wait before it", frag)
            return


# --- tcgen05.mma ------------------------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What one form of an MMA touches."""

    reads: tuple[Footprint, ...]  # in shared memory
    d: Footprint | None
    a: Footprint | None  # in tensor memory
    shape: tuple[str, int, int]
    notes: tuple[tuple[str, str, str], ...]  # rule, level and message of what is told wherever it is executed


def operand_cells(operand: Operand) -> Index:
    cells: Index = (operand.base + operand.units.reshape(-1, 1) * UNIT + np.arange(UNIT, dtype=np.intp)).ravel()
    return cells


def _operand(watch: Watch, bits: int, rows: int, k: int, fmt: Format, major: Major) -> Footprint | None:
    key = ("operand", bits, rows, k, fmt, major)
    known = watch.shared.parts.known(key)
    if known is not None:
        return known
    operand = locate(bits, rows, k, fmt.nbytes, major)
    if operand.end > watch.cta.smem.size:
        return None
    return watch.shared.footprint(key, lambda: operand_cells(operand))


def _tensor_words(watch: Watch, what: str, address: int, desc: InstrDescriptor, columns: int) -> Footprint | None:
    lane, column = address >> 16, address & 0xFFFF
    if column + columns > COLUMNS or lane not in (0, 16):
        return None
    key = (what, address, desc.m, columns)

    def cells() -> Index:
        lanes = datapath.lanes_of_rows(desc.m, lane)
        every: Index = (np.arange(column, column + columns, dtype=np.intp)[:, None] * LANES + lanes).ravel()
        return every

    return watch.tensor.footprint(key, cells)


PairPlan = _Plan


def _noted(
    watch: Watch, frag: Fragment, desc: InstrDescriptor, operands: tuple[tuple[str, int, Footprint | None], ...],
    d: Footprint | None, a: Footprint | None,
) -> tuple[tuple[str, str, str], ...]:  # fmt: skip
    """What there is to say of an MMA before it runs; `operands` are those in shared memory, with their descriptors."""
    for what, bits, footprint in operands:
        if footprint is not None:
            layouts.compare(watch, frag, what, footprint, SmemDescriptor.decode(bits))
    notes = []
    if desc.a is not desc.b and desc.kind is Kind.F16:
        names = f"A is {desc.a.value[0]} and B is {desc.b.value[0]}"
        doubt = f"{names}: no text forbids it, and none says what comes of it"
        notes.append(("ID-01", watch.session.collector.doubt, doubt))
    if d is not None and a is not None and not set(d.parts).isdisjoint(a.parts):
        notes.append(("TM5-11", "E", "the MMA writes D over the A that it reads from tensor memory"))
    return tuple(notes)


def pair_plan(
    watch: Watch, frag: Fragment, kind: str, d: int, a: int, b: int, idesc: int, in_tmem: bool
) -> _Plan:
    """What an MMA of a CTA pair touches in each of the two."""
    key = ("pair", kind, d, a, b, idesc, in_tmem)
    plan: _Plan | None = watch.session.mma_plans.get(key)
    if plan is None:
        desc = decode(kind, idesc, 2)
        whole = desc.m == 2 * LANES
        part = replace(desc, m=LANES)
        b_of = _operand(watch, b, desc.n // 2, desc.k, desc.b, desc.b_major)
        a_of = None if in_tmem else _operand(watch, a, desc.m // 2, desc.k, desc.a, desc.a_major)
        a_words = _tensor_words(watch, "A", a, part, desc.k * desc.a.nbytes // 4) if in_tmem else None
        reads = tuple(footprint for footprint in (a_of, b_of) if footprint is not None)
        columns = desc.n if whole else desc.n // 2
        d_words = _tensor_words(watch, "D", d, part, columns)
        notes = _noted(watch, frag, desc, (("A", a, a_of), ("B", b, b_of)), d_words, a_words)
        plan = _Plan(reads, d_words, a_words, (kind, desc.m, desc.n), notes)
        watch.session.mma_plans[key] = plan
    return plan


def accumulates(watch: Watch, stream: Stream, footprint: Footprint, note: Access, agent: Lanes) -> None:
    """An MMA writes D. After one of the same thread on the same D, with nothing else in between, there is nothing to
    compare: the access of the one before is that of this one.
    """
    memory = watch.tensor
    last = stream.last
    if last is not None and stream.accumulator is footprint and stream.version == memory.version:
        last.clock, last.site, last.base, last.base_clock = note.clock, note.site, note.base, note.base_clock
        return
    of_d = watch.operation("mma", agent, 0, note.component, note.clock, pipeline=True)
    of_d.who = note.who
    watch.writes(memory, footprint, of_d, agent)
    stream.accumulator, stream.last, stream.version = footprint, of_d, memory.version


def issue_mma(watch: Watch, frag: Fragment, lane: int, kind: str = "mma") -> tuple[Access, Lanes]:
    """A lane issues an MMA, or a copy that runs down the same pipeline."""
    agent = watch.agent(frag, lane)
    stream = watch.mma_stream(frag.warp.index, lane)
    stream.count += 1
    return watch.operation(kind, agent, lane, stream.complete, stream.count, pipeline=True), agent


def _plan(watch: Watch, frag: Fragment, kind: str, d: int, a: int, b: int, idesc: int, in_tmem: bool) -> _Plan:
    key = (kind, d, a, b, idesc, in_tmem)
    plan: _Plan | None = watch.session.mma_plans.get(key)
    if plan is None:
        desc = decode(kind, idesc)
        b_of = _operand(watch, b, desc.n, desc.k, desc.b, desc.b_major)
        a_of = None if in_tmem else _operand(watch, a, desc.m, desc.k, desc.a, desc.a_major)
        a_words = _tensor_words(watch, "A", a, desc, desc.k * desc.a.nbytes // 4) if in_tmem else None
        reads = tuple(footprint for footprint in (a_of, b_of) if footprint is not None)
        d_words = _tensor_words(watch, "D", d, desc, desc.n)
        notes = _noted(watch, frag, desc, (("A", a, a_of), ("B", b, b_of)), d_words, a_words)
        plan = _Plan(reads, d_words, a_words, (kind, desc.m, desc.n), notes)
        watch.session.mma_plans[key] = plan
    return plan


def reads_factors(
    watch: Watch, frag: Fragment, plan: _Plan, scales: Any, lane: int, note: Access, agent: Lanes
) -> None:
    """An MMA with .block_scale reads words of all lanes: those of A's rows and of B's."""
    _, m, n = plan.shape
    for name, address, rows in (("A", scales[0], min(m, LANES)), ("B", scales[1], n)):
        footprint = _columns(watch, pick(address, lane) & 0xFFFF, block_scale.columns(rows))
        if footprint is None:
            continue
        watch.reads(watch.tensor, footprint, note, agent)
        plans = watch.session.mma_plans
        overlaps = plans.get((plan.d, footprint))
        if overlaps is None:
            overlaps = plan.d is not None and not set(plan.d.parts).isdisjoint(footprint.parts)
            plans[plan.d, footprint] = overlaps
        if overlaps:
            watch.lint("TM5-11", "E", f"the MMA writes D over the scale factors of {name} that it reads", frag)


def mma(
    frag: Fragment, cta: Any, kind: str, d: Any, a: Any, b: Any, idesc: Any, accumulate: Any, in_tmem: bool,
    scale: int, disable: Any, scales: Any = None,
) -> None:  # fmt: skip
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        note, agent = issue_mma(watch, frag, lane)
        plan = _plan(watch, frag, kind, pick(d, lane), pick(a, lane), pick(b, lane), pick(idesc, lane), in_tmem)
        if plan.notes:
            tensor_rules.told(watch, frag, plan.notes)
        if watch.session.collector.strict:
            of_a = plan.a if in_tmem else plan.reads[0] if len(plan.reads) > 1 else None
            tensor_rules.collects(watch, frag, lane, watch.site.collector, (kind, pick(a, lane)), of_a, in_tmem)
        memory = watch.shared
        for footprint in plan.reads:
            watch.reads(memory, footprint, note, agent)
        if plan.a is not None:
            watch.reads(watch.tensor, plan.a, note, agent)
        if scales is not None:
            reads_factors(watch, frag, plan, scales, lane, note, agent)
        if plan.d is not None:
            stream = watch.mma_stream(frag.warp.index, lane)
            at = pick(d, lane)
            if stream.shape != plan.shape and stream.address == at and pick(accumulate, lane):
                watch.lint("TC-01", "W", "an MMA adds to an accumulator that one of another shape wrote", frag)
            stream.shape, stream.address = plan.shape, at
            if stream.accumulator is not plan.d and pick(accumulate, lane):
                layouts.adds(watch, frag, plan.d)
            accumulates(watch, stream, plan.d, note, agent)
    issue.mma(frag, cta, kind, d, a, b, idesc, accumulate, in_tmem, scale, disable, scales)


def commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        at = cta.own(pick(barrier, lane))
        issue.own_mask(pick(mask, lane))
        barrier_at(cta, at)
        agent = watch.agent(frag, lane)
        target = use(watch, frag, agent, at, "tcgen05.commit")
        stream = watch.mma_stream(frag.warp.index, lane)
        own = watch.commit(frag.warp.index, lane)
        if target is not None:
            target.arrives(own)
        _commit(frag, cta, lane, at, (own, *tensor_rules.ended(watch, agent, stream)), agent.carried(watch.clocks))


def _commit(frag: Fragment, cta: Any, lane: int, at: int, ended: tuple[tuple[int, int], ...], carried: Any) -> None:
    def run() -> None:
        if cta.mma_queue:
            cta.flush_mma()
        barrier: Any = barrier_at(cta, at)
        for component, count in ended:
            barrier.ended_by(component, count)
        barrier.carries(barrier.watch.clocks.fitted(carried))
        barrier.arrive()

    cta.engine.issue(frag, lane, TENSOR_WORK, run)


# --- wgmma ------------------------------------------------------------------------------------------------------------


def _group(watch: Watch, index: int) -> int:
    component = watch.groups.get(index)
    if component is None:
        component = watch.groups[index] = watch.clocks.component(f"wgmma of warpgroup {index}")
    return component


def _wgmma_operand(
    watch: Watch, frag: Fragment, what: str, bits: int, rows: int, form: Any, nbytes: int, major: Major
) -> Footprint | None:
    key = ("wgmma", bits, rows, form.k, nbytes, major)
    known = watch.shared.parts.known(key)
    if known is not None:
        return known
    operand = locate_wgmma(bits, rows, form.k, nbytes, major)
    if operand.end > watch.cta.smem.size:
        return None
    footprint = watch.shared.footprint(key, lambda: operand_cells(operand))
    layouts.compare(watch, frag, what, footprint, decode_wgmma(bits))
    return footprint


def wgmma(
    frag: Fragment, cta: Any, number: int, a: Any, b: Any, accumulate: Any, registers: tuple[Any, ...] | None,
    a_set: int,
) -> None:  # fmt: skip
    watch: Watch = cta.watch
    member = cta.members[frag.warp.index]
    form = cta.program.wgmma.forms[number]
    if frag.mask == M32:
        agent = watch.together(frag)
        if frag.warp.index not in watch.wgmma_fenced:
            watch.lint("WG-02", "W", "wgmma.mma_async with no wgmma.fence since the warp last waited", frag)
        note = watch.operation("wgmma", agent, -1, _group(watch, member.group.index), member.issued + 1, pipeline=True)
        operands = [_wgmma_operand(watch, frag, "B", pick(b, 0), form.n, form, form.b.nbytes, form.b_major)]
        if registers is None:
            operands.append(_wgmma_operand(watch, frag, "A", pick(a, 0), WGMMA_M, form, form.a.nbytes, form.a_major))
        for footprint in operands:
            if footprint is not None:
                watch.reads(watch.shared, footprint, note, agent)
    warpgroup.wgmma(frag, cta, number, a, b, accumulate, registers, a_set)


def wgmma_wait(frag: Fragment, cta: Any, count: int, next_block: int, number: int) -> int:
    code = warpgroup.wgmma_wait(frag, cta, count, next_block, number)
    if cta.members:
        watch: Watch = cta.watch
        member = cta.members[frag.warp.index]
        watch.wgmma_fenced.discard(frag.warp.index)
        agent = watch.together(frag)
        agent.learn(_group(watch, member.group.index), member.covered, watch.clocks.capacity)
    return code
