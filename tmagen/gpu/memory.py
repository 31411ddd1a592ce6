# SPDX-License-Identifier: Apache-2.0
"""Device memory with a mirror on the host, in which matrices are laid out, poisoned and looked through."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from tmagen.gpu.device import Bytes, Gpu


@dataclass(frozen=True, slots=True, eq=False)
class Mirrored:
    """`data[i]` mirrors the byte at device address `address + i`."""

    address: int
    data: Bytes


class DeviceMemory:
    """Allocations that are freed together. Use it as a context manager."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._held: list[tuple[int, Mirrored]] = []

    def allocate(self, nbytes: int, *, align: int = 256) -> Mirrored:
        """`nbytes` of device memory at a multiple of `align`, and as many zero bytes on the host.

        Raises DriverError where the device has not so much.
        """
        base = self._gpu.allocate(nbytes + align)
        # Whole pages, which come into being when they are touched: a buffer that is mostly padding costs little.
        pages = np.frombuffer(mmap.mmap(-1, max(1, nbytes)), np.uint8)
        made = Mirrored(base + -base % align, pages[:nbytes])
        self._held.append((base, made))
        return made

    def upload(self) -> None:
        """Copies every mirror to the device."""
        for _, held in self._held:
            self._gpu.upload(held.address, held.data)

    def download(self) -> None:
        """Copies every allocation to its mirror, once the work of the stream is done."""
        for _, held in self._held:
            self._gpu.download(held.address, held.data)

    def close(self) -> None:
        while self._held:
            self._gpu.free(self._held.pop()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
