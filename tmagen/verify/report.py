# SPDX-License-Identifier: Apache-2.0
"""What verify found, for people and for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tmagen.bind import LeadingDims
from tmagen.emu import table_for
from tmagen.emu.checks import Finding
from tmagen.emu.policy import POLICIES, Seeds
from tmagen.hostrun import LaunchCall, ParameterTable
from tmagen.ir import Shape
from tmagen.toolchain import KernelResources
from tmagen.verify.compare import Mismatch
from tmagen.verify.compare import to_dict as mismatch_to_dict


class Verdict(Enum):
    """How one case ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_JUDGED = "not judged"


def seed_matters(completion: str) -> bool:
    """Whether runs of a policy differ by their seed."""
    policy = POLICIES.get(completion)
    return policy is not None and policy.seeds is not Seeds.NONE


def runs_line(runs: Iterable[tuple[str, int]]) -> str:
    """How many runs there were, and under which policies."""
    counts: Counter[str] = Counter()
    for completion, count in runs:
        counts[completion] += count
    each = ", ".join(f"{name} {counts[name]}" for name in POLICIES if counts[name])
    return f"{sum(counts[name] for name in POLICIES)} runs: {each}"


_EXIT_CODES = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.NOT_JUDGED: 2}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that went wrong in a case. Cases of other shapes and orders that went wrong in the same way have the
    same `key`: figures are left out of it, and places in the source are not.
    """

    key: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One problem, one kind of input, one execution policy, with one seed after another until one fails."""

    shape: Shape
    lds: LeadingDims
    inputs: str  # "integer", "normal", or "none" where nothing is read
    completion: str  # the policy: "eager", ...; "none" where nothing is launched
    verdict: Verdict
    seconds: float  # of emulation and comparison
    launch: LaunchCall | None = None
    table: ParameterTable | None = None  # of the launched kernel
    mismatch: Mismatch | None = None
    error_ratio: float | None = None  # of normal inputs: the largest error over its bound
    message: tuple[str, ...] = ()  # what went wrong, other than values
    checked: bool = False  # observed for races and other broken rules
    findings: tuple[Finding, ...] = ()
    cycles: tuple[int, int] | None = None  # of timed completion: the fewest and the most of a CTA
    seed: int = 0  # of the last run
    runs: int = 1  # seeds that were tried; 0 where nothing is launched

    def line(self) -> str:
        """The case in one line, of fixed columns."""
        shape = f"{self.shape.m} x {self.shape.n} x {self.shape.k}"
        grid = "-" if self.launch is None else "x".join(map(str, self.launch.grid))
        completion = f"{self.completion}+checks" if self.checked else self.completion
        if self.runs > 1:
            completion += f" x{self.runs}"
        how = f"{self.inputs:<8} {completion:<14} {self.seconds:7.2f} s  {self.verdict.value}"
        if self.verdict is Verdict.FAILED and seed_matters(self.completion):
            how += f" with --completion {self.completion} --seed {self.seed}"
        return f"{shape:<22} grid {grid:<9} {how}{cycles_text(self.cycles)}"

    def lines(self) -> tuple[str, ...]:
        """The case, with what went wrong under it."""
        return (self.line(), *(f"    {line}" for fault in self.faults() for line in fault.lines))

    def faults(self) -> tuple[Fault, ...]:
        """What went wrong, and what checks found that fails nothing."""
        found: list[Fault] = []
        if self.message:
            found.append(Fault(("message", *_without_figures(self.message)), self.message))
        if self.mismatch is not None:
            found.append(Fault(("mismatch", *_without_figures(self.mismatch.kinds())), self.mismatch.lines()))
        for finding in self.findings:
            before = finding.other.ptx_line if finding.other else 0
            found.append(Fault(("finding", finding.rule, f"{finding.ptx_line}, {before}"), tuple(finding.lines())))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        record = None
        if self.launch is not None and self.table is not None:
            record = self.launch.to_dict(self.table)
        return {
            "shape": [self.shape.m, self.shape.n, self.shape.k],
            "leading_dims": [self.lds.a, self.lds.b, self.lds.d],
            "inputs": self.inputs,
            "completion": self.completion,
            "seed": self.seed,
            "runs": self.runs,
            "verdict": self.verdict.value,
            "seconds": round(self.seconds, 4),
            "error_ratio": self.error_ratio,
            "message": list(self.message),
            "checked": self.checked,
            "findings": [finding.to_dict() for finding in self.findings],
            "cycles": None if self.cycles is None else list(self.cycles),
            "mismatch": None if self.mismatch is None else mismatch_to_dict(self.mismatch),
            "launch": record,
        }


def cycles_text(cycles: tuple[int, int] | None) -> str:
    """What timed completion says a CTA took."""
    if cycles is None:
        return ""
    least, most = cycles
    return f"  {most:,} cycles" if least == most else f"  {least:,} to {most:,} cycles"


# A figure that is no line of a source: those follow "line " or ":". Several with nothing but "-", "," and words like
# "at" between them are as good as one.
_FIGURE = re.compile(r"(?<![\w:.])(?<!line )(?:0x[0-9a-f]+|\d[\d,]*(?:\.\d+)?)")
_FIGURES = re.compile(r"#(?:(?:-|, | and | at | x )#)+")


def _without_figures(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(_FIGURES.sub("#", _FIGURE.sub("#", line)) for line in lines)


@dataclass(frozen=True, slots=True)
class Report:
    """All cases of one kernel."""

    subject: str  # the file or kernel
    target: str  # "sm_100a"
    compiler: str  # which nvcc, from where
    elements: tuple[str, str, str]  # of A, B and D
    resources: tuple[KernelResources, ...]
    notes: tuple[str, ...]  # compilers passed over, leading dimensions rounded, cases not run
    cases: tuple[CaseReport, ...]
    build_seconds: float
    stopped: str | None = None  # why cases that would have followed were not run

    @property
    def exit_code(self) -> int:
        """0: every case passed; 1: one failed; 2: none failed, but one was not judged, or there was none."""
        codes = {_EXIT_CODES[case.verdict] for case in self.cases}
        return 1 if 1 in codes else 2 if 2 in codes or not codes else 0

    def heading(self) -> tuple[str, ...]:
        """The lines before the cases."""
        kernels = [
            f"{k.registers} registers, {k.spill_store_bytes + k.spill_load_bytes} bytes spilled" for k in self.resources
        ]
        a, b, d = self.elements
        return (
            f"{self.subject}: {self.target}, A {a}, B {b}, D {d}",
            f"built in {self.build_seconds:.1f} s with {self.compiler}: {'; '.join(kernels)}",
            *self.notes,
        )

    def model(self) -> tuple[str, ...]:
        """Of timed completion: what it takes for how long, and from where."""
        if not any(case.completion == "timed" for case in self.cases):
            return ()
        return table_for(self.target).text()

    def summary(self) -> str:
        """The last line."""
        counts = Counter(case.verdict for case in self.cases)
        parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
        seconds = sum(case.seconds for case in self.cases)
        cases = f"{len(self.cases)} case{'' if len(self.cases) == 1 else 's'}"
        text = f"{', '.join(parts) or 'no cases'} ({cases}, {seconds:.1f} s emulated)"
        if any(case.runs > 1 for case in self.cases):
            text = f"{runs_line([(case.completion, case.runs) for case in self.cases])}\n{text}"
        return text if self.stopped is None else f"{text}; stopped at {self.stopped}"

    def text(self) -> str:
        """The whole report; a fault that several cases share is told once."""
        from tmagen.verify.digest import Digest

        digest = Digest()
        cases = [line for case in self.cases for line in digest.add(case)]
        return "\n".join([*self.heading(), *cases, *digest.rest(), *self.model(), self.summary()])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "subject": self.subject,
            "target": self.target,
            "compiler": self.compiler,
            "elements": list(self.elements),
            "kernels": [
                {
                    "name": k.name,
                    "registers": k.registers,
                    "spill_store_bytes": k.spill_store_bytes,
                    "spill_load_bytes": k.spill_load_bytes,
                    "static_smem_bytes": k.static_smem_bytes,
                }
                for k in self.resources
            ],
            "notes": list(self.notes),
            "cases": [case.to_dict() for case in self.cases],
            "stopped": self.stopped,
            "model": list(self.model()),
            "build_seconds": round(self.build_seconds, 3),
            "exit_code": self.exit_code,
        }
