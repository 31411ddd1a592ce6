# SPDX-License-Identifier: Apache-2.0
"""ldmatrix, stmatrix and cp.async under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.hooks_barrier import use
from tmagen.emu.checks.hooks_memory import lane_cells
from tmagen.emu.checks.streams import Stream
from tmagen.emu.checks.watch import Watch
from tmagen.emu.isa.values import lanes_of
from tmagen.emu.state import copies, matrix
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment, lane_set

_ROW_BYTES = 16


def _rows(watch: Watch, frag: Fragment, address: Any, count: int, kind: str) -> None:
    agent = watch.together(frag)
    places = lanes_of(address, np.uint32)[: 8 * count]
    memory = watch.shared
    footprint = memory.footprint((places.tobytes(), _ROW_BYTES), lambda: lane_cells(places, _ROW_BYTES))
    note = watch.access(kind, agent)
    (watch.reads if kind == "ld" else watch.writes)(memory, footprint, note, agent)
    agent.meet(watch.clocks)


def ld_matrix(frag: Fragment, cta: Any, address: Any, count: int, transposed: bool) -> list[Any]:
    values = matrix.ld_matrix(frag, cta, address, count, transposed)
    _rows(cta.watch, frag, address, count, "ld")
    return values


def st_matrix(frag: Fragment, cta: Any, address: Any, values: tuple[Any, ...], transposed: bool) -> None:
    matrix.st_matrix(frag, cta, address, values, transposed)
    _rows(cta.watch, frag, address, len(values), "st")


# --- cp.async: a stream for each set of lanes that copies together ----------------------------------------------------


def _streams(watch: Watch, frag: Fragment) -> list[Stream]:
    """The streams of which every lane is in the fragment."""
    index, mask = frag.warp.index, frag.lanes.mask
    return [stream for (warp, lanes), stream in watch.copies.items() if warp == index and not lanes & ~mask]


def cp_async(frag: Fragment, cta: Any, place: Any, source: Any, nbytes: int, size: Any) -> None:
    copies.cp_async(frag, cta, place, source, nbytes, size)
    watch: Watch = cta.watch
    for agent in watch.agents(frag):
        mask = agent.mask & frag.lanes.mask
        lanes = lane_set(mask).lanes
        stream = watch.copy_stream(frag.warp.index, mask)
        stream.count += 1
        note = watch.operation("cp_async", agent, -1, stream.complete, stream.count)
        note.generic = True  # the ordinary proxy (PTX ISA, "cp.async")
        places = np.array([pick(place, lane) for lane in lanes])
        key = (places.tobytes(), nbytes)
        cells = lane_cells(places, nbytes)
        watch.writes(watch.shared, watch.shared.footprint(key, lambda cells=cells: cells), note, agent)  # type: ignore[misc]
    watch.session.memory.lanes(watch, frag, source, nbytes, "ld")


def cp_commit(frag: Fragment) -> None:
    copies.cp_commit(frag)
    for stream in _streams(frag.warp.cta.watch, frag):
        stream.committed.append(stream.count)


def cp_wait(frag: Fragment, cta: Any, count: int, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    capacity = watch.clocks.capacity
    for stream in _streams(watch, frag):
        done = stream.count
        if count >= 0:
            over = len(stream.committed) - count
            done = stream.committed[over - 1] if over > 0 else 0
            del stream.committed[: max(0, over)]
        else:
            stream.committed.clear()
        if done:
            for agent in watch.agents(frag):
                agent.learn(stream.complete, done, capacity)
    return copies.cp_wait(frag, cta, count, next_block, number)


def cp_arrive(frag: Fragment, cta: Any, address: Any, counted: bool) -> None:
    watch: Watch = cta.watch
    for agent in watch.agents(frag):
        for at in {pick(address, lane) for lane in lane_set(agent.mask & frag.lanes.mask).lanes}:
            barrier = use(watch, frag, agent, at, "cp.async.mbarrier.arrive")
            if barrier is not None:
                for stream in _streams(watch, frag):
                    barrier.ended_by(stream.complete, stream.count)
    copies.cp_arrive(frag, cta, address, counted)
