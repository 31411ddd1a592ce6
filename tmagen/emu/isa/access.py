# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of one warp instruction, for every state space.

An address is an int (one address for all active lanes, or one lane) or an array. A vector access takes and returns a
tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.compile_emit import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.isa.values import ND, UNSIGNED, lanes_of
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment, lane_set

Array = npt.NDArray[Any]
_SPACE = np.uint64(56)  # the bits of a generic address from here on say which state space it is in
_SIXTEEN = np.dtype(np.complex128)  # 16 opaque bytes: NumPy moves them fastest in this type


# --- shared -----------------------------------------------------------------------------------------------------------


def ld_shared(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    """One element of 1, 2, 4 or 8 bytes."""
    if address.__class__ is int:
        if address & (nbytes - 1) or not cta.first_shared <= address <= cta.shared_end - nbytes:
            cta.bad_shared(address, nbytes, "load")
        if cta.low_barrier - nbytes < address < cta.high_barrier:
            cta.check_read(address, nbytes, "load")
        return cta.cells[nbytes][address >> _SHIFT[nbytes]]
    return _gather(frag, cta, address, nbytes, cta.arrays[nbytes], UNSIGNED[8 * nbytes])


def ld_shared_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    """`count` elements of `nbytes` each."""
    total = nbytes * count
    if address.__class__ is int:
        if address & (total - 1) or not cta.first_shared <= address <= cta.shared_end - total:
            cta.bad_shared(address, total, "load")
        if cta.low_barrier - total < address < cta.high_barrier:
            cta.check_read(address, total, "load")
        start = address >> _SHIFT[nbytes]
        return tuple(cta.cells[nbytes][start : start + count])
    raw = _gather(frag, cta, address, total, cta.arrays[total], _CELL[total])
    parts = raw.view(UNSIGNED[8 * nbytes]).reshape(32, count)
    return tuple(np.ascontiguousarray(parts.T))


def st_shared(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    if cta.mma_queue:
        cta.flush_mma()
    if address.__class__ is int:
        if address & (nbytes - 1) or not cta.first_shared <= address <= cta.shared_end - nbytes:
            cta.bad_shared(address, nbytes, "store")
        if cta.low_barrier - nbytes < address < cta.high_barrier:
            cta.check_overwrite(address, nbytes, "store")
        if value.__class__ is ND:
            # Lanes store to one address: one of them wins, which is left open. The last one here.
            value = value.item(frag.lanes.lanes[-1])
        cta.cells[nbytes][address >> _SHIFT[nbytes]] = value & _MASK[nbytes]
        return
    _scatter(frag, cta, address, nbytes, cta.arrays[nbytes], value)


def st_shared_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    if cta.mma_queue:
        cta.flush_mma()
    count = len(values)
    total = nbytes * count
    if address.__class__ is int:
        if address & (total - 1) or not cta.first_shared <= address <= cta.shared_end - total:
            cta.bad_shared(address, total, "store")
        if cta.low_barrier - total < address < cta.high_barrier:
            cta.check_overwrite(address, total, "store")
        cells, start, last = cta.cells[nbytes], address >> _SHIFT[nbytes], frag.lanes.lanes[-1]
        for i, value in enumerate(values):
            cells[start + i] = pick(value, last) & _MASK[nbytes]
        return
    buffer = np.empty((32, count), UNSIGNED[8 * nbytes])
    for i, value in enumerate(values):
        buffer[:, i] = value
    _scatter(frag, cta, address, total, cta.arrays[total], buffer.view(_CELL[total])[:, 0])


def st_shared_together(
    frag: Fragment, cta: Any, nbytes: int, count: int, addresses: tuple[Any, ...], values: tuple[tuple[Any, ...], ...]
) -> bool:
    """Several stores of `count` elements per lane each, in order. False, with nothing stored, where an address needs a
    closer look: one by one then.
    """
    if frag.lanes.index is not None or any(address.__class__ is not ND for address in addresses):
        return False
    total = nbytes * count
    places = np.array(addresses)
    low, high = int(places.min()), int(places.max())
    if low < cta.first_shared or high > cta.shared_end - total or int(np.bitwise_or.reduce(places, None)) & (total - 1):
        return False
    if cta.low_barrier - total < high and low < cta.high_barrier:
        return False
    if cta.mma_queue:
        cta.flush_mma()
    buffer = np.empty((len(addresses), 32, count), UNSIGNED[8 * nbytes])
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            buffer[i, :, j] = value
    # Of several stores to one place the last in program order stays, as NumPy assigns in order.
    cta.arrays[total][places >> _SHIFT[total]] = buffer.view(_CELL[total])[:, :, 0]
    return True


_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
_MASK = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
_CELL: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: _SIXTEEN}


def _check(frag: Fragment, cta: Any, address: Array, nbytes: int, what: str) -> tuple[Array, int, int]:
    """The active lanes' addresses, lowest and highest; raises Fault where one is out of bounds or misaligned."""
    active = address if frag.lanes.index is None else address[frag.lanes.index]
    low, high = int(active.min()), int(active.max())
    if low < cta.first_shared or high > cta.shared_end - nbytes:
        cta.bad_shared(low if low < cta.first_shared else high, nbytes, what)
    if nbytes > 1 and np.bitwise_or.reduce(active) & (nbytes - 1):
        cta.bad_shared(int(active[(active & np.array(nbytes - 1, active.dtype)) != 0][0]), nbytes, what)
    return active, low, high


def _gather(frag: Fragment, cta: Any, address: Array, nbytes: int, cells: Array, dtype: Any) -> Array:
    active, low, high = _check(frag, cta, address, nbytes, "load")
    if cta.low_barrier - nbytes < high and low < cta.high_barrier:
        for one in active.tolist():
            cta.check_read(one, nbytes, "load")
    got: Array = cells[active >> _SHIFT[nbytes]]
    if frag.lanes.index is None:
        return got
    out = np.zeros(32, dtype)
    out[frag.lanes.index] = got
    return out


def _scatter(frag: Fragment, cta: Any, address: Array, nbytes: int, cells: Array, value: Any) -> None:
    active, low, high = _check(frag, cta, address, nbytes, "store")
    if cta.low_barrier - nbytes < high and low < cta.high_barrier:
        for one in active.tolist():
            cta.check_overwrite(one, nbytes, "store")
    if value.__class__ is ND:
        if frag.lanes.index is not None:
            value = value[frag.lanes.index]
        cells[active >> _SHIFT[nbytes]] = value
    else:
        cells[active >> _SHIFT[nbytes]] = value & _MASK[nbytes]


# --- global and generic -----------------------------------------------------------------------------------------------


def _global_cells(cta: Any, low: int, high: int, nbytes: int) -> tuple[Array, int]:
    """Global memory around [low, high] as cells of `nbytes`, and the address of the first."""
    allocation = cta.memory.find(low, high - low + nbytes)
    data = allocation.data
    usable = data.size // nbytes * nbytes
    return data[:usable].view(_CELL[nbytes]), allocation.address


def ld_global(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    if address.__class__ is int:
        if address & (nbytes - 1):
            raise Fault(f"global load of {nbytes} bytes at {address:#x}, which is not aligned to its size")
        return int.from_bytes(cta.memory.view(address, nbytes).tobytes(), "little")
    return _gather_global(frag, cta, address, nbytes)


def ld_global_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    total = nbytes * count
    if address.__class__ is int:
        if address & (total - 1):
            raise Fault(f"global load of {total} bytes at {address:#x}, which is not aligned to its size")
        return tuple(cta.memory.view(address, total).view(UNSIGNED[8 * nbytes]).tolist())
    raw = _gather_global(frag, cta, address, total)
    return tuple(np.ascontiguousarray(raw.view(UNSIGNED[8 * nbytes]).reshape(32, count).T))


def _active_global(frag: Fragment, address: Array, nbytes: int, what: str) -> Array:
    active = address if frag.lanes.index is None else address[frag.lanes.index]
    if nbytes > 1 and int(np.bitwise_or.reduce(active)) & (nbytes - 1):
        wrong = int(active[(active & np.uint64(nbytes - 1)) != 0][0])
        raise Fault(f"global {what} of {nbytes} bytes at {wrong:#x}, which is not aligned to its size")
    return active


def _gather_global(frag: Fragment, cta: Any, address: Array, nbytes: int) -> Array:
    active = _active_global(frag, address, nbytes, "load")
    try:
        cells, base = _global_cells(cta, int(active.min()), int(active.max()), nbytes)
        got: Array = cells[(active - np.uint64(base)) >> np.uint64(_SHIFT[nbytes])]
    except Fault:
        # Lanes may touch several allocations; a lane outside all of them raises again here.
        got = np.concatenate([cta.memory.view(one, nbytes).view(_CELL[nbytes]) for one in active.tolist()])
    if frag.lanes.index is None:
        return got
    out = np.zeros(32, _CELL[nbytes])
    out[frag.lanes.index] = got
    return out


def st_global(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    if address.__class__ is int:
        if address & (nbytes - 1):
            raise Fault(f"global store of {nbytes} bytes at {address:#x}, which is not aligned to its size")
        value = pick(value, frag.lanes.lanes[-1]) & _MASK[nbytes]
        cta.memory.view(address, nbytes)[:] = np.frombuffer(value.to_bytes(nbytes, "little"), np.uint8)
        return
    if value.__class__ is not ND:
        value = np.full(32, value & _MASK[nbytes], UNSIGNED[8 * nbytes])
    _scatter_global(frag, cta, address, nbytes, value.astype(UNSIGNED[8 * nbytes], copy=False))


def st_global_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    total = nbytes * len(values)
    buffer = np.empty((32, len(values)), UNSIGNED[8 * nbytes])
    for i, value in enumerate(values):
        buffer[:, i] = value
    cells = buffer.view(_CELL[total])[:, 0]
    if address.__class__ is int:
        if address & (total - 1):
            raise Fault(f"global store of {total} bytes at {address:#x}, which is not aligned to its size")
        last = frag.lanes.lanes[-1]
        cta.memory.view(address, total)[:] = np.frombuffer(cells[last : last + 1].tobytes(), np.uint8)
        return
    _scatter_global(frag, cta, address, total, cells)


def _scatter_global(frag: Fragment, cta: Any, address: Array, nbytes: int, value: Array) -> None:
    active = _active_global(frag, address, nbytes, "store")
    if frag.lanes.index is not None:
        value = value[frag.lanes.index]
    try:
        cells, base = _global_cells(cta, int(active.min()), int(active.max()), nbytes)
        cells[(active - np.uint64(base)) >> np.uint64(_SHIFT[nbytes])] = value
    except Fault:
        for one, item in zip(active.tolist(), value, strict=True):
            cta.memory.view(one, nbytes).view(_CELL[nbytes])[0] = item


# --- local and parameters ---------------------------------------------------------------------------------------------


def _local(frag: Fragment, cta: Any) -> Array:
    warp = frag.warp
    if warp.local is None:
        warp.local = np.full((32, cta.local_bytes), 0xFF, np.uint8)
    memory: Array = warp.local
    return memory


def ld_local(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    memory = _local(frag, cta)
    out = np.zeros(32, UNSIGNED[8 * nbytes])
    for lane in frag.lanes.lanes:
        at = _local_place(cta, pick(address, lane), nbytes, "load")
        out[lane] = memory[lane, at : at + nbytes].view(out.dtype)[0]
    return out.item(frag.lanes.first) if frag.lanes.count == 1 else out


def ld_local_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    return tuple(ld_local(frag, cta, address + i * nbytes, nbytes) for i in range(count))


def st_local(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    memory = _local(frag, cta)
    values = lanes_of(value, UNSIGNED[8 * nbytes]).astype(UNSIGNED[8 * nbytes]) if value.__class__ is ND else None
    for lane in frag.lanes.lanes:
        at = _local_place(cta, pick(address, lane), nbytes, "store")
        item = values[lane] if values is not None else UNSIGNED[8 * nbytes](value & _MASK[nbytes])
        memory[lane, at : at + nbytes].view(UNSIGNED[8 * nbytes])[0] = item


def st_local_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    for i, value in enumerate(values):
        st_local(frag, cta, address + i * nbytes, nbytes, value)


def _local_place(cta: Any, address: int, nbytes: int, what: str) -> int:
    if address % nbytes or not 0 <= address <= cta.local_bytes - nbytes:
        raise Fault(f"local {what} of {nbytes} bytes at {address:#x}; the thread has {cta.local_bytes} bytes")
    return address


def ld_param(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    if address.__class__ is not int:
        values = {lane: ld_param(frag, cta, address.item(lane), nbytes) for lane in frag.lanes.lanes}
        out = np.zeros(32, UNSIGNED[8 * nbytes])
        for lane, value in values.items():
            out[lane] = value
        return out
    if address % nbytes or not 0 <= address <= len(cta.params) - nbytes:
        raise Fault(f"parameter load of {nbytes} bytes at offset {address:#x}; the block has {len(cta.params)} bytes")
    return int.from_bytes(cta.params[address : address + nbytes], "little")


def ld_param_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    return tuple(ld_param(frag, cta, address + i * nbytes, nbytes) for i in range(count))


# --- generic ----------------------------------------------------------------------------------------------------------


def window(frag: Fragment, address: Any) -> tuple[str, Any]:
    """Which state space a generic address is in, and the address there. All active lanes must agree (`windows`)."""
    if spread(frag, address):
        raise NotJudged("generic addresses of several state spaces in one instruction")
    first = pick(address, frag.lanes.first)
    for name, start in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW)):
        if start <= first < start + (1 << 32):
            if address.__class__ is not ND:
                if name == "shared" and frag.warp.cta.cluster.size > 1:
                    return _in_cluster(frag.warp.cta, address - start)
                return name, address - start
            at = (address - np.uint64(start)).astype(np.uint32)
            if name == "shared" and frag.warp.cta.cluster.size > 1:
                return _in_cluster(frag.warp.cta, at)
            return name, at
    return "global", address


def spread(frag: Fragment, address: Any) -> bool:
    """Whether the lanes' generic addresses are in several state spaces."""
    if address.__class__ is not ND:
        return False
    active = address if frag.lanes.index is None else address[frag.lanes.index]
    spaces = active >> _SPACE
    return bool((spaces != spaces[0]).any())


def windows(frag: Fragment, address: Any) -> Iterator[tuple[str, Any]]:
    """What `window` says, of each state space that the lanes name; the fragment has the lanes of that space alone
    meanwhile.
    """
    if not spread(frag, address):
        yield window(frag, address)
        return
    whole = frag.lanes
    masks: dict[int, int] = {}
    for lane in whole.lanes:
        space = address.item(lane) >> 56
        masks[space] = masks.get(space, 0) | 1 << lane
    try:
        for mask in masks.values():
            frag.lanes = lane_set(mask)
            yield window(frag, address)
    finally:
        frag.lanes = whole


def merged(frag: Fragment, parts: Iterator[Any], nbytes: int) -> Array:
    """One register of all lanes, of the values that the lanes of each state space have."""
    out = np.zeros(32, UNSIGNED[8 * nbytes])
    for value in parts:
        where = frag.lanes.where
        out[where] = lanes_of(value, out.dtype)[where]
    return out


def _in_cluster(cta: Any, address: Any) -> tuple[str, Any]:
    """The CTA's own memory or, with the rank still in the address, that of any CTA of the cluster."""
    other = address >> 24 != cta.rank
    if other.any() if other.__class__ is ND else other:
        return "cluster", address
    return "shared", address - cta.base


def ld_generic(frag: Fragment, cta: Any, address: Any, nbytes: int) -> Any:
    if spread(frag, address):
        loads = (LOADS[space](frag, cta, at, nbytes) for space, at in windows(frag, address))
        return merged(frag, loads, nbytes)
    space, at = window(frag, address)
    return LOADS[space](frag, cta, at, nbytes)


def ld_generic_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    if spread(frag, address):
        # An element at a time.
        return tuple(ld_generic(frag, cta, address + np.uint64(i * nbytes), nbytes) for i in range(count))
    space, at = window(frag, address)
    return VECTOR_LOADS[space](frag, cta, at, nbytes, count)  # type: ignore[no-any-return]


def st_generic(frag: Fragment, cta: Any, address: Any, nbytes: int, value: Any) -> None:
    for space, at in windows(frag, address):
        if space == "param":
            raise Fault("store to the parameter space")
        STORES[space](frag, cta, at, nbytes, value)


def st_generic_vector(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    for space, at in windows(frag, address):
        if space == "param":
            raise Fault("store to the parameter space")
        VECTOR_STORES[space](frag, cta, at, nbytes, values)


LOADS: dict[str, Any] = {"shared": ld_shared, "global": ld_global, "local": ld_local, "param": ld_param}
VECTOR_LOADS: dict[str, Any] = {
    "shared": ld_shared_vector,
    "global": ld_global_vector,
    "local": ld_local_vector,
    "param": ld_param_vector,
}
STORES: dict[str, Any] = {"shared": st_shared, "global": st_global, "local": st_local}
VECTOR_STORES: dict[str, Any] = {"shared": st_shared_vector, "global": st_global_vector, "local": st_local_vector}
