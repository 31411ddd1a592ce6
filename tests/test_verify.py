# SPDX-License-Identifier: Apache-2.0
"""From a kernel to a verdict, with emitted kernels as they are."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmagen.emit import emit
from tmagen.errors import SpecError, TmagenError
from tmagen.ir import Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import plan
from tmagen.verify import CaseReport, LeadingDims, NoProgress, Report, Verdict, verify
from tmagen.verify.run import target_of

STEP4 = Gemm(pipeline=Pipeline(depth=1, policy=Policy.SERIAL))
PERSISTENT = Gemm(tile=Tile(128, 64, 64), schedule=Schedule(persistent=True, ctas=3))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder


@pytest.fixture(scope="module")
def everything(scratch: Path) -> Report:
    """Default shapes, all completions, both inputs, of a kernel whose grid is fixed."""
    return verify(PERSISTENT)


def test_default_set_passes(everything: Report) -> None:
    assert everything.exit_code == 0, everything.text()
    assert {case.verdict for case in everything.cases} == {Verdict.PASSED}
    shapes = {case.shape for case in everything.cases}
    assert any(shape.k == 0 for shape in shapes)
    assert any(max(case.launch.grid) < 3 for case in everything.cases if case.launch), "fewer tiles than CTAs"
    assert everything.elements == ("f16", "f16", "f16")


def test_every_order_and_input_of_every_shape(everything: Report) -> None:
    ways = {(case.inputs, case.completion) for case in everything.cases if case.shape == Shape(129, 136, 72)}
    orders = ("eager", "lazy", "newest-first", "random")
    assert ways == {(inputs, order) for inputs in ("integer", "normal") for order in orders}
    ways = {(case.inputs, case.completion) for case in everything.cases if case.shape.k == 0 and case.shape.m}
    assert ways == {("none", order) for order in orders}


def test_empty_problems_launch_nothing(everything: Report) -> None:
    empty = [case for case in everything.cases if 0 in (case.shape.m, case.shape.n)]
    assert [case.completion for case in empty] == ["none", "none"]
    assert [case.launch for case in empty] == [None, None]


def test_text(everything: Report) -> None:
    lines = everything.text().splitlines()
    assert lines[0].startswith(f"{plan(PERSISTENT).name}: sm_100a, A f16, B f16, D f16")
    assert "nvcc" in lines[1]
    assert "registers, 0 bytes spilled" in lines[1]
    assert "1 x 1 x 1: leading dimensions rounded up to 16 bytes: lda = 8, ldb = 8, ldd = 8" in lines
    assert sum("129 x 136 x 72" in line and "passed" in line for line in lines) == 8
    assert lines[-1].startswith(f"{len(everything.cases)} passed")


def test_json(everything: Report) -> None:
    data = json.loads(json.dumps(everything.to_dict()))
    assert data["exit_code"] == 0
    assert data["kernels"][0]["spill_store_bytes"] == 0
    case = next(case for case in data["cases"] if case["shape"] == [129, 136, 72])
    assert case["leading_dims"] == [72, 72, 136]
    assert case["launch"]["grid"] == [3, 1, 1]
    maps = [parameter["tensor_map"] for parameter in case["launch"]["parameters"] if "tensor_map" in parameter]
    assert [m["dims"] for m in maps] == [[72, 129], [72, 136], [136, 129]]


def test_nothing_is_left_behind(everything: Report, scratch: Path) -> None:
    left = {file.name for folder in scratch.iterdir() for file in folder.iterdir()}
    assert left <= {"runtime.o", "runtime.cpp"}, "the compiled stand-in serves the whole process"


def test_file_far_apart_rows_and_elements_beyond_2_to_the_31(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_text(emit(plan(STEP4)))
    ld = 1 << 24
    report = verify(path, [Shape(136, 136, 72)], completion="eager", inputs="integer", lds=LeadingDims(ld, ld, ld))
    assert report.exit_code == 0, report.text()
    assert report.subject == str(path)
    (case,) = report.cases
    assert 135 * case.lds.d > 1 << 31


def test_baked_in_shape_is_the_default_and_the_only_one() -> None:
    text = emit(plan(Gemm(problem=Problem(shape=Shape(130, 24, 40)))))
    report = verify(text, completion="eager", inputs="integer")
    assert [case.shape for case in report.cases] == [Shape(130, 24, 40)]
    assert report.exit_code == 0, report.text()
    with pytest.raises(SpecError, match="the kernel is for m = 130, n = 24, k = 40 only"):
        verify(text, [Shape(130, 24, 48)])


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("// nvcc -gencode arch=compute_90a,code=sm_90a -c x.cu\n", Target.SM_90A),
        ("// nvcc -gencode arch=compute_100a,code=sm_100a -c x.cu\nwgmma.", Target.SM_100A),
        ("// nvcc -gencode arch=compute_50,code=sm_50\n", Target.SM_100A),
        ('asm("wgmma.mma_async")', Target.SM_90A),
    ],
)
def test_target_of_a_file(text: str, target: Target) -> None:
    assert target_of(text) is target


def test_what_is_not_understood_is_not_judged() -> None:
    """One unknown instruction, and no verdict: neither passed nor failed, and the rest is not run."""
    text = emit(plan(PERSISTENT))
    changed = text.replace("ptx::fence_mbarrier_init();", 'asm volatile("pmevent 7;");')
    assert changed != text
    report = verify(changed, [Shape(128, 128, 64), Shape(256, 128, 64)])
    assert report.exit_code == 2, report.text()
    assert [case.verdict for case in report.cases] == [Verdict.NOT_JUDGED]
    assert "were not run" in report.text()


def test_wrong_questions() -> None:
    with pytest.raises(TmagenError, match="no such file"):
        verify(Path("/nowhere/kernel.cu"))
    with pytest.raises(TmagenError, match="opens no namespace"):
        verify("int main() { return 0; }")
    with pytest.raises(TmagenError, match="completion late"):
        verify(PERSISTENT, completion="late")
    with pytest.raises(TmagenError, match="input zeros"):
        verify(PERSISTENT, inputs="zeros")
    with pytest.raises(TmagenError, match="shorter than a row"):
        verify(PERSISTENT, [Shape(8, 8, 80)], lds=LeadingDims(72, 80, 8))


def test_progress_is_told() -> None:
    class Log(NoProgress):
        def __init__(self) -> None:
            self.events: list[str] = []

        def case_starts(self, label: str) -> None:
            self.events.append(label)

        def step(self, done: int, total: int) -> None:
            self.events.append(f"{done}/{total}")

        def case_ends(self, case: CaseReport) -> None:
            self.events.append(case.verdict.value)

    log = Log()
    verify(PERSISTENT, [Shape(128, 128, 64)], completion="eager", inputs="integer", progress=log, jobs=1)
    assert log.events[0] == "128 x 128 x 64, integer, eager"
    assert log.events[-2:] == ["2/2", "passed"]
