# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tmagen.cli import main
from tmagen.emit import emit
from tmagen.errors import TmagenError
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Shape
from tmagen.plan import plan
from tmagen.presets import PRESETS

Capture = pytest.CaptureFixture[str]


class Report:
    """What the command asks of a report."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code

    def summary(self) -> str:
        return "the summary"

    def to_dict(self) -> dict[str, int]:
        return {"exit_code": self.exit_code}


class Calls:
    """Stands in for the function that does the work, and keeps what it was asked."""

    def __init__(self) -> None:
        self.exit_code = 0
        self.subject: Any = None
        self.shapes: Any = None
        self.options: dict[str, Any] = {}

    def __call__(self, subject: Any, shapes: Any, **options: Any) -> Report:
        self.subject, self.shapes, self.options = subject, shapes, options
        return Report(self.exit_code)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    fake = Calls()
    monkeypatch.setattr(importlib.import_module("tmagen.verify"), "verify", fake)
    return fake


def test_defaults(calls: Calls, capsys: Capture) -> None:
    assert main(["verify"]) == 0
    assert calls.subject == Gemm()
    assert calls.shapes is None
    options = calls.options
    assert (options["completion"], options["inputs"], options["seed"]) == (None, None, 0)
    assert (options["lds"], options["jobs"], options["nvcc"]) == (None, None, None)
    assert capsys.readouterr() == ("the summary\n", "")


def test_every_option(calls: Calls) -> None:
    arguments = "--shape 512,512,512 --shape 129,136,72 --completion lazy --input normal --seed 7 --ld 520,528,536"
    more = "--jobs 2 --nvcc /opt/nvcc --dtype bf16 --pipe-depth 1 -x"
    assert main(["verify", *arguments.split(), *more.split()]) == 0
    operands = Problem(DType.BF16, DType.BF16, DType.BF16)
    assert calls.subject == Gemm(operands, pipeline=Pipeline(1, Policy.SERIAL))
    assert calls.shapes == [Shape(512, 512, 512), Shape(129, 136, 72)]
    options = calls.options
    assert (options["completion"], options["inputs"], options["seed"]) == ("lazy", "normal", 7)
    assert (options["lds"].a, options["lds"].b, options["lds"].d) == (520, 528, 536)
    assert (options["jobs"], options["nvcc"], options["fail_fast"]) == (2, "/opt/nvcc", True)


def test_shapes_to_try_are_not_baked_in(calls: Calls) -> None:
    assert main(["verify", "--preset", "step6", "--shape", "8,8,8"]) == 0
    assert calls.subject == PRESETS["step6"].spec
    assert main(["verify", "--preset", "step6-4096"]) == 0
    assert calls.subject.problem.shape == Shape(4096, 4096, 4096)
    assert calls.shapes is None


def test_a_file_as_it_stands(calls: Calls, tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text("// edited")
    assert main(["verify", str(file), "--shape", "1,1,1"]) == 0
    assert calls.subject == file


@pytest.mark.parametrize("code", [0, 1, 2])
def test_exit_code_is_the_reports(calls: Calls, code: int, capsys: Capture) -> None:
    calls.exit_code = code
    assert main(["verify", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"exit_code": code}


def test_misuse_is_told_at_once(calls: Calls, capsys: Capture) -> None:
    arguments = "--shape 1,2 --completion fast --input x --seed -1 --ld 1,2 --jobs 0 --tile 64,128,64 --dtype f8"
    assert main(["verify", *arguments.split()]) == 2
    assert calls.subject is None
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line for line in captured.err.splitlines() if line.startswith("error: ")] == [
        "error: --dtype 'f8' cannot be read: it is f16 or bf16",
        "error: --shape '1,2' cannot be read: it takes three integers M,N,K",
        "error: --completion 'fast' cannot be read: it is eager, lazy, newest-first, random, producer-first, "
        "consumer-first, late-read, split, adversarial, poison, starve, timed, usual or all",
        "error: --input 'x' cannot be read: it is integer, normal or both",
        "error: --seed '-1' cannot be read: it takes 0 to 9,223,372,036,854,775,807",
        "error: --ld '1,2' cannot be read: it takes three integers A,B,D",
        "error: --jobs '0' cannot be read: it takes 1 to 1,024",
        "error: tile.m = 64 is no M of the MMA on sm_100a: it is 128",
    ]


def test_file_and_flags_contradict(calls: Calls, capsys: Capture) -> None:
    assert main(["verify", "nowhere.cu", "--preset", "step6", "--no-persistent", "--seed", "x"]) == 2
    assert capsys.readouterr().err == (
        "error: --seed 'x' cannot be read: it takes an integer\n"
        "error: 'nowhere.cu' says which kernel it is: --preset, --persistent cannot change it\n"
        "error: cannot read 'nowhere.cu': there is no such file\n"
    )
    assert main(["verify", "kernel.toml"]) == 2
    assert capsys.readouterr().err == "error: 'kernel.toml' is no kernel\n  try: tmagen verify --spec kernel.toml\n"
    assert main(["verify", "a\0b"]) == 2
    assert calls.subject is None


def test_errors_end_with_their_own_code(calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class FailedError(TmagenError):
        exit_code = 1

    def fail(*_: Any, **__: Any) -> None:
        raise FailedError("two threads wait for each other")

    monkeypatch.setattr(importlib.import_module("tmagen.verify"), "verify", fail)
    assert main(["verify"]) == 1
    assert capsys.readouterr().err == "error: two threads wait for each other\n"


def test_for_real(tmp_path: Path, capsys: Capture) -> None:
    """One kernel, right as it is emitted, and wrong once its host part is."""
    quick = ["--shape", "129,136,72", "--completion", "eager", "--input", "integer", "--jobs", "1"]
    file = tmp_path / "kernel.cu"
    text = emit(plan(PRESETS["step4"].spec))
    file.write_text(text)
    assert main(["verify", str(file), *quick]) == 0
    assert "nvcc" in capsys.readouterr().out
    broken = text.replace("args.ldb * ", "2 * args.ldb * ")
    assert broken != text
    file.write_text(broken)
    assert main(["verify", str(file), *quick]) == 1
    file.write_text(text.replace("fence.proxy.async", "fence.proxy.nothing"))
    assert main(["verify", str(file), *quick]) == 2
