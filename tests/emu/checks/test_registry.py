# SPDX-License-Identifier: Apache-2.0
"""The table of checks, and what is told of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tmagen.emu
from tests.emu.checks.kernels import FILL, START
from tests.emu.ptx import module
from tmagen.cli import main
from tmagen.emu import GlobalMemory, Launch, run
from tmagen.emu.checks import FAMILIES, find, known

ROOT = Path(tmagen.emu.__file__).parent
NAMED = re.compile(r'"((?:' + "|".join(FAMILIES) + r')-\d+)"')


def test_every_rule_that_code_names_is_explained_and_every_check_is_used() -> None:
    used: set[str] = set()
    for path in ROOT.rglob("*.py"):
        if path.parent.name != "catalog":
            used |= set(NAMED.findall(path.read_text()))
    # hints of the races that come of them
    assert {check.id for check in known()} == used | {"MB-20", "MB-24", "MB-31", "GD-04"}


def test_each_check_is_whole() -> None:
    for check in known():
        assert check.family in FAMILIES and set(check.severity.split("/")) <= {"E", "W", "R"}
        assert check.how in ("race", "fault", "lint", "exit")
        for text in (check.title, check.meaning, check.example, check.fix, check.section):
            assert text and text == text.strip()


def test_explain_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-check", "px-01"]) == 0
    page = capsys.readouterr().out
    assert "PX-01" in page and "fence.proxy.async" in page and "PTX ISA" in page
    assert main(["explain-check"]) == 0
    listing = capsys.readouterr().out
    assert all(check.id in listing for check in known())
    assert main(["explain-check", "PX-99"]) == 2
    assert "PX-01" in capsys.readouterr().err
    assert find("no-such") is None
    assert "deadlock" in listing and main(["explain-check", "deadlock"]) == 0
    assert "what it waits for" in capsys.readouterr().out


@pytest.mark.parametrize("jobs", [1, 2])
def test_findings_of_several_processes_are_counted_together(jobs: int) -> None:
    body = START + FILL + "xor.b32 %r95, %r94, 512;\nld.shared.b32 %r5, [%r95];\n"
    kernel = module(body, pointers=1, declarations=".shared .align 1024 .b8 tile[8192];\n" + OTHERS)
    memory = GlobalMemory()
    params = memory.allocate(64).address.to_bytes(8, "little")
    launch = Launch("k", (8, 1, 1), (64, 1, 1), params=params)
    findings = run(kernel, launch, memory, jobs=jobs, checks=True).findings
    # warp 1 overwrites what warp 0 has read, and reads what warp 0 wrote, in each of the CTAs
    assert [(finding.rule, finding.message[:3], finding.count) for finding in findings] == [
        ("RC-01", "WAR", 8),
        ("RC-01", "RAW", 8),
    ]


OTHERS = ".shared .align 8 .b64 bar;\n.shared .align 8 .b64 bar2;\n.shared .align 4 .b32 slot;\n"


def test_an_unchecked_run_finds_nothing_and_costs_nothing() -> None:
    body = START + FILL + "ld.shared.b32 %r5, [tile];\n"
    kernel = module(body, pointers=1, declarations=".shared .align 1024 .b8 tile[8192];\n" + OTHERS)
    memory = GlobalMemory()
    launch = Launch("k", (1, 1, 1), (64, 1, 1), params=memory.allocate(64).address.to_bytes(8, "little"))
    assert run(kernel, launch, memory).findings == ()
