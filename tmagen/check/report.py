# SPDX-License-Identifier: Apache-2.0
"""What a check found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tmagen.check.finding import Finding, Findings, Severity
from tmagen.emu.checks import find
from tmagen.verify.report import cycles_text, runs_line, seed_matters


class Verdict(Enum):
    """How one run ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


EXIT_CODES = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.NOT_JUDGED: 2}


def verdict_of(findings: Iterable[Finding], *, strict: bool = False) -> Verdict:
    """An error fails, and so does a warning where `strict`; what is not judged leaves the run not judged."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities or (strict and Severity.WARNING in severities):
        return Verdict.FAILED
    return Verdict.NOT_JUDGED if Severity.NOT_JUDGED in severities else Verdict.PASSED


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """A kernel that was launched."""

    kernel: str  # plain name
    grid: tuple[int, int, int]  # CTAs
    block: tuple[int, int, int]  # threads
    cluster: tuple[int, int, int]  # CTAs
    dynamic_smem_bytes: int
    seconds: float  # of emulation
    cycles: tuple[int, int] | None = None  # of timed completion: the fewest and the most of a CTA
    model: tuple[str, ...] = ()  # what those are made of

    def text(self) -> str:
        shape = f"grid {_times(self.grid)} block {_times(self.block)}"
        cluster = "" if self.cluster == (1, 1, 1) else f" cluster {_times(self.cluster)}"
        return f"{self.kernel}: {shape}{cluster}, {self.dynamic_smem_bytes:,} bytes of dynamic shared memory"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "cluster": list(self.cluster),
            "dynamic_smem_bytes": self.dynamic_smem_bytes,
            "seconds": round(self.seconds, 4),
            "cycles": None if self.cycles is None else list(self.cycles),
        }


@dataclass(frozen=True, slots=True)
class CaseReport:
    """Runs under one execution policy, with one seed after another until one fails."""

    completion: str  # the policy
    seed: int  # of the last run
    seconds: float
    launches: tuple[LaunchRecord, ...]
    findings: tuple[Finding, ...]
    expectations: int = 0  # how many were judged
    checked: bool = False  # whether races and other broken rules were looked for
    strict: bool = False  # whether warnings fail
    output: tuple[str, ...] = ()  # of a host program: the last lines of stdout and stderr
    runs: int = 1  # seeds that were tried

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings, strict=self.strict)

    def lines(self) -> tuple[str, ...]:
        """The case in one line, with what was found under it."""
        count = len(self.launches)
        ran = f"{count} launch{'' if count == 1 else 'es'}{', all rules' if self.checked else ''}, "
        completion = self.completion if self.runs == 1 else f"{self.completion} x{self.runs}"
        head = f"{completion:<14} {ran}{self.seconds:.2f} s  {self.verdict.value}{self._cycles()}"
        if self.verdict is Verdict.FAILED and seed_matters(self.completion):
            head += f" with --completion {self.completion} --seed {self.seed}"
        found = [f"  {line}" for finding in self.findings for line in finding.lines()]
        return (head, *found)

    def _cycles(self) -> str:
        """What timed completion says a CTA of each launch took."""
        told = [cycles_text(launch.cycles).strip() for launch in self.launches if launch.cycles is not None]
        return f"  {'; '.join(dict.fromkeys(told))}" if told else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "completion": self.completion,
            "seed": self.seed,
            "runs": self.runs,
            "checked": self.checked,
            "verdict": self.verdict.value,
            "seconds": round(self.seconds, 4),
            "launches": [launch.to_dict() for launch in self.launches],
            "expectations": self.expectations,
            "findings": [finding.to_dict() for finding in self.findings],
            "output": list(self.output),
        }


def together(runs: Sequence[CaseReport]) -> CaseReport:
    """Runs under one policy as one case: what the last one left, and what was found in any."""
    found = Findings()
    for run in runs:
        for finding in run.findings:
            found.add(finding)
    return replace(
        runs[-1],
        runs=len(runs),
        seconds=sum(run.seconds for run in runs),
        checked=any(run.checked for run in runs),
        findings=tuple(found),
    )


@dataclass(frozen=True, slots=True)
class Report:
    """All runs of one subject."""

    subject: tuple[str, ...]  # files
    compiler: str | None  # which nvcc, from where; None where nothing was compiled
    notes: tuple[str, ...]
    cases: tuple[CaseReport, ...]
    build_seconds: float

    @property
    def verdict(self) -> Verdict:
        verdicts = {case.verdict for case in self.cases}
        if Verdict.FAILED in verdicts:
            return Verdict.FAILED
        return Verdict.NOT_JUDGED if Verdict.NOT_JUDGED in verdicts or not verdicts else Verdict.PASSED

    @property
    def exit_code(self) -> int:
        """0: every run passed; 1: one failed; 2: none failed, but one was not judged."""
        return EXIT_CODES[self.verdict]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all runs; the same finding of several runs once."""
        merged = Findings()
        for case in self.cases:
            for finding in case.findings:
                merged.add(finding)
        return tuple(merged)

    def text(self) -> str:
        """The report for people."""
        built = f", built in {self.build_seconds:.1f} s with {self.compiler}" if self.compiler else ""
        lines = [", ".join(self.subject) + built, *self.notes]
        shown: tuple[LaunchRecord, ...] = max((case.launches for case in self.cases), key=len, default=())
        lines += [f"  {text} ({n} times)" if n > 1 else f"  {text}" for text, n in _counted(shown)]
        output = next((case.output for case in self.cases if case.output), ())
        lines += [f"  | {line}" for line in output]
        known: set[tuple[str, ...]] = set()
        for case in self.cases:
            head, *found = case.lines()
            lines.append(head)
            # What every order shows is told once.
            if found and tuple(found) in known:
                lines.append("  the same as above")
            else:
                lines += found
                known.add(tuple(found))
        return "\n".join([*lines, *self.model(), *self._explained(), self._summary()])

    def _explained(self) -> tuple[str, ...]:
        """Where more is said about what was found."""
        rules = dict.fromkeys(finding.rule for finding in self.findings if find(finding.rule) is not None)
        if len(rules) > 1:
            return (f"tmagen explain-check ID has more about {', '.join(rules)}",)
        return tuple(f"tmagen explain-check {rule} has more about it" for rule in rules)

    def model(self) -> tuple[str, ...]:
        """Of timed completion: what it takes for how long, and from where."""
        return next((launch.model for case in self.cases for launch in case.launches if launch.model), ())

    def _summary(self) -> str:
        counts = Counter(case.verdict for case in self.cases)
        parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
        seconds = sum(case.seconds for case in self.cases)
        judged = max((case.expectations for case in self.cases), default=0)
        checked = f"; {judged} expectation{'' if judged == 1 else 's'} each" if judged else ""
        if any(case.runs > 1 for case in self.cases):
            cases = f"{', '.join(parts)} ({len(self.cases)} policies, {seconds:.1f} s{checked})"
            return f"{runs_line([(case.completion, case.runs) for case in self.cases])}\n{cases}"
        runs = f"{len(self.cases)} run{'' if len(self.cases) == 1 else 's'}"
        return f"{', '.join(parts) or 'nothing ran'} ({runs}, {seconds:.1f} s{checked})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "format": 1,
            "subject": list(self.subject),
            "compiler": self.compiler,
            "notes": list(self.notes),
            "cases": [case.to_dict() for case in self.cases],
            "build_seconds": round(self.build_seconds, 3),
            "model": list(self.model()),
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
        }


def _counted(launches: Iterable[LaunchRecord]) -> list[tuple[str, int]]:
    return list(Counter(launch.text() for launch in launches).items())


def _times(extents: tuple[int, int, int]) -> str:
    return "x".join(map(str, extents))
