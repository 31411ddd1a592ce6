"""What block functions call to start asynchronous operations, to use tensor memory, and for instructions across lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu import tma
from tmagen.emu.compile_emit import PARAM_WINDOW, SHARED_WINDOW
from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import M32, ND, lanes_of, signed
from tmagen.emu.mma import Mma
from tmagen.emu.state.convergence import BLOCK, WAIT, Fragment, again, converge, pick, uniform
from tmagen.emu.state.engine import COPY, STORE, TENSOR
from tmagen.emu.state.mbarrier import barrier_at
from tmagen.emu.tensormap import TensorMap

_HIGH = 1 << 31


# --- tensor and bulk copies -------------------------------------------------------------------------------------------------------------


def _map(C: Any, address: int, rank: int) -> TensorMap:
    tmap: TensorMap = C.tensor_map(address)
    if tmap.rank != rank:
        raise Fault(f"a {rank}d tensor copy with a tensor map of rank {tmap.rank}")
    return tmap


def _own_mask(mask: int) -> None:
    if mask != 1:
        raise Fault(f"multicast to CTA mask {mask:#x} in a cluster of one CTA")


def tma_load(F: Fragment, C: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...], barrier: Any, mask: Any) -> None:
    for lane in F.lanes.lanes:
        tmap = _map(C, pick(tmap_address, lane), len(coords))
        dst, at, target = C.own(pick(place, lane)), C.own(pick(barrier, lane)), tuple([(pick(c, lane) ^ _HIGH) - _HIGH for c in coords])
        _own_mask(pick(mask, lane))
        barrier_at(C, at)
        C.engine.issue(F, lane, COPY, _Load(C, tmap, dst, target, at))


class _Load:
    """A box from global to shared memory."""

    __slots__ = ("args",)

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __call__(self) -> None:
        C, tmap, dst, coords, at = self.args
        if C.mma_queue:
            C.flush_mma()
        if C.low_barrier < dst + tmap.footprint and dst < C.high_barrier:
            C.check_overwrite(dst, tmap.footprint, "tensor copy")
        if dst < C.first_shared:
            C.bad_shared(dst, tmap.footprint, "tensor copy")
        barrier_at(C, at).complete(tma.load(tmap, C.memory, C.smem, dst, coords))


def tma_store(F: Fragment, C: Any, place: Any, tmap_address: Any, coords: tuple[Any, ...]) -> None:
    for lane in F.lanes.lanes:
        tmap = _map(C, pick(tmap_address, lane), len(coords))
        src, target = C.own(pick(place, lane)), tuple([(pick(c, lane) ^ _HIGH) - _HIGH for c in coords])

        def run(tmap: TensorMap = tmap, src: int = src, target: tuple[int, ...] = target) -> None:
            if C.mma_queue:
                C.flush_mma()
            tma.store(tmap, C.memory, C.smem, src, target)

        _join(F, lane, C.engine.issue(F, lane, STORE, run))


def bulk_load(F: Fragment, C: Any, place: Any, source: Any, nbytes: Any, barrier: Any, mask: Any) -> None:
    for lane in F.lanes.lanes:
        dst, src, n, at = C.own(pick(place, lane)), pick(source, lane), pick(nbytes, lane), C.own(pick(barrier, lane))
        _own_mask(pick(mask, lane))
        _check_bulk(dst, src, n)
        barrier_at(C, at)

        def run(dst: int = dst, src: int = src, n: int = n, at: int = at) -> None:
            if C.mma_queue:
                C.flush_mma()
            C.check_shared(dst, n, "bulk copy")
            C.check_overwrite(dst, n, "bulk copy")
            if n:
                C.smem[dst : dst + n] = C.memory.view(src, n)
            barrier_at(C, at).complete(n)

        C.engine.issue(F, lane, COPY, run)


def bulk_store(F: Fragment, C: Any, target: Any, place: Any, nbytes: Any) -> None:
    for lane in F.lanes.lanes:
        dst, src, n = pick(target, lane), C.own(pick(place, lane)), pick(nbytes, lane)
        _check_bulk(src, dst, n)
        C.check_shared(src, n, "bulk copy")

        def run(dst: int = dst, src: int = src, n: int = n) -> None:
            if C.mma_queue:
                C.flush_mma()
            if n:
                C.memory.view(dst, n)[:] = C.smem[src : src + n]

        _join(F, lane, C.engine.issue(F, lane, STORE, run))


def _check_bulk(shared: int, other: int, nbytes: int) -> None:
    if shared % 16 or other % 16 or nbytes % 16:
        raise Fault(f"bulk copy of {nbytes} bytes, shared address {shared:#x}, global address {other:#x}: all must be multiples of 16")


def check_map(F: Fragment, C: Any, address: Any, space: str) -> None:
    """The operand of a prefetch is a tensor map."""
    for lane in F.lanes.lanes:
        at = pick(address, lane)
        C.tensor_map(at + PARAM_WINDOW if space == "param" else at)


# --- bulk groups: they belong to one thread ---------------------------------------------------------------------------------------------


class BulkGroups:
    """Outstanding stores of a thread: not committed, and by group, oldest first."""

    __slots__ = ("groups", "open")

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.groups: list[list[Any]] = []


def _groups(F: Fragment, lane: int) -> BulkGroups:
    found = F.warp.bulk.get(lane)
    if found is None:
        found = F.warp.bulk[lane] = BulkGroups()
    return found  # type: ignore[no-any-return]


def _join(F: Fragment, lane: int, operation: Any) -> None:
    if operation is not None:
        _groups(F, lane).open.append(operation)


def bulk_commit(F: Fragment) -> None:
    for lane in F.lanes.lanes:
        groups = _groups(F, lane)
        groups.groups.append(groups.open)
        groups.open = []


class BulkWait:
    """Why a fragment is blocked: it waits for its bulk stores."""

    def __init__(self, operations: list[Any], count: int, number: int) -> None:
        self.operations = operations
        self.count = count
        self.number = number

    def describe(self, cta: Any) -> str:
        return f"waits for bulk groups: {len([o for o in self.operations if not o.done])} stores outstanding, wait_group {self.count}"


def bulk_wait(F: Fragment, C: Any, count: int, read: bool, next_block: int, number: int) -> int:
    outstanding = []
    for lane in F.lanes.lanes:
        groups = _groups(F, lane)
        old = max(0, len(groups.groups) - count)
        outstanding += [operation for group in groups.groups[:old] for operation in group if not operation.done]
        groups.groups = groups.groups[old:]
    if not outstanding:
        return next_block
    F.pc = next_block
    F.state = WAIT
    F.wait = BulkWait(outstanding, count, number)
    C.bulk_waiters.append(F)
    return BLOCK


# --- tensor memory ----------------------------------------------------------------------------------------------------------------------


class AllocWait:
    """Why a fragment is blocked: it waits for tensor memory."""

    def __init__(self, columns: int, number: int) -> None:
        self.columns = columns
        self.number = number

    def describe(self, cta: Any) -> str:
        held = sum(cta.tmem.allocations.values())
        return f"waits for {self.columns} columns of tensor memory: {held} of 512 are allocated"


def tmem_alloc(F: Fragment, C: Any, place: Any, columns: Any, this: int, next_block: int, number: int) -> int:
    count = uniform(F, columns, "the number of columns")
    address = C.tmem.alloc(count)
    if address is None:
        F.pc = this
        F.state = WAIT
        F.wait = AllocWait(count, number)
        C.alloc_waiters.append(F)
        return BLOCK
    at = C.own(uniform(F, place, "the address of tcgen05.alloc"))
    C.check_shared(at, 4, "tcgen05.alloc", 4)
    C.check_overwrite(at, 4, "tcgen05.alloc")
    C.cells[4][at >> 2] = address
    return next_block


def tmem_dealloc(F: Fragment, C: Any, address: Any, columns: Any) -> None:
    if C.mma_queue:
        C.flush_mma()
    C.tmem.dealloc(uniform(F, address, "the address of tcgen05.dealloc"), uniform(F, columns, "the number of columns"))
    waiters, C.alloc_waiters = C.alloc_waiters, []
    for fragment in waiters:
        fragment.wake()


def tmem_ld(F: Fragment, C: Any, shape: str, number: int, address: Any, pack: bool, split: int) -> Any:
    if C.mma_queue:
        C.flush_mma()
    taddr = address if address.__class__ is int else uniform(F, address, "the address of tcgen05.ld")
    rows = C.tmem.ld(shape, number, taddr, F.warp.index, pack=pack, split=split)
    return [row.item(F.lanes.first) for row in rows] if F.lanes.count == 1 else list(rows)


def tmem_st(F: Fragment, C: Any, shape: str, number: int, address: Any, values: tuple[Any, ...], unpack: bool, split: int) -> None:
    if C.mma_queue:
        C.flush_mma()
    taddr = uniform(F, address, "the address of tcgen05.st")
    block = np.empty((len(values), 32), np.uint32)
    for i, value in enumerate(values):
        block[i] = value
    C.tmem.st(shape, number, taddr, F.warp.index, block, unpack=unpack, split=split)


def mma(F: Fragment, C: Any, kind: str, d: Any, a: Any, b: Any, idesc: Any, accumulate: Any, in_tmem: bool, scale: int, disable: Any) -> None:
    """k lanes that execute it issue k MMAs."""
    lanes = F.lanes
    if lanes.count == 1 and d.__class__ is int and a.__class__ is int and b.__class__ is int and disable is None:
        C.start_mma(F, lanes.first, Mma(kind, d, a, b, idesc, accumulate, in_tmem, scale, None))
        return
    for lane in lanes.lanes:
        mask: Any = None if disable is None else tuple([pick(word, lane) for word in disable])
        if mask == (0, 0, 0, 0):
            mask = None
        op = Mma(kind, pick(d, lane), pick(a, lane), pick(b, lane), pick(idesc, lane), bool(pick(accumulate, lane)), in_tmem, scale, mask)
        C.start_mma(F, lane, op)


def commit(F: Fragment, C: Any, barrier: Any, mask: Any) -> None:
    for lane in F.lanes.lanes:
        at = C.own(pick(barrier, lane))
        _own_mask(pick(mask, lane))
        barrier_at(C, at)

        def run(at: int = at) -> None:
            if C.mma_queue:
                C.flush_mma()
            barrier_at(C, at).arrive()

        C.engine.issue(F, lane, TENSOR, run)


# --- across lanes -----------------------------------------------------------------------------------------------------------------------


def shuffle(F: Fragment, mode: str, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """shfl.sync: (value, whether the source lane was in range)."""
    if mode == "idx" and b.__class__ is int and c.__class__ is int and not c & 0x1F00:
        inside = (b & 31) <= (c & 31)
        if a.__class__ is not ND or inside:
            return (a.item(b & 31) if a.__class__ is ND else a), inside
    lane = np.arange(32)
    by = lanes_of(b, np.uint32).astype(np.int64) & 31
    clamp = lanes_of(c, np.uint32).astype(np.int64)
    segment, limit = (clamp >> 8) & 31, clamp & 31
    highest = (lane & segment) | (limit & ~segment)
    if mode == "up":
        source = lane - by
        inside = source >= highest
    elif mode == "down":
        source = lane + by
        inside = source <= highest
    elif mode == "bfly":
        source = lane ^ by
        inside = source <= highest
    else:
        source = (lane & segment) | (by & ~segment)
        inside = source <= highest
    source = np.where(inside, source, lane)
    value = a[source] if a.__class__ is ND else a
    if F.lanes.count == 1:
        first = F.lanes.first
        return pick(value, first), bool(inside[first])
    return value, inside


def _bits(F: Fragment, p: Any) -> int:
    if p.__class__ is ND:
        return int.from_bytes(np.packbits(p, bitorder="little").tobytes(), "little") & F.mask
    return F.mask if p else 0


def vote(F: Fragment, mode: str, p: Any) -> Any:
    yes = _bits(F, p)
    if mode == "ballot":
        return yes
    if mode == "any":
        return yes != 0
    if mode == "all":
        return yes == F.mask
    return yes in (0, F.mask)


def match(F: Fragment, mode: str, value: Any) -> tuple[Any, Any]:
    items = {lane: pick(value, lane) for lane in F.lanes.lanes}
    groups: dict[int, int] = {}
    for lane, item in items.items():
        groups[item] = groups.get(item, 0) | 1 << lane
    if mode == "all":
        same = len(groups) == 1
        return (F.mask if same else 0), same
    if len(groups) == 1:
        return F.mask, True
    out = np.zeros(32, np.uint32)
    for lane, item in items.items():
        out[lane] = groups[item]
    return out, True


def redux(F: Fragment, name: str, is_signed: bool, value: Any) -> int:
    items = [pick(value, lane) for lane in F.lanes.lanes]
    if name in ("min", "max"):
        pick_one = min if name == "min" else max
        return int(pick_one(items, key=lambda x: signed(x, 32) if is_signed else x))
    total = items[0]
    for item in items[1:]:
        total = {"add": total + item, "and": total & item, "or": total | item, "xor": total ^ item}[name]
    return int(total) & M32


def elect(F: Fragment, members: Any) -> tuple[int, Any]:
    """(leader, whether this lane is the leader)."""
    mask = uniform(F, members, "membermask") & F.warp.live
    leader = (mask & -mask).bit_length() - 1
    if F.lanes.count == 1:
        return leader, F.lanes.first == leader
    return leader, np.arange(32) == leader


def lanemask_eq(F: Fragment) -> Any:
    return 1 << F.lane if F.lane.__class__ is int else np.uint32(1) << F.lane


def lanemask_lt(F: Fragment) -> Any:
    return (1 << F.lane) - 1 if F.lane.__class__ is int else (np.uint32(1) << F.lane) - np.uint32(1)


def lanemask_le(F: Fragment) -> Any:
    return lanemask_lt(F) | lanemask_eq(F)


def lanemask_gt(F: Fragment) -> Any:
    return lanemask_le(F) ^ M32


def lanemask_ge(F: Fragment) -> Any:
    return lanemask_lt(F) ^ M32


def own_cta(F: Fragment, address: Any, rank: Any, space: str) -> Any:
    """mapa in a cluster of one CTA."""
    if uniform(F, rank, "the rank of mapa") != 0:
        raise Fault("mapa to a CTA rank that the cluster does not have")
    return address if space != "generic" or address.__class__ is ND or address >= SHARED_WINDOW else address + SHARED_WINDOW


__all__ = [name for name in globals() if not name.startswith("_")]
_ = (again, converge)
