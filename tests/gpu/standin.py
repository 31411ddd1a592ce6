# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a GPU, for what is around a launch: memory in the host's, and kernels that are Python functions.

It says nothing about kernels, the driver or PyCUDA; those need the tests that are marked `gpu`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmagen.bind import LeadingDims
from tmagen.gpu.device import Bytes, DeviceInfo, Dim3
from tmagen.ir import DType, Shape, Target
from tmagen.verify.elements import value_dtype

H200 = DeviceInfo(0, "a GPU that is not there", (9, 0), 132, 232_448, 1 << 16, 1 << 30, 13000)


class Clock:
    """An event that takes a millisecond from one to the next."""

    now = 0.0

    def record(self, stream: Any) -> None:
        Clock.now += 1.0
        self.at = Clock.now

    def synchronize(self) -> None:
        pass

    def time_since(self, earlier: Clock) -> float:
        return self.at - earlier.at


class StandInGpu:
    """Addresses from 2^20 on, each allocation a mebibyte-aligned piece of one array."""

    def __init__(self, info: DeviceInfo = H200, nbytes: int = 1 << 25) -> None:
        self.info = info
        self.stream = 0
        self.lost = False
        self.held: dict[int, int] = {}
        self._base = 1 << 20
        self._bytes = np.zeros(nbytes, np.uint8)
        self._next = 0

    def allocate(self, nbytes: int) -> int:
        address = self._base + self._next
        self._next += -(-nbytes // 256) * 256
        assert self._next <= self._bytes.size
        self.held[address] = nbytes
        return address

    def free(self, address: int) -> None:
        del self.held[address]
        if not self.held:
            self._next = 0

    def view(self, address: int, nbytes: int) -> Bytes:
        start = address - self._base
        assert 0 <= start <= start + nbytes <= self._bytes.size
        return self._bytes[start : start + nbytes]

    def upload(self, address: int, data: Bytes) -> None:
        self.view(address, data.size)[:] = data

    def download(self, address: int, into: Bytes) -> None:
        into[:] = self.view(address, into.size)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        self.view(address, nbytes)[:] = value

    def copy(self, to: int, origin: int, nbytes: int) -> None:
        self.view(to, nbytes)[:] = self.view(origin, nbytes)

    def disturb(self, address: int, nbytes: int) -> None:
        self.fill(address, 0, nbytes)

    def load(self, cubin: bytes, symbol: str, smem_bytes: int) -> Any:
        return cubin

    def launch(self, kernel: Any, grid: Dim3, block: Dim3, smem_bytes: int, parameters: bytes) -> None:
        raise AssertionError("nothing here can run a cubin")

    def wait(self, seconds: float) -> None:
        pass

    def event(self) -> Clock:
        return Clock()

    def record(self, event: Any) -> None:
        event.record(None)


Spoil = Callable[["PythonKernel", int], None]
"""What a wrong kernel does after its work: called with the kernel and the number of the launch, from 1."""


class PythonKernel:
    """Computes D = A * B^T on a stand-in, then does what `spoil` says."""

    name = "python"
    target = Target.SM_90A
    built_with = "nothing"
    resources = ()
    static_mnk = (None, None, None)

    def __init__(self, spoil: Spoil | None = None, element: DType = DType.F16) -> None:
        self.elements = (element, element, element)
        self.launches = 0
        self._spoil = spoil

    def grid(self, shape: Shape, lds: LeadingDims) -> Dim3 | None:
        return (1, 1, 1)

    def prepare(
        self, gpu: StandInGpu, shape: Shape, lds: LeadingDims, addresses: tuple[int, int, int]
    ) -> Callable[[], None]:
        self.gpu, self.shape, self.lds, self.addresses = gpu, shape, lds, addresses

        def launch() -> None:
            self.launches += 1
            if shape.m and shape.n:
                a = self.matrix(0, shape.m, shape.k, lds.a).astype(np.float32)
                b = self.matrix(1, shape.n, shape.k, lds.b).astype(np.float32)
                self.matrix(2, shape.m, shape.n, lds.d)[:] = a @ b.T if shape.k else 0
                if self._spoil is not None:
                    self._spoil(self, self.launches)

        return launch

    def matrix(self, which: int, rows: int, columns: int, ld: int) -> np.ndarray[Any, Any]:
        """A, B or D as it lies in the stand-in's memory."""
        dtype = value_dtype(self.elements[which])
        if not columns:
            return np.zeros((rows, 0), dtype)
        nbytes = ((rows - 1) * ld + columns) * dtype.itemsize
        own = self.gpu.view(self.addresses[which], nbytes).view(dtype)
        return np.lib.stride_tricks.as_strided(own, (rows, columns), (ld * dtype.itemsize, dtype.itemsize))
