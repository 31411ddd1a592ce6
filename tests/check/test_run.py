# SPDX-License-Identifier: Apache-2.0
"""Hand-written kernels, right and wrong, through launch files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.check.kernels import ADD_S32, HEAD, add_launch, check_add, subject
from tmagen.check import Report, Severity, load, run
from tmagen.check.subject import UnparsableError
from tmagen.emu import NotJudged, ParseError, parse
from tmagen.emu.checks import find
from tmagen.errors import TmagenError


def only_rule(report: Report) -> str:
    """The rule of the one finding."""
    assert report.exit_code == 1, report.text()
    (finding,) = report.findings
    assert finding.severity is Severity.ERROR
    return finding.rule


def test_a_right_kernel_in_every_order() -> None:
    report = check_add(add_launch(), completion="usual", seed=5)
    assert report.exit_code == 0, report.text()
    assert [case.completion for case in report.cases] == ["eager", "lazy", "newest-first", "random"]
    (launch,) = report.cases[0].launches
    assert (launch.kernel, launch.grid, launch.block) == ("add", (4, 1, 1), (32, 1, 1))
    assert "4 passed" in report.text().splitlines()[-1]


def test_a_wrong_result() -> None:
    report = check_add(add_launch(), ADD_S32.replace("add.s32 %r8", "sub.s32 %r8"))
    assert only_rule(report) == "wrong-result"
    assert "not c == a + b" in report.text()


def test_elements_that_nobody_wrote() -> None:
    launch = add_launch()
    launch["params"][3] = {"s32": 90}
    report = check_add(launch)
    assert only_rule(report) == "wrong-result"
    text = report.text()
    assert "10 of 100 elements are wrong, 10 of them were never written" in text
    assert "all in [90:100]" in text
    assert "c[90] = -1, expected " in text


@pytest.mark.parametrize("name", ["a", "c"])
def test_an_access_outside_a_buffer(name: str) -> None:
    launch = add_launch()
    launch["buffers"][name]["shape"] = [99]
    launch["expect"] = []
    report = check_add(launch)
    assert only_rule(report) == "fault"
    (finding,) = report.findings
    load_or_store = "ld.global.u32" if name == "a" else "st.global.u32"
    assert finding.instruction is not None
    assert finding.instruction.startswith(load_or_store)
    assert finding.ptx_line == 1 + ADD_S32[: ADD_S32.index(finding.instruction.split()[0])].count("\n")
    assert f"is just past the end of {name} (396 bytes)" in report.text()


def test_an_access_before_a_buffer() -> None:
    launch = add_launch()
    launch["params"][1] = {"pointer": "b", "offset": 0}
    text = ADD_S32.replace("add.s64 %rd6, %rd2, %rd4;", "add.s64 %rd6, %rd2, %rd4;\nsub.s64 %rd6, %rd6, 4;")
    report = check_add(launch, text)
    assert only_rule(report) == "fault"
    assert "4 bytes before b (400 bytes)" in report.text()


def test_a_write_between_rows() -> None:
    launch = add_launch(expect=[])
    launch["buffers"]["c"] = {"dtype": "s32", "shape": [10, 9], "ld": 10}
    launch["params"][3] = {"s32": 99}
    report = check_add(launch)
    assert only_rule(report) == "padding-written"
    assert "36 bytes written between the rows of c" in report.text()
    assert "0 bytes after the end of c[0, 8]" in report.text()


def test_rows_with_gaps_that_are_respected() -> None:
    launch = add_launch(expect=["c[0, :] == a[0:9] + b[0:9]"])
    launch["buffers"]["c"] = {"dtype": "s32", "shape": [10, 9], "ld": 10}
    launch["params"][3] = {"s32": 9}
    assert check_add(launch).exit_code == 0


def test_an_input_that_is_written() -> None:
    launch = add_launch(expect="c == c")
    launch["params"] = [{"pointer": "a"}, {"pointer": "b"}, {"pointer": "a"}, {"s32": 100}]
    launch["buffers"]["c"]["fill"] = "zeros"
    report = check_add(launch)
    assert only_rule(report) == "input-changed"
    launch["buffers"]["a"]["writable"] = True
    assert check_add(launch).exit_code == 0
    del launch["buffers"]["a"]["writable"]
    launch["expect"] = ["c == 0", "a == a + b"]
    assert check_add(launch).exit_code == 0


def test_several_expectations() -> None:
    launch = add_launch(expect=["c == a + b", "sum(c) == sum(a) + sum(b)", {"that": "c ~= a + b + 1", "atol": 1}])
    assert check_add(launch).exit_code == 0
    launch["expect"][1] = "sum(c) == sum(a)"
    launch["expect"][2] = {"that": "c ~= a + b + 2", "atol": 1, "rtol": 0}
    report = check_add(launch)
    assert [finding.key for finding in report.findings] == ["expect[1]", "expect[2]"]


def test_runs_do_not_see_each_other() -> None:
    """In-place addition: each order must start from the same contents."""
    launch = add_launch(expect="a == a + b")
    launch["params"] = [{"pointer": "a"}, {"pointer": "b"}, {"pointer": "a"}, {"s32": 100}]
    report = check_add(launch, completion="usual")
    assert report.exit_code == 0, report.text()


COPY = (
    HEAD
    + """
.visible .entry copy(.param .u64 copy_param_0, .param .u64 copy_param_1)
{
.reg .b32 %r<4>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [copy_param_0];
ld.param.u64 %rd2, [copy_param_1];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, BYTES;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.bBITS REGISTER, [%rd4];
st.global.bBITS [%rd5], REGISTER;
ret;
}
"""
)


@pytest.mark.parametrize(
    ("dtype", "nbytes"),
    [
        *(("e4m3", 1), ("e5m2", 1), ("e8m0", 1), ("s8", 1), ("u8", 1), ("f16", 2), ("bf16", 2), ("s16", 2), ("u16", 2)),
        *(("f32", 4), ("tf32", 4), ("s32", 4), ("u32", 4), ("f64", 8), ("s64", 8), ("u64", 8)),
    ],
)
def test_every_dtype_and_fill(dtype: str, nbytes: int) -> None:
    register = {1: "%r2", 2: "%r2", 4: "%r2", 8: "%rd6"}[nbytes]
    text = COPY.replace("BYTES", str(nbytes)).replace("BITS", str(8 * nbytes)).replace("REGISTER", register)
    fills: list[Any] = ["ones", "iota", "integers", {"constant": 2}]
    if dtype == "e8m0":
        fills = ["ones", {"constant": 2}]
    elif dtype[0] not in "su":
        fills += ["normal", {"normal": 0.5, "seed": 7}]
    for fill in fills:
        launch = {
            "grid": 1,
            "block": 100,
            "params": [{"pointer": "x"}, {"pointer": "y"}],
            "buffers": {"x": {"dtype": dtype, "shape": [100], "fill": fill}, "y": {"dtype": dtype, "shape": [100]}},
            "expect": "y == x",
        }
        report = run(subject(text), launch, completion="eager")
        assert report.exit_code == 0, (fill, report.text())


def copied(launch_file: Path, tmp_path: Path) -> Report:
    path = tmp_path / "copy.ptx"
    path.write_text(COPY.replace("BYTES", "2").replace("BITS", "16").replace("REGISTER", "%r2"))
    return run(path, launch_file, completion="eager")


LAUNCH_FILE = """
grid = 1
block = 12
params = [{ pointer = "x" }, { pointer = "y" }]
expect = "y == x"
[buffers.x]
dtype = "bf16"
shape = [3, 4]
fill = { file = "x.npy" }
[buffers.y]
dtype = "bf16"
shape = [3, 4]
"""


def test_a_fill_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "launch.toml"
    file.write_text(LAUNCH_FILE)
    bits = np.arange(0x3F80, 0x3F80 + 12, dtype=np.uint16).reshape(3, 4)
    np.save(tmp_path / "x.npy", bits)
    assert copied(file, tmp_path).exit_code == 0
    wrong: list[tuple[Any, str]] = [
        (bits[:2], "its shape is"),
        (bits.astype(np.float32), "it holds float32"),
        (np.array([{}], object), "no .npy file of numbers"),
    ]
    for array, message in wrong:
        np.save(tmp_path / "x.npy", array, allow_pickle=True)
        with pytest.raises(TmagenError, match=message) as raised:
            copied(file, tmp_path)
        assert str(file) in raised.value.report()
    (tmp_path / "x.npy").write_bytes(b"no array")
    with pytest.raises(TmagenError, match=r"no \.npy file of numbers"):
        copied(file, tmp_path)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(TmagenError, match="cannot read it"):
        copied(file, tmp_path)


def test_an_instruction_that_is_not_known() -> None:
    report = check_add(add_launch(), ADD_S32.replace("add.s32 %r8", "frobnicate.s32 %r8"), completion="usual")
    assert report.exit_code == 2
    assert len(report.cases) == 1
    assert "frobnicate.s32" in report.text()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("hello\n", 1, "expected a module-level directive"),
        ("", 1, "expected a .version directive"),
        (HEAD + ".visible .entry k(\n", None, "k.ptx:"),
        (ADD_S32.replace("add.s32 %r8, %r6, %r7;", "add.s32 %r8, %r6, %r7"), None, "k.ptx:"),
        ("\x00\x01\x02", 1, "expected a directive, not '?"),
        (ADD_S32.replace("{\n", "", 1), None, "k.ptx:"),
    ],
)
def test_what_is_no_ptx(text: str, line: int | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(text)
    with pytest.raises(TmagenError) as raised:
        load(path)
    report = raised.value.report()
    assert raised.value.exit_code == 2
    assert message in report
    assert "\n" not in report.splitlines()[0]
    if line is not None:
        assert f"k.ptx:{line}: " in report


def test_a_line_of_the_ptx_of_a_cu_is_told_as_one() -> None:
    for error in (ParseError("k.cu:23: no PTX", ptx_line=23), NotJudged("no PTX", ptx_line=23)):
        report = UnparsableError(error, "k.cu", compiled=True).report()
        assert report == "error: k.cu: line 23 of the PTX that nvcc makes of it: no PTX"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.ptx", "cannot read"),
        (tmp_path / "none.cu", "cannot read"),
        (tmp_path, "a kernel is a .ptx or a .cu file"),
        (tmp_path / "kernel.txt", "a kernel is a .ptx or a .cu file"),
    ):
        with pytest.raises(TmagenError, match=message):
            load(path)
    with pytest.raises(TmagenError, match="cannot read"):
        run(subject(ADD_S32), tmp_path / "none.toml")
    with pytest.raises(TmagenError, match="completion hasty: choose from"):
        check_add(add_launch(), completion="hasty")


def test_the_text_is_parsed_as_it_stands() -> None:
    assert parse(ADD_S32).entries["add"].params[3].size == 4


RACE = (
    HEAD
    + """
.visible .entry race(.param .u64 race_param_0)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
.shared .align 4 .b8 buffer[256];
ld.param.u64 %rd1, [race_param_0];
mov.u32 %r1, %tid.x;
setp.eq.s32 %p1, %r1, 0;
@%p1 st.shared.u32 [buffer], 7;
BARRIER
ld.shared.u32 %r2, [buffer];
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r2;
ret;
}
"""
)
RACE_LAUNCH = {
    "grid": 1,
    "block": 64,
    "params": [{"pointer": "out"}],
    "buffers": {"out": {"dtype": "s32", "shape": [64]}},
    "expect": "out == 7",
}


def test_a_race_that_changes_no_result_is_found() -> None:
    assert run(subject(RACE.replace("BARRIER", "bar.sync 0;")), RACE_LAUNCH, strict=True).exit_code == 0
    report = run(subject(RACE.replace("BARRIER", "")), RACE_LAUNCH, completion=["eager", "lazy"])
    assert report.exit_code == 1, report.text()
    assert [case.checked for case in report.cases] == [True, False]
    races = report.cases[0].findings
    assert races
    assert all(find(race.rule) is not None and race.severity is Severity.ERROR for race in races)
    assert {race.instruction for race in races} & {"ld.shared.u32 %r2, [buffer]"}
