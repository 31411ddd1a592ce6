# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.check.kernels import ADD_S32
from tmagen.cli import main
from tmagen.emit import emit
from tmagen.ir import Gemm
from tmagen.plan import plan

Capture = pytest.CaptureFixture[str]

LAUNCH = """
grid = 4
block = 32
params = [{ pointer = "a" }, { pointer = "b" }, { pointer = "c" }, { s32 = 100 }]
expect = "c == a + b"
[buffers]
a = { dtype = "s32", shape = [100], fill = "integers" }
b = { dtype = "s32", shape = [100], fill = "iota" }
c = { dtype = "s32", shape = [100] }
"""


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("add.ptx").write_text(ADD_S32)
    Path("launch.toml").write_text(LAUNCH)
    return tmp_path


def test_a_right_kernel(capsys: Capture, files: Path) -> None:
    code, out, err = run(capsys, "check", "add.ptx", "--launch", "launch.toml", "--seed", "3")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "add.ptx"
    assert out.splitlines()[-1].startswith("4 passed")


def test_a_wrong_kernel_as_json_and_sarif(capsys: Capture, files: Path) -> None:
    Path("add.ptx").write_text(ADD_S32.replace("add.s32 %r8", "sub.s32 %r8"))
    code, out, _ = run(
        capsys, "check", "add.ptx", "--launch", "launch.toml", "--completion", "lazy", "--json", "--sarif", "r.sarif"
    )
    assert code == 1
    assert json.loads(out)["verdict"] == "failed"
    results = json.loads(Path("r.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["wrong-result"]
    code, out, _ = run(capsys, "check", "add.ptx", "--launch", "launch.toml", "--sarif", "-")
    assert code == 1
    assert json.loads(out)["version"] == "2.1.0"


def test_the_listed_entries_are_a_launch_file(capsys: Capture, files: Path) -> None:
    """It fits the kernel as it is; only what it computes is left to say."""
    code, out, _ = run(capsys, "check", "add.ptx", "--list-entries")
    assert code == 0
    Path("own.toml").write_text(out.replace('"f32"', '"s32"').replace("u32 = 0 }", "u32 = 128 }"))
    code, out, err = run(capsys, "check", "add.ptx", "--launch", "own.toml")
    assert (code, err) == (1, "")  # the skeleton fills all three buffers: c is an input that changes
    assert "buffer_2 were changed" in out


def test_every_kernel_is_listed(capsys: Capture, files: Path) -> None:
    text = ADD_S32 + ADD_S32[ADD_S32.index(".visible") :].replace("add(", "_ZN2ns5otherEi(").replace("add_param", "p")
    Path("two.ptx").write_text(text)
    code, out, _ = run(capsys, "check", "two.ptx", "--list-entries")
    assert code == 0
    assert 'kernel = "add"' in out
    assert '# kernel = "ns::other"' in out


@pytest.mark.parametrize("target", ["sm_100a"])
def test_the_example_runs_what_emit_writes(capsys: Capture, files: Path, target: str) -> None:
    Path("kernel.cu").write_text(emit(plan(Gemm())))
    code, out, _ = run(capsys, "check", "--example")
    assert code == 0
    Path("example.toml").write_text(out)
    command = ["check", "kernel.cu", "--launch", "example.toml", "--target", target, "--save-ptx", "kernel.ptx"]
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    assert "1 expectation each" in out
    # The PTX that was saved is what was checked; with another shape in the maps the same launch file finds it wrong.
    wrong = Path("example.toml").read_text().replace("box = [64, 128]", "box = [32, 128]", 1)
    Path("wrong.toml").write_text(wrong)
    code, out, _ = run(capsys, "check", "kernel.ptx", "--launch", "wrong.toml", "--completion", "eager")
    assert code == 1


MISUSE: list[tuple[list[str], str]] = [
    ([], "which kernel? FILE is missing"),
    (["add.ptx"], "how is it launched?"),
    (["none.ptx", "--launch", "launch.toml"], "cannot read 'none.ptx': there is no such file"),
    (["add.ptx", "--launch", "none.toml"], "cannot read 'none.toml'"),
    (["add.ptx", "--launch", "launch.toml", "--host"], "--launch and --host ask for different things"),
    (["add.ptx", "launch.toml", "--launch", "launch.toml"], "--launch takes one FILE"),
    (["add.ptx", "--example"], "--example takes no FILE"),
    (["add.ptx", "--launch", "launch.toml", "--call", "f"], "--call and --arg are for --host"),
    (["add.ptx", "--launch", "launch.toml", "--completion", "soon"], "--completion 'soon' cannot be read"),
    (["add.ptx", "--launch", "launch.toml", "--seed", "x"], "--seed 'x' cannot be read"),
    (["add.ptx", "--launch", "launch.toml", "--jobs", "0"], "--jobs '0' cannot be read"),
    (["add.ptx", "--launch", "launch.toml", "--target", "hopper"], "--target 'hopper' cannot be read"),
    (["add.ptx", "--launch", "launch.toml", "--nvcc-flag=-O0"], "nvcc's flags are for a .cu"),
    (["add.ptx", "--launch", "launch.toml", "--json", "--sarif", "-"], "both go to stdout"),
    (["add.ptx", "--launch", "launch.toml", "--sarif", "none/x"], "cannot write 'none/x'"),
    (["launch.toml", "--launch", "launch.toml"], "a kernel is a .ptx or a .cu file"),
    (["launch.toml", "--host"], "a host program is made of .cu and C++ files"),
    (["add.ptx", "--launch", "add.ptx"], "add.ptx is no TOML"),
    (["add.ptx", "--lanch", "x"], "No such option"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE)
def test_misuse_is_told(capsys: Capture, files: Path, arguments: list[str], message: str) -> None:
    code, _, err = run(capsys, "check", *arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert message in err
    assert "Traceback" not in err


def test_the_package_is_reached_from_the_top() -> None:
    from tmagen import check

    report: Any = check.run
    assert callable(report)
    assert check.Report.__dataclass_params__.frozen  # type: ignore[attr-defined]
