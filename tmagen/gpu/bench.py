# SPDX-License-Identifier: Apache-2.0
"""Kernels measured against cuBLAS, in one process and in turns, with every output verified in the same run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tmagen.gpu.bench_report import CUBLAS, BenchReport, BenchRow, flops
from tmagen.gpu.cublas import Cublas, find_cublas
from tmagen.gpu.device import Gpu, open_gpu
from tmagen.gpu.kernels import Kernel, Launch, build_kernel
from tmagen.gpu.memory import DeviceMemory
from tmagen.gpu.timing import FLUSHED, GRAPH, bandwidth, measure
from tmagen.gpu.torch_reference import find_torch, judge
from tmagen.ir import DType, Gemm, Shape
from tmagen.verify.buffers import Buffer, allocate
from tmagen.verify.compare import compare
from tmagen.verify.inputs import normal_inputs
from tmagen.verify.reference import Reference, bounded_reference
from tmagen.verify.shapes import check_shapes, default_leading_dims

METHODS = (FLUSHED, GRAPH)
SHAPES = (Shape(4096, 4096, 4096), Shape(8192, 8192, 8192))

_PEAK = Shape(8192, 8192, 8192)  # large enough that cuBLAS runs at what the power limit allows
_SMALL_FLOPS = 20_000_000_000  # below this a launch costs too much of the time: a graph of launches is measured
_PATIENCE_SECONDS = 30.0

Elements = tuple[DType, DType, DType]


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How to measure."""

    method: str | None = None  # FLUSHED or GRAPH; None: by the size of the problem
    rounds: int = 5
    round_ms: float = 60.0
    seed: int = 0
    cublas: str = "auto"  # "torch", "library"
    skewed: bool = False  # matrices at multiples of 16 bytes only: rows then cross cache lines
    peak: bool = True  # whether to measure the peak apart from the shapes asked for

    def method_for(self, shape: Shape) -> str:
        """FLUSHED or GRAPH."""
        return self.method or (GRAPH if flops(shape) < _SMALL_FLOPS else FLUSHED)


@dataclass(slots=True)
class _Contender:
    """Something to measure, with a D of its own."""

    name: str
    label: str
    launch: Launch
    d: Buffer
    wrong: str | None = field(default=None)


def bench(
    subjects: Sequence[tuple[str, Path | Gemm]],
    shapes: Sequence[Shape] = SHAPES,
    settings: BenchSettings | None = None,
    *,
    compiler: str = "nvcc",
    nvcc: Path | str | None = None,
    device: int = 0,
) -> BenchReport:
    """Measures each of `subjects`, (label, kernel file or spec), on each shape, beside cuBLAS.

    Changes no setting of the device: clocks and power limits are as they are, and so only ratios of one run compare.
    Raises TmagenError where nothing can be measured: no GPU, driver, PyCUDA or compiler, another architecture.
    """
    how = settings or BenchSettings()
    with open_gpu(device) as gpu:
        # Compilers are processes of their own: threads wait for them.
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
            build = partial(build_kernel, info=gpu.info, compiler=compiler, nvcc=nvcc)
            built = list(pool.map(build, [subject for _, subject in subjects]))
        kernels = [(label, kernel) for (label, _), kernel in zip(subjects, built, strict=True)]
        return measure_all(kernels, gpu, shapes, how)


def measure_all(
    kernels: Sequence[tuple[str, Kernel]], gpu: Gpu, shapes: Sequence[Shape], settings: BenchSettings
) -> BenchReport:
    """The report of compiled kernels."""
    for _, kernel in kernels:
        check_shapes(shapes, kernel.static_mnk)
    rows: list[BenchRow] = []
    notes: list[str] = []
    peaks: dict[str, float] = {}
    labels: list[str] = []
    torch = find_torch()
    if settings.skewed:
        notes.append("matrices lie at multiples of 16 bytes and of no more")
    if torch is None:
        notes.append("torch is not here: outputs are verified against numpy's product")
    for elements in dict.fromkeys(kernel.elements for _, kernel in kernels):
        mine = [(label, kernel) for label, kernel in kernels if kernel.elements == elements]
        cublas = find_cublas(gpu, elements, settings.cublas)
        if cublas is not None:
            labels.append(cublas.label)
        try:
            for shape in shapes:
                rows += _Problem(gpu, shape, elements, settings, torch).rows(mine, cublas)
            if cublas is not None:
                _note_peak(peaks, elements, rows)
                if settings.peak and _PEAK not in shapes:
                    probe = _Problem(gpu, _PEAK, elements, settings, torch).rows([], cublas)
                    _note_peak(peaks, elements, probe)
        finally:
            if cublas is not None:
                cublas.close()
    return BenchReport(
        device=gpu.info,
        cublas=", ".join(dict.fromkeys(labels)) or None,
        compiler=", ".join(dict.fromkeys(kernel.built_with for _, kernel in kernels)),
        date=datetime.now(UTC).date().isoformat(),
        peak_tflops=peaks,
        bytes_per_second=bandwidth(gpu),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _note_peak(peaks: dict[str, float], elements: Elements, rows: Iterable[BenchRow]) -> None:
    for row in rows:
        if row.name == CUBLAS and row.elements == elements:
            key = elements[0].value
            peaks[key] = max(peaks.get(key, 0.0), row.tflops)


@dataclass(frozen=True, slots=True)
class _Problem:
    """One shape of one combination of types."""

    gpu: Gpu
    shape: Shape
    elements: Elements
    settings: BenchSettings
    torch: Any | None

    def rows(self, kernels: Sequence[tuple[str, Kernel]], cublas: Cublas | None) -> list[BenchRow]:
        """Verify, measure in turns, verify again."""
        shape, lds = self.shape, default_leading_dims(self.shape, self.elements)
        with DeviceMemory(self.gpu) as memory:
            inputs = normal_inputs(shape, self.elements[:2], self.settings.seed)
            skewed = self.settings.skewed
            a = allocate(memory, "A", self.elements[0], shape.m, shape.k, lds.a, skewed=skewed)
            b = allocate(memory, "B", self.elements[1], shape.n, shape.k, lds.b, skewed=skewed)
            a.write(inputs.a)
            b.write(inputs.b)
            contenders = []
            for label, kernel in kernels:
                d = self._output(memory, lds.d)
                launch = kernel.prepare(self.gpu, shape, lds, (a.address, b.address, d.address))
                contenders.append(_Contender(kernel.name, label, launch, d))
            if cublas is not None:
                d = self._output(memory, lds.d)
                contenders.append(_Contender(CUBLAS, cublas.label, cublas.prepare(self.gpu, a, b, d), d))
            memory.upload()
            reference = None if self.torch is not None else bounded_reference(inputs, self.elements[2])
            for contender in contenders:
                contender.launch()
                self.gpu.wait(_PATIENCE_SECONDS)
                contender.wrong = self._judge(contender, a, b, memory, reference)
            method = self.settings.method_for(shape)
            timings = measure(
                self.gpu,
                {f"{index}": contender.launch for index, contender in enumerate(contenders)},
                method=method,
                rounds=self.settings.rounds,
                round_ms=self.settings.round_ms,
            )
            for contender in contenders:
                contender.wrong = contender.wrong or self._judge(contender, a, b, memory, reference)
        yardstick = timings[str(len(contenders) - 1)] if cublas is not None else None
        return [
            BenchRow(
                name=contender.name,
                label=contender.label,
                shape=shape,
                elements=self.elements,
                method=method,
                timing=timings[str(index)],
                ratio=None if yardstick is None else timings[str(index)].ratio_to(yardstick),
                wrong=contender.wrong,
            )
            for index, contender in enumerate(contenders)
        ]

    def _output(self, memory: DeviceMemory, ld: int) -> Buffer:
        d = allocate(memory, "D", self.elements[2], self.shape.m, self.shape.n, ld, skewed=self.settings.skewed)
        d.fill_poison()
        return d

    def _judge(
        self, contender: _Contender, a: Buffer, b: Buffer, memory: DeviceMemory, reference: Reference | None
    ) -> str | None:
        """What is wrong with its D, in a few words."""
        if self.torch is not None:
            verdict = judge(self.torch, a, b, contender.d, exact=False, ordinal=self.gpu.info.ordinal)
            return f"WRONG: {verdict.wrong:,} elements" if verdict.wrong else None
        assert reference is not None
        memory.download()
        mismatch = compare(contender.d, reference).mismatch
        return None if mismatch is None else f"WRONG: {mismatch.wrong:,} elements"
