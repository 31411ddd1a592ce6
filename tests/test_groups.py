# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import pytest_xdist_make_scheduler
from tests.groups import GROUPS, GroupScheduling

ROOT = Path(__file__).resolve().parent.parent


def test_groups_are_of_files_that_exist() -> None:
    assert [name for name in GROUPS if not (ROOT / name).is_file()] == []


def test_a_group_is_one_scope_and_other_tests_are_their_own() -> None:
    split = GroupScheduling._split_scope
    scheduling = object.__new__(GroupScheduling)
    assert split(scheduling, "tests/diff/test_files.py::test_a[1]") == "diff"
    assert split(scheduling, "tests/test_ir.py::test_a[1]") == "tests/test_ir.py::test_a[1]"


def test_another_distribution_may_be_asked_for(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytestconfig.option, "dist", "worksteal", raising=False)
    assert pytest_xdist_make_scheduler(pytestconfig, None) is None
