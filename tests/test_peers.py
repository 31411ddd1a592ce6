# SPDX-License-Identifier: Apache-2.0
"""The tool that tries other compilers' kernels: it can fail, it says where, and its cases are what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tmagen.emu import GlobalMemory, Launch, parse
from tools.peers import __main__ as command
from tools.peers import gluon, own, tirx, triton, triton_others, triton_runs
from tools.peers.cases import TRITON, TritonCase
from tools.peers.outcome import Outcome, Ways, table
from tools.peers.problem import GUARD, TYPES, Problem
from tools.peers.programs import PROGRAMS, Program

TYPES3 = ("fp16", "fp16", "fp16")


def solved(**fields: Any) -> Problem:
    problem = Problem(TYPES3, (8, 16, 32), **fields)
    raw = problem.want.reshape(-1).view(np.uint8)
    problem.matrices["d"].data[GUARD : GUARD + raw.size] = raw
    return problem


def test_names_are_unique_and_every_request_is_plain_data() -> None:
    names = [case.name for case in TRITON]
    assert len(set(names)) == len(names)
    json.dumps([case.request() for case in TRITON])
    assert {case.target for case in TRITON} == {90, 100}
    assert any(case.roles for case in TRITON) and any(case.ctas > 1 for case in TRITON)


def test_gluon_takes_clusters_of_pairs_in_both_directions() -> None:
    assert {case.ctas for case in gluon.CASES} == {(1, 1), (2, 1), (2, 2), (4, 1)}
    assert len({case.name for case in gluon.CASES}) == len(gluon.CASES)
    json.dumps([case.request() for case in gluon.CASES])
    for case in gluon.CASES:
        assert any(shape[0] % case.tile[0] or shape[1] % case.tile[1] for shape in case.shapes) or not case.cluster
        assert any(shape[2] % case.tile_k for shape in case.shapes)


@pytest.mark.parametrize("types", sorted({case.types for case in TRITON}), ids="-".join)
def test_inputs_and_sums_are_exact(types: tuple[str, str, str]) -> None:
    problem = Problem(types, (16, 16, 256))
    for name, kind in zip("ab", types, strict=False):
        matrix = problem.matrices[name].data[GUARD:-GUARD].view(TYPES[kind][0])
        assert (matrix.astype(np.float64) == np.rint(matrix.astype(np.float64))).all()
    assert np.abs(problem.want.astype(np.float64)).max() > 0


def test_a_right_result_passes() -> None:
    assert solved().wrong() is None
    assert solved(kn=True).wrong() is None


def test_wrong_results_are_told() -> None:
    problem = Problem(TYPES3, (8, 16, 32))
    assert str(problem.wrong()).startswith("128 of 128 elements differ, first at (0, 0)")
    problem = solved()
    problem.matrices["d"].data.view(np.uint16)[GUARD // 2 + 17] ^= 1
    assert str(problem.wrong()).startswith("1 of 128 elements differ, first at (1, 1)")
    problem = solved()
    problem.matrices["a"].data[GUARD] ^= 1
    assert problem.wrong() == "1 bytes of a or around it changed"
    problem = solved()
    problem.matrices["d"].data[GUARD + 256] ^= 1
    assert problem.wrong() == "1 bytes of d or around it changed"
    assert problem.wrong(padding=16) is None


def test_outcomes() -> None:
    good, bad, none = Outcome("x", "one"), Outcome("x", "two"), Outcome("x", "three", refused="no compiler")
    good.judge("1x1x1 eager", (), None)
    bad.judge("1x1x1 eager", (), "2 of 4 elements differ")
    assert [o.verdict for o in (good, bad, none)] == ["passed", "FAILED", "not compiled"]
    lines = table([good, bad, none])
    assert len(lines) == 4
    assert lines[2].split() == ["x", "two", "1", "0.00", "0", "FAILED"]


KERNEL = ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry pointers({params})\n.reqntid 32\n{{ret;}}\n"


def test_a_kernel_that_stores_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = TritonCase("pointers", 90, shapes=((16, 16, 16),), tile=(16, 16, 16))
    params = [f".param .u64 p{i}" for i in range(3)] + [f".param .u32 p{i}" for i in range(3, 6)]
    params += [".param .u64 p6", ".param .u64 p7"]
    folder = tmp_path / "ptx"
    folder.mkdir()
    (folder / f"{case.name}.ptx").write_text(KERNEL.format(params=", ".join(params)))
    record = {"kernel": "pointers", "shared": 0, "scratch": 0, "ctas": 1, "maps": []}
    (folder / f"{case.name}.json").write_text(json.dumps(record))
    monkeypatch.setattr(triton_runs, "FOLDER", tmp_path)
    outcome = triton.run_case(case, Ways(checks=False))
    assert outcome.runs == 4 and outcome.verdict == "FAILED"
    assert "256 of 256 elements differ" in outcome.problems[0]
    (folder / f"{case.name}.json").write_text(json.dumps({"error": "no"}))
    assert triton.run_case(case, Ways(checks=False)).verdict == "not compiled"


def test_parameters_are_laid_out_as_the_kernel_says() -> None:
    case = TritonCase("pointers", 90, shapes=((16, 16, 16),))
    text = KERNEL.format(params=", ".join(f".param .{'u32' if 2 < i < 6 else 'u64'} p{i}" for i in range(8)))
    problem = Problem(TYPES3, (16, 32, 48))
    raw = triton._params(case, {"maps": []}, parse(text).entries["pointers"], problem, (16, 32, 48), 0x1234)
    assert [int.from_bytes(raw[24 + 4 * i : 28 + 4 * i], "little") for i in range(3)] == [16, 32, 48]
    assert int.from_bytes(raw[:8], "little") == problem.address("a")
    assert int.from_bytes(raw[40:48], "little") == 0x1234


def test_the_command_s_last_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Outcome("x", "two", problems=["wrong"])
    for found, last, status in (
        ([Outcome("x", "one")], "passed 1/1", 0),
        ([Outcome("x", "one"), bad], "passed 1/2", 1),
        ([Outcome("x", "three", refused="no")], "passed 0/0", 1),
    ):
        monkeypatch.setattr(own, "run_all", lambda pattern, ways, found=found: iter(found))
        monkeypatch.setattr(tirx, "run_all", lambda pattern, ways: iter(()))
        monkeypatch.setattr(triton, "run_all", lambda pattern, ways: iter(()))
        monkeypatch.setattr(triton_others, "run_all", lambda pattern, ways: iter(()))
        monkeypatch.setattr(gluon, "run_all", lambda pattern, ways: iter(()))
        monkeypatch.setattr("sys.argv", ["peers"])
        assert command.main() == status
        assert capsys.readouterr().out.splitlines()[-1] == last


def test_thorough_runs_are_those_of_all_policies_and_seeds() -> None:
    launch = Launch("k", (1, 1, 1), (64, 1, 1))
    usual, every = Ways().runs(launch), Ways(thorough=True).runs(launch)
    assert usual == every[:4] and all(checked for _, _, checked in usual)
    # random's other seeds, three policies that draw nothing, three that do, warps
    assert len(every) == len(set(every)) == 4 + 7 + 3 + 3 * 8 + 2
    assert not any(checked for _, _, checked in every[4:])


def test_programs_have_names_of_their_own_and_plain_requests() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names) and not set(names) & {case.name for case in TRITON}
    requests = json.loads(json.dumps([program.request() for program in PROGRAMS]))
    assert all(request["program"] and "i32" in request["signature"].values() for request in requests)


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program.target == 90], ids=lambda p: p.name)
def test_what_a_program_has_to_compute_is_compared(program: Program) -> None:
    given = program.given()
    memory = GlobalMemory()
    places = triton_others.place(memory, given)
    for index, want, _ in given.want:
        array = given.arrays[index]
        places[index].data[:] = np.ascontiguousarray(want.astype(array.dtype)).view(np.uint8).ravel()
    assert triton_others.wrong(given, places) is None
    index, want, _ = given.want[0]
    places[index].data.view(given.arrays[index].dtype)[want.size // 2] += 3
    assert str(triton_others.wrong(given, places)).startswith(f"1 of {want.size} elements of array {index} differ")
