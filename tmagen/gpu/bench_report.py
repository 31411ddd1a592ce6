# SPDX-License-Identifier: Apache-2.0
"""What a measurement found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tmagen.gpu.device import DeviceInfo
from tmagen.gpu.report import device_dict
from tmagen.gpu.timing import Timing
from tmagen.ir import DType, Shape

CUBLAS = "cuBLAS"


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One contender on one problem."""

    name: str  # of the kernel, or "cuBLAS"
    label: str  # as the user asked for it
    shape: Shape
    elements: tuple[DType, DType, DType]  # of A, B and D
    method: str  # "flushed" or "graph"
    timing: Timing
    ratio: float | None  # of the speed of cuBLAS in the same rounds; None where there is no cuBLAS
    wrong: str | None  # what is wrong with D, before or after the measurement; None: it was right both times

    @property
    def tflops(self) -> float:
        return flops(self.shape) / (self.timing.median * 1e-3) / 1e12

    @property
    def intensity(self) -> float:
        """FLOP for each byte that has to be moved at least."""
        m, n, k = self.shape.m, self.shape.n, self.shape.k
        a, b, d = (element.bytes for element in self.elements)
        return flops(self.shape) / (m * k * a + n * k * b + m * n * d)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "name": self.name,
            "label": self.label,
            "shape": [self.shape.m, self.shape.n, self.shape.k],
            "elements": [element.value for element in self.elements],
            "method": self.method,
            "milliseconds": {
                "median": self.timing.median,
                "rounds": list(self.timing.rounds),
                "spread": round(self.timing.spread, 4),
            },
            "tflops": round(self.tflops, 2),
            "ratio_to_cublas": None if self.ratio is None else round(self.ratio, 4),
            "flop_per_byte": round(self.intensity, 1),
            "wrong": self.wrong,
        }


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All rows of one run."""

    device: DeviceInfo
    cublas: str | None  # which
    compiler: str
    date: str
    peak_tflops: dict[str, float]  # by the type of A: the most that cuBLAS reached in this run
    bytes_per_second: float  # of a copy on the device
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0: every output was right; 1: one was not; 2: nothing was measured."""
        if any(row.wrong for row in self.rows):
            return 1
        return 0 if self.rows else 2

    def share_of_peak(self, row: BenchRow) -> float | None:
        """The row's speed over the most that was measured for its type."""
        peak = self.peak_tflops.get(row.elements[0].value)
        return None if peak is None else row.tflops / peak

    def text(self) -> str:
        """The whole report."""
        peaks = ", ".join(f"{element} {peak:.0f} TFLOP/s" for element, peak in self.peak_tflops.items())
        lines = [
            f"{self.device}, {self.date}",
            f"against {self.cublas or 'nothing: no cuBLAS here'}; kernels built with {self.compiler}",
            f"measured peak: {peaks or '-'}; copy {self.bytes_per_second / 1e12:.2f} TB/s",
            *self.notes,
        ]
        heading = f"{'kernel':<44} {'median':>11} {'spread':>7} {'TFLOP/s':>8} {'cuBLAS':>7} {'peak':>6}  output"
        last: tuple[Any, ...] | None = None
        for row in self.rows:
            problem = (row.shape, row.elements, row.method)
            if problem != last:
                m, n, k = row.shape.m, row.shape.n, row.shape.k
                a, _, d = (element.value for element in row.elements)
                types = a if a == d else f"{a} to {d}"
                how = "L2 flushed" if row.method == "flushed" else "a graph of 20 launches, warm L2"
                lines += ["", f"{m} x {n} x {k}, {types}, {how}", heading]
            last = problem
            share = self.share_of_peak(row)
            lines.append(
                f"{row.label:<44} {row.timing.median * 1e3:>8.1f} us {100 * row.timing.spread:>5.1f} % "
                f"{row.tflops:>8.1f} {_share(row.ratio):>7} {_share(share):>6}  {row.wrong or 'right'}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "device": device_dict(self.device),
            "date": self.date,
            "cublas": self.cublas,
            "compiler": self.compiler,
            "peak_tflops": {element: round(peak, 1) for element, peak in self.peak_tflops.items()},
            "copy_bytes_per_second": round(self.bytes_per_second),
            "notes": list(self.notes),
            "rows": [{**row.to_dict(), "share_of_peak": self.share_of_peak(row)} for row in self.rows],
            "exit_code": self.exit_code,
        }


def flops(shape: Shape) -> int:
    """A multiplication and an addition for each product."""
    return 2 * shape.m * shape.n * shape.k


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
