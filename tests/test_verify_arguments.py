# SPDX-License-Identifier: Apache-2.0
"""What verify() and the command line are called with: wrong use is told as such, and never as a wrong kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tmagen.bind import LeadingDims
from tmagen.cli import main
from tmagen.emit import emit
from tmagen.errors import SpecError, TmagenError
from tmagen.hostrun import CallResult, Outcome, SourceFormError
from tmagen.ir import DType, Gemm, Schedule, Shape, Tile
from tmagen.plan import plan
from tmagen.verify import Verdict, verify
from tmagen.verify.host import beyond_limits

pytestmark = pytest.mark.usefixtures("kept_builds")

SMALL = Gemm(tile=Tile(128, 16, 32), name="gemm_a")
EAGER: dict[str, Any] = {"completion": "eager", "inputs": "integer", "checks": False}


def text(name: str = "gemm_a") -> str:
    return emit(plan(Gemm(tile=Tile(128, 16, 32), name=name)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shapes": [(1, 2, 3)]}, "shapes[0] = (1, 2, 3) is of type tuple\n  it takes Shape"),
        ({"shapes": Shape(1, 2, 3)}, "shapes = Shape(m=1, n=2, k=3) is of type Shape\n  it takes a sequence of Shape"),
        ({"shapes": "1,2,3"}, "shapes = '1,2,3' is of type str\n  it takes a sequence of Shape"),
        ({"shapes": []}, "shapes is empty: nothing would be tried\n  try: shapes=None, for what suits the kernel"),
        ({"shapes": [Shape(1, 2, "3")]}, "shapes[0].k = '3' is of type str\n  it takes int"),  # type: ignore[arg-type]
        ({"lds": (8, 8, 8)}, "lds = (8, 8, 8) is of type tuple\n  it takes LeadingDims or None"),
        ({"lds": LeadingDims(8, 8, 8.0)}, "lds.d = 8.0 is of type float\n  it takes int"),  # type: ignore[arg-type]
        ({"seed": "0"}, "seed = '0' is of type str\n  it takes int"),
        ({"seed": -1}, "seed = -1 is out of range: it is 0 to 9,223,372,036,854,775,807"),
        ({"seed": True}, "seed = True is of type bool\n  it takes int"),
        ({"jobs": 0}, "jobs = 0 is out of range: it is 1 to 1,024"),
        ({"jobs": "2"}, "jobs = '2' is of type str\n  it takes int"),
        ({"completion": 3}, "completion = 3 is of type int\n  it takes a sequence of str"),
        ({"completion": [3]}, "completion[0] = 3 is of type int\n  it takes str"),
        ({"inputs": 3}, "inputs = 3 is of type int\n  it takes str or None"),
        ({"nvcc": 3}, "nvcc = 3 is of type int\n  it takes Nvcc or Path or str or None"),
        ({"kernel": 3}, "kernel = 3 is of type int\n  it takes str or None"),
    ],
)
def test_arguments_of_another_type(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as raised:
        verify(SMALL, **arguments)
    assert raised.value.report() == f"error: {message}"
    assert raised.value.exit_code == 2


def test_subjects_of_another_type() -> None:
    nothing: Any = None
    with pytest.raises(SpecError, match="subject = None is of type NoneType"):
        verify(nothing)
    with pytest.raises(SpecError) as raised:
        emit(nothing)
    assert raised.value.report() == "error: emit() takes a plan, not NoneType"
    spec: Any = SMALL
    with pytest.raises(SpecError) as raised:
        emit(spec)
    assert raised.value.report() == "error: emit() takes a plan, not Gemm\n  try: emit(plan(spec))"


def test_a_name_of_a_file_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.cu").write_text(text())
    report = verify("kernel.cu", [Shape(16, 16, 16)], **EAGER)
    assert (report.exit_code, report.subject) == (0, "kernel.cu")
    with pytest.raises(TmagenError, match=r"cannot read 'other\.cu': there is no such file"):
        verify("other.cu")
    with pytest.raises(TmagenError, match=r"cannot read '\.': it is a directory"):
        verify(Path())
    Path("int x{};").write_text(text())
    assert verify("int x{};", [Shape(16, 16, 16)], **EAGER).exit_code == 0


def test_messages_on_text_name_no_temporary_file(tmp_path: Path) -> None:
    for broken in ("int main() { return 0; }", text().replace("struct GemmArgs {", "struct GemmArgs { int63_t x;")):
        with pytest.raises(TmagenError) as raised:
            verify(broken)
        assert "kernel" in raised.value.report()
        assert "tmagen-" not in raised.value.report()


def test_of_two_kernels_one_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.cu"
    file.write_text(text("gemm_a") + text("gemm_b").replace("args.k > 0", "args.k > 1000000"))
    with pytest.raises(SourceFormError, match="holds 2 kernels, gemm_a and gemm_b"):
        verify(file)
    assert main(["verify", str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith(f"  try: tmagen verify {file} --kernel gemm_a\n")
    ways = ["--shape", "16,16,16", "--completion", "eager", "--input", "integer", "--no-checks"]
    assert main(["verify", str(file), "--kernel", "gemm_a", *ways]) == 0
    assert main(["verify", str(file), "--kernel", "gemm_b", *ways]) != 0
    capsys.readouterr()
    assert main(["verify", str(file), "--kernel", "gemm_c", *ways]) == 2
    assert "has no kernel 'gemm_c'\n  it has gemm_a, gemm_b\n" in capsys.readouterr().err
    assert main(["verify", "--kernel", "gemm_c"]) == 2
    assert capsys.readouterr().err == "error: --kernel 'gemm_c' chooses one of a FILE, and there is none\n"


@pytest.mark.parametrize("shape", ["2147483648,1,1", "1,2147483648,1", "1,1,2147483648", "1,-1,1"])
def test_shapes_out_of_range_are_wrong_use(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--shape", shape]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "is out of range: it is 0 to 2,147,483,647 elements" in said.err


def test_a_shape_beyond_the_kernels_limits_is_not_judged() -> None:
    # 65,536 tiles of 16 columns are one more than grid.y takes.
    report = verify(SMALL, [Shape(1, 65_536 * 16, 1)], **EAGER)
    assert report.exit_code == 2
    (case,) = report.cases
    assert case.verdict is Verdict.NOT_JUDGED
    assert case.message[0].startswith("launch() refuses the problem with cudaErrorInvalidValue: n = 1048576")
    # The same is legal where tiles have no place in the grid.
    persistent = Gemm(tile=Tile(128, 16, 32), schedule=Schedule(persistent=True, ctas=1))
    assert verify(persistent, [Shape(0, 65_536 * 16, 1)], **EAGER).exit_code == 0


def test_a_small_shape_has_to_be_computed() -> None:
    refusing = text().replace("args.m == 0 || args.n == 0", "args.m == 16")
    report = verify(refusing, [Shape(17, 1, 1), Shape(16, 1, 1)], **EAGER)
    assert report.exit_code == 1


@pytest.mark.parametrize(
    ("shape", "ld", "error", "refused"),
    [
        (Shape(1, 1, 1), 8, "cudaErrorInvalidValue", False),
        (Shape(1, 1, 1), 8, "cudaSuccess", False),
        (Shape(1, 1 << 20, 1), 8, "cudaErrorInvalidValue", True),
        (Shape(1 << 20, 1, 1), 8, "cudaErrorInvalidValue", True),
        (Shape(1, 1 << 20, 1), 8, "cudaErrorLaunchOutOfResources", False),
        (Shape(1 << 18, (1 << 18) + 8, 1), 8, "cudaErrorInvalidValue", False),
        (Shape(1, 1, 1), 1 << 39, "cudaErrorInvalidValue", True),
    ],
)
def test_who_may_refuse_what(shape: Shape, ld: int, error: str, refused: bool) -> None:
    outcome = Outcome((CallResult(error, "why", "cudaSuccess", 0),), (), (), (), 0, None, 0)
    said = beyond_limits(outcome, shape, LeadingDims(8, 8, ld), (DType.F16, DType.F16, DType.F16))
    assert said == (f"launch() refuses the problem with {error}: why" if refused else None)
