# SPDX-License-Identifier: Apache-2.0
"""mbarriers and named barriers under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from typing import Any

from tmagen.emu.checks.barriers import WatchedBarrier
from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.watch import Watch
from tmagen.emu.isa.values import ND
from tmagen.emu.state import barriers, mbarrier
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import JOINS, SWITCH, WAIT, Fragment, lane_set


def use(watch: Watch, frag: Fragment, agent: Lanes, address: int, what: str) -> WatchedBarrier | None:
    """The object at an address, for a use by some lanes; None where there is none, which the instruction will say."""
    found: WatchedBarrier | None = watch.cta.mbarriers.get(address)
    if found is not None and not found.used_by(agent):
        watch.lint(
            "MB-40", "E",
            f"{what} on the mbarrier at {watch.cta.place(address)}: nothing orders it after the mbarrier.init by "
            "another thread",
            frag,
        )  # fmt: skip
    return found


def _targets(watch: Watch, frag: Fragment, address: Any, what: str) -> list[tuple[Lanes, WatchedBarrier]]:
    """Every group of lanes with every object that one of its lanes names."""
    found = []
    for agent in watch.agents(frag):
        if address.__class__ is not ND:
            places = {address}
        else:
            places = {address.item(lane) for lane in lane_set(agent.mask & frag.lanes.mask).lanes}
        for place in places:
            barrier = use(watch, frag, agent, place, what)
            if barrier is not None:
                found.append((agent, barrier))
    return found


def mbar_init(frag: Fragment, cta: Any, address: Any, count: Any) -> None:
    mbarrier.mbar_init(frag, cta, address, count)
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        place = pick(address, lane)
        plain = cta.mbarriers[place]
        barrier = WatchedBarrier(watch, place, plain.expected, watch.agent(frag, lane))
        barrier.init_line = plain.init_line
        cta.mbarriers[place] = barrier
        watch.barriers.append(barrier)
    index = frag.warp.index
    watch.unfenced_inits[index] = watch.unfenced_inits.get(index, 0) | frag.lanes.mask
    for agent in watch.agents(frag):
        watch.tick(agent)


def mbar_inval(frag: Fragment, cta: Any, address: Any) -> None:
    watch: Watch = cta.watch
    for agent, barrier in _targets(watch, frag, address, "mbarrier.inval"):
        for component, clock in barrier.uses.items():
            if not watch.clocks.partings.knows(agent.vector, component, clock):
                watch.lint(
                    "MB-45", "E",
                    f"mbarrier.inval at {cta.place(barrier.address)}: nothing orders it after the last use by "
                    f"{watch.clocks.names[component]}",
                    frag,
                )  # fmt: skip
    mbarrier.mbar_inval(frag, cta, address)


def mbar_arrive(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any) -> Any:
    watch: Watch = cta.watch
    targets = _release(watch, frag, address, "mbarrier.arrive")
    token = mbarrier.mbar_arrive(frag, cta, address, count, expect)
    _keep(watch, frag, token)
    _carry_over(watch, targets)
    return token


def mbar_pending(frag: Fragment, cta: Any, state: Any) -> Any:
    watch: Watch = cta.watch
    values = {pick(state, lane) for lane in frag.lanes.lanes}
    if not values <= watch.tokens:
        watch.lint("MB-14", "W", "mbarrier.pending_count of a value that no arrive of the CTA has returned", frag)
    return mbarrier.mbar_pending(frag, cta, state)


def _keep(watch: Watch, frag: Fragment, token: Any) -> None:
    if watch.session.collector.strict:
        watch.tokens.update([token] if token.__class__ is not ND else (pick(token, lane) for lane in frag.lanes.lanes))


def mbar_drop(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any = None) -> Any:
    watch: Watch = cta.watch
    targets = _release(watch, frag, address, "mbarrier.arrive_drop")
    token = mbarrier.mbar_drop(frag, cta, address, count, expect)
    _keep(watch, frag, token)
    _carry_over(watch, targets)
    return token


_Released = list[tuple[Lanes, WatchedBarrier, int]]


def _release(watch: Watch, frag: Fragment, address: Any, what: str) -> _Released:
    site = watch.site_of(frag)
    relaxed = site.relaxed
    far = frag.warp.cta is not watch.cta
    narrow = far and not site.scope
    found: _Released = []
    for agent, barrier in _targets(watch, frag, address, what):
        barrier.released_by(agent, relaxed=relaxed, narrow=narrow, far=far)
        if barrier.phase > barrier.last_waited and barrier.phase:
            watch.lint(
                "MB-22", "W",
                f"{what} in phase {barrier.phase} of the mbarrier at {watch.cta.place(barrier.address)}: no thread has "
                "waited for the phase before",
                frag,
            )  # fmt: skip
        found.append((agent, barrier, barrier.phase))
    return found


def _carry_over(watch: Watch, released: _Released) -> None:
    """Where some lanes' arrivals ended the phase, others may have gone into the next."""
    for agent, barrier, phase in released:
        if barrier.phase != phase and (agent.mask & (agent.mask - 1)) and barrier.pending != barrier.expected:
            barrier.released_by(agent, relaxed=False)
    for agent in {id(agent): agent for agent, _, _ in released}.values():
        watch.tick(agent)


def mbar_expect(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    _targets(cta.watch, frag, address, "mbarrier.expect_tx")
    mbarrier.mbar_expect(frag, cta, address, nbytes)


def mbar_complete(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    _targets(cta.watch, frag, address, "mbarrier.complete_tx")
    mbarrier.mbar_complete(frag, cta, address, nbytes)


def _acquire(watch: Watch, frag: Fragment, address: Any, lanes: int | None = None) -> None:
    """A wait of these lanes has succeeded."""
    relaxed = watch.site_of(frag).relaxed
    for agent, barrier in _targets(watch, frag, address, "mbarrier wait"):
        if lanes is None or agent.mask & lanes:
            barrier.acquired_by(agent, relaxed=relaxed)


def mbar_test(frag: Fragment, cta: Any, address: Any, state: Any, by_parity: bool) -> Any:
    seen = mbarrier.mbar_test(frag, cta, address, state, by_parity)
    watch: Watch = cta.watch
    if by_parity:
        _check_parity(watch, frag, state)
    if seen.__class__ is not ND:
        if seen:
            _acquire(watch, frag, address)
        else:
            _targets(watch, frag, address, "mbarrier wait")
        return seen
    lanes = 0
    for lane in frag.lanes.lanes:
        lanes |= bool(seen[lane]) << lane
    if lanes:
        # Lanes that saw the phase and lanes that did not are different threads from here on.
        warp = frag.warp
        for agent in watch.warps[warp.index].of(lanes, warp.live):
            for lane in lane_set(agent.mask & lanes).lanes:
                barrier = use(watch, frag, agent, pick(address, lane), "mbarrier wait")
                if barrier is not None:
                    barrier.acquired_by(agent, relaxed=watch.site_of(frag).relaxed)
    return seen


def _check_parity(watch: Watch, frag: Fragment, state: Any) -> None:
    wrong = state > 1 if state.__class__ is not ND else bool((state[frag.lanes.where] > 1).any())
    if wrong:
        watch.lint("MB-23", "W", "the parity of an mbarrier wait is neither 0 nor 1", frag)


def mbar_wait(frag: Fragment, cta: Any, address: Any, state: Any, by_parity: bool, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    if by_parity:
        _check_parity(watch, frag, state)
    if address.__class__ is ND or state.__class__ is ND:
        return _wait_apart(frag, cta, address, state, by_parity, next_block, number)
    code = mbarrier.mbar_wait(frag, cta, address, state, by_parity, next_block, number)
    if frag.state != WAIT:
        _acquire(watch, frag, address)
        return code
    relaxed = watch.site_of(frag).relaxed
    for agent, barrier in _targets(watch, frag, address, "mbarrier wait"):
        barrier.blocked.append((agent, relaxed))
    return code


def _wait_apart(
    frag: Fragment, cta: Any, address: Any, state: Any, by_parity: bool, next_block: int, number: int
) -> int:
    """Lanes that wait for different phases: those that need not wait, and fragments that do."""
    watch: Watch = cta.watch
    warp = frag.warp
    before = {lane: (pick(address, lane), pick(state, lane)) for lane in frag.lanes.lanes}
    if len(asked := set(before.values())) == 1:  # one phase after all, which each lane has computed for itself
        place, phase = asked.pop()
        return mbar_wait(frag, cta, place, phase, by_parity, next_block, number)
    code = mbarrier.mbar_wait(frag, cta, address, state, by_parity, next_block, number)
    relaxed = watch.site_of(frag).relaxed
    for fragment in warp.fragments:
        lanes = [lane for lane in fragment.lanes.lanes if lane in before]
        if not lanes or fragment.pc != next_block:
            continue
        waits = fragment.state == WAIT
        if code == SWITCH and not waits:
            continue
        for agent in watch.warps[warp.index].of(fragment.mask, warp.live):
            for place in {before[lane][0] for lane in lane_set(agent.mask & fragment.mask).lanes if lane in before}:
                barrier = use(watch, fragment, agent, place, "mbarrier wait")
                if barrier is None:
                    continue
                if waits:
                    barrier.blocked.append((agent, relaxed))
                else:
                    barrier.acquired_by(agent, relaxed=relaxed)
    return code


def bar_sync(
    frag: Fragment, cta: Any, index: Any, count: Any, this: int, next_block: int, number: int, apart: bool
) -> int:
    if code := barriers.parted(frag, index, count, this, apart):
        return code
    if frag.wait is not JOINS:
        _bar(cta.watch, frag, index, syncs=True)
    return barriers.bar_sync(frag, cta, index, count, this, next_block, number, apart)


def bar_red(
    frag: Fragment, cta: Any, index: Any, count: Any, holds: Any, name: str, this: int, number: int
) -> Any:
    if frag.wait is None and frag.mask == frag.warp.live:
        _bar(cta.watch, frag, index, syncs=True)
    return barriers.bar_red(frag, cta, index, count, holds, name, this, number)


def bar_arrive(frag: Fragment, cta: Any, index: Any, count: Any) -> None:
    _bar(cta.watch, frag, index, syncs=False)
    barriers.bar_arrive(frag, cta, index, count)


def _bar(watch: Watch, frag: Fragment, index: Any, *, syncs: bool) -> None:
    number = pick(index, frag.lanes.first)
    if 0 <= number < 16:
        # All live lanes are together here, or at another barrier of the same number.
        warp = frag.warp
        watch.actor = warp.cta
        barrier, reduces = watch.named[number], "red" in watch.site_of(frag).instruction.parts
        if barrier.gathered is not None and barrier.reduces is not reduces:
            watch.lint(
                "NB-06", "E",
                f"barrier {number} is used with {'.red' if reduces else '.sync or .arrive'} in a phase in which others "
                f"use it with {'.sync or .arrive' if reduces else '.red'}",
                frag,
            )  # fmt: skip
        barrier.reduces = reduces
        agent = watch.warps[warp.index].merge(warp.live, warp.live)
        if barrier.is_early(agent):
            watch.lint(
                "NB-07", "E",
                f"arrival at named barrier {number}: nothing orders it after the barrier's phase before, in which it "
                "might as well be counted",
                frag,
            )  # fmt: skip
        barrier.arrived_by(agent, syncs=syncs)
