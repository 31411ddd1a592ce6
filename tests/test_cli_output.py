# SPDX-License-Identifier: Apache-2.0
"""Streams that are closed, files that are whole or not there, and text that a terminal can be shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tmagen.cli import main
from tmagen.cli_output import Terminated, orderly_end, write_text
from tmagen.errors import Diagnostic, SpecError, printable
from tmagen.words import named, nearest, unreadable

Result = subprocess.CompletedProcess[str]


def shell(command: str, cwd: Path) -> Result:
    """`command` by a shell that knows `tmagen`; only the shell can close streams."""
    script = f"tmagen() {{ '{sys.executable}' -m tmagen \"$@\"; }}\n{command}"
    return subprocess.run(["bash", "-c", script], cwd=cwd, capture_output=True, text=True, check=False)


# --- closed streams ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["emit", "list", "explain", "explain --json", "--help", "--version", "emit --help"])
def test_a_closed_stdout_is_misuse(command: str, tmp_path: Path) -> None:
    done = shell(f"tmagen {command} >&-", tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: writing the output failed: stdout is closed\n")


def test_a_file_is_written_without_stdout(tmp_path: Path) -> None:
    # The file must not become descriptor 1, where anything that prints would write into it.
    done = shell("tmagen emit -o k.cu >&- && tmagen emit > other.cu && cmp k.cu other.cu", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["emit --spec -", "explain --spec -", "verify --spec -"])
def test_a_closed_stdin_is_misuse(command: str, tmp_path: Path) -> None:
    done = shell(f"tmagen {command} <&-", tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: cannot read stdin: stdin is closed\n")


def test_a_closed_stderr_loses_messages_alone(tmp_path: Path) -> None:
    assert shell("tmagen emit --preset none 2>&-", tmp_path).returncode == 2
    assert shell("tmagen emit --preset none <&- >&- 2>&-", tmp_path).returncode == 2
    assert shell("tmagen list 2>&- | grep -q Presets", tmp_path).returncode == 0


def test_a_full_disk_behind_stdout(tmp_path: Path) -> None:
    done = shell("tmagen emit > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: writing the output failed: No space left on device\n")


def test_no_directory_for_temporary_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object) -> int:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/x']")

    monkeypatch.setattr("tmagen.cli._run", fails)
    assert main(["verify"]) == 2
    assert capsys.readouterr().err == (
        "error: there is no directory for temporary files\n  try: TMPDIR, set to one that can be written\n"
    )


# --- files ------------------------------------------------------------------------------------------


def test_a_name_that_another_left_behind_is_in_nobodys_way(tmp_path: Path) -> None:
    left = tmp_path / f".tmagen-{os.getpid()}.tmp"
    left.write_text("another's")
    write_text(str(tmp_path / "k.cu"), "text")
    assert (tmp_path / "k.cu").read_text() == "text"
    assert left.read_text() == "another's"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("name", "step"), [("replace", "os.replace"), ("fchmod", "os.fchmod")])
def test_a_failure_leaves_what_was_there(name: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "k.cu"
    target.write_text("before")

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(step, fails)
        with pytest.raises(SpecError, match=r"cannot write .*: Input/output error"):
            write_text(str(target), "text")
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]
    assert target.read_text() == "before"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_half_done(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        signal.raise_signal(number)
        time.sleep(1)

    monkeypatch.setattr("os.replace", killed)
    before = signal.getsignal(number)
    assert main(["emit", "-o", str(tmp_path / "k.cu")]) == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) is before


def test_what_ignores_a_signal_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly_end():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    with pytest.raises(Terminated), orderly_end():
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("name", ["newk.cu/", "newk.cu/.", "a/../"])
def test_the_name_of_a_directory_is_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="it names a directory, which there is not"):
        write_text(str(tmp_path / "x") + "/" + name, "text")
    assert list(tmp_path.iterdir()) == []


def test_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    empty, kernel, pipe, closed = (tmp_path / name for name in ("empty.cu", "k.cu", "pipe", "closed.cu"))
    empty.touch()
    kernel.write_text("text")
    closed.write_text("text")
    os.mkfifo(pipe)
    assert unreadable(str(kernel)) is None
    assert unreadable(str(tmp_path)) == "it is a directory"
    assert unreadable(str(empty)) == "it is empty"
    assert unreadable("/dev/null") == "it is empty"
    assert unreadable(str(pipe)) == "it is no regular file"
    assert unreadable(str(tmp_path / "nowhere")) == "there is no such file"
    assert unreadable(str(kernel / "below")) == "Not a directory"
    assert unreadable("x" * 5000) == "File name too long"
    assert unreadable("a\0b") == "embedded null byte"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["verify", "."], "cannot read '.': it is a directory"),
        (["verify", "/dev/null"], "cannot read '/dev/null': it is empty"),
        (["diff", ".", "/dev/null"], "cannot read '.': it is a directory\nerror: cannot read '/dev/null': it is empty"),
        (["check", ".", "--host"], "cannot read '.': it is a directory"),
    ],
)
def test_commands_say_why(arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"error: {reason}\n"


# --- words ------------------------------------------------------------------------------------------


def test_no_control_character_reaches_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printable("a\x1b[31m\tb\nc\x07\u202e\udc80") == "a\\x1b[31m\tb\nc\\x07\\u202e\\udc80"
    assert str(Diagnostic("a\x1b", ("b\r",), "c\x9b")) == "error: a\\x1b\n  b\\r\n  try: c\\x9b"
    spec = tmp_path / "a\x1b[31m\nerror: b.toml"
    spec.write_text(r'"\u007f\n" = 2')
    assert main(["emit", "--spec", str(spec)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.removesuffix("\n").isprintable()
    for argument in ("--bogus\x1b[31m", "--preset=\x1b[31m", "--name=\x1b[31m"):
        assert main(["emit", argument]) == 2
        assert "\x1b" not in capsys.readouterr().err


def test_names_and_near_words() -> None:
    assert [named(path) for path in ("k.cu", "a b.cu", "a\nb", "", " x")] == ["k.cu", "a b.cu", r"'a\nb'", "''", "' x'"]
    assert nearest("tile.M", ["tile.n", "tile.m", "tile.k"]) == "tile.m"
    assert nearest("STEP6", ["step4", "step5", "step6"]) == "step6"
    assert nearest("Setp6", ["step5", "step6"]) == "step6"
    assert nearest("qqq", ["step5"]) is None
