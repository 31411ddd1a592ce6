# SPDX-License-Identifier: Apache-2.0
"""What each side computes: both on the emulator, on the same inputs, in several orders of asynchronous work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tmagen.diff.problem import Problem, addresses_of, allocated
from tmagen.diff.record import EMULATING
from tmagen.diff.sides import Side
from tmagen.emu import GlobalMemory
from tmagen.emu import run as emulate
from tmagen.emu.checks import Finding
from tmagen.errors import TmagenError
from tmagen.ir import Shape
from tmagen.verify.elements import Matrix
from tmagen.verify.inputs import Inputs, integer_inputs, normal_inputs
from tmagen.verify.reference import exact_reference

COMPLETIONS = ("eager", "lazy", "newest-first", "random")
SMALL = 1 << 28
"""Multiply-adds up to which a problem is run in every order, by one process; a larger one in the first order alone."""


@dataclass(frozen=True, slots=True)
class Run:
    """One side's run. `bits` is D, None where the run did not end; `error` says why."""

    bits: Matrix | None
    error: str = ""
    strays: tuple[str, ...] = ()
    exit_code: int = 0  # of the error: 1 the kernel is wrong, 2 it cannot be judged
    report: tuple[str, ...] = ()  # the error in full


@dataclass(frozen=True, slots=True)
class Case:
    """Both sides on one input."""

    inputs: str
    completion: str
    same: bool
    message: str  # where D differs, or why a run ended
    left_exact: bool | None  # against the product, where it is known to the bit
    right_exact: bool | None


@dataclass(frozen=True, slots=True)
class Checked:
    """What the emulator's checks find, told by whether they fire on one side alone."""

    rule: str
    title: str
    severity: str
    left: str  # where, and what; empty: nothing
    right: str


@dataclass(frozen=True, slots=True)
class Results:
    """What was computed."""

    problem: Problem
    cases: tuple[Case, ...]
    checks: tuple[Checked, ...]
    left_ok: bool  # every run of the left ended and is right, and no check fires on it
    unjudged: str = ""  # why a side could not be judged
    reports: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a side's first error in full

    @property
    def same(self) -> bool:
        return all(case.same for case in self.cases)


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs of one side, in the order of `_plan`, and what the checks found in the first."""

    label: str
    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]


def runs_of(side: Side, problem: Problem, *, seed: int = 0, jobs: int = 1) -> Runs:
    """Runs one side on every input. What goes wrong is part of what is returned; nothing follows what is not judged."""
    done: list[Run] = []
    findings: tuple[Finding, ...] = ()
    for inputs, completion in _plan(problem, seed):
        run, found = _run(side, problem, inputs, completion, seed, jobs, not done)
        findings = findings or found
        done.append(run)
        if run.exit_code == 2:
            break
    return Runs(side.label, tuple(done), findings)


def results(left: Runs, right: Runs, problem: Problem, *, seed: int = 0) -> Results:
    """Both sides' runs, compared."""
    cases = []
    wants: dict[str, Matrix] = {}
    for (inputs, completion), mine, theirs in zip(_plan(problem, seed), left.runs, right.runs, strict=False):
        if inputs.kind == "integer" and not wants:
            wants["integer"] = exact_reference(inputs, problem.elements[2]).bits
        cases.append(_case(inputs.kind, completion, (left.label, mine), (right.label, theirs), wants.get(inputs.kind)))
    unjudged = [f"{side.label}: {run.error}" for side in (left, right) for run in side.runs if run.exit_code == 2]
    left_ok = (
        all(run.bits is not None and not run.strays for run in left.runs)
        and all(case.left_exact is not False for case in cases)
        and not left.findings
    )
    reports = [(side.label, next((run.report for run in side.runs if run.report), ())) for side in (left, right)]
    return Results(
        problem,
        tuple(cases),
        _checks(left.findings, right.findings),
        left_ok,
        "; ".join(unjudged),
        tuple((label, lines) for label, lines in reports if lines),
    )


def is_large(shape: Shape) -> bool:
    """Whether a problem is too large to be run in every order."""
    return shape.m * shape.n * shape.k > SMALL


def _plan(problem: Problem, seed: int) -> Iterator[tuple[Inputs, str]]:
    shape = problem.shape
    integers = integer_inputs(shape, problem.elements[:2], seed)
    for completion in COMPLETIONS[: 1 if is_large(shape) else None]:
        yield integers, completion
    yield normal_inputs(shape, problem.elements[:2], seed), COMPLETIONS[0]


def _run(
    side: Side, problem: Problem, inputs: Inputs, completion: str, seed: int, jobs: int, checked: bool
) -> tuple[Run, tuple[Finding, ...]]:
    memory = GlobalMemory()
    buffers = allocated(problem, memory)
    assert buffers.a is not None
    assert buffers.b is not None
    buffers.a.write(inputs.a)
    buffers.b.write(inputs.b)
    buffers.d.fill_poison()
    assert side.trial_launch is not None, "a side that nothing launches is not run"
    launch = side.trial_launch(problem, addresses_of(buffers))
    try:
        with EMULATING:
            done = emulate(
                side.trial.module,
                launch,
                memory,
                completion=completion,
                seed=seed,
                jobs=jobs,
                checks=checked,
                strict=checked,
            )
    except TmagenError as error:
        found: tuple[Finding, ...] = getattr(error, "findings", ())
        lines = tuple(error.report().removeprefix("error: ").splitlines())
        return Run(None, lines[0], exit_code=error.exit_code, report=lines), found
    return Run(buffers.d.bits().copy(), strays=buffers.d.stray_writes()), done.findings


def _case(inputs: str, completion: str, left: tuple[str, Run], right: tuple[str, Run], want: Matrix | None) -> Case:
    (_, mine), (_, theirs) = left, right
    exact = [None if want is None or r.bits is None else bool(np.array_equal(r.bits, want)) for r in (mine, theirs)]
    if mine.bits is None or theirs.bits is None:
        message = "; ".join(f"{label}: {r.error}" for label, r in (left, right) if r.error)
        return Case(inputs, completion, False, message, exact[0], exact[1])
    differ = np.argwhere(mine.bits != theirs.bits)
    message = ""
    if len(differ):
        row, column = map(int, differ[0])
        message = (
            f"{len(differ):,} of {mine.bits.size:,} elements differ, the first at row {row}, column {column}: "
            f"{mine.bits[row, column]:#x} and {theirs.bits[row, column]:#x}"
        )
    message = "; ".join([*([message] if message else []), *mine.strays, *theirs.strays])
    return Case(inputs, completion, not message, message, exact[0], exact[1])


def _checks(left: Sequence[Finding], right: Sequence[Finding]) -> tuple[Checked, ...]:
    rules: dict[str, Checked] = {}
    for position, findings in (("left", left), ("right", right)):
        for finding in findings:
            known = rules.get(finding.rule) or Checked(finding.rule, finding.title, finding.severity, "", "")
            if not getattr(known, position):
                times = sum(f.count for f in findings if f.rule == finding.rule)
                said = f"{finding.message} (PTX line {finding.ptx_line}; {times:,} time{'' if times == 1 else 's'})"
                known = replace(known, **{position: said})
            rules[finding.rule] = known
    return tuple(rules.values())
