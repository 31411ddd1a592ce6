# SPDX-License-Identifier: Apache-2.0
"""What block functions call in a launch with clusters: operations on shared memory and barriers of any CTA of it.

An address of the shared window carries the rank of its CTA from bit 24 on, the CTA's own addresses too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tmagen.emu import reduce
from tmagen.emu.compile_emit import SHARED_WINDOW
from tmagen.emu.errors import Fault
from tmagen.emu.isa import access
from tmagen.emu.isa.values import ND, UNSIGNED
from tmagen.emu.memory import Bytes
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.engine import COPY, TENSOR
from tmagen.emu.state.fragments import Fragment, lane_set
from tmagen.emu.state.issue import check_bulk, map_of, signed_coords
from tmagen.emu.state.mbarrier import RANK_SHIFT, barrier_at, mbar_arrive, mbar_complete, mbar_drop, mbar_expect
from tmagen.emu.state.transfer import BoxLoad, SpanLoad, SpanReduction, constant

_WITHIN = (1 << RANK_SHIFT) - 1
NO_RANK = 0xFF  # of no CTA: the largest rank that an address can hold


def within(address: int) -> int:
    """An address of the shared window without its CTA's rank."""
    return address & _WITHIN


def each_cta(frag: Fragment, cta: Any, address: Any) -> Iterator[tuple[Any, Any]]:
    """(CTA, addresses within it), with the fragment's lanes narrowed to those that name that CTA."""
    if address.__class__ is not ND:
        yield cta.at(address)
        return
    whole = frag.lanes
    by_rank: dict[int, int] = {}
    for lane in whole.lanes:
        rank = address.item(lane) >> RANK_SHIFT
        by_rank[rank] = by_rank.get(rank, 0) | 1 << lane
    within = address & np.array(_WITHIN, address.dtype)
    try:
        for rank, mask in by_rank.items():
            frag.lanes = lane_set(mask)
            yield cta.at(rank << RANK_SHIFT)[0], within
    finally:
        frag.lanes = whole


# --- loads, stores, atomics -------------------------------------------------------------------------------------------


def ld_cluster(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    if address.__class__ is not ND:
        holder, place = cta.at(address)
        return access.ld_shared(frag, holder, place, nbytes)
    out = np.zeros(32, UNSIGNED[8 * nbytes])
    for peer, at in each_cta(frag, cta, address):
        where = frag.lanes.where
        out[where] = access.ld_shared(frag, peer, at, nbytes)[where]
    return out


def ld_cluster_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    return tuple(ld_cluster(frag, cta, address + i * nbytes, nbytes) for i in range(count))


def st_cluster(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        access.st_shared(frag, peer, at, nbytes, value)


def st_cluster_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    for peer, at in each_cta(frag, cta, address):
        access.st_shared_vector(frag, peer, at, nbytes, values)


# --- mbarriers --------------------------------------------------------------------------------------------------------


def remote_arrive(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        mbar_arrive(frag, peer, at, count, expect)


def remote_drop(frag: Fragment, cta: Any, address: Any, count: Any, expect: Any = None) -> None:
    for peer, at in each_cta(frag, cta, address):
        mbar_drop(frag, peer, at, count, expect)


def remote_expect(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        mbar_expect(frag, peer, at, nbytes)


def remote_complete(frag: Fragment, cta: Any, address: Any, nbytes: Any) -> None:
    for peer, at in each_cta(frag, cta, address):
        mbar_complete(frag, peer, at, nbytes)


# --- addresses --------------------------------------------------------------------------------------------------------


def map_cta(frag: Fragment, cta: Any, address: Any, rank: Any, generic: bool) -> Any:
    """mapa: the address of the same variable in the CTA of `rank`. Of a rank that does not exist it is an address that
    no access may have: kernels map lane numbers, and only the lanes use the address whose CTA there is.
    """
    rank = np.minimum(rank, NO_RANK) if rank.__class__ is ND else min(rank, NO_RANK)
    if generic:
        if rank.__class__ is ND:
            rank = rank.astype(np.uint64)
        return (address & (_WITHIN | SHARED_WINDOW)) | (rank << RANK_SHIFT)
    return (address & _WITHIN) | (rank << RANK_SHIFT)


def rank_of(address: Any) -> Any:
    """getctarank."""
    rank = address >> RANK_SHIFT & 0xFF
    return rank.astype(np.uint32) if rank.__class__ is ND else rank


# --- copies -----------------------------------------------------------------------------------------------------------


def receivers(cta: Any, place: int, barrier: int, mask: int | None, pair: bool) -> list[tuple[Any, Any]]:
    """(CTA that gets the bytes, CTA whose barrier is told) of a copy (PTX ISA, "cp.async.bulk.tensor").

    With .cta_group::2 the barrier may be in the other CTA of the pair; multicast then tells, for each receiver, the CTA
    of its pair that is even or odd as the barrier's is.
    """
    target, holder = cta.at(place)[0], cta.at(barrier)[0]
    if mask is None:
        if holder is not target and not (pair and holder.rank ^ target.rank == 1):
            raise Fault(
                f"a copy to the shared memory of CTA rank {target.rank} completes on an mbarrier of CTA rank "
                f"{holder.rank}: both must be in one CTA"
            )
        return [(target, holder)]
    if mask >> cta.cluster.size:
        raise Fault(f"multicast to CTA mask {mask:#x} in a cluster of {cta.cluster.size}", rule="TM-10")
    ranks = [rank for rank in range(cta.cluster.size) if mask >> rank & 1]
    return [
        (cta.cluster.peer(rank), cta.cluster.peer((rank & ~1 | holder.rank & 1) if pair else rank)) for rank in ranks
    ]


def copy_without_cluster() -> None:
    """A copy from shared to shared memory of the cluster, in a launch without clusters: an H200 traps."""
    raise Fault("cp.async.bulk from shared to shared memory of the cluster in a launch without clusters")


def check_alive(issuer: Any, *ctas: Any) -> None:
    """Raises Fault where an operation reaches a CTA that has exited."""
    for cta in ctas:
        if cta is not issuer:
            cta.cluster.peer(cta.rank)


access.LOADS["cluster"] = ld_cluster
access.VECTOR_LOADS["cluster"] = ld_cluster_vector
access.STORES["cluster"] = st_cluster
access.VECTOR_STORES["cluster"] = st_cluster_vector


def cluster_load(
    frag: Fragment,
    cta: Any,
    place: Any,
    tmap_address: Any,
    coords: tuple[Any, ...],
    barrier: Any,
    mask: Any,
    pair: bool,
) -> None:
    """A tensor copy to one CTA, or to the same place in several (`mask` not None)."""
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        target = signed_coords(coords, lane)
        dst, at = pick(place, lane), pick(barrier, lane)
        for receiver, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), pair):
            at_holder = at & _WITHIN
            phase = barrier_at(holder, at_holder).phase
            alive = partial(check_alive, cta, receiver, holder)
            copy = BoxLoad(receiver, holder, tmap, dst & _WITHIN, target, at_holder, phase, alive)
            cta.engine.issue(frag, lane, COPY, copy)


def cluster_bulk_load(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any, shared: bool
) -> None:
    """Contiguous bytes from global memory, or from the CTA's own shared memory, to one CTA or several."""
    for lane in frag.lanes.lanes:
        dst, at, src, n = pick(place, lane), pick(barrier, lane), pick(source, lane), pick(nbytes, lane)
        if shared:
            src = cta.own(src)
            cta.check_shared(src, n, "bulk copy")
        check_bulk(dst & _WITHIN, src, n)
        for receiver, holder in receivers(cta, dst, at, None if mask is None else pick(mask, lane), False):
            at_holder = at & _WITHIN
            phase = barrier_at(holder, at_holder).phase
            alive = partial(check_alive, cta, receiver, holder)
            read = partial(_own_bytes, cta, src, n) if shared else partial(cta.memory.view, src, n)
            copy = SpanLoad(receiver, holder, dst & _WITHIN, n, read, at_holder, phase, "bulk copy", alive)
            cta.engine.issue(frag, lane, COPY, copy)


def cluster_bulk_reduce(
    frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, name: str, kind: str
) -> None:
    """Bytes of the CTA's own shared memory, reduced into that of one CTA (PTX ISA, "cp.reduce.async.bulk")."""
    for lane in frag.lanes.lanes:
        dst, at, src, n = pick(place, lane), pick(barrier, lane), cta.own(pick(source, lane)), pick(nbytes, lane)
        cta.check_shared(src, n, "bulk reduction")
        check_bulk(dst & _WITHIN, src, n)
        ((receiver, holder),) = receivers(cta, dst, at, None, False)
        target, at_holder = dst & _WITHIN, at & _WITHIN
        phase = barrier_at(holder, at_holder).phase
        read = partial(_reduced, receiver, target, cta, src, n, name, kind)
        alive = partial(check_alive, cta, receiver, holder)
        copy = SpanReduction(receiver, holder, target, n, read, at_holder, phase, "bulk reduction", alive)
        cta.engine.issue(frag, lane, COPY, copy)


def _reduced(receiver: Any, place: int, cta: Any, first: int, nbytes: int, name: str, kind: str) -> Bytes:
    old = receiver.smem[place : place + nbytes].copy()
    dtype = reduce.DTYPES[kind]
    reduce.combine(name, old.view(dtype), cta.smem[first : first + nbytes].view(dtype))
    found: Bytes = old
    return found


def _own_bytes(cta: Any, first: int, nbytes: int) -> Bytes:
    found: Bytes = cta.smem[first : first + nbytes]
    return found


def st_async(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...], barrier: Any) -> None:
    """st.async: a store whose bytes an mbarrier of the same CTA is told of."""
    for lane in frag.lanes.lanes:
        dst, at = pick(address, lane), pick(barrier, lane)
        ((receiver, holder),) = receivers(cta, dst, at, None, False)
        phase = barrier_at(holder, at & _WITHIN).phase
        raw = b"".join(int(pick(value, lane)).to_bytes(nbytes, "little") for value in values)
        source = constant(raw)
        alive = partial(check_alive, cta, receiver)
        place, n = dst & _WITHIN, len(raw)
        copy = SpanLoad(receiver, receiver, place, n, source, at & _WITHIN, phase, "st.async", alive, align=n)
        cta.engine.issue(frag, lane, COPY, copy)


def red_async(frag: Fragment, cta: Any, address: Any, nbytes: int, combine: Any, value: Any, barrier: Any) -> None:
    """red.async: like `st_async`, with what is there when it takes effect combined with the value."""
    for lane in frag.lanes.lanes:
        dst, at = pick(address, lane), pick(barrier, lane)
        ((receiver, holder),) = receivers(cta, dst, at, None, False)
        phase = barrier_at(holder, at & _WITHIN).phase
        place = dst & _WITHIN

        def combined(receiver: Any = receiver, place: int = place, operand: int = pick(value, lane)) -> Any:
            cell = receiver.smem[place : place + nbytes].view(f"u{nbytes}")
            new = combine(cell.item(0), operand) & ((1 << 8 * nbytes) - 1)
            return np.array([new], cell.dtype).view(np.uint8)

        alive = partial(check_alive, cta, receiver)
        copy = SpanReduction(
            receiver, receiver, place, nbytes, combined, at & _WITHIN, phase, "red.async", alive, align=nbytes
        )
        cta.engine.issue(frag, lane, COPY, copy)


# --- tensor cores -----------------------------------------------------------------------------------------------------


def commit_targets(cta: Any, barrier: int, mask: int | None) -> list[tuple[Any, int]]:
    """(CTA, address in it) of every mbarrier that a commit arrives on."""
    holder, at = cta.at(barrier)
    if mask is None:
        return [(holder, at)]
    if not mask or mask >> cta.cluster.size:
        raise Fault(f"multicast to CTA mask {mask:#x} in a cluster of {cta.cluster.size}", rule="TM-10")
    return [(cta.cluster.peer(rank), at) for rank in range(cta.cluster.size) if mask >> rank & 1]


def cluster_commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> None:
    """Arrive on one mbarrier, or on that of the same place in several CTAs, when the thread's MMAs are complete."""
    for lane in frag.lanes.lanes:
        for target, at in commit_targets(cta, pick(barrier, lane), None if mask is None else pick(mask, lane)):
            barrier_at(target, at)

            def run(target: Any = target, at: int = at) -> None:
                if cta.mma_queue:
                    cta.flush_mma()
                check_alive(cta, target)
                barrier_at(target, at).arrive()

            cta.engine.issue(frag, lane, TENSOR, run)
