# SPDX-License-Identifier: Apache-2.0
"""`tmagen run` and `tmagen bench`: what their arguments mean, and what they say where there is no GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tmagen.bind import LeadingDims
from tmagen.cli import main
from tmagen.cli_bench import contenders
from tmagen.cli_options import FLAGS
from tmagen.errors import SpecError
from tmagen.gpu import bench, device, driver, validate
from tmagen.gpu.errors import HangError, MissingError
from tmagen.ir import DType, Gemm, Pipeline, Problem, Schedule, Shape, Target, Tile
from tmagen.presets import PRESETS

Capture = pytest.CaptureFixture[str]


class Report:
    """What a command asks of a report."""

    exit_code = 0
    lost = False

    def text(self) -> str:
        return "the report"

    def to_dict(self) -> dict[str, int]:
        return {"exit_code": self.exit_code}


class Calls:
    """Stands in for the function that does the work, and keeps what it was asked."""

    def __init__(self) -> None:
        self.arguments: tuple[Any, ...] = ()
        self.options: dict[str, Any] = {}
        self.error: Exception | None = None

    def __call__(self, *arguments: Any, **options: Any) -> Report:
        self.arguments, self.options = arguments, options
        if self.error is not None:
            raise self.error
        return Report()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(validate, "run", calls)
    return calls


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(bench, "bench", calls)
    return calls


def no_driver() -> Any:
    raise MissingError("no NVIDIA driver on this machine: libcuda.so.1 cannot be loaded")


@pytest.mark.parametrize("command", ["run", "bench"])
def test_without_a_driver(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(driver, "library", no_driver)
    assert main([command, "--target", "sm_90a"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: no NVIDIA driver on this machine")
    assert captured.err.endswith("  try: tmagen verify, which needs no GPU\n")
    if importlib.util.find_spec("pycuda") is None:
        assert 'PyCUDA is not installed: pip install "tmagen[gpu]"' in captured.err


@pytest.mark.parametrize("command", ["run", "bench"])
def test_without_pycuda(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(driver, "library", lambda: None)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert main([command, "--target", "sm_90a"]) == 2
    assert capsys.readouterr().err == (
        'error: PyCUDA is not installed: pip install "tmagen[gpu]"\n  try: tmagen verify, which needs no GPU\n'
    )


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class Cuda:
        class Error(Exception):
            pass

        def init(self) -> None:
            raise Cuda.Error("cuInit failed: no CUDA-capable device is detected")

    monkeypatch.setattr(driver, "library", lambda: None)
    monkeypatch.setattr(device, "find_spec", lambda name: name)
    monkeypatch.setattr(device, "import_module", lambda name: Cuda())
    assert main(["run"]) == 2
    assert capsys.readouterr().err == (
        "error: no GPU to be had: cuInit failed: no CUDA-capable device is detected\n"
        "  try: tmagen verify, which needs no GPU\n"
    )


def test_run_s_defaults(runs: Calls, capsys: Capture) -> None:
    assert main(["run"]) == 0
    subject, shapes, settings = runs.arguments
    assert (subject, shapes) == (Gemm(), None)
    assert settings == validate.RunSettings(("integer", "normal"), (0,), 0, ("numpy", "torch"), 20.0)
    assert runs.options["compiler"] == "nvcc"
    assert (runs.options["lds"], runs.options["nvcc"], runs.options["device"]) == (None, None, 0)
    assert capsys.readouterr().out == "the report\n"


def test_run_s_options(runs: Calls, tmp_path: Path) -> None:
    file = tmp_path / "kernel.cu"
    file.write_text("// a kernel")
    words = "--shape 8,8,8 --shape 9,9,9 --seed 1 --seed 2 --repeat 7 --ld 8,16,24 --reference torch --timeout 3"
    assert main(["run", str(file), *words.split(), "--input", "integer", "--compiler", "pycuda", "--device", "1"]) == 0
    subject, shapes, settings = runs.arguments
    assert (subject, shapes) == (file, [Shape(8, 8, 8), Shape(9, 9, 9)])
    assert settings == validate.RunSettings(("integer",), (1, 2), 7, ("torch",), 3.0)
    assert (runs.options["lds"], runs.options["compiler"]) == (LeadingDims(8, 16, 24), "pycuda")
    assert runs.options["device"] == 1


def test_run_s_misuse(runs: Calls, capsys: Capture) -> None:
    assert main("run x.cu --preset step5 --seed x --repeat -1 --reference mine --compiler gcc --timeout 0".split()) == 2
    assert runs.arguments == ()
    found = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert [line.split()[1] for line in found] == [
        *("--seed", "--repeat", "--reference", "--compiler", "--timeout"),
        *("'x.cu'", "cannot"),
    ]


def options(**given: str) -> dict[str, Any]:
    return {**{flag.replace("-", "_"): None for flag in ("preset", "spec", *FLAGS)}, **given}


def test_what_a_spec_of_bench_means(tmp_path: Path) -> None:
    file, toml = tmp_path / "kernel.cu", tmp_path / "spec.toml"
    file.write_text("// a kernel")
    toml.write_text("[tile]\nn = 64\n")
    texts = ("step4", "step6 --tile 128,256,64 --pipe-depth 4 --ctas 264", "--persistent", str(file), str(toml))
    found = contenders(texts, options(target="sm_90a", dtype="bf16"), [])
    assert [label for label, _ in found] == list(texts)
    bf16 = Problem(DType.BF16, DType.BF16, DType.BF16)
    assert [subject for _, subject in found] == [
        Gemm(bf16, pipeline=PRESETS["step4"].spec.pipeline, target=Target.SM_90A),
        Gemm(bf16, Tile(128, 256, 64), Pipeline(4), Schedule(True, 264), target=Target.SM_90A),
        Gemm(bf16, schedule=Schedule(True), target=Target.SM_90A),
        file,
        Gemm(bf16, Tile(128, 64, 64), target=Target.SM_90A),
    ]
    assert contenders((), options(preset="step6"), []) == [("step6", PRESETS["step6"].spec)]
    # Its own flags win over those outside.
    ((_, own),) = contenders(("step5 --dtype f16",), options(target="sm_90a", dtype="bf16"), [])
    assert own == Gemm(target=Target.SM_90A)


def test_everything_wrong_with_specs_is_told_at_once() -> None:
    with pytest.raises(SpecError) as wrong:
        contenders(("nosuch", "step5 --what", "none.cu", "step5 '", "step5 --pipe-depth 99"), options(), [])
    messages = [diagnostic.message for diagnostic in wrong.value.diagnostics]
    assert len(messages) >= 5
    for part in ("'nosuch' is unknown", "No such option", "cannot read 'none.cu'", "No closing quotation", "= 99"):
        assert any(part in message for message in messages)


def test_bench_s_options(benches: Calls, capsys: Capture) -> None:
    words = "--shape 512,512,512 --method graph --rounds 9 --seed 3 --cublas library --json"
    assert main(["bench", "step5", "--target", "sm_90a", *words.split()]) == 0
    subjects, shapes, settings = benches.arguments
    assert subjects == [("step5", Gemm(target=Target.SM_90A))]
    assert shapes == [Shape(512, 512, 512)]
    assert settings == bench.BenchSettings("graph", rounds=9, seed=3, cublas="library")
    assert capsys.readouterr().out == '{\n  "exit_code": 0\n}\n'
    assert main(["bench"]) == 0
    assert benches.arguments[1] == (Shape(4096, 4096, 4096), Shape(8192, 8192, 8192))


def test_bench_s_misuse(benches: Calls, capsys: Capture) -> None:
    assert main("bench step5 --shape 0,8,8 --method slow --rounds 0 --cublas mine --plot x.gif".split()) == 2
    assert benches.arguments == ()
    err = capsys.readouterr().err
    for part in ("--method", "--rounds", "--cublas", "--plot", "0,8,8: nothing to measure"):
        assert part in err


def test_a_kernel_that_hangs_while_it_is_measured(benches: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends at once: an orderly end would wait for the kernel."""
    left: list[int] = []

    def leave(code: int) -> None:
        left.append(code)
        raise SystemExit(code)

    monkeypatch.setattr("tmagen.cli_bench.leave", leave)
    benches.error = HangError("the kernel did not end within 30 s: it hangs")
    with pytest.raises(SystemExit):
        main(["bench", "step5"])
    assert left == [1]


def test_a_run_that_lost_its_context(runs: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    left: list[int] = []
    monkeypatch.setattr("tmagen.cli_run.leave", left.append)
    monkeypatch.setattr(Report, "lost", True)
    monkeypatch.setattr(Report, "exit_code", 1)
    assert main(["run"]) == 1
    assert left == [1]
    assert capsys.readouterr().out == "the report\n"
