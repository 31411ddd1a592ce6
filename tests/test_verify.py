# SPDX-License-Identifier: Apache-2.0
"""From a kernel to a verdict, with emitted kernels as they are."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmagen.emit import emit
from tmagen.errors import SpecError, TmagenError
from tmagen.ir import Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import plan
from tmagen.toolchain import CompileError
from tmagen.verify import CaseReport, LeadingDims, NoProgress, Report, StreamedText, Verdict, verify
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
    ways = {(case.inputs, case.completion) for case in everything.cases if case.shape == Shape(129, 203, 71)}
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
    assert "129 x 203 x 71: rows lie apart: lda = 80, ldb = 96, ldd = 224" in lines
    assert sum("129 x 203 x 71" in line and "passed" in line for line in lines) == 8
    assert lines[-1].startswith(f"{len(everything.cases)} passed")


def test_json(everything: Report) -> None:
    data = json.loads(json.dumps(everything.to_dict()))
    assert data["exit_code"] == 0
    assert data["kernels"][0]["spill_store_bytes"] == 0
    case = next(case for case in data["cases"] if case["shape"] == [129, 203, 71])
    assert case["leading_dims"] == [80, 96, 224]
    assert case["launch"]["grid"] == [3, 1, 1]
    maps = [parameter["tensor_map"] for parameter in case["launch"]["parameters"] if "tensor_map" in parameter]
    assert [m["dims"] for m in maps] == [[71, 129], [71, 203], [200, 129]]
    assert [m["strides"] for m in maps] == [[160], [192], [448]]


def test_nothing_is_left_behind(everything: Report, scratch: Path) -> None:
    left = {file.name for folder in scratch.iterdir() for file in folder.iterdir()}
    assert left <= {"runtime.o", "runtime.cpp"}, "the compiled stand-in serves the whole process"


@pytest.mark.usefixtures("kept_builds")
def test_file_far_apart_rows_and_elements_beyond_2_to_the_31(tmp_path: Path) -> None:
    path = tmp_path / "kernel.cu"
    path.write_text(emit(plan(STEP4)))
    ld = 1 << 24
    report = verify(path, [Shape(136, 136, 72)], completion="eager", inputs="integer", lds=LeadingDims(ld, ld, ld))
    assert report.exit_code == 0, report.text()
    assert report.subject == str(path)
    (case,) = report.cases
    assert 135 * case.lds.d > 1 << 31


@pytest.mark.usefixtures("kept_builds")
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
    assert report.stopped is not None
    assert report.text().endswith("stopped at what is not judged: no case after it was run")


@pytest.mark.usefixtures("kept_builds")
def test_wrong_questions() -> None:
    with pytest.raises(TmagenError, match="no such file"):
        verify(Path("/nowhere/kernel.cu"))
    with pytest.raises(TmagenError, match="no namespace with GemmArgs"):
        verify("int main() { return 0; }")
    with pytest.raises(TmagenError, match="completion late"):
        verify(PERSISTENT, completion="late")
    with pytest.raises(TmagenError, match="input zeros"):
        verify(PERSISTENT, inputs="zeros")
    with pytest.raises(TmagenError, match="shorter than a row"):
        verify(PERSISTENT, [Shape(8, 8, 80)], lds=LeadingDims(72, 80, 8))


def test_what_does_not_compile_is_told_by_the_users_file(tmp_path: Path) -> None:
    text = emit(plan(STEP4))
    path = tmp_path / "mine.cu"
    path.write_text(text.replace("args.lda * ", "args.stride * "))
    with pytest.raises(CompileError) as raised:
        verify(path)
    told = raised.value.report()
    assert f"rejects {path}\n" in told
    assert f"{path}(" in told
    assert f'in the compilation of "{path}"' in told
    assert "harness" not in told
    with pytest.raises(CompileError) as raised:
        verify(path.read_text())
    assert "rejects kernel.cu\n" in raised.value.report()
    assert tempfile.gettempdir() not in raised.value.report()
    renamed = re.sub(r"\blda\b", "stride", text)
    with pytest.raises(CompileError, match=r"rejects kernel\.cu") as raised:
        verify(renamed)
    assert "(call of launch)(" in raised.value.report(), "where GemmArgs is not as launch() is called with"


def test_stop_at_the_first_failure() -> None:
    text = emit(plan(STEP4))
    broken = re.sub(r"(expect_tx\([^;]*kTxBytes)\)", r"\1 * 2)", text)
    assert broken != text
    shapes = [Shape(0, 8, 8), Shape(128, 128, 64), Shape(8, 8, 8)]
    streamed: list[str] = []
    progress = StreamedText(streamed.append, NoProgress())
    report = verify(broken, shapes, fail_fast=True, progress=progress)
    assert [case.verdict for case in report.cases] == [Verdict.PASSED, Verdict.FAILED]
    assert report.exit_code == 1
    assert report.to_dict()["stopped"] == "the first failure: no case after it was run"
    progress.finish(report)
    assert "\n".join(streamed) == report.text(), "what is written as cases end is the report"
    assert streamed[-1].endswith("stopped at the first failure: no case after it was run")


@pytest.mark.usefixtures("kept_builds")
def test_lines_come_as_cases_end() -> None:
    streamed: list[str] = []

    class Bar(NoProgress):
        def case_starts(self, label: str) -> None:
            streamed.append(f"starts {label}")

    verify(
        STEP4, [Shape(8, 8, 8)], completion=["eager", "lazy"], inputs="integer", checks=False,
        progress=StreamedText(streamed.append, Bar()),
    )  # fmt: skip
    first, second = (streamed.index(f"starts 8 x 8 x 8, integer, {order}") for order in ("eager", "lazy"))
    assert streamed[0].startswith(f"{plan(STEP4).name}: sm_100a")
    assert first < second - 1
    assert "passed" in streamed[first + 1]


@pytest.mark.usefixtures("kept_builds")
def test_a_problem_that_is_too_large_is_refused_before_it_runs() -> None:
    with pytest.raises(SpecError, match=r"needs about [\d,.]+ GiB of memory"):
        verify(STEP4, [Shape(8, 8, 8), Shape(4_000_000, 4_000_000, 8)])


@pytest.mark.usefixtures("kept_builds")
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
