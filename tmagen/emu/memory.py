# SPDX-License-Identifier: Apache-2.0
"""Global memory: separate allocations in one 64-bit address space, each a shared sparse mapping.

Mappings are anonymous and shared, so that forked workers write results in place; pages appear on first touch, so that a
buffer of many GiB of which a kernel touches little costs little.
"""

from __future__ import annotations

import bisect
import mmap
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import Fault

Bytes = npt.NDArray[np.uint8]

_FIRST_ADDRESS = 0x7_0000_0000
_GUARD_BYTES = 1 << 30  # a wild pointer that is off by less than this hits nothing
_ADDRESS_LIMIT = 1 << 48
_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python names it from 3.13 on; the value is Linux's


@dataclass(frozen=True, eq=False)
class Allocation:
    """`data[i]` is the byte at global address `address + i`."""

    address: int
    data: Bytes

    @property
    def nbytes(self) -> int:
        return self.data.size

    @property
    def end(self) -> int:
        return self.address + self.data.size


class GlobalMemory:
    """All of a launch's global memory. Zero at first; poison is the caller's business."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._next = _FIRST_ADDRESS
        self._last: Allocation | None = None

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """In ascending order of address."""
        return tuple(self._allocations)

    def allocate(self, nbytes: int, *, address: int | None = None, align: int = 256) -> Allocation:
        """Map `nbytes` bytes at `address`, or at an address of our own that is a multiple of `align`.

        An address of our own is at least 1 GiB away from every other allocation. Raises ValueError for a size, an
        alignment or an address that cannot be: negative, not a multiple of 16, overlapping another allocation.
        """
        if nbytes < 0:
            raise ValueError(f"cannot allocate {nbytes} bytes")
        if align < 16 or align & (align - 1):
            raise ValueError(f"alignment {align} is not a power of two of at least 16")
        if address is None:
            address = -(-self._next // align) * align
        elif address % 16 or address <= 0 or address + nbytes > _ADDRESS_LIMIT:
            raise ValueError(f"address {address:#x} is not a positive multiple of 16 below 2^48")
        slot = bisect.bisect_left(self._starts, address)
        # An empty allocation still owns its address, so that two allocations never share one.
        extent = max(nbytes, 1)
        before = self._allocations[slot - 1] if slot else None
        after = self._allocations[slot] if slot < len(self._allocations) else None
        if (before and before.address + max(before.nbytes, 1) > address) or (
            after and address + extent > after.address
        ):
            raise ValueError(f"{nbytes} bytes at {address:#x} overlap another allocation")
        buffer = mmap.mmap(-1, extent, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        allocation = Allocation(address, np.frombuffer(buffer, np.uint8, nbytes))
        self._starts.insert(slot, address)
        self._allocations.insert(slot, allocation)
        self._next = max(self._next, address + extent + _GUARD_BYTES)
        return allocation

    def attach(self, address: int, data: Bytes) -> Allocation:
        """Memory that somebody else has mapped, at `address`. Raises ValueError where it overlaps an allocation."""
        slot = bisect.bisect_left(self._starts, address)
        before = self._allocations[slot - 1] if slot else None
        if (before and before.end > address) or (
            slot < len(self._starts) and address + max(data.size, 1) > self._starts[slot]
        ):
            raise ValueError(f"{data.size} bytes at {address:#x} overlap another allocation")
        allocation = Allocation(address, data)
        self._starts.insert(slot, address)
        self._allocations.insert(slot, allocation)
        return allocation

    def detach(self, address: int) -> None:
        """Forgets the allocation at `address`: accesses fault from now on. Raises ValueError where there is none."""
        slot = bisect.bisect_left(self._starts, address)
        if slot == len(self._starts) or self._starts[slot] != address:
            raise ValueError(f"no allocation begins at {address:#x}")
        del self._starts[slot], self._allocations[slot]
        self._last = None

    def find(self, address: int, nbytes: int) -> Allocation:
        """The allocation that holds all of [address, address + nbytes). Raises Fault where there is none."""
        last = self._last
        if last is not None and last.address <= address and address + nbytes <= last.address + last.data.size:
            return last
        slot = bisect.bisect_right(self._starts, address) - 1
        if slot >= 0:
            allocation = self._allocations[slot]
            if address + nbytes <= allocation.end:
                self._last = allocation
                return allocation
        hint = self._nearest(address)
        raise Fault(f"global memory access of {nbytes:,} bytes at {address:#x} is outside every allocation{hint}")

    def view(self, address: int, nbytes: int) -> Bytes:
        """The bytes [address, address + nbytes), in place. Raises Fault where they are not inside one allocation."""
        allocation = self.find(address, nbytes)
        offset = address - allocation.address
        return allocation.data[offset : offset + nbytes]

    def _nearest(self, address: int) -> str:
        slot = bisect.bisect_right(self._starts, address) - 1
        if slot < 0:
            return ""
        allocation = self._allocations[slot]
        return f"; the nearest below is {allocation.nbytes:,} bytes at {allocation.address:#x}"
