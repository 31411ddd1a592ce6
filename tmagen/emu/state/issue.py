# SPDX-License-Identifier: Apache-2.0
"""What block functions call for asynchronous operations and tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu import reduce, tma, tmem_copy
from tmagen.emu.compile_emit import PARAM_WINDOW
from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import ND
from tmagen.emu.mma import Mma
from tmagen.emu.mma_pair import PairMma
from tmagen.emu.state.convergence import BLOCK, WAIT, Fragment, pick, uniform
from tmagen.emu.state.engine import COPY, STORE, TENSOR
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.tensormap import TensorMap

_HIGH = 1 << 31


# --- tensor and bulk copies -------------------------------------------------------------------------------------------


def map_of(cta: Any, address: int, rank: int) -> TensorMap:
    tmap: TensorMap = cta.tensor_map(address)
    if tmap.rank != rank:
        raise Fault(f"a {rank}d tensor copy with a tensor map of rank {tmap.rank}", rule="TM-08")
    return tmap


def own_mask(mask: int) -> None:
    if mask != 1:
        raise Fault(f"multicast to CTA mask {mask:#x} in a cluster of one CTA", rule="TM-10")


def tma_load(
    frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], barrier: Any, mask: Any
) -> None:
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        dst, at, target = (
            cta.own(pick(place, lane)),
            cta.own(pick(barrier, lane)),
            signed_coords(coords, lane),
        )
        own_mask(pick(mask, lane))
        phase = barrier_at(cta, at).phase
        cta.engine.issue(frag, lane, COPY, _Load(cta, tmap, dst, target, at, phase))


class _Load:
    """A box from global to shared memory."""

    __slots__ = ("args",)

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __call__(self) -> None:
        cta, tmap, dst, coords, at, phase = self.args
        complete_bytes(cta, at, phase, write_box(cta, tmap, dst, coords))


def write_box(cta: Any, tmap: TensorMap, dst: int, coords: tuple[int, ...]) -> int:
    """Fill a box of a CTA's shared memory; the bytes that an mbarrier is told of."""
    if cta.mma_queue:
        cta.flush_mma()
    if cta.low_barrier < dst + tmap.footprint and dst < cta.high_barrier:
        cta.check_overwrite(dst, tmap.footprint, "tensor copy")
    if dst < cta.first_shared:
        cta.bad_shared(dst, tmap.footprint, "tensor copy")
    return tma.load(tmap, cta.memory, cta.smem, dst, coords)


def signed_coords(coords: tuple[Any, ...], lane: int) -> tuple[int, ...]:
    """The coordinates of one lane, which are signed."""
    return tuple([(pick(c, lane) ^ _HIGH) - _HIGH for c in coords])


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


def tma_store(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...]) -> None:
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        src, target = cta.own(pick(place, lane)), signed_coords(coords, lane)

        def run(tmap: TensorMap = tmap, src: int = src, target: tuple[int, ...] = target) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            tma.store(tmap, cta.memory, cta.smem, src, target)

        _join(frag, lane, cta.engine.issue(frag, lane, STORE, run))


def bulk_load(frag: Fragment, cta: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any) -> None:
    for lane in frag.lanes.lanes:
        dst, at = cta.own(pick(place, lane)), cta.own(pick(barrier, lane))
        src, n = pick(source, lane), pick(nbytes, lane)
        own_mask(pick(mask, lane))
        check_bulk(dst, src, n)
        phase = barrier_at(cta, at).phase

        def run(dst: int = dst, src: int = src, n: int = n, at: int = at, phase: int = phase) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            cta.check_shared(dst, n, "bulk copy")
            cta.check_overwrite(dst, n, "bulk copy")
            if n:
                cta.smem[dst : dst + n] = cta.memory.view(src, n)
            complete_bytes(cta, at, phase, n)

        cta.engine.issue(frag, lane, COPY, run)


def bulk_store(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any) -> None:
    for lane in frag.lanes.lanes:
        dst, src, n = pick(target, lane), cta.own(pick(place, lane)), pick(nbytes, lane)
        check_bulk(src, dst, n)
        cta.check_shared(src, n, "bulk copy")

        def run(dst: int = dst, src: int = src, n: int = n) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            if n:
                cta.memory.view(dst, n)[:] = cta.smem[src : src + n]

        _join(frag, lane, cta.engine.issue(frag, lane, STORE, run))


def tma_reduce(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], name: str) -> None:
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        src, target = cta.own(pick(place, lane)), signed_coords(coords, lane)

        def run(tmap: TensorMap = tmap, src: int = src, target: tuple[int, ...] = target) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            reduce.box(tmap, cta.memory, cta.smem, src, target, name)

        _join(frag, lane, cta.engine.issue(frag, lane, STORE, run))


def bulk_reduce(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any, name: str, kind: str) -> None:
    for lane in frag.lanes.lanes:
        dst, src, n = pick(target, lane), cta.own(pick(place, lane)), pick(nbytes, lane)
        check_bulk(src, dst, n)
        cta.check_shared(src, n, "bulk reduction")

        def run(dst: int = dst, src: int = src, n: int = n) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            reduce.span(cta.memory, cta.smem, dst, src, n, name, kind)

        _join(frag, lane, cta.engine.issue(frag, lane, STORE, run))


def check_bulk(shared: int, other: int, nbytes: int) -> None:
    if shared % 16 or other % 16 or nbytes % 16:
        raise Fault(
            f"bulk copy of {nbytes} bytes, shared address {shared:#x}, global address {other:#x}: "
            "all must be multiples of 16",
            rule="TM-01",
        )


def check_map(frag: Fragment, cta: Any, address: Any, space: str) -> None:
    """The operand of a prefetch is a tensor map."""
    for lane in frag.lanes.lanes:
        at = pick(address, lane)
        cta.tensor_map(at + PARAM_WINDOW if space == "param" else at)


# --- bulk groups: they belong to one thread ---------------------------------------------------------------------------


class BulkGroups:
    """Outstanding stores of a thread: not committed, and by group, oldest first."""

    __slots__ = ("groups", "open")

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.groups: list[list[Any]] = []


def _groups(frag: Fragment, lane: int) -> BulkGroups:
    found = frag.warp.bulk.get(lane)
    if found is None:
        found = frag.warp.bulk[lane] = BulkGroups()
    return found


def _join(frag: Fragment, lane: int, operation: Any) -> None:
    if operation is not None:
        _groups(frag, lane).open.append(operation)


def bulk_commit(frag: Fragment) -> None:
    for lane in frag.lanes.lanes:
        groups = _groups(frag, lane)
        groups.groups.append(groups.open)
        groups.open = []


class BulkWait:
    """Why a fragment is blocked: it waits for its bulk stores."""

    def __init__(self, operations: list[Any], count: int, number: int) -> None:
        self.operations = operations
        self.count = count
        self.number = number

    def describe(self, cta: Any) -> str:
        outstanding = sum(1 for operation in self.operations if not operation.done)
        return f"waits for bulk groups: {outstanding} stores outstanding, wait_group {self.count}"


def bulk_wait(frag: Fragment, cta: Any, count: int, read: bool, next_block: int, number: int) -> int:
    outstanding = []
    for lane in frag.lanes.lanes:
        groups = _groups(frag, lane)
        old = max(0, len(groups.groups) - count)
        outstanding += [operation for group in groups.groups[:old] for operation in group if not operation.done]
        groups.groups = groups.groups[old:]
    if not outstanding:
        return next_block
    frag.pc = next_block
    frag.state = WAIT
    frag.wait = BulkWait(outstanding, count, number)
    cta.bulk_waiters.append(frag)
    return BLOCK


# --- tensor memory ----------------------------------------------------------------------------------------------------


class AllocWait:
    """Why a fragment is blocked: it waits for tensor memory."""

    def __init__(self, columns: int, number: int) -> None:
        self.columns = columns
        self.number = number

    def describe(self, cta: Any) -> str:
        held = sum(cta.tmem.allocations.values())
        return f"waits for {self.columns} columns of tensor memory: {held} of 512 are allocated"


def tmem_alloc(frag: Fragment, cta: Any, place: Any, columns: Any, this: int, next_block: int, number: int) -> int:
    count = uniform(frag, columns, "the number of columns")
    address = cta.tmem.alloc(count)
    if address is None:
        frag.pc = this
        frag.state = WAIT
        frag.wait = AllocWait(count, number)
        cta.alloc_waiters.append(frag)
        return BLOCK
    at = cta.own(uniform(frag, place, "the address of tcgen05.alloc"))
    cta.check_shared(at, 4, "tcgen05.alloc", 4)
    cta.check_overwrite(at, 4, "tcgen05.alloc")
    cta.cells[4][at >> 2] = address
    return next_block


def tmem_dealloc(frag: Fragment, cta: Any, address: Any, columns: Any) -> None:
    if cta.mma_queue:
        cta.flush_mma()
    taddr = uniform(frag, address, "the address of tcgen05.dealloc")
    cta.tmem.dealloc(taddr, uniform(frag, columns, "the number of columns"))
    waiters, cta.alloc_waiters = cta.alloc_waiters, []
    for fragment in waiters:
        fragment.wake()


def tmem_ld(frag: Fragment, cta: Any, shape: str, number: int, address: Any, pack: bool, split: int) -> Any:
    if cta.mma_queue:
        cta.flush_mma()
    taddr = address if address.__class__ is int else uniform(frag, address, "the address of tcgen05.ld")
    rows = cta.tmem.ld(shape, number, taddr, frag.warp.index, pack=pack, split=split)
    return [row.item(frag.lanes.first) for row in rows] if frag.lanes.count == 1 else list(rows)


def tmem_st(
    frag: Fragment, cta: Any, shape: str, number: int, address: Any, values: tuple[Any, ...], unpack: bool, split: int
) -> None:
    if cta.mma_queue:
        cta.flush_mma()
    taddr = uniform(frag, address, "the address of tcgen05.st")
    block = np.empty((len(values), 32), np.uint32)
    for i, value in enumerate(values):
        block[i] = value
    cta.tmem.st(shape, number, taddr, frag.warp.index, block, unpack=unpack, split=split)


def mma(
    frag: Fragment,
    cta: Any,
    kind: str,
    d: Any,
    a: Any,
    b: Any,
    idesc: Any,
    accumulate: Any,
    in_tmem: bool,
    scale: int,
    disable: Any,
) -> None:
    """k lanes that execute it issue k MMAs."""
    lanes = frag.lanes
    if disable is not None and not any(word.__class__ is ND or word for word in disable):
        disable = None
    if lanes.count == 1 and d.__class__ is int and a.__class__ is int and b.__class__ is int and disable is None:
        cta.start_mma(frag, lanes.first, Mma(kind, d, a, b, idesc, accumulate, in_tmem, scale, None))
        return
    for lane in lanes.lanes:
        mask: Any = None if disable is None else tuple([pick(word, lane) for word in disable])
        if mask == (0, 0, 0, 0):
            mask = None
        op = Mma(
            kind,
            pick(d, lane),
            pick(a, lane),
            pick(b, lane),
            pick(idesc, lane),
            bool(pick(accumulate, lane)),
            in_tmem,
            scale,
            mask,
        )
        cta.start_mma(frag, lane, op)


def tmem_cp(frag: Fragment, cta: Any, shape: str, address: Any, descriptor: Any, pair: bool) -> None:
    """tcgen05.cp: shared to tensor memory, of each CTA of a pair its own."""
    ctas = cta.pair if pair else (cta,)
    for lane in frag.lanes.lanes:
        taddr, desc = pick(address, lane), pick(descriptor, lane)

        def run(taddr: int = taddr, desc: int = desc) -> None:
            for each in ctas:
                if each.mma_queue:
                    each.flush_mma()
                tmem_copy.execute(shape, taddr, desc, each.smem, each.tmem)

        cta.engine.issue(frag, lane, TENSOR, run)


def mma_of_pair(frag: Fragment, cta: Any, *operands: Any) -> None:
    """tcgen05.mma.cta_group::2: the MMA of both CTAs of the pair; k lanes that execute it issue k."""
    assert cta.pair
    kind, d, a, b, idesc, accumulate, in_tmem, scale, disable = operands
    for lane in frag.lanes.lanes:
        words = None if disable is None else tuple([pick(word, lane) for word in disable])
        op = Mma(
            kind,
            pick(d, lane),
            pick(a, lane),
            pick(b, lane),
            pick(idesc, lane),
            bool(pick(accumulate, lane)),
            in_tmem,
            scale,
            words if words and any(words) else None,
        )
        cta.start_mma(frag, lane, PairMma(op))


def commit(frag: Fragment, cta: Any, barrier: Any, mask: Any) -> None:
    for lane in frag.lanes.lanes:
        at = cta.own(pick(barrier, lane))
        own_mask(pick(mask, lane))
        barrier_at(cta, at)

        def run(at: int = at) -> None:
            if cta.mma_queue:
                cta.flush_mma()
            barrier_at(cta, at).arrive()

        cta.engine.issue(frag, lane, TENSOR, run)
