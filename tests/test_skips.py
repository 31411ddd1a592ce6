# SPDX-License-Identifier: Apache-2.0
"""One rule for tests that cannot run: skipped with a reason, and failed where all that can be installed is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tirx_text

pytest_plugins = ["pytester"]

SKIPPED = """
import pytest

@pytest.mark.skipif(True, reason="no compiler")
def test_by_mark(): ...

def test_by_call():
    pytest.skip("no TVM")

def test_of_the_chapter():
    pytest.skip("the chapter is not beside the checkout: no chapter.txt in /x")

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False
"""
MODULE = "import pytest\npytest.importorskip('no_such_module')\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text())
    pytester.makepyfile(test_some=SKIPPED, test_module=MODULE)
    return pytester


def test_skips_tell_why(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMAGEN_CI", raising=False)
    monkeypatch.setenv("CI", "true")
    result = project.runpytest_inprocess("-rs", "-p", "no:cacheprovider")
    result.assert_outcomes(skipped=4, xfailed=1)
    result.stdout.fnmatch_lines_random(["*no compiler*", "*no TVM*", "*no_such_module*", "*no chapter.txt*"])


def test_only_the_chapter_may_be_missing_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMAGEN_CI", "1")
    result = project.runpytest_inprocess("-p", "no:cacheprovider", "--continue-on-collection-errors")
    result.assert_outcomes(failed=1, errors=2, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines_random(["*skipped, where nothing may be*no compiler*"])


def test_the_chapter_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(tirx_text, "missing", lambda: "no chapter")
    with pytest.raises(pytest.skip.Exception, match="no chapter"):
        tirx_text.require()


def test_ci_sets_the_variable() -> None:
    assert "export TMAGEN_CI=1" in (Path(__file__).parents[1] / ".ci" / "run").read_text()
