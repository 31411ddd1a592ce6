# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tmagen.bind import LeadingDims
from tmagen.errors import SpecError
from tmagen.ir import DType, Shape
from tmagen.verify import NoProgress
from tmagen.verify.cases import Problem, Settings
from tmagen.verify.memory import available_bytes, need_of, require_memory
from tmagen.verify.shapes import default_leading_dims

HALF = (DType.F16, DType.F16, DType.F16)
GIB = 1 << 30


def problem(m: int, n: int, k: int, ld: int | None = None) -> Problem:
    shape = Shape(m, n, k)
    return Problem(shape, LeadingDims(ld, ld, ld) if ld else default_leading_dims(shape, HALF), HALF)


def settings(*inputs: str, checks: bool = True, jobs: int = 1) -> Settings:
    return Settings(("eager",), inputs, 0, jobs, NoProgress(), checks)


def test_a_huge_problem_is_refused_with_figures_and_advice() -> None:
    with pytest.raises(SpecError) as raised:
        require_memory(problem(100_000, 100_000, 64), settings("integer", "normal"), 24 * GIB)
    assert raised.value.exit_code == 2
    (told,) = raised.value.diagnostics
    # D is 10^10 elements of 2 bytes, 18.6 GiB; its f64 reference with tolerance and flags is 15 bytes an element.
    assert told.message.startswith("shape 100000,100000,64 needs about ")
    assert told.message.endswith("24.0 GiB are available")
    assert "D 18.6 GiB" in told.detail[0]
    assert "what D must be and the comparison 139.8 GiB" in told.detail[0]
    assert told.hint == "a smaller --shape"


def test_advice_is_what_would_fit() -> None:
    large = problem(20_000, 20_000, 64)  # D is 0.75 GiB
    both, integer = settings("integer", "normal"), settings("integer")
    for available, hint in (
        (7 * GIB, "--input integer, or a smaller --shape"),
        (3 * GIB, "--input integer --no-checks, or a smaller --shape"),
        (2 * GIB, "a smaller --shape"),
    ):
        with pytest.raises(SpecError) as raised:
            require_memory(large, both, available)
        assert raised.value.diagnostics[0].hint == hint
    require_memory(large, integer, 7 * GIB)
    require_memory(large, both, 10 * GIB)


def test_common_problems_are_small() -> None:
    assert need_of(problem(4096, 4096, 4096), "integer", settings("integer")).total < GIB
    require_memory(problem(0, 1 << 30, 1 << 30), settings("normal"), 1)


def test_rows_far_apart_cost_their_pages() -> None:
    far = problem(136, 136, 72, ld=1 << 24)
    assert need_of(far, "normal", settings("normal", checks=False)).total < GIB // 4
    require_memory(far, settings("integer", "normal"), GIB)


# ---- What there is.

MEMINFO = "MemTotal:  1000 kB\nMemAvailable:  600 kB\n"


def proc_of(folder: Path, groups: str) -> Path:
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(MEMINFO)
    (folder / "self" / "cgroup").write_text(groups)
    return folder


def group_of(folder: Path, limit: str, used: int, cached: int, *, version: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    (folder / names[0]).write_text(limit + "\n")
    (folder / names[1]).write_text(f"{used}\n")
    stat = f"anon 5\n{'inactive_file' if version == 2 else 'total_inactive_file'} {cached}\n"
    (folder / "memory.stat").write_text(stat)


def test_machine_alone(tmp_path: Path) -> None:
    assert available_bytes(proc_of(tmp_path / "proc", "0::/\n"), tmp_path / "none") == 600 * 1024


@pytest.mark.parametrize(("version", "line"), [(2, "0::/box/inner"), (1, "4:cpu,memory:/box/inner")])
def test_the_tightest_control_group_counts(tmp_path: Path, version: int, line: str) -> None:
    proc = proc_of(tmp_path / "proc", f"9:pids:/other\n{line}\n")
    root = tmp_path / "cgroup" if version == 2 else tmp_path / "cgroup" / "memory"
    unlimited = "max" if version == 2 else str(1 << 62)
    group_of(root / "box" / "inner", unlimited, 1000, 0, version=version)
    group_of(root / "box", "300000", 120_000, 20_000, version=version)
    assert available_bytes(proc, tmp_path / "cgroup") == 200_000
    group_of(root / "box", "900000", 0, 0, version=version)
    assert available_bytes(proc, tmp_path / "cgroup") == 600 * 1024


def test_nothing_known_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_bytes(tmp_path, tmp_path) is None
    monkeypatch.setattr(importlib.import_module("tmagen.verify.memory"), "available_bytes", lambda: None)
    require_memory(problem(1 << 20, 1 << 20, 64), settings("normal"))
