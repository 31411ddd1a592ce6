# SPDX-License-Identifier: Apache-2.0
"""Bulk and tensor copies under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu import tma
from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.hooks_barrier import use
from tmagen.emu.checks.shadow import Access, Footprint, Index
from tmagen.emu.checks.watch import Watch
from tmagen.emu.compile_emit import PARAM_WINDOW
from tmagen.emu.state import issue
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.tensormap import TensorMap

_HIGH = 1 << 31


def signed_of(coords: tuple[Any, ...], lane: int) -> tuple[int, ...]:
    return tuple([(pick(c, lane) ^ _HIGH) - _HIGH for c in coords])


def box_of(watch: Watch, tmap: TensorMap, place: int) -> Footprint | None:
    """The bytes of a box in shared memory; None where it is not wholly in it, which the instruction will say."""
    key = (id(tmap), place)
    known = watch.shared.parts.known(key)
    if known is not None:
        return known
    if tmap.problems or place % tma.SMEM_ALIGNMENT or not 0 <= place <= watch.cta.smem.size - tmap.footprint:
        return None
    watch.session.keep(tmap)  # an id is of one map for as long as the map lives

    def cells() -> Index:
        base, units = tma.shared_units(tmap, place)
        unit = tmap.pattern.unit
        every: Index = (base + units.reshape(-1, 1) * unit + np.arange(unit, dtype=np.intp)).ravel()
        return every

    return watch.shared.footprint(key, cells)


def use_of_map(watch: Watch, agent: Lanes, lane: int, address: int, component: int, clock: int) -> None:
    """A copy is issued that reads the map at an address, and is over for whoever knows `component` at `clock`."""
    if address < PARAM_WINDOW:
        watch.session.memory.map_read(
            watch, agent, watch.operation("map_read", agent, lane, component, clock), address
        )


def tma_load(
    frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], barrier: Any, mask: Any
) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        target = use(watch, frag, agent, cta.own(pick(barrier, lane)), "a TMA load")
        tmap = cta.tensor_map(pick(tmap_address, lane))
        footprint = box_of(watch, tmap, cta.own(pick(place, lane)))
        if target is None or footprint is None or tmap.rank != len(coords):
            continue
        target.carries(agent.carried(watch.clocks))
        note = watch.operation("tma_load", agent, lane, target.component, target.phase + 1)
        note.tmap = tmap
        watch.lands(target, note)
        watch.writes(watch.shared, footprint, note, agent)
        watch.session.memory.box(watch, agent, note, tmap, signed_of(coords, lane), storing=False)
        use_of_map(watch, agent, lane, pick(tmap_address, lane), target.component, target.phase + 1)
    issue.tma_load(frag, cta, place, tmap_address, coords, barrier, mask)


def tma_store(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...]) -> None:
    watch: Watch = cta.watch
    stored: set[tuple[int, int, tuple[int, ...]]] = set()
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        tmap = cta.tensor_map(pick(tmap_address, lane))
        source = cta.own(pick(place, lane))
        footprint = box_of(watch, tmap, source)
        where = signed_of(coords, lane)
        if footprint is None or tmap.rank != len(coords) or min(where) < 0:
            continue
        stream = watch.bulk_stream(frag.warp.index, lane)
        stream.count += 1
        note = watch.operation("tma_store", agent, lane, stream.read, stream.count)
        watch.reads(watch.shared, footprint, note, agent)
        use_of_map(watch, agent, lane, pick(tmap_address, lane), stream.read, stream.count)
        # A whole warp that executes a store of one box writes the same bytes to the same place: no race worth the name,
        # and shipping kernels do it.
        if (same := (id(tmap), source, where)) in stored:
            watch.lint("RC-03", "W", "several lanes store one box to one place, and nothing orders them", frag)
            continue
        stored.add(same)
        note = watch.operation("tma_store", agent, lane, stream.complete, stream.count)
        watch.session.memory.box(watch, agent, note, tmap, where, storing=True)
    issue.tma_store(frag, cta, place, tmap_address, coords)


def span_of(watch: Watch, place: int, nbytes: int) -> Footprint | None:
    if place < 0 or place + nbytes > watch.cta.smem.size or nbytes <= 0:
        return None
    return watch.shared.footprint((place, nbytes), lambda: np.arange(place, place + nbytes, dtype=np.intp))


def bulk_load(frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        count = pick(nbytes, lane)
        target = use(watch, frag, agent, cta.own(pick(barrier, lane)), "a bulk load")
        footprint = span_of(watch, cta.own(pick(place, lane)), count)
        if target is None or footprint is None:
            continue
        target.carries(agent.carried(watch.clocks))
        note = watch.operation("bulk_load", agent, lane, target.component, target.phase + 1)
        watch.lands(target, note)
        watch.writes(watch.shared, footprint, note, agent)
        watch.session.memory.span(watch, agent, note, pick(source, lane), count, storing=False)
    issue.bulk_load(frag, cta, place, source, nbytes, barrier, mask)


def bulk_store(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        count = pick(nbytes, lane)
        footprint = span_of(watch, cta.own(pick(place, lane)), count)
        if footprint is None:
            continue
        stream = watch.bulk_stream(frag.warp.index, lane)
        stream.count += 1
        note = watch.operation("bulk_store", agent, lane, stream.read, stream.count)
        watch.reads(watch.shared, footprint, note, agent)
        note = watch.operation("bulk_store", agent, lane, stream.complete, stream.count)
        watch.session.memory.span(watch, agent, note, pick(target, lane), count, storing=True)
    issue.bulk_store(frag, cta, target, place, nbytes)


def tma_reduce(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], name: str) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        tmap = cta.tensor_map(pick(tmap_address, lane))
        where = signed_of(coords, lane)
        footprint = box_of(watch, tmap, cta.own(pick(place, lane)))
        if footprint is None or tmap.rank != len(coords) or min(where) < 0:
            continue
        agent = watch.agent(frag, lane)
        note = _reduction(watch, frag, lane, agent, footprint)
        stream = watch.bulk_stream(frag.warp.index, lane)
        use_of_map(watch, agent, lane, pick(tmap_address, lane), stream.read, stream.count)
        watch.session.memory.box(watch, agent, note, tmap, where, storing=True)
    issue.tma_reduce(frag, cta, place, tmap_address, coords, name)


def bulk_reduce(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any, name: str, kind: str) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        count = pick(nbytes, lane)
        footprint = span_of(watch, cta.own(pick(place, lane)), count)
        if footprint is None:
            continue
        agent = watch.agent(frag, lane)
        note = _reduction(watch, frag, lane, agent, footprint)
        watch.session.memory.span(watch, agent, note, pick(target, lane), count, storing=True)
    issue.bulk_reduce(frag, cta, target, place, nbytes, name, kind)


def _reduction(watch: Watch, frag: Fragment, lane: int, agent: Lanes, source: Footprint) -> Access:
    """A reduction reads its source like a store. What it does to global memory is atomic, element by element (PTX ISA,
    "cp.reduce.async.bulk": relaxed, of .gpu scope): this access is returned.
    """
    stream = watch.bulk_stream(frag.warp.index, lane)
    stream.count += 1
    watch.reads(watch.shared, source, watch.operation("reduce", agent, lane, stream.read, stream.count), agent)
    note = watch.operation("reduce", agent, lane, stream.complete, stream.count)
    note.strong = True
    return note


def bulk_commit(frag: Fragment, cta: Any = None) -> None:
    watch: Watch = frag.warp.cta.watch
    for lane in frag.lanes.lanes:
        stream = watch.bulk_stream(frag.warp.index, lane)
        stream.committed.append(stream.count)
    issue.bulk_commit(frag)


def bulk_wait(frag: Fragment, cta: Any, count: int, read: bool, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    capacity = watch.clocks.capacity
    for lane in frag.lanes.lanes:
        stream = watch.bulk.get(32 * frag.warp.index + lane)
        if stream is None:
            continue  # of another thread's stores this one waits for nothing
        over = len(stream.committed) - count
        if over <= 0:
            continue
        done = stream.committed[over - 1]
        agent = watch.agent(frag, lane)
        agent.learn(stream.read, done, capacity)
        if not read:
            agent.learn(stream.complete, done, capacity)
            del stream.committed[:over]
    return issue.bulk_wait(frag, cta, count, read, next_block, number)
