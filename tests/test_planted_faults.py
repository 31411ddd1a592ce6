# SPDX-License-Identifier: Apache-2.0
"""Faults from public reports, planted in emitted kernels: verify names the rule, and the line of the .cu."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.planted import extended
from tests.planted.edit import edited
from tests.planted.faults import EDGE, FAULTS, PLAIN, Fault
from tests.together import build_together
from tmagen.ir import Shape
from tmagen.verify import Report, verify

pytestmark = pytest.mark.usefixtures("built")

PAGE = Path(__file__).parent.parent / "docs" / "planted-faults.md"


def broken(fault: Fault) -> str:
    return edited(fault.kernel(), *fault.edits)


@pytest.fixture(scope="module")
def _built_together() -> None:
    build_together([extended.mailbox(), extended.relay(), *map(broken, FAULTS)])


@pytest.fixture
def built(_built_together: None, kept_builds: pytest.MonkeyPatch) -> None:
    """The kernels are built already."""


def run(text: str, shape: Shape) -> Report:
    return verify(text, [shape], completion="eager", inputs="integer", jobs=1)


@pytest.mark.parametrize("kernel", [extended.mailbox, extended.relay], ids=lambda kernel: kernel.__name__)
def test_extended_kernels_are_right(kernel: Callable[[], str]) -> None:
    report = verify(kernel(), [PLAIN, EDGE, Shape(136, 72, 0)], inputs="integer", jobs=1)
    assert report.exit_code == 0, report.text()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found(fault: Fault) -> None:
    text = broken(fault)
    report = run(text, fault.shape)
    assert report.exit_code == 1, report.text()
    told = report.text()
    for words in fault.told:
        assert words in told, told
    assert not any(words in told for words in fault.untold), told
    if fault.line is not None:
        lines = text.splitlines()
        named = {lines[int(number) - 1].strip() for number in re.findall(r"\.cu:(\d+)", told)}
        assert any(fault.line in line for line in named), (sorted(named), told)


def test_page_tells_every_fault() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for fault in FAULTS:
        row = next((line for line in page.splitlines() if line.startswith(f"| {fault.name} |")), None)
        assert row is not None, f"{PAGE.name} has no row of: {fault.name}"
        assert fault.source in row
        rules = [word for word in fault.told if re.fullmatch(r"[A-Z]{2}-\d\d", word)]
        assert all(rule in row for rule in rules)
