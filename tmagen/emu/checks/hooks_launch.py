# SPDX-License-Identifier: Apache-2.0
"""Registers, other grids and other clusters under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.hooks_barrier import use
from tmagen.emu.checks.watch import Watch
from tmagen.emu.state import launch_control, registers
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.state.launch_control import RESPONSE_BYTES
from tmagen.emu.state.registers import GROUP, registers_of, text_of

# --- setmaxnreg -------------------------------------------------------------------------------------------------------


def set_registers(frag: Fragment, cta: Any, grows: bool, count: int, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    pool = registers_of(cta)
    if pool is None:
        watch.lint("SR-04", "W", "setmaxnreg in a kernel without .maxnreg, .maxntid or .reqntid is ignored", frag)
    else:
        _check_group(watch, frag, pool, grows, count)
    return registers.set_registers(frag, cta, grows, count, next_block, number)


def _check_group(watch: Watch, frag: Fragment, pool: Any, grows: bool, count: int) -> None:
    """The warps of a warpgroup execute the same sequence, and come together between two of them."""
    warp = frag.warp.index
    group, position = warp // GROUP, pool.executed[warp]
    history = pool.history[group]
    if position < len(history) and history[position] != (grows, count):
        watch.lint(
            "SR-02", "W",
            f"warp {warp} executes {text_of(grows, count)} where another of warpgroup {group} executes "
            f"{text_of(*history[position])}",
            frag,
        )  # fmt: skip
    agent = watch.together(frag)
    marks = watch.register_marks.setdefault(group, {})
    if position:
        for other in range(GROUP * group, min(GROUP * (group + 1), watch.cta.nwarps)):
            mark = marks.get((other, position - 1))
            if mark is None or agent.known[mark[0]] < mark[1]:
                watch.lint(
                    "SR-02", "W",
                    f"warp {warp} executes {text_of(grows, count)}: nothing orders it after the setmaxnreg before it "
                    f"of warp {other} of its warpgroup",
                    frag,
                )  # fmt: skip
                break
    marks.pop((warp, position - 2), None)
    marks[warp, position] = (agent.component, agent.known[agent.component])
    watch.tick(agent)


# --- other grids ------------------------------------------------------------------------------------------------------


def grid_wait(frag: Fragment, cta: Any) -> None:
    watch: Watch = cta.watch
    before = watch.session.memory.before
    if before is not None:
        before.wait(watch, watch.agents(frag))


# --- other clusters ---------------------------------------------------------------------------------------------------


def try_cancel(frag: Fragment, cta: Any, place: Any, barrier: Any, multicast: bool) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        dst, at = cta.own(pick(place, lane)), cta.own(pick(barrier, lane))
        _after_failure(watch, frag, agent)
        for receiver in cta.cluster.ctas if multicast else [cta]:
            theirs: Watch = receiver.watch
            theirs.actor = cta
            target = use(theirs, frag, agent, at, "clusterlaunchcontrol.try_cancel")
            if target is None or dst % RESPONSE_BYTES or not 0 <= dst <= receiver.smem.size - RESPONSE_BYTES:
                continue  # the instruction will say it
            target.carries(agent.carried(watch.clocks))
            note = watch.operation("try_cancel", agent, lane, target.component, target.phase + 1)
            footprint = theirs.shared.footprint(
                (dst, RESPONSE_BYTES),
                lambda dst=dst: np.arange(dst, dst + RESPONSE_BYTES, dtype=np.intp),  # type: ignore[misc]
            )
            theirs.writes(theirs.shared, footprint, note, agent)
    launch_control.try_cancel(frag, cta, place, barrier, multicast)


def _after_failure(watch: Watch, frag: Fragment, agent: Any) -> None:
    """A request although a thread before this one, in the order that barriers make, has seen one fail."""
    for warp, component, clock in watch.cta.cluster.ctas[0].watch.refusals:
        if warp is not frag.warp and watch.clocks.partings.knows(agent.vector, component, clock):
            watch.lint(
                "CL-04", "E",
                f"clusterlaunchcontrol.try_cancel after warp {warp.index} of {warp.cta.title} has seen an earlier "
                "request fail",
                frag,
            )  # fmt: skip


def is_canceled(frag: Fragment, cta: Any, response: int) -> bool:
    given = launch_control.is_canceled(frag, cta, response)
    if not given:
        watch: Watch = cta.watch
        for agent in watch.agents(frag):
            seen = (frag.warp, agent.component, agent.known[agent.component])
            cta.cluster.ctas[0].watch.refusals.append(seen)
    return given


def first_ctaid(frag: Fragment, cta: Any, response: int) -> tuple[int, int, int]:
    found = launch_control.first_ctaid(frag, cta, response)
    if not response & 1:
        watch: Watch = cta.watch
        watch.lint("CL-03", "R", "get_first_ctaid of a request that failed: what it gives is undefined", frag)
    return found
