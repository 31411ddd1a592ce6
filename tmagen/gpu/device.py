# SPDX-License-Identifier: Apache-2.0
"""A GPU through PyCUDA, in the primary context, which it shares with torch and with the CUDA runtime."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tmagen.arch import Arch
from tmagen.gpu import driver
from tmagen.gpu.errors import WITHOUT, DriverError, HangError, KernelFaultError, MissingError, WrongDeviceError
from tmagen.ir import Target

Bytes = npt.NDArray[np.uint8]
Dim3 = tuple[int, int, int]

_POLL_SECONDS = 0.0002
_DISTURBANCES = 4
_SPIN_SECONDS = 0.002  # most kernels end within it: polling without a pause costs nothing then

# What a kernel does wrong, as the driver words it. After any of them every call in the context fails.
_FAULTS = (
    "illegal memory access",
    "misaligned address",
    "illegal instruction",
    "unspecified launch failure",
    "invalid program counter",
    "hardware stack error",
    "address space",
    "launch timed out",
    "device-side assert",
    "unknown error",
)


_LOST: list[Any] = []
"""What PyCUDA would free, and wait for, if nobody held it any more."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a GPU is."""

    ordinal: int
    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    smem_optin_bytes: int  # dynamic shared memory that a block may opt in to
    l2_bytes: int
    memory_bytes: int
    driver_version: int  # CUDA version of the driver: 13000 is 13.0

    def __str__(self) -> str:
        major, minor = self.compute_capability
        cuda = f"{self.driver_version // 1000}.{self.driver_version % 1000 // 10}"
        return f"{self.name} (device {self.ordinal}, sm_{major}{minor}, {self.sm_count} SMs, driver of CUDA {cuda})"


class Event(Protocol):
    """A point in the work of a stream."""

    def record(self, stream: Any) -> Any: ...

    def synchronize(self) -> Any: ...

    def time_since(self, earlier: Any) -> float: ...


class Gpu(Protocol):
    """What launching, validating and measuring need of a GPU. All work goes to one stream, in order."""

    @property
    def info(self) -> DeviceInfo: ...

    @property
    def lost(self) -> bool:
        """A kernel faulted or hangs: nothing more can be launched, or freed."""

    @property
    def stream(self) -> int:
        """The handle of the stream."""

    def allocate(self, nbytes: int) -> int:
        """Device memory: its address, a multiple of 256 bytes. Raises DriverError."""

    def free(self, address: int) -> None: ...

    def upload(self, address: int, data: Bytes) -> None:
        """Copies host bytes to the device, whole when it returns."""

    def download(self, address: int, into: Bytes) -> None:
        """Waits for the stream, then copies device bytes to the host."""

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Sets bytes, as work of the stream."""

    def copy(self, to: int, origin: int, nbytes: int) -> None:
        """Copies device bytes to device bytes, as work of the stream."""

    def disturb(self, address: int, nbytes: int) -> None:
        """Writes zeros from another stream, beside whatever the stream does."""

    def load(self, cubin: bytes, symbol: str, smem_bytes: int) -> Any:
        """A kernel by its C symbol, allowed so much dynamic shared memory. Raises DriverError."""

    def launch(self, kernel: Any, grid: Dim3, block: Dim3, smem_bytes: int, parameters: bytes) -> None:
        """Starts a kernel on the stream, its parameters laid out as its cubin says. Raises DriverError."""

    def wait(self, seconds: float) -> None:
        """Until the stream's work is done. Raises KernelFaultError, or HangError after so many seconds."""

    def event(self) -> Event: ...

    def record(self, event: Event) -> None:
        """Puts the event behind the work that the stream has."""


class PyCudaGpu:
    """A GPU whose primary context is current in this thread."""

    def __init__(self, cuda: Any, info: DeviceInfo) -> None:
        self._cuda = cuda
        self.info = info
        self._stream = cuda.Stream()
        self._side = cuda.Stream()
        self._memory: dict[int, Any] = {}
        self._modules: list[Any] = []
        self.lost = False

    @property
    def stream(self) -> int:
        return int(self._stream.handle)

    def allocate(self, nbytes: int) -> int:
        with self._calls(f" for {nbytes:,} bytes"):
            allocation = self._cuda.mem_alloc(max(1, nbytes))
        self._memory[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        if self.lost:  # freeing waits for the kernel, or fails
            return
        with self._calls():
            self._memory.pop(address).free()

    def upload(self, address: int, data: Bytes) -> None:
        with self._calls():
            self._cuda.memcpy_htod(address, data)
            self._cuda.Context.synchronize()

    def download(self, address: int, into: Bytes) -> None:
        with self._calls():
            self._stream.synchronize()
            self._cuda.memcpy_dtoh(into, address)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        if nbytes:
            with self._calls():
                self._cuda.memset_d8_async(address, value, nbytes, self._stream)

    def copy(self, to: int, origin: int, nbytes: int) -> None:
        with self._calls():
            self._cuda.memcpy_dtod_async(to, origin, nbytes, self._stream)

    def disturb(self, address: int, nbytes: int) -> None:
        with self._calls():
            for _ in range(_DISTURBANCES):
                self._cuda.memset_d8_async(address, 0, nbytes, self._side)

    def load(self, cubin: bytes, symbol: str, smem_bytes: int) -> Any:
        with self._calls(f" (kernel {symbol})"):
            module = self._cuda.module_from_buffer(cubin)
            self._modules.append(module)
            function = module.get_function(symbol)
            function.set_attribute(self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, smem_bytes)
        return function

    def launch(self, kernel: Any, grid: Dim3, block: Dim3, smem_bytes: int, parameters: bytes) -> None:
        with self._calls():
            # An array goes by value: the whole block is one argument, laid out by us.
            kernel(np.frombuffer(parameters, np.uint8), grid=grid, block=block, shared=smem_bytes, stream=self._stream)

    def wait(self, seconds: float) -> None:
        with self._calls():
            done = self._cuda.Event(self._cuda.event_flags.DISABLE_TIMING)
            done.record(self._stream)
            started = time.monotonic()
            while not done.query():
                waited = time.monotonic() - started
                if waited > seconds:
                    self.lost = True
                    raise HangError(f"the kernel did not end within {seconds:g} s: it hangs")
                if waited > _SPIN_SECONDS:
                    time.sleep(_POLL_SECONDS)

    def event(self) -> Event:
        made: Event = self._cuda.Event()
        return made

    def record(self, event: Event) -> None:
        event.record(self._stream)

    def close(self) -> None:
        """Frees what is still held; of a lost context nothing can be."""
        if self.lost:
            return
        for address in list(self._memory):
            with suppress(DriverError):
                self.free(address)
        self._modules.clear()

    @contextmanager
    def _calls(self, about: str = "") -> Iterator[None]:
        """Turns PyCUDA's errors, which name the call that failed, into ours."""
        try:
            yield
        except self._cuda.Error as error:
            text = str(error)
            if any(fault in text for fault in _FAULTS):
                self.lost = True
                raise KernelFaultError(text) from error
            raise DriverError(text + about) from error


def pycuda_driver() -> Any:
    """`pycuda.driver`, initialised. Raises MissingError, which says what is not there."""
    missing: list[str] = []
    try:
        driver.library()
    except MissingError as error:
        missing.append(str(error))
    if find_spec("pycuda") is None:
        missing.append('PyCUDA is not installed: pip install "tmagen[gpu]"')
    if missing:
        raise MissingError(missing[0], detail=tuple(missing[1:]), hint=WITHOUT)
    try:
        cuda = import_module("pycuda.driver")
    except ImportError as error:
        raise MissingError(f"PyCUDA cannot be imported: {error}", hint=WITHOUT) from error
    try:
        cuda.init()
        count = cuda.Device.count()
    except cuda.Error as error:
        raise MissingError(f"no GPU to be had: {error}", hint=WITHOUT) from error
    if count == 0:
        raise MissingError("no GPU on this machine", hint=WITHOUT)
    return cuda


@contextmanager
def open_gpu(ordinal: int = 0) -> Iterator[PyCudaGpu]:
    """The GPU with this number, its primary context current until the end of the block.

    The primary context is the one that torch and the CUDA runtime use: memory and streams of one are valid in the
    other. Raises MissingError where there is no GPU, driver or PyCUDA.
    """
    cuda = pycuda_driver()
    if not 0 <= ordinal < cuda.Device.count():
        raise MissingError(f"there is no device {ordinal}: this machine has {cuda.Device.count()}")
    device = cuda.Device(ordinal)
    try:
        context = device.retain_primary_context()
        context.push()
    except cuda.Error as error:
        raise DriverError(str(error)) from error
    gpu = None
    try:
        gpu = PyCudaGpu(cuda, _info(cuda, device, ordinal))
        yield gpu
    finally:
        if gpu is not None:
            gpu.close()
            if gpu.lost:
                _LOST.append(gpu)
        with suppress(cuda.Error):
            cuda.Context.pop()
        if gpu is None or not gpu.lost:
            with suppress(cuda.Error):
                context.detach()


def require_arch(info: DeviceInfo, arch: Arch) -> None:
    """Raises WrongDeviceError if a kernel for `arch` cannot run on the device."""
    if info.compute_capability != arch.compute_capability:
        major, minor = info.compute_capability
        served = [target.value for target in Target if target.value == f"sm_{major}{minor}a"]
        raise WrongDeviceError(
            f"the kernel is for {arch.target.value}, the device is of sm_{major}{minor}: {info}",
            detail=("code for an architecture with an `a` runs on that one alone",),
            hint=f"--target {served[0]}" if served else WITHOUT,
        )


def _info(cuda: Any, device: Any, ordinal: int) -> DeviceInfo:
    attribute = cuda.device_attribute
    try:
        return DeviceInfo(
            ordinal=ordinal,
            name=device.name(),
            compute_capability=tuple(device.compute_capability()),
            sm_count=device.get_attribute(attribute.MULTIPROCESSOR_COUNT),
            smem_optin_bytes=device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            l2_bytes=device.get_attribute(attribute.L2_CACHE_SIZE),
            memory_bytes=device.total_memory(),
            driver_version=cuda.get_driver_version(),
        )
    except cuda.Error as error:
        raise DriverError(str(error)) from error
