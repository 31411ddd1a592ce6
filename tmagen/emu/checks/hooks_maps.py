# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes, under observation. Each function takes the place of the one of its name.

Copies read a map by a proxy of its own (PTX ISA, "Tensormap proxy"): who changed it has to release it to that proxy,
and a thread of the CTA that uses it has to acquire it afterwards, before the copy is issued.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.hooks_memory import shared
from tmagen.emu.checks.rows import MAPS
from tmagen.emu.checks.watch import Watch
from tmagen.emu.isa import access
from tmagen.emu.state import maps
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.tensormap import NBYTES


def map_replace(frag: Fragment, cta: Any, space: str, address: Any, field: str, ordinal: int, value: Any) -> None:
    maps.map_replace(frag, cta, space, address, field, ordinal, value)
    where, at = access.window(frag, address) if space == "generic" else (space, address)
    if where == "shared":
        shared(cta.watch, frag, at, NBYTES, "map_st")
    else:
        cta.watch.session.memory.lanes(cta.watch, frag, at, NBYTES, "map_st")


def map_copy(frag: Fragment, cta: Any, target: Any, source: Any) -> None:
    maps.map_copy(frag, cta, target, source)
    watch: Watch = cta.watch
    agent = watch.together(frag)
    start, at = pick(source, frag.lanes.first), pick(target, frag.lanes.first)
    footprint = watch.shared.footprint((start, NBYTES), lambda: np.arange(start, start + NBYTES, dtype=np.intp))
    watch.reads(watch.shared, footprint, watch.access("ld", agent), agent)
    watch.session.memory.span(watch, agent, watch.access("map_st", agent), at, NBYTES, storing=True)
    agent.meet(watch.clocks)
    capacity = watch.clocks.capacity
    agent.fence(MAPS, capacity)
    agent.release(watch.site.scope)
    agent.tick(capacity)


def map_acquire(frag: Fragment, cta: Any, address: Any) -> None:
    maps.map_acquire(frag, cta, address)
    watch: Watch = cta.watch
    for agent in watch.agents(frag):
        watch.acquires(agent, frag)
        for at in {pick(address, lane) for lane in frag.lanes.lanes if agent.mask >> lane & 1}:
            watch.maps.setdefault(at, []).append((agent.component, agent.known[agent.component], agent.vector.copy()))
        watch.tick(agent)
