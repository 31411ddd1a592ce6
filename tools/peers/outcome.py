# SPDX-License-Identifier: Apache-2.0
"""What came of one kernel, and the table of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tmagen.emu import Launch
from tmagen.emu.checks import Finding
from tmagen.emu.policy import POLICIES, THOROUGH, USUAL


@dataclass(frozen=True)
class Ways:
    """How each kernel is tried: with checks or without, under the usual policies or under all, each with all its seeds.
    Those beyond the usual ones compare values alone: races do not depend on them.
    """

    checks: bool = True
    thorough: bool = False

    def runs(self, launch: Launch) -> list[tuple[str, int, bool]]:
        """(policy, seed, whether it is checked) of every run of a launch."""
        usual = [(name, 0, self.checks) for name in USUAL]
        if not self.thorough:
            return usual
        every = [(name, seed, False) for name in THOROUGH for seed in POLICIES[name].seeds_from(0, launch)]
        return usual + [run for run in every if run[:2] not in {one[:2] for one in usual}]


USUAL_WAYS = Ways()


@dataclass
class Outcome:
    """Runs of one kernel. `problems` are its failures, `known` those that are its own and understood; `refused` is why
    its compiler makes none.
    """

    source: str
    kernel: str
    runs: int = 0
    seconds: float = 0.0
    findings: int = 0
    problems: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: str | None = None

    def judge(self, where: str, findings: Sequence[Finding], wrong: str | None) -> None:
        """A run has ended: what its checks found, and what is wrong with the result."""
        self.runs += 1
        alarms = [finding for finding in findings if finding.level == "E"]
        self.findings += len(alarms)
        self.problems += [f"{where}: {'; '.join(str(finding).splitlines())}" for finding in alarms]
        if wrong is not None:
            self.problems.append(f"{where}: {wrong}")

    @property
    def passed(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> str:
        if self.refused is not None:
            return "not compiled"
        return "passed" if self.passed else "FAILED"


def table(outcomes: Iterable[Outcome]) -> list[str]:
    """Lines of the table, widest columns first measured."""
    rows: list[Sequence[str]] = [("from", "kernel", "runs", "seconds", "alarms", "")]
    for outcome in outcomes:
        figures = (str(outcome.runs), f"{outcome.seconds:.2f}", str(outcome.findings))
        rows.append((outcome.source, outcome.kernel, *figures, outcome.verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
