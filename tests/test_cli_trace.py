# SPDX-License-Identifier: Apache-2.0
"""--trace and timed completion from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.check.kernels import ADD_S32
from tests.emu import traces
from tests.test_cli_check import Capture, files, run  # noqa: F401  (a fixture)
from tmagen.emu import Tracing
from tmagen.errors import SpecError

CHECK = ("check", "add.ptx", "--launch", "launch.toml")
LOOP = "$forever: bar.sync 0;\nbra $forever;\n"


def test_a_trace_of_the_first_run(capsys: Capture, files: Path) -> None:  # noqa: F811
    code, out, err = run(capsys, *CHECK, "--trace", "t.json")
    assert (code, err) == (0, "")
    assert "trace of add, eager: t.json (open it at ui.perfetto.dev)\n" in out
    text = Path("t.json").read_text()
    events = traces.load(text)
    traces.check(events)
    assert {e["pid"] for e in events} == {0, 1, 2, 3}
    about = json.loads(text)["otherData"]
    assert (about["kernel"], about["completion"], about["case"]) == ("add", "eager", "add, eager")
    assert "step" in about["time"] and "latencies" not in about


def test_timed_completion_prints_its_table(capsys: Capture, files: Path) -> None:  # noqa: F811
    code, out, _ = run(capsys, *CHECK, "--completion", "timed", "--trace", "t.json", "--trace-ctas", "2")
    assert code == 0
    assert "timed completion is a model, not a measurement" in out and "an assumption" in out
    assert "cycles" in next(line for line in out.splitlines() if line.startswith("timed "))
    text = Path("t.json").read_text()
    assert {e["pid"] for e in traces.load(text)} == {2}
    about = json.loads(text)["otherData"]
    assert "a model, not a measurement" in about["time"] and "shared_latency" in about["latencies"]


def test_as_json(capsys: Capture, files: Path) -> None:  # noqa: F811
    code, out, _ = run(capsys, *CHECK, "--completion", "timed", "--json", "--trace", "t.json")
    report = json.loads(out)
    (case,) = report["cases"]
    least, most = case["launches"][0]["cycles"]
    assert code == 0 and 0 < least <= most
    assert report["model"][0].startswith("timed completion is a model")


def test_of_a_run_that_breaks_off(capsys: Capture, files: Path) -> None:  # noqa: F811
    bad = ADD_S32.replace("ld.global.u32 %r6, [%rd5];", "ld.global.u32 %r6, [%rd5+65536];")
    Path("add.ptx").write_text(bad)
    code, out, _ = run(capsys, *CHECK, "--trace", "t.json")
    assert code == 1 and "trace of add, eager: t.json" in out
    events = traces.load(Path("t.json").read_text())
    (instant,) = [e for e in events if e["ph"] == "i"]
    assert instant["name"].startswith("fault: ") and "instruction: ld.global.u32" in instant["args"]["report"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--trace", "none/t.json"], "cannot write 'none/t.json': there is no directory"),
        (["--trace", "."], "cannot write '.': it is a directory"),
        (["--trace", ""], "cannot write '': the name is empty"),
        (["--trace", "-"], "--trace takes a file: stdout has the report"),
        (["--trace-ctas", "1"], "--trace-ctas is for --trace, which is not given"),
        (["--trace", "t.json", "--trace-ctas", "1,x"], "it takes numbers and ranges such as 0,5-7"),
        (["--trace", "t.json", "--trace-ctas", "7-5"], "a range goes up"),
        (["--trace", "t.json", "--trace-ctas", "0-99999"], "over 1,024 CTAs at most"),
        (["--completion", "clock"], "timed"),
    ],
)
def test_wrong_flags(capsys: Capture, files: Path, flags: list[str], message: str) -> None:  # noqa: F811
    code, out, err = run(capsys, *CHECK, *flags)
    assert (code, out) == (2, "") and message in err
    assert not Path("t.json").exists()


@pytest.mark.parametrize("ctas", ["4", "0-9", "1,4"])
def test_ctas_that_the_launch_has_not(capsys: Capture, files: Path, ctas: str) -> None:  # noqa: F811
    code, out, err = run(capsys, *CHECK, "--trace", "t.json", "--trace-ctas", ctas)
    assert (code, out) == (2, "") and err == "error: there is no CTA 4: the grid has 4, counted from 0\n"
    assert not Path("t.json").exists()


def test_ctas_that_only_the_first_launch_has() -> None:
    """What is traced is the first launch, unless a later one fails."""
    tracing = Tracing({3})
    tracing.require((2, 2, 1))
    tracing.require((1, 1, 1))
    with pytest.raises(SpecError, match="there is no CTA 3: the grid has 1, counted from 0"):
        Tracing({3}).require((1, 1, 1))
    Tracing().require((1, 1, 1))


def test_help_says_the_limits(capsys: Capture) -> None:
    for command in ("verify", "check"):
        _, out, _ = run(capsys, command, "--help")
        words = " ".join(out.split())
        assert "[default: 0-3]" in words and "200,000 slices" in words and "ui.perfetto.dev" in words
