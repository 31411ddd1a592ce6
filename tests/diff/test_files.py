# SPDX-License-Identifier: Apache-2.0
"""Files of others: TVM's, with a launch file, and with nothing that launches them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tests import kept, tirx_text
from tmagen.cli import main
from tmagen.diff import Request, diff_files, diff_spec, to_dict
from tmagen.diff.launch_side import launch_file
from tmagen.diff.tvm_side import spec_of_name
from tmagen.emit import emit
from tmagen.errors import SpecError
from tmagen.ir import DType, Gemm, Pipeline, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import derived_name, plan
from tmagen.presets import PRESETS
from tmagen.tirx import tirx_script
from tmagen.toolchain import compile_ptx, find_nvcc

pytestmark = pytest.mark.usefixtures("compiled_once")

SHAPE = Shape(256, 256, 256)
STEP6 = Gemm(problem=Problem(shape=SHAPE), schedule=Schedule(persistent=True))


@pytest.mark.parametrize(
    "spec",
    [
        STEP6,
        Gemm(problem=Problem(DType.BF16, DType.BF16, DType.F32, shape=Shape(512, 384, 64)), pipeline=Pipeline(1)),
        Gemm(Problem(shape=SHAPE), Tile(128, 240, 128), Pipeline(2), Schedule(True, 20, 3)),
        Gemm(problem=Problem(d=DType.BF16, shape=SHAPE), target=Target.SM_90A),
    ],
    ids=derived_name,
)
def test_a_spec_is_read_off_its_name(spec: Gemm) -> None:
    assert spec_of_name(derived_name(spec)) == spec


@pytest.mark.parametrize(
    "name",
    ["kernel", "gemm_sm100a_f16_128x128x64_depth2", "gemm_sm100a_f8_128x128x64_depth2_256x256x256",
     "gemm_sm100a_f16_128x100x64_depth2_256x256x256", "gemm_sm100a_f16_128x128x64_depth02_256x256x256"],
)  # fmt: skip
def test_other_names_are_nobodys(name: str) -> None:
    assert spec_of_name(name) is None


# --- TVM's files ------------------------------------------------------------------------------------------------------


@cache
def tvm_text() -> str:
    tirx_text.require()
    return kept.build_scripts([tirx_script(STEP6)])[0].text


def test_what_tvm_made_is_launched_as_tvm_does(tmp_path: Path) -> None:
    """Unedited, so that a smaller grid may be emulated, whose CTAs take several tiles."""
    path = tmp_path / "theirs.cu"
    path.write_text(tvm_text())
    comparison = diff_spec(PRESETS["step6"].spec, path, Request(emulate=SHAPE))
    assert comparison.exit_code == 0
    assert comparison.problem.shape == SHAPE
    assert "as TVM makes it" in comparison.right.made_by
    assert comparison.result is not None
    assert [check.rule for check in comparison.result.checks if check.right] == ["TC-08"]


def test_an_edited_file_and_ptx_of_tvm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, wrong, ptx = (tmp_path / name for name in ("theirs.cu", "wrong.cu", "theirs.ptx"))
    path.write_text(tvm_text())
    assert tvm_text().count(", 32768)") == 2
    wrong.write_text(tvm_text().replace("((f_1 & 7) * 8)", "((f_1 & 7) * 0)"))
    assert wrong.read_text() != path.read_text()
    comparison = diff_files(path, wrong, Request(parts=("result",)))
    assert comparison.exit_code == 1
    assert comparison.trial.shape == SHAPE
    assert "though its code is another" in comparison.right.made_by
    ptx.write_text(compile_ptx(find_nvcc(), path, flags=("-O1",)))
    assert main(["diff", "--preset", "step6", "--against", str(ptx), "--only", "result", "--shape", "512,512,512"]) == 2
    assert "--shape differs from the shape that is baked in: 256,256,256" in capsys.readouterr().err
    assert main(["diff", "--preset", "step6", "--against", str(ptx), "--only", "result"]) == 0


# --- launch files -----------------------------------------------------------------------------------------------------

LAUNCH = """
kernel = "{kernel}"
grid = [2, 2]
block = 128
dynamic_smem_bytes = 66560
params = [{{ map = "a" }}, {{ map = "b" }}, {{ map = "d" }}, {{ struct = [{{ u32 = 4 }}] }},
  {{ struct = [{{ pointer = "D" }}, {{ s64 = 256 }}, {{ u32 = 256 }}, {{ u32 = 256 }}, {{ u32 = 0 }}] }}]
[buffers]
A = {{ dtype = "f16", shape = [256, 256], fill = "integers" }}
B = {{ dtype = "f16", shape = [256, 256], fill = "integers" }}
D = {{ dtype = "f16", shape = [256, {columns}] }}
[maps]
a = {{ buffer = "A", box = [64, 128], swizzle = "128B" }}
b = {{ buffer = "B", box = [64, 128], swizzle = "128B" }}
d = {{ buffer = "D", box = [64, 128], swizzle = "128B" }}
"""
STEP4 = plan(PRESETS["step4"].spec)


@pytest.fixture
def ptx_of_step4(tmp_path: Path) -> Path:
    source, path = tmp_path / "step4.cu", tmp_path / "mine.ptx"
    source.write_text(emit(STEP4))
    # An unknown kernel of one shape among others, as far as anybody can tell.
    path.write_text(compile_ptx(find_nvcc(), source).replace("ProblemENS", "ProblenENS"))
    return path


def launch_toml(folder: Path, **words: object) -> Path:
    path = folder / "launch.toml"
    path.write_text(LAUNCH.format(**{"kernel": STEP4.name, "columns": 256, **words}))
    return path


def test_a_launch_file_launches_any_kernel(tmp_path: Path, ptx_of_step4: Path) -> None:
    launch = launch_toml(tmp_path)
    comparison = diff_spec(PRESETS["step5"].spec, ptx_of_step4, Request(against_launch=launch))
    assert comparison.exit_code == 0
    assert comparison.trial.shape == comparison.problem.shape == SHAPE
    assert "launched by" in comparison.right.made_by
    both = diff_files(ptx_of_step4, ptx_of_step4, Request(parts=("result",), launch=launch, against_launch=launch))
    assert both.exit_code == 0


def test_launch_files_that_are_none_of_a_gemm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = launch_toml(tmp_path, columns=128)
    with pytest.raises(SpecError, match=r"A \[256, 256\], B \[256, 256\], D \[256, 128\]"):
        launch_file(path)
    path.write_text(path.read_text().replace("D = {", "C = {").replace('"D"', '"C"'))
    with pytest.raises(SpecError, match="there is no buffer D"):
        launch_file(path)
    path.write_text("grid = 1")
    assert main(["diff", "--preset", "step6", "--against", str(path), "--against-launch", str(path)]) == 2
    assert "there is no buffer A and no buffer B and no buffer D" in capsys.readouterr().err


# --- nothing launches it ----------------------------------------------------------------------------------------------

UNKNOWN = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry gemm(.param .u64 a, .param .u64 b, .param .u32 m)
{
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    bar.sync 0;
    ret;
}
"""


def test_without_a_launch_it_is_said_what_to_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unknown.ptx"
    path.write_text(UNKNOWN)
    assert main(["diff", "--preset", "step6", "--against", str(path)]) == 2
    error = capsys.readouterr().err
    assert "unknown.ptx: nothing says how its kernel is launched" in error
    assert "parameters, bytes: 8, 8, 4" in error
    assert "--list-entries > launch.toml" in error
    assert "try: --against-launch launch.toml" in error


def test_without_a_launch_the_code_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "unknown.ptx"
    path.write_text(UNKNOWN)
    comparison = diff_files(path, path, Request(parts=("events", "plan", "cost")))
    assert comparison.exit_code == 0
    found = to_dict(comparison)
    assert found["unlaunched"] == ["unknown.ptx", "unknown.ptx"]
    assert found["problem"] is None
    assert not {"events", "result"} & found.keys()
    assert [(fact["name"], fact["left"]) for fact in found["code"][0]["facts"]] == [("bar.sync", "1")]
    known = {fact["name"]: fact["left"] for group in found["plan"] for fact in group["facts"]}
    assert known["parameters"] == "0 tensor maps and 20 bytes"
    costs = {fact["name"]: fact["left"] for group in found["cost"] for fact in group["facts"]}
    assert int(costs["registers a thread"]) > 0 and costs["CTAs of one SM"] == "-"
    assert json.dumps(found)
