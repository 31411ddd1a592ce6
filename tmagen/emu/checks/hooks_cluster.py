# SPDX-License-Identifier: Apache-2.0
"""Operations on any CTA of a cluster under observation. Each function takes the place of the one of its name."""

from __future__ import annotations

from typing import Any

from tmagen.emu.checks import hooks_barrier, tensor_rules
from tmagen.emu.checks.barriers import WatchedClusterBarrier
from tmagen.emu.checks.hooks_barrier import use
from tmagen.emu.checks.hooks_copy import box_of, signed_of, span_of, use_of_map
from tmagen.emu.checks.hooks_memory import flag, lane_cells, shared
from tmagen.emu.checks.hooks_tensor import PairPlan, issue_mma, pair_plan, reads_factors
from tmagen.emu.checks.peers import leaves, visit
from tmagen.emu.checks.races import NOUNS
from tmagen.emu.checks.shadow import Access
from tmagen.emu.checks.watch import Watch
from tmagen.emu.state import cluster_barrier, issue, remote
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.engine import TENSOR
from tmagen.emu.state.fragments import WAIT, Fragment
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.state.remote import each_cta, receivers, within

# --- loads and stores -------------------------------------------------------------------------------------------------


def _touch(frag: Fragment, cta: Any, address: Any, nbytes: int, kind: str) -> None:
    for peer, at in each_cta(frag, cta, address):
        shared(peer.watch, frag, at, nbytes, kind)
    if cta.watch.site.strong:
        flag(cta.watch, frag, "cluster", address, loads=kind == "ld", stores=kind == "st")


def ld_cluster(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    value = remote.ld_cluster(frag, cta, address, nbytes)
    _touch(frag, cta, address, nbytes, "ld")
    return value


def ld_cluster_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    values = remote.ld_cluster_vector(frag, cta, address, nbytes, count)
    _touch(frag, cta, address, nbytes * count, "ld")
    return values


def st_cluster(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    remote.st_cluster(frag, cta, address, nbytes, value)
    _touch(frag, cta, address, nbytes, "st")


def st_cluster_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    remote.st_cluster_vector(frag, cta, address, nbytes, values)
    _touch(frag, cta, address, nbytes * len(values), "st")


# --- mbarriers --------------------------------------------------------------------------------------------------------


def _visit(frag: Fragment, cta: Any, peer: Any, what: str) -> None:
    if peer is not cta:
        for agent in peer.watch.agents(frag):
            visit(peer.watch, frag, agent, what)


def remote_arrive(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        _visit(frag, cta, peer, "mbarrier.arrive")
        hooks_barrier.mbar_arrive(frag, peer, at, count, expect)


def remote_drop(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any = None) -> None:
    for peer, at in each_cta(frag, cta, address):
        _visit(frag, cta, peer, "mbarrier.arrive_drop")
        hooks_barrier.mbar_drop(frag, peer, at, count, expect)


def remote_expect(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        _visit(frag, cta, peer, "mbarrier.expect_tx")
        hooks_barrier.mbar_expect(frag, peer, at, nbytes)


def remote_complete(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        _visit(frag, cta, peer, "mbarrier.complete_tx")
        hooks_barrier.mbar_complete(frag, peer, at, nbytes)


def cluster_arrive(frag: Fragment, cta: Any) -> None:
    watch: Watch = cta.watch
    barrier = cta.cluster.barrier
    if isinstance(barrier, WatchedClusterBarrier):
        if watch.site_of(frag).relaxed and any(watch.unfenced_inits.values()):
            if watch.others_fenced:
                message = "a relaxed arrive after mbarrier.init: the fence.mbarrier_init is of other threads"
                watch.lint("MB-44", "W", message, frag)
            else:
                watch.lint("MB-42", "W", "a relaxed arrive after mbarrier.init with no fence.mbarrier_init", frag)
        barrier.sites[frag.warp] = watch.site_of(frag)
        for agent in watch.agents(frag):
            barrier.arrived_by(agent, relaxed=watch.site_of(frag).relaxed)
    cluster_barrier.cluster_arrive(frag, cta)


def cluster_wait(frag: Fragment, cta: Any, next_block: int, number: int) -> int:
    watch: Watch = cta.watch
    barrier = cta.cluster.barrier
    code = cluster_barrier.cluster_wait(frag, cta, next_block, number)
    if isinstance(barrier, WatchedClusterBarrier):
        for agent in watch.agents(frag):
            if frag.state == WAIT:
                barrier.blocked.append(agent)
            else:
                barrier.acquired_by(agent)
    return code


# --- copies -----------------------------------------------------------------------------------------------------------


def cluster_load(
    frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], barrier: Any, mask: Any,
    pair: bool,
) -> None:  # fmt: skip
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        tmap = cta.tensor_map(pick(tmap_address, lane))
        dst, at = pick(place, lane), pick(barrier, lane)
        for receiver, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), pair):
            theirs: Watch = receiver.watch
            theirs.actor = cta
            target = use(holder.watch, frag, agent, within(at), "a TMA load")
            footprint = box_of(theirs, tmap, within(dst))
            if target is None or footprint is None or tmap.rank != len(coords):
                continue
            target.carries(agent.carried(watch.clocks))
            note = watch.operation("tma_load", agent, lane, target.component, target.phase + 1)
            note.tmap = tmap
            theirs.lands(target, note)
            theirs.writes(theirs.shared, footprint, note, agent)
            watch.session.memory.box(watch, agent, note, tmap, signed_of(coords, lane), storing=False)
            use_of_map(watch, agent, lane, pick(tmap_address, lane), target.component, target.phase + 1)
    remote.cluster_load(frag, cta, place, tmap_address, coords, barrier, mask, pair)


def cluster_bulk_load(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any, own: bool
) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        dst, at, count = pick(place, lane), pick(barrier, lane), pick(nbytes, lane)
        for receiver, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), False):
            theirs: Watch = receiver.watch
            theirs.actor = cta
            target = use(holder.watch, frag, agent, within(at), "a bulk load")
            footprint = span_of(theirs, within(dst), count)
            if target is None or footprint is None:
                continue
            target.carries(agent.carried(watch.clocks))
            note = watch.operation("bulk_load", agent, lane, target.component, target.phase + 1)
            if own:
                mine = span_of(watch, cta.own(pick(source, lane)), count)
                if mine is not None:
                    watch.reads(watch.shared, mine, note, agent)
                    leaves(watch, frag, "bulk copy", theirs, (note.component, note.clock))
            else:
                watch.session.memory.span(watch, agent, note, pick(source, lane), count, storing=False)
            theirs.lands(target, note)
            theirs.writes(theirs.shared, footprint, note, agent)
    remote.cluster_bulk_load(frag, cta, place, source, nbytes, barrier, mask, own)


def st_async(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...], barrier: Any) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        dst, at = pick(address, lane), pick(barrier, lane)
        ((receiver, holder),) = receivers(cta, dst, at, None, False)
        theirs: Watch = receiver.watch
        theirs.actor = cta
        target = use(holder.watch, frag, agent, within(at), "st.async")
        if target is None:
            continue
        count = nbytes * len(values)
        note = watch.operation("st_async", agent, lane, target.component, target.phase + 1)
        note.generic = True
        key = (within(dst), count)
        footprint = theirs.shared.footprint(key, lambda key=key: lane_cells(*key))  # type: ignore[misc]
        theirs.lands(target, note)
        theirs.writes(theirs.shared, footprint, note, agent)
    remote.st_async(frag, cta, address, nbytes, values, barrier)


def red_async(frag: Fragment, cta: Any, address: Any, nbytes: int, combine: Any, value: Any, barrier: Any) -> None:
    for lane in frag.lanes.lanes:
        _reduces(frag, cta, lane, (pick(address, lane), nbytes), pick(barrier, lane), "red_async")
    remote.red_async(frag, cta, address, nbytes, combine, value, barrier)


def cluster_bulk_reduce(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, name: str, kind: str
) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        count = pick(nbytes, lane)
        note = _reduces(frag, cta, lane, (pick(place, lane), count), pick(barrier, lane), "cluster_reduce")
        mine = span_of(watch, cta.own(pick(source, lane)), count)
        if note is not None and mine is not None:
            watch.actor = cta
            watch.reads(watch.shared, mine, note, watch.agent(frag, lane))
            ((receiver, _),) = receivers(cta, pick(place, lane), pick(barrier, lane), None, False)
            leaves(watch, frag, "bulk reduction", receiver.watch, (note.component, note.clock))
    remote.cluster_bulk_reduce(frag, cta, place, source, nbytes, barrier, name, kind)


def _reduces(
    frag: Fragment, cta: Any, lane: int, span: tuple[int, int], at: int, kind: str
) -> Access | None:
    """A reduction into shared memory of the cluster, complete with the phase of an mbarrier. Reductions are atomic."""
    watch: Watch = cta.watch
    agent = watch.agent(frag, lane)
    dst, count = span
    ((receiver, holder),) = receivers(cta, dst, at, None, False)
    theirs: Watch = receiver.watch
    theirs.actor = cta
    target = use(holder.watch, frag, agent, within(at), f"a {NOUNS[kind]}")
    footprint = span_of(theirs, within(dst), count)
    if target is None or footprint is None:
        return None
    note = watch.operation(kind, agent, lane, target.component, target.phase + 1)
    note.strong = True
    note.generic = kind == "red_async"
    if not note.generic:
        target.carries(agent.carried(watch.clocks))
    theirs.lands(target, note)
    theirs.writes(theirs.shared, footprint, note, agent)
    return note


# --- tensor cores -----------------------------------------------------------------------------------------------------


def cluster_commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        agent = watch.agent(frag, lane)
        stream = watch.mma_stream(frag.warp.index, lane)
        own = watch.commit(frag.warp.index, lane)
        for target, at in remote.commit_targets(cta, pick(barrier, lane), None if mask is None else pick(mask, lane)):
            if used := use(target.watch, frag, agent, at, "tcgen05.commit"):
                used.arrives(own)
            barrier_at(target, at)
            if target is not cta:
                visit(target.watch, frag, agent, "tcgen05.commit", work=(stream.complete, stream.count))
            ended = (own, *tensor_rules.ended(watch, agent, stream))
            _commit(frag, cta, lane, (target, at), ended, agent.carried(watch.clocks))


def _commit(
    frag: Fragment, cta: Any, lane: int, place: tuple[Any, int], ended: tuple[tuple[int, int], ...], carried: Any
) -> None:
    target, at = place

    def run() -> None:
        if cta.mma_queue:
            cta.flush_mma()
        remote.check_alive(cta, target)
        barrier: Any = barrier_at(target, at)
        for component, count in ended:
            barrier.ended_by(component, count)
        barrier.carries(barrier.watch.clocks.fitted(carried))
        barrier.arrive()

    cta.engine.issue(frag, lane, TENSOR, run)


def mma_of_pair(frag: Fragment, cta: Any, *operands: Any) -> None:
    kind, d, a, b, idesc, _, in_tmem, _, _, *scales = operands
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        operand = (pick(d, lane), pick(a, lane), pick(b, lane), pick(idesc, lane))
        plan: PairPlan = pair_plan(watch, frag, kind, *operand, in_tmem)
        tensor_rules.told(watch, frag, plan.notes)
        note, agent = issue_mma(watch, frag, lane)
        for member in cta.pair:
            theirs: Watch = member.watch
            for footprint in plan.reads:
                theirs.reads(theirs.shared, footprint, note, agent)
            if plan.a is not None:
                theirs.reads(theirs.tensor, plan.a, note, agent)
            if scales:
                reads_factors(theirs, frag, plan, scales[0], lane, note, agent)
            if plan.d is not None:
                theirs.writes(theirs.tensor, plan.d, note, agent)
    issue.mma_of_pair(frag, cta, *operands)
