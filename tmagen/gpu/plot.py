# SPDX-License-Identifier: Apache-2.0
"""A measurement as a picture: the roofline, and bars for each problem. matplotlib is needed for nothing else."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from tmagen.gpu.bench_report import BenchReport, BenchRow
from tmagen.gpu.errors import GpuError, MissingError

FORMATS = (".pdf", ".png", ".svg")

_LEAST_INTENSITY = 8.0


def require_matplotlib() -> Any:
    """`matplotlib.pyplot`, drawing to files alone. Raises MissingError where it is not installed."""
    try:
        import_module("matplotlib").use("agg")
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise MissingError("--plot needs matplotlib, which is not installed", hint="pip install matplotlib") from error


def plot(report: BenchReport, path: Path) -> None:
    """Draws the report into a file; its ending says the format. Raises MissingError, GpuError."""
    pyplot = require_matplotlib()
    figure, (roofline, bars) = pyplot.subplots(1, 2, figsize=(14, 6.5), layout="constrained")
    _draw_roofline(roofline, report)
    _draw_bars(bars, report)
    figure.legend(*roofline.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(f"{report.device.name}, {report.date}")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise GpuError(f"cannot write {str(path)!r}: {error}") from error
    finally:
        pyplot.close(figure)


def _draw_roofline(axes: Any, report: BenchReport) -> None:
    """TFLOP/s over FLOP per byte, under the lines of the measured peak and of the measured copy."""
    bandwidth = report.bytes_per_second / 1e12
    most = max([row.intensity for row in report.rows], default=1000.0) * 2
    for element, peak in report.peak_tflops.items():
        ridge = peak / bandwidth
        axes.plot(
            [_LEAST_INTENSITY, ridge, most], [_LEAST_INTENSITY * bandwidth, peak, peak], "k-", label=f"{element} roof"
        )
    for index, label in enumerate(dict.fromkeys(row.label for row in report.rows)):
        mine = [row for row in report.rows if row.label == label]
        axes.scatter(
            [row.intensity for row in mine], [row.tflops for row in mine], label=label, zorder=3, c=f"C{index}"
        )
    axes.set(xscale="log", yscale="log", xlabel="FLOP per byte", ylabel="TFLOP/s", title="Roofline")
    axes.grid(True, which="both", alpha=0.3)


def _draw_bars(axes: Any, report: BenchReport) -> None:
    """TFLOP/s of each contender, problem by problem."""
    problems = list(dict.fromkeys(_problem(row) for row in report.rows))
    labels = list(dict.fromkeys(row.label for row in report.rows))
    width = 0.8 / max(1, len(labels))
    for index, label in enumerate(labels):
        mine = {_problem(row): row for row in report.rows if row.label == label}
        places = [problems.index(problem) + index * width for problem in mine]
        axes.bar(places, [row.tflops for row in mine.values()], width, color=f"C{index}")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(problems))], problems, fontsize=8)
    axes.set(ylabel="TFLOP/s", title="Speed")


def _problem(row: BenchRow) -> str:
    m, n, k = row.shape.m, row.shape.n, row.shape.k
    return f"{m} x {n} x {k}\n{row.elements[0].value}"
