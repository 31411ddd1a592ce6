# SPDX-License-Identifier: Apache-2.0
"""The documentation: pages made from the code are current, links lead somewhere, and excerpts are real."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tmagen.cli import main
from tmagen.emit import emit
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tools import check_docs, emulator_docs

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "generated").glob("*.md")])


def test_the_emulator_s_page_is_made_from_its_registry() -> None:
    assert emulator_docs.DOCUMENT.read_text() == emulator_docs.text(), "run `make regen`"


def test_the_page_of_checks_is_made_from_their_registry() -> None:
    assert check_docs.DOCUMENT.read_text() == check_docs.text(), "run `make regen`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def test_the_excerpt_in_the_readme_is_emitted() -> None:
    (excerpt,) = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert excerpt in emit(plan(PRESETS["step6"].spec))


def test_the_message_in_the_docs_is_the_real_one(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/ir.md").read_text()
    (shown,) = re.findall(r"\$ tmagen emit --pipe-depth 7\n(.*?)```", page, flags=re.DOTALL)
    assert main(["emit", "--pipe-depth", "7"]) == 2
    assert capsys.readouterr().err == shown
