# SPDX-License-Identifier: Apache-2.0
"""Non-bulk asynchronous copies from global to shared memory (PTX ISA, "cp.async").

The operations of a thread form groups of its own, apart from the bulk ones; an mbarrier may be told when all that the
thread has issued so far is complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import ND
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.engine import ASYNC
from tmagen.emu.state.fragments import BLOCK, WAIT, Fragment
from tmagen.emu.state.mbarrier import barrier_at

Array = npt.NDArray[Any]
_CELL: dict[int, Any] = {4: np.uint32, 8: np.uint64, 16: np.complex128}


class _Copy:
    """One warp instruction: the places, sources and bytes to read of its lanes."""

    __slots__ = ("cta", "nbytes", "places", "sizes", "sources")

    def __init__(self, cta: Any, places: Array, sources: Array, sizes: Array, nbytes: int) -> None:
        self.cta = cta
        self.places = places
        self.sources = sources
        self.sizes = sizes
        self.nbytes = nbytes

    def __call__(self) -> None:
        cta, nbytes = self.cta, self.nbytes
        if cta.mma_queue:
            cta.flush_mma()
        cta.arrays[nbytes][self.places // np.array(nbytes, self.places.dtype)] = self._read(nbytes)

    def _read(self, nbytes: int) -> Array:
        sizes, sources, memory = self.sizes, self.sources, self.cta.memory
        data = np.zeros(sizes.size, _CELL[nbytes])
        whole = sizes == nbytes
        if whole.any():
            wanted = sources[whole]
            low, high = int(wanted.min()), int(wanted.max())
            try:
                found = memory.find(low, high - low + nbytes)
            except Fault:
                # Lanes may read several allocations; a lane outside all of them raises again here.
                data[whole] = [memory.view(one, nbytes).view(_CELL[nbytes])[0] for one in wanted.tolist()]
            else:
                cells = found.data[: found.data.size // nbytes * nbytes].view(_CELL[nbytes])
                data[whole] = cells[(wanted - np.uint64(found.address)) // np.uint64(nbytes)]
        for lane in np.flatnonzero(~whole & (sizes > 0)).tolist():
            size = int(sizes[lane])
            data[lane : lane + 1].view(np.uint8)[:size] = memory.view(int(sources[lane]), size)
        return data


class CopyGroups:
    """Outstanding copies of a thread: not committed, and by group, oldest first."""

    __slots__ = ("groups", "open")

    def __init__(self) -> None:
        self.open: list[Any] = []
        self.groups: list[list[Any]] = []

    def outstanding(self) -> list[Any]:
        return [o for group in (*self.groups, self.open) for o in group if not o.done]


def _groups(frag: Fragment, lane: int) -> CopyGroups:
    copies = frag.warp.copies
    found: CopyGroups | None = copies.get(lane)
    if found is None:
        found = copies[lane] = CopyGroups()
    return found


def cp_async(frag: Fragment, cta: Any, place: Any, source: Any, nbytes: int, size: Any) -> None:
    """Copy `size` of `nbytes` bytes and fill the rest with zeros, in each lane."""
    places, sources, sizes = (
        _active(frag, value, kind) for value, kind in ((place, "u4"), (source, "u8"), (size, "u4"))
    )
    low, high = int(places.min()), int(places.max())
    if low < cta.first_shared or high > cta.shared_end - nbytes or (places % np.uint32(nbytes)).any():
        for at in places.tolist():
            cta.check_shared(at, nbytes, "cp.async", nbytes)
    if (wrong := sources[sources % np.uint64(nbytes) != 0]).size:
        raise Fault(f"cp.async of {nbytes} bytes from {int(wrong[0]):#x}, which is not aligned to its size")
    if sizes.max() > nbytes:
        raise Fault(f"cp.async of {nbytes} bytes with a source of {int(sizes.max())}")
    if cta.low_barrier < high + nbytes and low < cta.high_barrier:
        for at in places.tolist():
            cta.check_overwrite(at, nbytes, "cp.async")
    operation = cta.engine.issue(frag, frag.lanes.first, ASYNC, _Copy(cta, places, sources, sizes, nbytes))
    if operation is not None:
        for lane in frag.lanes.lanes:
            _groups(frag, lane).open.append(operation)


def _active(frag: Fragment, value: Any, kind: str) -> Array:
    """The values of the executing lanes."""
    if value.__class__ is not ND:
        return np.full(frag.lanes.count, value, kind)
    active: Array = value if frag.lanes.index is None else value[frag.lanes.index]
    return active.astype(kind, copy=False)


def cp_commit(frag: Fragment) -> None:
    """The copies since the last commit become a group, which may be empty."""
    for lane in frag.lanes.lanes:
        groups = _groups(frag, lane)
        groups.groups.append(groups.open)
        groups.open = []


class CopyWait:
    """Why a fragment is blocked: it waits for its copies."""

    def __init__(self, operations: list[Any], number: int) -> None:
        self.operations = operations
        self.number = number

    def is_over(self) -> bool:
        return all(operation.done for operation in self.operations)

    def describe(self, cta: Any) -> str:
        return f"waits for {sum(1 for operation in self.operations if not operation.done)} copies"


def cp_wait(frag: Fragment, cta: Any, count: int, next_block: int, number: int) -> int:
    """Wait until all but the newest `count` groups are complete; -1: until all copies are, committed or not."""
    outstanding = []
    for lane in frag.lanes.lanes:
        groups = _groups(frag, lane)
        if count < 0:
            outstanding += groups.outstanding()
            groups.groups, groups.open = [], []
            continue
        old = max(0, len(groups.groups) - count)
        outstanding += [o for group in groups.groups[:old] for o in group if not o.done]
        groups.groups = groups.groups[old:]
    if not outstanding:
        return next_block
    frag.pc = next_block
    frag.state = WAIT
    frag.wait = CopyWait(outstanding, number)
    cta.bulk_waiters.append(frag)
    return BLOCK


def cp_arrive(frag: Fragment, cta: Any, address: Any, counted: bool) -> None:
    """Arrive when all earlier copies of the lane are complete; without .noinc the arrival is also expected from now."""
    for lane in frag.lanes.lanes:
        at = pick(address, lane)
        barrier = barrier_at(cta, at)
        if not counted:
            barrier.pending += 1
            barrier.raised += 1
        before = _groups(frag, lane).outstanding()

        def run(at: int = at, before: list[Any] = before) -> None:
            for operation in before:
                if not operation.done:
                    cta.engine.complete(operation)
            barrier_at(cta, at).arrive()

        cta.engine.issue(frag, lane, ASYNC, run)


def same_size(size: Any, nbytes: int, ignored: Any) -> Any:
    """The bytes to read where a predicate says that the source is ignored."""
    if ignored.__class__ is ND:
        return np.where(ignored, np.uint32(0), np.uint32(nbytes))
    return 0 if ignored else size
