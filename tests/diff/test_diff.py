# SPDX-License-Identifier: Apache-2.0
"""Comparisons from end to end: against TIRx, of files, of kernels with a fault put in."""

from __future__ import annotations

import importlib.util
import json
import socket
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import tirx_text
from tmagen.cli import main
from tmagen.diff import FORMATS, Comparison, Request, diff_files, diff_spec, render, run, to_dict
from tmagen.emit import emit
from tmagen.errors import SpecError
from tmagen.ir import Gemm, Schedule, Shape, Target
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.toolchain import compile_ptx, find_nvcc
from tools import diff_docs

pytestmark = pytest.mark.usefixtures("compiled_once")

SMALL = Request(emulate=Shape(256, 256, 256))
RESULT = Request(parts=("result",))


@cache
def against_tirx(step: str) -> Comparison:
    tirx_text.require()
    return diff_docs.comparison_of(step)


def facts(comparison: Comparison) -> dict[str, tuple[str, str, str]]:
    groups = (*(comparison.plan or ()), *(comparison.cost or ()))
    return {
        f"{group.title}: {fact.name}": (fact.left, fact.right, fact.note) for group in groups for fact in group.facts
    }


def rows(comparison: Comparison) -> list[dict[str, Any]]:
    events = to_dict(comparison)["events"]["sections"]
    return [row | {"section": section["name"]} for section in events for row in section["rows"]]


@pytest.mark.parametrize("step", ["step4", "step5", "step6"])
def test_both_compute_the_same_and_no_check_fires_on_ours(step: str) -> None:
    comparison = against_tirx(step)
    assert comparison.exit_code == 0
    assert comparison.result is not None
    assert all(case.same and case.left_exact is not False for case in comparison.result.cases)
    assert {case.completion for case in comparison.result.cases} == {"eager", "lazy", "newest-first", "random"}
    assert [check.rule for check in comparison.result.checks if check.left] == []


@pytest.mark.parametrize("step", ["step4", "step5", "step6"])
def test_every_difference_in_the_steps_has_a_reason(step: str) -> None:
    assert [row for row in rows(against_tirx(step)) if row["mark"] != "same" and not row["reason"]] == []


def test_what_is_known_of_tirx_shows_by_itself() -> None:
    comparison = against_tirx("step6")
    known = facts(comparison)
    assert known["Machine code: loops around single instructions (BRA.U.ANY)"][:2] == ("0", "18")
    assert known["Tensor maps: maps"][:2] == ("3", "5")
    assert known["Shared memory: declared alignment, bytes"][:2] == ("1,024", "64")
    assert known["Tensor memory: columns allocated"][:2] == ("128", "512")
    assert known["Tensor memory: allocation permit given back"][:2] == ("before the first load", "at the end")
    assert int(known["Resources: registers a thread"][0]) < int(known["Resources: registers a thread"][1]) == 150
    who = "Who does what, and what is waited for"
    assert known[f"{who}: one thread is chosen by"][:2] == ("elect.sync", "its number")
    assert known[f"{who}: tcgen05.fence::after_thread_sync before each first tcgen05.ld"][:2] == ("yes", "no")
    assert known[f"{who}: a store is waited for until"][:2] == (
        "shared memory is read, in the end global memory is written",
        "shared memory is read",
    )
    mine, theirs, _ = known['Source: asm without a "memory" clobber']
    assert mine == "none"
    assert {"tcgen05.mma", "tcgen05.ld", "cp.async.bulk.commit_group"} <= set(theirs.split(", "))
    assert int(known["Source: parameters of a function, at most"][1]) > 128
    unused = known["Source: of them before the kernel: declarations that nothing uses"]
    assert int(unused[0]) < 10 < 50 < int(unused[1]) and unused[2]
    assert known["Source: variables named by number"][0] == "0"
    assert known["Source: variables named by number"][1].startswith("18 (cse_v1, ")
    reads = known["Tensor memory: TMEM address read from shared memory in CTA 0"]
    assert int(reads[0]) == 1 and int(reads[1]) > 100 and reads[2]
    fences = [row for row in rows(comparison) if row["left"] and "after_thread_sync" in row["left"]["text"]]
    assert any(
        row["section"] == "epilogue" and row["mark"] == "left" and "tcgen05.ld" in row["reason"] for row in fences
    )
    waits = [row["right"]["text"] for row in rows(comparison) if row["right"] and row["right"]["op"] == "wait_group"]
    assert waits == ["cp.async.bulk.wait_group.read 0"]


def test_the_persistent_kernels_take_several_tiles_in_the_same_order() -> None:
    known = facts(against_tirx("step6"))
    mine, theirs, _ = known["Tile order: emulated: tiles of CTA 0"]
    assert mine == theirs == "(0, 0) (1, 1) (2, 2) (3, 3)"
    assert known["Tile order: emulated: the same tiles in the same order"][:2] == ("yes", "yes")


def test_the_order_of_a_large_problem_is_told_in_words() -> None:
    """1,024 tiles: at 512 x 512 x 512 one group of eight rows holds them all."""
    known = facts(against_tirx("step6"))
    assert {side.partition(":")[0] for side in known["Tile order: order"][:2]} == {"groups of 8 rows"}
    assert known["Tile order: output tiles"][:2] == ("1,024", "1,024")
    assert known["Tile order: a CTA takes"][:2] == ("6 or 7 tiles, every 148th of the order",) * 2
    assert known["Tile order: every CTA takes the same tiles in the same order"][:2] == ("yes", "yes")
    assert facts(against_tirx("step5"))["Tile order: order"][0] == "down each column, then the next column"


def test_prefetches_are_steps() -> None:
    for step in ("step4", "step6"):
        told = [row for row in rows(against_tirx(step)) if row["left"] and row["left"]["op"] == "prefetch"]
        assert [(row["mark"], row["left"]["text"]) for row in told] == [("left", "prefetch the tensor maps of A, B, D")]
        assert told[0]["reason"]


def test_the_main_loop_is_told_by_k_tile() -> None:
    mine, theirs, _ = facts(against_tirx("step4"))["Machine code: instructions of the main loop"]
    assert mine.endswith(" a K tile, not unrolled)")
    assert theirs.endswith(" a K tile, 8 unrolled)")


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_says_what_it_was_made_with(form: str) -> None:
    text = render(against_tirx("step4"), form, times=False)
    for word in ("nvcc 13.", "ptxas 13.", "cuobjdump 13.", "apache-tvm 0.26.0", "-O3"):
        assert word in " ".join(text.split()), word


def test_reports_repeat_but_for_times(compiled_once: pytest.MonkeyPatch) -> None:
    one = against_tirx("step4")
    compiled_once.undo()
    other = diff_docs.comparison_of("step4")
    for form in FORMATS:
        assert render(one, form, times=False) == render(other, form, times=False)


@pytest.mark.parametrize("step", diff_docs.STEPS)
def test_the_report_in_the_docs_is_current(step: str) -> None:
    assert diff_docs.path_of(step).read_text() == diff_docs.page(step, against_tirx(step)), "run `make regen`"


# --- files ------------------------------------------------------------------------------------------------------------


def file_of(preset: str, folder: Path, *, name: str | None = None, replaced: tuple[str, str] | None = None) -> Path:
    text = emit(plan(PRESETS[preset].spec))
    if replaced is not None:
        assert replaced[0] in text
        text = text.replace(*replaced)
    path = folder / f"{name or preset}.cu"
    path.write_text(text)
    return path


def test_what_a_ring_changes(tmp_path: Path) -> None:
    comparison = diff_files(file_of("step4", tmp_path), file_of("step5", tmp_path))
    assert comparison.exit_code == 0
    assert [row for row in rows(comparison) if row["mark"] != "same" and not row["reason"]] == []
    (init,) = [row for row in rows(comparison) if row["left"] and row["left"]["op"] == "init"]
    assert init["right"]["text"].startswith("init full[0], full[1], mma_done")
    assert facts(comparison)["Launch: dynamic shared memory, bytes"][:2] == ("66,560", "99,328")


def test_a_kernel_and_itself_do_not_differ(tmp_path: Path) -> None:
    comparison = diff_spec(PRESETS["step6"].spec, file_of("step6", tmp_path), SMALL)
    assert comparison.exit_code == 0
    assert {row["mark"] for row in rows(comparison)} == {"same"}
    assert [name for name, (mine, theirs, _) in facts(comparison).items() if mine != theirs] == []


def test_kernels_of_another_target(tmp_path: Path) -> None:
    """wgmma has no tensor memory and no barrier of its own for the MMAs: the phases are the same."""
    paths = []
    for schedule in (Schedule(), Schedule(persistent=True)):
        path = tmp_path / f"persistent_{schedule.persistent}.cu"
        path.write_text(emit(plan(Gemm(target=Target.SM_90A, schedule=schedule))))
        paths.append(path)
    comparison = diff_files(paths[0], paths[1], SMALL)
    assert comparison.exit_code == 0
    names = [(section["name"], section["alone"]) for section in to_dict(comparison)["events"]["sections"]]
    assert names[:3] == [("set-up", None), ("fill", None), ("K tile", None)]
    assert names[-3:] == [("epilogue", None), ("tile", "right"), ("tear-down", None)]


FAULTS = {
    "a wrong stage": ("ptx::cp_async_bulk_tensor_load(smem.b[stage]", "ptx::cp_async_bulk_tensor_load(smem.b[0]"),
    "no wait for the store's source": ("    ptx::cp_async_bulk_wait_group_read_0();", "    "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_left_is_told(fault: str, tmp_path: Path) -> None:
    broken = file_of("step6", tmp_path, name="broken", replaced=FAULTS[fault])
    comparison = diff_files(broken, file_of("step6", tmp_path), RESULT)
    assert comparison.exit_code == 1
    assert comparison.result is not None
    fired = any(check.left and not check.right for check in comparison.result.checks)
    assert fired or any(not case.same and case.message for case in comparison.result.cases)


def test_a_side_that_does_not_end_is_told_in_full(tmp_path: Path) -> None:
    dead = file_of("step6", tmp_path, name="dead", replaced=("(full, kTxBytes)", "(full, 2 * kTxBytes)"))
    comparison = diff_files(file_of("step6", tmp_path), dead, SMALL)
    assert comparison.exit_code == 1
    text = render(comparison, "text")
    assert "dead.cu: deadlock" in text
    assert "No steps, plan or cost: a run of dead.cu did not end." in text
    assert "mbarrier.try_wait waits for the phase of parity 0" in text
    assert comparison.events is None


def test_a_check_that_fires_on_the_right_alone_is_no_fault_of_the_left(tmp_path: Path) -> None:
    broken = file_of("step6", tmp_path, name="broken", replaced=FAULTS["no wait for the store's source"])
    comparison = diff_files(file_of("step6", tmp_path), broken, RESULT)
    assert comparison.result is not None
    assert comparison.result.left_ok
    assert [check for check in comparison.result.checks if check.right and not check.left]


def test_ptx_is_launched_as_the_spec_where_its_parameters_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernel.ptx"
    path.write_text(compile_ptx(find_nvcc(), file_of("step6", tmp_path)))
    comparison = diff_spec(PRESETS["step6"].spec, path, SMALL)
    assert comparison.exit_code == 0
    assert comparison.cost is not None
    monkeypatch.setattr(run, "half_of", None)  # what cannot be compared is told before anything runs
    with pytest.raises(SpecError, match="nothing says how its kernel is launched"):
        diff_spec(PRESETS["step6-4096"].spec, path, SMALL)
    with pytest.raises(SpecError, match="nothing says how its kernel is launched"):
        diff_files(path, path)


def test_a_baked_in_shape_is_the_only_one_of_a_file_that_nothing_launches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has one shape, which is that of the spec; another one cannot be emulated."""
    usual = PRESETS["step6"].spec
    spec = replace(usual, problem=replace(usual.problem, shape=Shape(256, 256, 256)))
    source, path = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(emit(plan(spec)))
    path.write_text(compile_ptx(find_nvcc(), source))
    assert diff_spec(spec, path, Request(emulate=Shape(256, 256, 256), parts=("result",))).exit_code == 0
    monkeypatch.setattr(run, "half_of", None)
    with pytest.raises(SpecError, match="--emulate differs from the shape that is baked in: 256,256,256"):
        diff_spec(spec, path, Request(emulate=Shape(256, 256, 512), parts=("result",)))


def test_other_types_are_not_compared(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nothing to compare"):
        diff_files(file_of("step6", tmp_path), file_of("step6-bf16", tmp_path))


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "cost,colour"], "it takes some of events, plan, cost, result"),
        (["--format", "pdf"], "it is text, json, html or markdown"),
        (["one.cu"], "there is no such file"),
        (["--against", "nothing.cu"], "there is no such file"),
        (["--emulate", "0,1,1"], "every extent is at least 1"),
        (["--preset", "step6-4096", "--shape", "512,512,512"], "differs from the shape that is baked in"),
        (["--launch", "launch.toml"], "--launch is for the first of two files"),
        (["--against-launch", "launch.toml"], "--against-launch is for a file"),
        (["--nvcc", "/no/such/nvcc"], "no such program"),
        (["--target", "sm_90a"], "the TIRx backend issues tcgen05"),
        (["--shape", "4096,4100,4096"], "no multiple of tile.n"),
    ],
)
def test_misuse_is_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_files_and_flags_contradict_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file_of("step4", tmp_path))
    assert main(["diff", path, path, "--preset", "step5"]) == 2
    assert main(["diff", path]) == 2
    assert main(["diff", path, path, path]) == 2
    errors = capsys.readouterr().err
    assert "--preset cannot change them" in errors
    assert "against what?" in errors
    assert "takes two kernels" in errors


def test_only_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step4, step5 = (str(file_of(step, tmp_path)) for step in ("step4", "step5"))
    assert main(["diff", step4, step5, "--only", "result", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["result"]["same"] is True
    assert not {"events", "plan", "cost"} & found.keys()


def test_without_tvm_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["diff", "--preset", "step6"]) == 2
    assert 'try: pip install "tmagen[tirx]"' in capsys.readouterr().err


def test_nothing_is_fetched_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled_once: pytest.MonkeyPatch
) -> None:
    compiled_once.undo()

    def refuse(*_: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert diff_files(file_of("step4", tmp_path), file_of("step5", tmp_path), RESULT).exit_code == 0
