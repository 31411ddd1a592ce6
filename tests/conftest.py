# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests import kept
from tests.tirx_text import NO_CHAPTER
from tmagen.diff import files
from tmagen.verify import run

# A busy machine is no failure; the time that a test may take is its author's concern.
settings.register_profile("tmagen", deadline=None)
settings.load_profile("tmagen")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """How `pytest -n` shares the tests out, unless `--dist` says otherwise."""
    if config.getoption("dist") != "load":
        return None
    from tests.groups import GroupScheduling

    return GroupScheduling(config, log)


@pytest.fixture(scope="session")
def _kept() -> Iterator[None]:
    yield
    kept.close()


@pytest.fixture
def kept_builds(_kept: None) -> Iterator[pytest.MonkeyPatch]:
    """What verify and diff build is built once for each text. `undo()` ends that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "build", kept.build)
        patch.setattr(files, "build", kept.build)
        yield patch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where TMAGEN_CI is set, everything is installed: a test that would be skipped fails and says so. The course's
    chapter is no part of the project, and cannot be installed.
    """
    report = yield
    may = hasattr(report, "wasxfail") or NO_CHAPTER in str(report.longrepr)
    if report.skipped and not may and os.environ.get("TMAGEN_CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that would be skipped as a whole."""
    report = yield
    if report.skipped and os.environ.get("TMAGEN_CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longrepr}"
    return report
