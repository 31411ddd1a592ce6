# SPDX-License-Identifier: Apache-2.0
"""What is made of PyCUDA's answers, by a PyCUDA of our own: the real one needs the tests that are marked `gpu`."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from tmagen.gpu import device
from tmagen.gpu.device import PyCudaGpu, open_gpu
from tmagen.gpu.errors import DriverError, HangError, KernelFaultError, MissingError
from tmagen.gpu.memory import DeviceMemory


class Context:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def push(self) -> None:
        self._log.append("push")

    def detach(self) -> None:
        self._log.append("detach")


class Allocation:
    def __init__(self, log: list[str]) -> None:
        self._log = log

    def __int__(self) -> int:
        return 1 << 20

    def free(self) -> None:
        self._log.append("free")


class Cuda:
    """The few names of pycuda.driver that are used."""

    class Error(Exception):
        pass

    event_flags = types.SimpleNamespace(DISABLE_TIMING=2)
    function_attribute = types.SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    device_attribute = types.SimpleNamespace(
        MULTIPROCESSOR_COUNT=132, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232_448, L2_CACHE_SIZE=1 << 20
    )

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: dict[str, str] = {}
        self.busy = 0  # queries that a launch stays unfinished for
        log = self.log

        class Context_:  # noqa: N801 - only what pop() is called on
            @staticmethod
            def pop() -> None:
                log.append("pop")

            @staticmethod
            def synchronize() -> None:
                pass

        self.Context = Context_

    def answer(self, call: str) -> None:
        if call in self.fails:
            raise Cuda.Error(f"{call} failed: {self.fails[call]}")

    def Device(self, ordinal: int) -> Any:  # noqa: N802 - PyCUDA's name
        return types.SimpleNamespace(
            retain_primary_context=lambda: Context(self.log),
            name=lambda: "a GPU",
            compute_capability=lambda: (9, 0),
            get_attribute=lambda attribute: attribute,
            total_memory=lambda: 1 << 37,
        )

    Device.count = lambda: 1  # type: ignore[attr-defined]

    def get_driver_version(self) -> int:
        return 13010

    def Stream(self) -> Any:  # noqa: N802
        return types.SimpleNamespace(handle=7, synchronize=lambda: None)

    def Event(self, flags: int = 0) -> Any:  # noqa: N802
        return types.SimpleNamespace(record=lambda stream: None, query=self.query)

    def query(self) -> bool:
        self.answer("cuEventQuery")
        self.busy -= 1
        return self.busy < 0

    def mem_alloc(self, nbytes: int) -> Allocation:
        self.answer("cuMemAlloc")
        return Allocation(self.log)

    def module_from_buffer(self, data: bytes) -> Any:
        self.answer("cuModuleLoadDataEx")

        def launch(*arguments: Any, **options: Any) -> None:
            self.answer("cuLaunchKernel")
            (parameters,) = arguments
            assert isinstance(parameters, np.ndarray) and parameters.dtype == np.uint8
            self.log.append(f"launch {options['grid']} {options['block']} {options['shared']} {parameters.size}")

        kernel = types.FunctionType(launch.__code__, launch.__globals__, "kernel", None, launch.__closure__)
        kernel.set_attribute = lambda attribute, value: self.log.append(f"attribute {attribute} {value}")  # type: ignore[attr-defined]
        return types.SimpleNamespace(get_function=lambda symbol: kernel)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    made = Cuda()
    monkeypatch.setattr(device, "pycuda_driver", lambda: made)
    monkeypatch.setattr(device, "_LOST", [])
    return made


def test_the_context_is_given_back(cuda: Cuda) -> None:
    with open_gpu() as gpu:
        assert str(gpu.info) == "a GPU (device 0, sm_90, 132 SMs, driver of CUDA 13.1)"
        assert gpu.stream == 7
        gpu.allocate(100)
        assert cuda.log == ["push"]
    assert cuda.log == ["push", "free", "pop", "detach"]
    with pytest.raises(ZeroDivisionError), open_gpu():
        raise ZeroDivisionError
    assert cuda.log[-3:] == ["push", "pop", "detach"]


def test_another_device(cuda: Cuda) -> None:
    with pytest.raises(MissingError, match="there is no device 1: this machine has 1"), open_gpu(1):
        pass


def test_a_launch(cuda: Cuda) -> None:
    with open_gpu() as gpu:
        kernel = gpu.load(b"cubin", "symbol", 99_328)
        gpu.launch(kernel, (3, 2, 1), (128, 1, 1), 99_328, bytes(496))
        cuda.busy = 5
        gpu.wait(10)
    assert "attribute 8 99328" in cuda.log
    assert "launch (3, 2, 1) (128, 1, 1) 99328 496" in cuda.log


@pytest.mark.parametrize("call", ["cuMemAlloc", "cuModuleLoadDataEx", "cuLaunchKernel"])
def test_errors_name_the_call(cuda: Cuda, call: str) -> None:
    def all_calls(gpu: PyCudaGpu) -> None:
        gpu.allocate(1 << 40)
        gpu.launch(gpu.load(b"cubin", "symbol", 0), (1, 1, 1), (1, 1, 1), 0, bytes(8))

    cuda.fails[call] = "something is wrong"
    with pytest.raises(DriverError, match=f"{call} failed: something is wrong") as failed, open_gpu() as gpu:
        all_calls(gpu)
    assert failed.value.exit_code == 2
    assert not isinstance(failed.value, KernelFaultError)
    assert cuda.log[-1] == "detach"


def wait_for_it(seconds: float) -> None:
    with open_gpu() as gpu, DeviceMemory(gpu) as memory:
        memory.allocate(100)
        gpu.wait(seconds)


def test_a_fault_loses_the_context(cuda: Cuda) -> None:
    cuda.fails["cuEventQuery"] = "an illegal memory access was encountered"
    with pytest.raises(KernelFaultError, match="illegal memory access") as fault:
        wait_for_it(1)
    assert fault.value.exit_code == 1
    # What is freed waits for the device, or fails: it is kept instead, and the context with it.
    assert cuda.log == ["push", "pop"]
    (kept,) = device._LOST
    assert kept.lost


def test_a_hang_ends_the_wait(cuda: Cuda) -> None:
    cuda.busy = 1 << 60
    with pytest.raises(HangError, match=r"did not end within 0\.05 s"):
        wait_for_it(0.05)
    assert cuda.log == ["push", "pop"]
