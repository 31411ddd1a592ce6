# SPDX-License-Identifier: Apache-2.0
"""What block functions call for asynchronous operations and tensor memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tmagen.emu import tmem_copy
from tmagen.emu.block_scale import Scales
from tmagen.emu.compile_emit import PARAM_WINDOW
from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import ND
from tmagen.emu.mma import Mma
from tmagen.emu.mma_pair import PairMma
from tmagen.emu.state.convergence import pick, uniform
from tmagen.emu.state.engine import COPY, STORE, TENSOR
from tmagen.emu.state.fragments import BLOCK, WAIT, Fragment
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.state.transfer import BoxLoad, BoxReduce, BoxStore, SpanLoad, SpanReduce, SpanStore
from tmagen.emu.tensormap import TensorMap
from tmagen.emu.tma import check_start

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
        cta.engine.issue(frag, lane, COPY, BoxLoad(cta, cta, tmap, dst, target, at, phase))


def signed_coords(coords: tuple[Any, ...], lane: int) -> tuple[int, ...]:
    """The coordinates of one lane, which are signed."""
    return tuple([(pick(c, lane) ^ _HIGH) - _HIGH for c in coords])


def tma_store(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...]) -> None:
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        copy = BoxStore(cta, tmap, cta.own(pick(place, lane)), signed_coords(coords, lane))
        _join(frag, lane, cta.engine.issue(frag, lane, STORE, copy))


def bulk_load(frag: Fragment, cta: Any, place: Any, origin: Any, nbytes: Any, barrier: Any, mask: Any) -> None:
    for lane in frag.lanes.lanes:
        dst, at = cta.own(pick(place, lane)), cta.own(pick(barrier, lane))
        src, n = pick(origin, lane), pick(nbytes, lane)
        own_mask(pick(mask, lane))
        check_bulk(dst, src, n)
        phase = barrier_at(cta, at).phase
        source = partial(cta.memory.view, src, n)
        cta.engine.issue(frag, lane, COPY, SpanLoad(cta, cta, dst, n, source, at, phase, "bulk copy"))


def bulk_store(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any) -> None:
    for lane in frag.lanes.lanes:
        dst, src, n = pick(target, lane), cta.own(pick(place, lane)), pick(nbytes, lane)
        check_bulk(src, dst, n)
        cta.check_shared(src, n, "bulk copy")
        _join(frag, lane, cta.engine.issue(frag, lane, STORE, SpanStore(cta, dst, src, n)))


def tma_reduce(frag: Fragment, cta: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], name: str) -> None:
    for lane in frag.lanes.lanes:
        tmap = map_of(cta, pick(tmap_address, lane), len(coords))
        copy = BoxReduce(cta, tmap, cta.own(pick(place, lane)), signed_coords(coords, lane), name)
        _join(frag, lane, cta.engine.issue(frag, lane, STORE, copy))


def bulk_reduce(frag: Fragment, cta: Any, target: Any, place: Any, nbytes: Any, name: str, kind: str) -> None:
    for lane in frag.lanes.lanes:
        dst, src, n = pick(target, lane), cta.own(pick(place, lane)), pick(nbytes, lane)
        check_bulk(src, dst, n)
        cta.check_shared(src, n, "bulk reduction")
        _join(frag, lane, cta.engine.issue(frag, lane, STORE, SpanReduce(cta, dst, src, n, name, kind)))


def check_bulk(shared: int, other: int, nbytes: int) -> None:
    if shared % 16 or other % 16 or nbytes % 16:
        raise Fault(
            f"bulk copy of {nbytes} bytes, shared address {shared:#x}, global address {other:#x}: "
            "all must be multiples of 16",
            rule="TM-01",
        )


def prefetch_box(frag: Fragment, cta: Any, tmap_address: Any, coords: tuple[Any, ...]) -> None:
    """Nothing but what a copy asks of its map and its start: an H200 traps on these in a prefetch too."""
    for lane in frag.lanes.lanes:
        check_start(cta.tensor_map(pick(tmap_address, lane)), signed_coords(coords, lane), "prefetch")


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
    """Why a fragment is blocked: it waits for its bulk stores, or for their sources alone (`read`)."""

    def __init__(self, operations: list[Any], count: int, read: bool, number: int) -> None:
        self.operations = operations
        self.count = count
        self.read = read
        self.number = number

    def is_over(self) -> bool:
        return all(operation.is_read if self.read else operation.done for operation in self.operations)

    def describe(self, cta: Any) -> str:
        outstanding = sum(1 for operation in self.operations if not operation.done)
        return f"waits for bulk groups: {outstanding} stores outstanding, wait_group {self.count}"


def bulk_wait(frag: Fragment, cta: Any, count: int, read: bool, next_block: int, number: int) -> int:
    outstanding = []
    for lane in frag.lanes.lanes:
        groups = _groups(frag, lane)
        old = max(0, len(groups.groups) - count)
        waited = [operation for group in groups.groups[:old] for operation in group if not operation.done]
        outstanding += waited
        # Of what has been read alone, a later wait may ask for the rest.
        groups.groups = ([waited] if read and waited else []) + groups.groups[old:]
    if read:
        outstanding = [operation for operation in outstanding if not operation.is_read]
    if not outstanding:
        return next_block
    frag.pc = next_block
    frag.state = WAIT
    frag.wait = BulkWait(outstanding, count, read, number)
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
    cta.alloc_lines[address] = cta.line()
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
    scales: Any = None,
) -> None:
    """k lanes that execute it issue k MMAs."""
    lanes = frag.lanes
    if disable is not None and not any(word.__class__ is ND or word for word in disable):
        disable = None
    one = lanes.count == 1 and d.__class__ is int and a.__class__ is int and b.__class__ is int
    if one and disable is None and scales is None:
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
            _scales(scales, lane),
        )
        cta.start_mma(frag, lane, op)


def _scales(operands: Any, lane: int) -> Scales | None:
    if operands is None:
        return None
    a, b, block = operands
    return Scales(pick(a, lane), pick(b, lane), block)


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
    kind, d, a, b, idesc, accumulate, in_tmem, scale, disable, *scales = operands
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
            _scales(scales[0] if scales else None, lane),
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
