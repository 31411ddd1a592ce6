# SPDX-License-Identifier: Apache-2.0
"""What measuring does around the launches, on a stand-in for a GPU: no speed is measured here."""

from __future__ import annotations

import importlib.util
import json
import types
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.standin import Clock, PythonKernel, StandInGpu
from tmagen.gpu import bench, plot, timing
from tmagen.gpu.bench_report import BenchReport
from tmagen.gpu.errors import MissingError
from tmagen.gpu.timing import FLUSHED, GRAPH, Timing
from tmagen.ir import Shape

SHAPE = Shape(24, 40, 32)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> StandInGpu:
    monkeypatch.setattr(bench, "find_torch", lambda: None)
    monkeypatch.setattr(bench, "bandwidth", lambda gpu: 4e12)
    return StandInGpu()


class StandInCublas:
    """A cuBLAS that is a Python kernel."""

    label = "cuBLAS of a stand-in"

    def prepare(self, gpu: StandInGpu, a: Any, b: Any, d: Any) -> Any:
        kernel = PythonKernel()
        lds = types.SimpleNamespace(a=a.ld, b=b.ld, d=d.ld)
        shape = Shape(d.rows, d.columns, a.columns)
        return kernel.prepare(gpu, shape, lds, (a.address, b.address, d.address))  # type: ignore[arg-type]

    def close(self) -> None:
        pass


def measured(gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch, *, cublas: Any, kernel: PythonKernel) -> BenchReport:
    monkeypatch.setattr(bench, "find_cublas", lambda *_: cublas)
    settings = bench.BenchSettings(method=FLUSHED, rounds=3, round_ms=1.0, peak=False)
    report = bench.measure_all([("mine", kernel)], gpu, [SHAPE], settings)  # type: ignore[arg-type]
    assert not gpu.held, "device memory is freed"
    return report


def test_a_report(gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(gpu, monkeypatch, cublas=StandInCublas(), kernel=PythonKernel())
    assert report.exit_code == 0
    mine, theirs = report.rows
    assert (mine.name, theirs.name) == ("python", "cuBLAS")
    assert mine.timing.rounds == (1.0, 1.0, 1.0)  # the stand-in's clock
    assert (mine.ratio, theirs.ratio) == (1.0, 1.0)
    assert mine.tflops == 2 * 24 * 40 * 32 / 1e-3 / 1e12
    assert mine.intensity == 2 * 24 * 40 * 32 / (2 * (24 * 32 + 40 * 32 + 24 * 40))
    assert report.share_of_peak(mine) == 1.0
    found = json.loads(json.dumps(report.to_dict()))
    assert [row["ratio_to_cublas"] for row in found["rows"]] == [1.0, 1.0]
    text = report.text()
    assert "24 x 40 x 32, f16, L2 flushed" in text
    assert text.count(" right") == 2


def test_without_cublas(gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(gpu, monkeypatch, cublas=None, kernel=PythonKernel())
    (row,) = report.rows
    assert (row.ratio, report.share_of_peak(row)) == (None, None)
    assert "no cuBLAS here" in report.text()


@pytest.mark.parametrize("first_wrong_launch", [1, 5])
def test_a_wrong_output_is_told(gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch, first_wrong_launch: int) -> None:
    """Also one that only goes wrong while it is measured."""

    def spoil(kernel: PythonKernel, launch: int) -> None:
        if launch >= first_wrong_launch:
            kernel.matrix(2, 24, 40, kernel.lds.d)[5, 7] += 64

    report = measured(gpu, monkeypatch, cublas=StandInCublas(), kernel=PythonKernel(spoil))
    assert report.exit_code == 1
    assert "WRONG: 1 elements" in report.text()


def test_contenders_take_turns() -> None:
    gpu, order = StandInGpu(), []  # type: ignore[var-annotated]

    def launch_of(name: str, milliseconds: float) -> Any:
        def launch() -> None:
            order.append(name)
            Clock.now += milliseconds

        return launch

    contenders = {"a": launch_of("a", 3.0), "b": launch_of("b", 1.0)}
    found = timing.measure(gpu, contenders, method=FLUSHED, rounds=4, round_ms=0.0)  # type: ignore[arg-type]
    assert found["a"].median == pytest.approx(4.0)
    assert found["b"].ratio_to(found["a"]) == pytest.approx(2.0)
    turns = [order[-80 + 10 * turn :][:10] for turn in range(8)]
    assert [set(turn) for turn in turns] == [{name} for name in "abbaabba"]


def test_spread_and_ratio() -> None:
    slow, fast = Timing((4.0, 8.0, 4.4)), Timing((2.0, 4.0, 2.0))
    assert slow.median == 4.4
    assert slow.spread == pytest.approx(1.0)
    assert slow.ratio_to(fast) == pytest.approx(0.5)  # each round within itself: the slow one takes both down


def test_small_problems_go_through_a_graph() -> None:
    settings = bench.BenchSettings()
    assert settings.method_for(Shape(512, 512, 512)) == GRAPH
    assert settings.method_for(Shape(4096, 4096, 4096)) == FLUSHED
    assert bench.BenchSettings(method=GRAPH).method_for(Shape(4096, 4096, 4096)) == GRAPH


def test_a_picture(gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    report = measured(gpu, monkeypatch, cublas=StandInCublas(), kernel=PythonKernel())
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(MissingError) as missing:
            plot.plot(report, tmp_path / "picture.svg")
        assert "pip install matplotlib" in missing.value.report()
        return
    plot.plot(report, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text().count("<path") > 20
