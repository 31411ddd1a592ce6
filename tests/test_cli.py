# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tmagen.cli_emit
from tmagen.cli import COMMANDS, main
from tmagen.cli_output import read_text, write_text
from tmagen.emit import emit
from tmagen.errors import SpecError
from tmagen.ir import DType, Gemm, Pipeline, Problem, Schedule, Shape, Tile
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.spec_toml import from_toml, to_toml

Capture = pytest.CaptureFixture[str]
TMAGEN = [sys.executable, "-m", "tmagen.cli"]


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process."""
    code = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def accepted(capsys: Capture, *arguments: str) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    return out


def refused(capsys: Capture, *arguments: str) -> str:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    return err


# --- emit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        ((), PRESETS["step5"].spec),
        (("--pipe-depth", "1"), PRESETS["step4"].spec),
        (("--pipe-depth", "2", "--persistent"), PRESETS["step6"].spec),
        (("--preset", "step6", "--no-persistent"), PRESETS["step5"].spec),
        (
            ("--preset", "step5", "--dtype", "bf16", "--tile", "128,256,64", "--pipe-depth", "4"),
            Gemm(Problem(DType.BF16, DType.BF16, DType.BF16), Tile(128, 256, 64), Pipeline(4)),
        ),
        (
            ("--persistent", "--ctas", "132", "--l2-group", "4", "--out-dtype", "f32", "--name", "mine"),
            Gemm(Problem(d=DType.F32), schedule=Schedule(True, 132, 4), name="mine"),
        ),
        (("--shape", "4096,4096,4096"), Gemm(Problem(shape=Shape(4096, 4096, 4096)))),
    ],
)
def test_emit(capsys: Capture, arguments: tuple[str, ...], spec: Gemm) -> None:
    assert accepted(capsys, "emit", *arguments) == emit(plan(spec))


def test_emit_to_a_file(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    assert accepted(capsys, "emit", "-o", str(file)) == ""
    assert file.read_text() == emit(plan(Gemm()))
    assert accepted(capsys, "emit", "--persistent", "--output", str(file)) == ""
    assert file.read_text() == emit(plan(PRESETS["step6"].spec))
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask


def test_emit_from_toml(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kernel.toml"
    file.write_text('[problem]\na = "bf16"\n[pipeline]\ndepth = 4\n')
    spec = Gemm(Problem(DType.BF16, DType.BF16, DType.BF16), pipeline=Pipeline(3))
    assert accepted(capsys, "emit", "--spec", str(file), "--pipe-depth", "3") == emit(plan(spec))


def test_every_mistake_is_told(capsys: Capture, tmp_path: Path) -> None:
    toml = tmp_path / "kernel.toml"
    toml.write_text("[pipeline]\ndpeth = 3\n")
    err = refused(capsys, "emit", "--spec", str(toml), "--tile", "64,24,3", "--dtype", "f8", "--name", "a__b")
    assert [line for line in err.splitlines() if line.startswith("error: ")] == [
        f"error: {toml}: pipeline.dpeth is no key of a spec",
        "error: --dtype 'f8' cannot be read: it is f16 or bf16",
        "error: tile.m = 64 is no M of the MMA on sm_100a: it is 128",
        "error: tile.n = 24 is no N of the MMA on sm_100a: it is 16 to 256 in steps of 16",
        "error: tile.k = 3 is no whole number of swizzle atoms: it is 32, 64 or 128",
        "error: name = 'a__b' has a double underscore, which C++ reserves",
    ]
    assert "  try: pipeline.depth\n" in err


def test_shared_memory_message(capsys: Capture) -> None:
    assert refused(capsys, "emit", "--pipe-depth", "7") == (
        "error: pipeline.depth = 7 needs 263,168 bytes of shared memory; sm_100a allows 232,448 per block\n"
        "  7 stages of A 128x64 f16 (16,384) + B 128x64 f16 (16,384) = 229,376; "
        "epilogue buffer 32,768; barriers 1,024\n"
        "  try: --pipe-depth 6\n"
    )
    accepted(capsys, "emit", "--pipe-depth", "6")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("emit", "--depth", "3"), "error: No such option '--depth'."),
        (("emit", "--tile"), "error: Option '--tile' requires an argument.\n  try: tmagen emit --help\n"),
        (("emit", "extra"), "error: Got unexpected extra argument (extra)"),
        (("emitt",), "error: No such command 'emitt'."),
        (("emit", "--preset", "step66"), "error: --preset 'step66' is unknown: it is step4, step5,"),
        (("emit", "--preset", ""), "error: --preset '' is unknown: it is step4, step5,"),
        (("emit", "--name", ""), "error: name = '' is empty"),
        (("emit", "--name", "*/ int x;"), "error: name = '*/ int x;' is not an identifier"),
        (("emit", "--pipe-depth", "-1"), "error: pipeline.depth = -1 leaves no stage to load into"),
        (("emit", "--shape", "-1,1,1"), "error: problem.shape.m = -1 is out of range"),
        (("emit", "--spec", "/nowhere/k.toml"), "error: cannot read '/nowhere/k.toml': No such file or directory"),
        (("emit", "--spec", "/"), "error: cannot read '/': Is a directory"),
        (("emit", "--spec", "/dev/zero"), "error: cannot read '/dev/zero': it has more than 1,048,576 bytes"),
        (("emit", "--spec", "a\0b"), "error: cannot read 'a\\x00b': embedded null byte"),
        (("explain", "--k-tiles", "x"), "error: --k-tiles 'x' cannot be read: it takes an integer"),
        (("explain", "--k-tiles", "-1"), "error: --k-tiles '-1' cannot be read: it takes 0 to 10,000"),
        (("explain", "--k-tiles", "99999"), "error: --k-tiles '99999' cannot be read: it takes 0 to 10,000"),
        (("explain", "--shape", "1,2"), "error: --shape '1,2' cannot be read: it takes three integers M,N,K"),
        (
            ("explain", "--shape", "1,99999999,3"),
            "error: problem.shape.n = 99,999,999 has 781,250 tiles of 128 columns",
        ),
        (("explain", "--preset", "step6-4096", "--shape", "1,2,3"), "error: shape 1,2,3: the kernel is for 4096,"),
        (("explain", "--toml", "--json"), "error: --toml prints the spec alone"),
    ],
)
def test_misuse(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    assert refused(capsys, *arguments).startswith(message)


def test_spec_that_is_no_text(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "kernel.toml"
    file.write_bytes(b"name = '\xff'")
    assert refused(capsys, "emit", "--spec", str(file)) == f"error: cannot read {str(file)!r}: byte 8 is no UTF-8\n"


# --- files are whole or not there -------------------------------------------------------------------


def test_nothing_is_written_for_an_illegal_spec(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    refused(capsys, "emit", "--pipe-depth", "7", "-o", str(file))
    assert not list(tmp_path.iterdir())
    file.write_text("before")
    refused(capsys, "emit", "--pipe-depth", "7", "-o", str(file))
    assert file.read_text() == "before"


def test_a_failed_write_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "k.cu"
    file.write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(SpecError, match=r"cannot write .*: No space left on device"):
        write_text(str(file), "after")
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]


def test_unwritable(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target, reason in (
        (tmp_path / "folder", "it is a directory"),
        (tmp_path / "none" / "k.cu", f"there is no directory {str(tmp_path / 'none')!r}"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        assert refused(capsys, "emit", "-o", str(target)) == f"error: cannot write {str(target)!r}: {reason}\n"
    assert refused(capsys, "emit", "-o", "") == "error: cannot write '': the name is empty\n"
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


def test_write_protected_file(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "k.cu"
    file.write_text("mine")
    file.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as it is for anyone but root
    assert refused(capsys, "emit", "-o", str(file)) == f"error: cannot write {str(file)!r}: it is write-protected\n"
    assert file.read_text() == "mine"


def test_mode_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "k.cu", tmp_path / "link.cu"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    write_text(str(link), "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_devices_and_pipes(tmp_path: Path) -> None:
    write_text(os.devnull, "gone")
    assert Path(os.devnull).is_char_device()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True)
    write_text(str(fifo), "through")
    assert reader.communicate(timeout=10)[0] == "through"
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_read_text_drops_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "kernel.toml"
    file.write_bytes(b"\xef\xbb\xbfname = 'my_kernel'\r\n")
    assert from_toml(read_text(str(file))).name == "my_kernel"


# --- explain, list, help ----------------------------------------------------------------------------


def test_explain(capsys: Capture) -> None:
    out = accepted(capsys, "explain", "--preset", "step6", "--shape", "4096,4096,4096", "--k-tiles", "5")
    name = plan(PRESETS["step6"].spec).name
    assert out.startswith(f"{name}\n")
    assert "\nshape 4096,4096,4096\ntmagen emit --persistent\n" in out
    assert "6.92 on average: 136 take 7 and 12 take 6" in out
    assert "K loop of 5 K tiles, 320 elements" in out
    assert not re.search(r"[ \t]$", out, re.MULTILINE)
    assert "\x1b" not in out


def test_explain_a_baked_in_shape(capsys: Capture, tmp_path: Path) -> None:
    out = accepted(capsys, "explain", "--preset", "step6-4096")
    assert "\nshape 4096,4096,4096, baked in\ntmagen emit --shape 4096,4096,4096 --persistent\n" in out
    assert "output tiles" in out


def test_explain_json(capsys: Capture) -> None:
    document = json.loads(accepted(capsys, "explain", "--preset", "step6", "--shape", "512,512,512", "--json"))
    assert document["launch"]["grid"] == [16, 1, 1]
    assert document["shape_is_baked_in"] is False
    assert json.loads(accepted(capsys, "explain", "--json"))["dims_are"] == "expressions"


def test_explain_toml_is_the_same_kernel(capsys: Capture, tmp_path: Path) -> None:
    flags = ("--preset", "step6", "--dtype", "bf16", "--out-dtype", "f32", "--shape", "100,200,300")
    text = accepted(capsys, "explain", *flags, "--toml")
    file = tmp_path / "kernel.toml"
    file.write_text(text)
    assert accepted(capsys, "emit", "--spec", str(file)) == accepted(capsys, "emit", *flags)
    assert accepted(capsys, "explain", "--toml") == to_toml(Gemm())


def test_list(capsys: Capture) -> None:
    out = accepted(capsys, "list")
    for name in PRESETS:
        assert re.search(rf"^  {name} ", out, re.MULTILINE)
    assert re.search(r"^  sm_100a  10\.0 +148 ", out, re.MULTILINE)


def test_version(capsys: Capture) -> None:
    assert accepted(capsys, "--version") == f"tmagen {tmagen.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(capsys: Capture, command: str) -> None:
    out = accepted(capsys, command, "--help")
    assert "Examples:\n" in out
    assert f"    tmagen {command}" in out
    assert accepted(capsys, command, "-h") == out


@pytest.mark.parametrize("command", ["emit", "explain", "verify"])
def test_spec_flags_everywhere(capsys: Capture, command: str) -> None:
    out = accepted(capsys, command, "--help")
    for flag in (
        "--preset --spec --target --name --dtype --out-dtype --tile --pipe-depth --policy --persistent --no-persistent "
        "--ctas --l2-group --shape"
    ).split():
        assert re.search(rf"(^|[ /]){flag}\b", out, re.MULTILINE), flag


def test_top_level_help(capsys: Capture) -> None:
    out = accepted(capsys, "--help")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.MULTILINE)
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert "Commands:" in err


def test_examples_of_the_help_work(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.toml").write_text(to_toml(Gemm()))
    for command in ("emit", "explain", "list"):
        for line in accepted(capsys, command, "--help").split("Examples:\n")[1].splitlines():
            example = re.split(r"\s{2,}| > ", line.strip())[0].split()
            if example:
                accepted(capsys, *example[1:])


# --- as a process -----------------------------------------------------------------------------------


def test_a_closed_pipe_is_no_error() -> None:
    process = subprocess.Popen([*TMAGEN, "emit"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 141


def test_a_full_disk_is_told() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([*TMAGEN, "emit"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "error: writing the output failed: No space left on device\n"
    assert done.returncode == 2


def test_interrupt(tmp_path: Path) -> None:
    fifo = tmp_path / "spec"
    os.mkfifo(fifo)
    process = subprocess.Popen([*TMAGEN, "emit", "--spec", str(fifo)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(fifo, "w"):  # opens once the command reads, which then waits for text
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_dev_stdout_is_stdout() -> None:
    done = subprocess.run([*TMAGEN, "emit", "-o", "/dev/stdout"], capture_output=True, text=True, check=True)
    assert done.stdout == emit(plan(Gemm()))


def test_spec_from_stdin() -> None:
    done = subprocess.run(
        [*TMAGEN, "emit", "--spec", "-"],
        input=to_toml(PRESETS["step6"].spec),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == emit(plan(PRESETS["step6"].spec))


def test_ascii_output_is_enough() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    for arguments in (["emit"], ["explain", "--shape", "1,1,1"], ["list"], ["--help"]):
        subprocess.run([*TMAGEN, *arguments], env=environment, capture_output=True, check=True)


def test_emit_imports_little() -> None:
    code = (
        "import sys; from tmagen.cli import main; main(['emit', '-o', '/dev/null']);"
        "print([m for m in ('numpy', 'rich', 'ml_dtypes', 'tomllib', 'subprocess') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
