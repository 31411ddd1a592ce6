# SPDX-License-Identifier: Apache-2.0
"""A launch file's buffers and tensor maps in emulated global memory.

Each buffer is an allocation that ends with its last element, far from every other: an access beside it faults, with the
instruction that did it. What lies between rows is poison, and is looked at afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tmagen.check.elements import Array, widened
from tmagen.check.fills import make
from tmagen.check.finding import Finding, Severity
from tmagen.check.places import Place
from tmagen.check.read_maps import tensor_map
from tmagen.check.spec import BufferSpec, LaunchSpec, PredecessorSpec
from tmagen.emu import GlobalMemory, Predecessor
from tmagen.emu.launch import Ranges
from tmagen.emu.tensormap import NBYTES

_BLOCK_BYTES = 8192  # twice the largest alignment: an address is a multiple of its own and of no more
_FIRST = 0x7_0000_0000
_APART = 1 << 31
_POISON = 0xFF


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A buffer in place. `before` is its contents at the start, None where that is poison."""

    spec: BufferSpec
    address: int
    data: npt.NDArray[np.uint8]
    before: Array | None

    def bits(self) -> Array:
        """The elements in place, as unsigned integers."""
        size = self.spec.element.bytes
        strides = tuple(stride * size for stride in self.spec.strides)
        usable = self.data[: self.spec.span_bytes].view(self.spec.element.bits_dtype)
        return np.lib.stride_tricks.as_strided(usable, self.spec.shape, strides)

    def values(self) -> Array:
        """The elements in place."""
        return self.bits().view(self.spec.element.dtype)

    def reset(self) -> None:
        """Poison everywhere, then the contents."""
        self.data[:] = _POISON
        if self.before is not None and self.before.size:
            self.values()[...] = self.before

    def stray_writes(self) -> Finding | None:
        """Bytes between rows that are no longer poison."""
        size, shape = self.spec.element.bytes, self.spec.shape
        if self.data.size == int(np.prod(shape, dtype=np.int64)) * size:
            return None
        owned = np.zeros(self.data.size, bool)
        strides = (*(stride * size for stride in self.spec.strides), 1)
        np.lib.stride_tricks.as_strided(owned, (*shape, size), strides)[...] = True
        touched = np.flatnonzero((self.data != _POISON) & ~owned)
        if not touched.size:
            return None
        first = int(touched[0])
        return Finding(
            "padding-written",
            Severity.ERROR,
            f"{touched.size:,} bytes written between the rows of {self.spec.name}",
            (f"the first is byte {first:,}, {self._after(first)}",),
            key=f"buffers.{self.spec.name}",
        )

    def _after(self, byte: int) -> str:
        """The nearest element before a byte of the padding."""
        size, place, rest = self.spec.element.bytes, {}, byte
        by_stride = sorted(enumerate(self.spec.strides), key=lambda item: -item[1])
        for dimension, stride in by_stride:
            place[dimension] = min(rest // (stride * size), self.spec.shape[dimension] - 1)
            rest -= place[dimension] * stride * size
        index = ", ".join(str(place[dimension]) for dimension in range(len(place)))
        return f"{rest - size} bytes after the end of {self.spec.name}[{index}]"

    def changed(self) -> Finding | None:
        """Whether contents that nobody expected to change did."""
        if self.before is None or not self.spec.fill.has_contents or self.spec.writable or not self.before.size:
            return None
        wrong = self.bits() != self.before.view(self.spec.element.bits_dtype)
        count = int(np.count_nonzero(wrong))
        if not count:
            return None
        first = ", ".join(str(int(i)) for i in np.argwhere(wrong)[0])
        return Finding(
            "input-changed",
            Severity.ERROR,
            f"{count:,} of {wrong.size:,} elements of {self.spec.name} were changed, the first is [{first}]",
            ("it has contents of its own, and no expectation has it on its left side",),
            key=f"buffers.{self.spec.name}",
        )


class Arena:
    """Everything that a launch may touch."""

    def __init__(self, spec: LaunchSpec, seed: int, folder: Path) -> None:
        self.memory = GlobalMemory()
        self.buffers: dict[str, Buffer] = {}
        self._map_addresses: dict[str, int] = {}
        self._next = _FIRST
        for buffer in spec.buffers:
            before = make(buffer.fill, buffer.name, buffer.shape, buffer.element, seed, folder)
            address = self._place(buffer)
            allocation = self.memory.allocate(buffer.span_bytes, address=address)
            self.buffers[buffer.name] = Buffer(buffer, allocation.address, allocation.data, before)
        self.maps = {one.name: tensor_map(one, self.address(one.buffer)).encode() for one in spec.maps}
        self.reset()

    def _place(self, buffer: BufferSpec) -> int:
        """An address that is a multiple of the buffer's alignment and of no more, far from the last one."""
        address = self._next + buffer.align
        self._next += -(-(buffer.span_bytes + _APART) // _BLOCK_BYTES) * _BLOCK_BYTES
        return address

    def address(self, name: str) -> int:
        """Where a buffer begins."""
        return self.buffers[name].address

    def map_address(self, name: str) -> int:
        """Where a tensor map lies in global memory; it is put there when it is first asked for."""
        if name not in self._map_addresses:
            allocation = self.memory.allocate(NBYTES, align=128)
            allocation.data[:] = np.frombuffer(self.maps[name], np.uint8)
            self._map_addresses[name] = allocation.address
        return self._map_addresses[name]

    def predecessor(self, spec: PredecessorSpec | None) -> Predecessor | None:
        """The grid before the launch, with the addresses of what it touches."""
        return None if spec is None else Predecessor(self._ranges(spec.writes), self._ranges(spec.reads))

    def _ranges(self, names: tuple[str, ...] | None) -> Ranges | None:
        if names is None:
            return None
        return tuple((self.buffers[name].address, self.buffers[name].data.size) for name in names)

    @property
    def places(self) -> list[Place]:
        """The buffers by name."""
        return [Place(name, buffer.address, buffer.data.size) for name, buffer in self.buffers.items()]

    def reset(self) -> None:
        """Everything as it was before the launch."""
        for buffer in self.buffers.values():
            buffer.reset()
        for name, address in self._map_addresses.items():
            self.memory.view(address, NBYTES)[:] = np.frombuffer(self.maps[name], np.uint8)

    def contents(self, name: str, time: str) -> Array:
        """The values of a buffer, f64 or s64, "old" or "new"."""
        buffer = self.buffers[name]
        values = buffer.values() if time == "new" else buffer.before
        assert values is not None, name
        return widened(values, buffer.spec.element)
