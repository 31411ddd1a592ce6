# SPDX-License-Identifier: Apache-2.0
"""What validation notices, on a stand-in for a GPU whose kernels are Python functions: no kernel is tried here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.standin import H200, PythonKernel, Spoil, StandInGpu
from tmagen.arch import ARCHES
from tmagen.bind import LeadingDims
from tmagen.gpu.device import require_arch
from tmagen.gpu.errors import DriverError, HangError, KernelFaultError, WrongDeviceError
from tmagen.gpu.report import RunCase
from tmagen.gpu.validate import RunSettings, validate
from tmagen.ir import Shape, Target
from tmagen.verify import Verdict

SHAPE = Shape(24, 40, 32)


def run(
    spoil: Spoil | None = None,
    *,
    shape: Shape = SHAPE,
    lds: LeadingDims | None = None,
    repeat: int = 0,
    gpu: StandInGpu | None = None,
) -> tuple[RunCase, ...]:
    gpu = gpu or StandInGpu()
    settings = RunSettings(inputs=("integer",), seeds=(3,), repeat=repeat)
    cases, _ = validate(PythonKernel(spoil), gpu, [shape], settings, lds=lds)  # type: ignore[arg-type]
    assert gpu.lost or not gpu.held, "device memory is freed"
    return cases


def failure(spoil: Spoil, **options: object) -> str:
    (case,) = run(spoil, **options)  # type: ignore[arg-type]
    assert case.verdict is Verdict.FAILED
    return "\n".join(case.lines())


@pytest.mark.parametrize(
    "shape", [SHAPE, Shape(1, 1, 1), Shape(7, 13, 5), Shape(16, 8, 0), Shape(0, 8, 8), Shape(8, 0, 8)]
)
def test_a_right_kernel_passes(shape: Shape) -> None:
    (case,) = run(shape=shape, repeat=5)
    assert case.verdict is Verdict.PASSED
    assert case.repeated == (5 if shape.m and shape.n else 0)


def test_normal_inputs_are_judged_by_a_bound() -> None:
    gpu = StandInGpu()
    settings = RunSettings(seeds=(0, 1))
    cases, _ = validate(PythonKernel(), gpu, [SHAPE], settings)  # type: ignore[arg-type]
    assert [(case.seed, case.inputs) for case in cases] == [
        (0, "integer"),
        (0, "normal"),
        (1, "integer"),
        (1, "normal"),
    ]
    assert all(case.error_ratio is not None and 0 < case.error_ratio < 1 for case in cases if case.inputs == "normal")


def test_a_wrong_element() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        kernel.matrix(2, 24, 40, kernel.lds.d)[5, 7] += 64

    assert "1 of 960 elements of D are wrong" in failure(spoil)
    assert "D[5, 7]" in failure(spoil)


def test_an_element_that_is_not_written() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        kernel.matrix(2, 24, 40, kernel.lds.d).view(np.uint16)[23, 39] = 0xFFFF

    assert "1 of them were never written" in failure(spoil)


def test_writes_outside_d() -> None:
    def before(kernel: PythonKernel, launch: int) -> None:
        kernel.gpu.view(kernel.addresses[2] - 2, 2)[:] = 0

    def padding(kernel: PythonKernel, launch: int) -> None:
        kernel.gpu.view(kernel.addresses[2] + 2 * 40, 2)[:] = 0

    assert "2 bytes written before D" in failure(before)
    text = failure(padding, lds=LeadingDims(32, 32, 48))
    assert "2 bytes written in the padding of D's rows" in text


def test_inputs_that_are_written_to() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        kernel.matrix(0, 24, 32, kernel.lds.a)[0, 0] = 100

    assert "A was written to" in failure(spoil)


def test_a_race_that_shows_in_a_burst() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        if launch == 6:  # one to compare with, one with a cold L2, and the last of a burst of four
            kernel.matrix(2, 24, 40, kernel.lds.d)[0, 0] = 7000

    (case,) = run(spoil, repeat=9)
    assert case.verdict is Verdict.FAILED
    assert case.repeated == 1
    assert case.message == ("launch 2, in a burst, wrote 2 bytes otherwise than the first: a race",)


def test_a_hang_ends_everything() -> None:
    class HangingGpu(StandInGpu):
        def wait(self, seconds: float) -> None:
            self.lost = True
            raise HangError(f"the kernel did not end within {seconds:g} s: it hangs")

    gpu = HangingGpu()
    cases, notes = validate(PythonKernel(), gpu, [SHAPE, SHAPE], RunSettings())  # type: ignore[arg-type]
    (case,) = cases
    assert case.verdict is Verdict.FAILED
    assert "it hangs" in case.message[0]
    assert "not run" in notes[-1]


def test_a_fault_is_the_kernel_s() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        kernel.gpu.lost = True
        raise KernelFaultError("cuStreamSynchronize failed: an illegal memory access was encountered")

    assert "illegal memory access" in failure(spoil)


def test_a_failing_driver_is_not_the_kernel_s() -> None:
    def spoil(kernel: PythonKernel, launch: int) -> None:
        raise DriverError("cuLaunchKernel failed: invalid argument")

    with pytest.raises(DriverError, match="cuLaunchKernel"):
        run(spoil)


def test_another_architecture_is_refused() -> None:
    require_arch(H200, ARCHES[Target.SM_90A])
    with pytest.raises(WrongDeviceError, match="sm_100a, the device is of sm_90") as refused:
        require_arch(H200, ARCHES[Target.SM_100A])
    assert "--target sm_90a" in refused.value.report()
    assert refused.value.exit_code == 2
