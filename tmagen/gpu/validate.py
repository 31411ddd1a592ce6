# SPDX-License-Identifier: Apache-2.0
"""A kernel launched on the GPU, and D held against the product on the CPU and, where torch is there, on the GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmagen.bind import LeadingDims
from tmagen.gpu.device import Gpu, open_gpu
from tmagen.gpu.errors import HangError, KernelFaultError
from tmagen.gpu.kernels import Kernel, Launch, LaunchRefusedError, build_kernel
from tmagen.gpu.memory import DeviceMemory, Mirrored
from tmagen.gpu.repeat import repeat
from tmagen.gpu.report import RunCase, RunReport
from tmagen.gpu.torch_reference import find_torch, judge
from tmagen.ir import Gemm, Shape
from tmagen.verify import NoProgress, Progress, Verdict
from tmagen.verify.buffers import Buffers
from tmagen.verify.cases import Problem, allocate_buffers, changed_inputs, make_inputs
from tmagen.verify.compare import compare
from tmagen.verify.inputs import Inputs
from tmagen.verify.reference import Exact, Reference, zeros
from tmagen.verify.shapes import (
    check_leading_dims,
    check_shapes,
    default_leading_dims,
    default_shapes,
    rounded_note,
)

INPUTS = ("integer", "normal")
REFERENCES = ("numpy", "torch")
TIMEOUT_SECONDS = 20.0

# Beyond what an emulator has time for: hundreds of tiles, a long K, and rows of D that end inside a 16-byte chunk.
_LARGE = (Shape(1664, 3080, 72), Shape(2048, 2048, 2048), Shape(1111, 2001, 4104))


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How each problem is tried."""

    inputs: tuple[str, ...] = INPUTS
    seeds: tuple[int, ...] = (0,)
    repeat: int = 0  # more launches of each case, compared with the first
    references: tuple[str, ...] = REFERENCES  # "torch" is left out where torch is not there
    timeout: float = TIMEOUT_SECONDS


def run(
    subject: Path | Gemm,
    shapes: Sequence[Shape] | None = None,
    settings: RunSettings | None = None,
    *,
    lds: LeadingDims | None = None,
    compiler: str = "nvcc",
    nvcc: Path | str | None = None,
    device: int = 0,
    progress: Progress | None = None,
) -> RunReport:
    """Compiles a kernel for the GPU of this machine, launches it, and compares D with the matrix product.

    `subject` is a kernel file, launched by its own launch(), or a spec, launched by its C symbol. Raises TmagenError
    where nothing can be run: no GPU, driver or PyCUDA, another architecture, no compiler, an illegal spec.
    """
    how = settings or RunSettings()
    with open_gpu(device) as gpu:
        kernel = build_kernel(subject, gpu.info, compiler=compiler, nvcc=nvcc)
        torch = find_torch() if "torch" in how.references else None
        cases, notes = validate(kernel, gpu, shapes, how, lds=lds, torch=torch, progress=progress)
        if "torch" in how.references and torch is None:
            notes = (*notes, "torch is not here: compared with numpy's product alone")
        return RunReport(
            subject=str(subject) if isinstance(subject, Path) else kernel.name,
            target=kernel.target.value,
            device=gpu.info,
            built_with=kernel.built_with,
            elements=tuple(element.value for element in kernel.elements),  # type: ignore[arg-type]
            resources=kernel.resources,
            notes=notes,
            cases=cases,
            lost=gpu.lost,
        )


def validate(
    kernel: Kernel,
    gpu: Gpu,
    shapes: Sequence[Shape] | None,
    settings: RunSettings,
    *,
    lds: LeadingDims | None = None,
    torch: Any | None = None,
    progress: Progress | None = None,
) -> tuple[tuple[RunCase, ...], tuple[str, ...]]:
    """The cases of every shape, and notes about them. A kernel that faults or hangs ends them: the context is lost."""
    watch = progress or NoProgress()
    cases: list[RunCase] = []
    notes: list[str] = []
    for shape in _shapes(kernel, shapes):
        dims = lds or default_leading_dims(shape, kernel.elements)
        check_leading_dims(shape, dims, kernel.elements)
        note = None if lds else rounded_note(shape, dims)
        if note:
            notes.append(f"{shape.m} x {shape.n} x {shape.k}: {note}")
        for case in run_problem(kernel, gpu, Problem(shape, dims, kernel.elements), settings, torch, watch):
            cases.append(case)
        if gpu.lost:
            notes.append("the cases after the last one were not run: its kernel took the context with it")
            break
    watch.close()
    return tuple(cases), tuple(notes)


def run_problem(
    kernel: Kernel, gpu: Gpu, problem: Problem, settings: RunSettings, torch: Any | None, progress: Progress
) -> Iterator[RunCase]:
    """The cases of one problem, as they end."""
    shape = problem.shape
    if not (shape.m and shape.n):
        yield _launch_nothing(kernel, gpu, problem, settings)
        return
    with DeviceMemory(gpu) as memory:
        buffers = allocate_buffers(problem, memory)
        subject = _Subject(kernel, gpu, problem, settings, memory, buffers, torch, progress)
        if shape.k == 0:
            yield subject.case(None, zeros(shape.m, shape.n, problem.elements[2]), 0)
            return
        for seed in settings.seeds:
            for kind in settings.inputs:
                yield subject.case(*make_inputs(kind, problem, seed), seed)
                if gpu.lost:
                    return


def _launch_nothing(kernel: Kernel, gpu: Gpu, problem: Problem, settings: RunSettings) -> RunCase:
    """D has no elements: the launch has to succeed, with null pointers, and do nothing."""
    started = time.perf_counter()
    message: tuple[str, ...] = ()
    try:
        kernel.prepare(gpu, problem.shape, problem.lds, (0, 0, 0))()
        gpu.wait(settings.timeout)
    except (KernelFaultError, HangError, LaunchRefusedError) as error:
        message = (str(error),)
    seconds = time.perf_counter() - started
    verdict = Verdict.FAILED if message else Verdict.PASSED
    return RunCase(problem.shape, problem.lds, "none", 0, None, verdict, (), 0, seconds, message=message)


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """A problem whose matrices are allocated, ready to be tried with inputs."""

    kernel: Kernel
    gpu: Gpu
    problem: Problem
    settings: RunSettings
    memory: DeviceMemory
    buffers: Buffers
    torch: Any | None
    progress: Progress

    def case(self, inputs: Inputs | None, reference: Reference, seed: int) -> RunCase:
        """Poison, launch, compare, repeat."""
        shape, lds, d = self.problem.shape, self.problem.lds, self.buffers.d
        kind = "none" if inputs is None else inputs.kind
        self.progress.case_starts(f"{shape.m} x {shape.n} x {shape.k}, {kind}, seed {seed}")
        started = time.perf_counter()
        if inputs is not None and self.buffers.a is not None and self.buffers.b is not None:
            self.buffers.a.write(inputs.a)
            self.buffers.b.write(inputs.b)
        d.fill_poison()
        self.memory.upload()
        message: list[str] = []
        mismatch, ratio, repeated = None, None, 0
        references: list[str] = []
        try:
            launch = self.kernel.prepare(self.gpu, shape, lds, self._addresses())
            launch()
            self.gpu.wait(self.settings.timeout)
            self.memory.download()
            message += [*d.stray_writes(), *changed_inputs(self.buffers, inputs)]
            if "numpy" in self.settings.references or inputs is None:
                references.append("numpy")
                comparison = compare(d, reference)
                mismatch, ratio = comparison.mismatch, comparison.error_ratio
            if self.torch is not None and inputs is not None:
                references.append("torch")
                ratio = self._ask_torch(isinstance(reference, Exact), message, ratio)
            if self.settings.repeat and not message and mismatch is None:
                repeated = self._repeat(launch, message)
        except (KernelFaultError, HangError, LaunchRefusedError) as error:
            message.append(str(error))
        return RunCase(
            shape=shape,
            lds=lds,
            inputs=kind,
            seed=seed,
            grid=self.kernel.grid(shape, lds),
            verdict=Verdict.FAILED if message or mismatch is not None else Verdict.PASSED,
            references=tuple(references),
            repeated=repeated,
            seconds=time.perf_counter() - started,
            mismatch=mismatch,
            error_ratio=ratio,
            message=tuple(message),
        )

    def _addresses(self) -> tuple[int, int, int]:
        a, b, d = self.buffers.a, self.buffers.b, self.buffers.d
        return (a.address if a else 0, b.address if b else 0, d.address)

    def _ask_torch(self, exact: bool, message: list[str], ratio: float | None) -> float | None:
        a, b = self.buffers.a, self.buffers.b
        assert a is not None and b is not None
        verdict = judge(self.torch, a, b, self.buffers.d, exact=exact, ordinal=self.gpu.info.ordinal)
        if verdict.wrong:
            message.append(f"{verdict.wrong:,} elements of D differ from torch's product, the first at {verdict.first}")
        return max(filter(None, (ratio, verdict.error_ratio)), default=ratio)

    def _repeat(self, launch: Launch, message: list[str]) -> int:
        """How many launches agreed with the first."""
        whole = Mirrored(self.buffers.d.address - self.buffers.d.offset, self.buffers.d.data)
        times = self.settings.repeat
        found = repeat(self.gpu, launch, whole, times, torch=self.torch, timeout=self.settings.timeout)
        if found is None:
            return times
        message.append(str(found))
        return found.launch - 1


def _shapes(kernel: Kernel, shapes: Sequence[Shape] | None) -> tuple[Shape, ...]:
    if shapes is not None:
        return check_shapes(shapes, kernel.static_mnk)

    def ctas(shape: Shape) -> int | None:
        grid = kernel.grid(shape, default_leading_dims(shape, kernel.elements))
        return None if grid is None else grid[0] * grid[1] * grid[2]

    chosen = default_shapes(kernel.static_mnk, ctas)
    if all(size is None for size in kernel.static_mnk):
        chosen = tuple(dict.fromkeys((*chosen, *_LARGE)))
    return chosen
