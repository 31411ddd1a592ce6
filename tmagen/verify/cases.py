# SPDX-License-Identifier: Apache-2.0
"""One problem: allocated, launched by the host part, emulated in every order asked for, compared."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tmagen.bind import LeadingDims
from tmagen.emu import EmulatorError, GlobalMemory, Launch, Module, RunResult, Tracing
from tmagen.emu import run as emulate
from tmagen.emu.checks import Finding
from tmagen.emu.policy import POLICIES, USUAL
from tmagen.errors import TmagenError
from tmagen.hostrun import Arguments, HostCrashError, LaunchCall, NotModelledError, Outcome
from tmagen.ir import DType, Shape
from tmagen.verify.buffers import Buffer, Buffers, Memory, allocate
from tmagen.verify.compare import compare
from tmagen.verify.elements import Matrix
from tmagen.verify.extents import outside
from tmagen.verify.host import Host, beyond_limits, complaints
from tmagen.verify.inputs import Inputs, integer_inputs, normal_inputs
from tmagen.verify.progress import Progress
from tmagen.verify.reference import Reference, bounded_reference, exact_reference, zeros
from tmagen.verify.report import CaseReport, Verdict

_SMALL_PROBLEM = 1 << 26  # multiply-adds below which starting another process costs more than it saves
_LEAST_STEP = (64, 16, 32)  # elements of M, N and K
_ROUNDS_A_STEP = 32
_LEAST_ROUNDS = 20_000
_KEPT = 1 << 20  # elements of D above which the inputs of one seed are made anew rather than kept
_LEAST_K = 64  # a shorter K costs a tile no less


@dataclass(frozen=True, slots=True)
class Problem:
    """What is computed, and how it lies in memory."""

    shape: Shape
    lds: LeadingDims
    elements: tuple[DType, DType, DType]  # of A, B and D


@dataclass(frozen=True, slots=True)
class Settings:
    """How each problem is tried."""

    completions: tuple[str, ...]
    inputs: tuple[str, ...]
    seed: int
    jobs: int | None
    progress: Progress
    checks: bool = True
    strict: bool = False
    tracing: Tracing | None = None
    thorough: bool = False  # every seed that can make a difference

    def jobs_for(self, shape: Shape) -> int:
        """Processes for a problem. A trace hears one alone."""
        if self.tracing is not None:
            return 1
        if self.jobs is not None:
            return self.jobs
        work = shape.m * shape.n * max(shape.k, _LEAST_K)
        return 1 if work < _SMALL_PROBLEM else len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class _Bench:
    """A problem that is launched and allocated, ready to be emulated over and over."""

    problem: Problem
    host: Host
    module: Module
    memory: GlobalMemory
    buffers: Buffers
    launches: tuple[LaunchCall, ...]
    settings: Settings


def run_problem(
    problem: Problem, host: Host, module: Module, memory: GlobalMemory, settings: Settings
) -> Iterator[CaseReport]:
    """The cases of one problem, as they end."""
    shape = problem.shape
    buffers = allocate_buffers(problem, memory) if shape.m and shape.n else None
    started = time.perf_counter()
    outcome, trouble = _launch(problem, host, buffers)
    if trouble is not None:
        yield _without_run(problem, started, *trouble)
        return
    assert outcome is not None
    refusal = beyond_limits(outcome, shape, problem.lds, problem.elements)
    if refusal is not None:
        yield _without_run(problem, started, Verdict.NOT_JUDGED, (refusal,), outcome)
        return
    found = complaints(outcome, shape)
    if buffers is not None:
        found += outside(outcome.encodes, [one for one in (buffers.a, buffers.b, buffers.d) if one is not None])
    if found or buffers is None:
        verdict = Verdict.FAILED if found else Verdict.PASSED
        yield _without_run(problem, started, verdict, found, outcome)
        return
    bench = _Bench(problem, host, module, memory, buffers, outcome.launches, settings)
    if shape.k == 0:
        yield from _run_all(bench, None, settings.completions, first=True)
        return
    for number, kind in enumerate(settings.inputs):
        # What threads do does not depend on values: once is enough for races, and for policies beyond the usual ones.
        usual = [name for name in settings.completions if number == 0 or name in USUAL]
        yield from _run_all(bench, kind, usual, first=number == 0)


def make_inputs(kind: str, problem: Problem, seed: int) -> tuple[Inputs, Reference]:
    """A and B of a kind, "integer" or "normal", and what D must then be."""
    of_a, of_b, of_d = problem.elements
    if kind == "integer":
        inputs = integer_inputs(problem.shape, (of_a, of_b), seed)
        return inputs, exact_reference(inputs, of_d)
    inputs = normal_inputs(problem.shape, (of_a, of_b), seed)
    return inputs, bounded_reference(inputs, of_d)


def allocate_buffers(problem: Problem, memory: Memory) -> Buffers:
    """The matrices of a problem, uninitialised; without A and B where K is 0."""
    shape, lds = problem.shape, problem.lds
    of_a, of_b, of_d = problem.elements
    if shape.k == 0:
        return Buffers(None, None, allocate(memory, "D", of_d, shape.m, shape.n, lds.d))
    return Buffers(
        allocate(memory, "A", of_a, shape.m, shape.k, lds.a),
        allocate(memory, "B", of_b, shape.n, shape.k, lds.b),
        allocate(memory, "D", of_d, shape.m, shape.n, lds.d),
    )


def _launch(
    problem: Problem, host: Host, buffers: Buffers | None
) -> tuple[Outcome | None, tuple[Verdict, tuple[str, ...]] | None]:
    """What launch() did, or why that is not known. Pointers to nothing are null."""
    shape, lds = problem.shape, problem.lds
    a, b, d = (buffers.a, buffers.b, buffers.d) if buffers else (None, None, None)
    at_a, at_b, at_d = (buffer.address if buffer else 0 for buffer in (a, b, d))
    try:
        return host.launch(Arguments(at_a, at_b, at_d, shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)), None
    except HostCrashError as error:
        return None, (Verdict.FAILED, _report_lines(error))
    except NotModelledError as error:
        return None, (Verdict.NOT_JUDGED, _report_lines(error))


def _without_run(
    problem: Problem, started: float, verdict: Verdict, message: tuple[str, ...], outcome: Outcome | None = None
) -> CaseReport:
    """The report of a problem of which nothing was emulated."""
    launch = outcome.launches[0] if outcome and outcome.launches else None
    seconds = time.perf_counter() - started
    return CaseReport(problem.shape, problem.lds, "none", "none", verdict, seconds, launch=launch, message=message)


class _Given:
    """The inputs of a seed, in place, and what D must then be. Small ones are kept."""

    def __init__(self, bench: _Bench, kind: str | None) -> None:
        self._bench, self._kind = bench, kind
        self._made: dict[int, tuple[Inputs | None, Reference]] = {}
        self._in_place: int | None = None

    def of(self, seed: int) -> tuple[Inputs | None, Reference]:
        if seed not in self._made:
            if self._bench.problem.shape.m * self._bench.problem.shape.n > _KEPT:
                self._made.clear()
            self._made[seed] = self._make(seed)
        inputs, reference = self._made[seed]
        a, b = self._bench.buffers.a, self._bench.buffers.b
        if inputs is not None and a is not None and b is not None and self._in_place != seed:
            a.write(inputs.a)
            b.write(inputs.b)
            self._in_place = seed
        return inputs, reference

    def _make(self, seed: int) -> tuple[Inputs | None, Reference]:
        problem = self._bench.problem
        if self._kind is None:
            return None, zeros(problem.shape.m, problem.shape.n, problem.elements[2])
        return make_inputs(self._kind, problem, seed)


def _run_all(bench: _Bench, kind: str | None, completions: Sequence[str], *, first: bool) -> Iterator[CaseReport]:
    """The cases of one kind of inputs; the `first` kind is observed, and tried with all seeds."""
    settings = bench.settings
    given = _Given(bench, kind)
    for number, completion in enumerate(completions):
        seeds: tuple[int, ...] = (settings.seed,)
        if settings.thorough and first:
            seeds = POLICIES[completion].seeds_from(settings.seed, launch_of(bench.launches[0]))
        yield _run_seeds(bench, given, completion, seeds, checks=settings.checks and first and number == 0)


def _run_seeds(
    bench: _Bench, given: _Given, completion: str, seeds: tuple[int, ...], *, checks: bool
) -> CaseReport:
    """A case, run with one seed after another until one fails."""
    shape, progress = bench.problem.shape, bench.settings.progress
    inputs, _ = given.of(seeds[0])
    times = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
    label = f"{shape.m} x {shape.n} x {shape.k}, {'none' if inputs is None else inputs.kind}, {completion}{times}"
    progress.case_starts(label)
    started = time.perf_counter()
    case = None
    for number, seed in enumerate(seeds):
        step = partial(_step_of, progress, number, len(seeds))
        case = _run_one(bench, *given.of(seed), completion, seed, step, checks=checks and number == 0)
        if case.verdict is not Verdict.PASSED:
            break
    assert case is not None
    return replace(case, runs=number + 1, seconds=time.perf_counter() - started)


def _step_of(progress: Progress, number: int, runs: int, done: int, total: int) -> None:
    """CTAs of run `number`, as a part of all runs of the case."""
    progress.step(number * total + done, runs * total)


def _run_one(
    bench: _Bench,
    inputs: Inputs | None,
    reference: Reference,
    completion: str,
    seed: int,
    step: Callable[[int, int], None],
    *,
    checks: bool,
) -> CaseReport:
    shape, kind = bench.problem.shape, "none" if inputs is None else inputs.kind
    d = bench.buffers.d
    d.fill_poison()
    started = time.perf_counter()
    verdict, mismatch, ratio = Verdict.PASSED, None, None
    message: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    hints: tuple[str, ...] = ()
    cycles: tuple[int, int] | None = None
    tracing = bench.settings.tracing
    if tracing is not None:
        tracing.begin(f"{shape.m} x {shape.n} x {shape.k}, {kind}, {completion}")
        for call in bench.launches[:1]:
            tracing.require(call.grid)
    try:
        for call in bench.launches:
            result = _emulate(bench, call, completion, seed, step, checks=checks)
            findings, cycles = findings + result.findings, result.cycles
            hints += tuple(f"perhaps {hint.rule}: {hint.message}, PTX line {hint.ptx_line}" for hint in result.hints)
    except TmagenError as error:
        verdict = Verdict.FAILED if error.exit_code == 1 else Verdict.NOT_JUDGED
        message = _report_lines(error)
        if isinstance(error, EmulatorError):
            findings += error.findings
    else:
        comparison = compare(d, reference)
        mismatch, ratio = comparison.mismatch, comparison.error_ratio
        message = (*d.stray_writes(), *changed_inputs(bench.buffers, inputs))
        if mismatch is not None or message:
            verdict = Verdict.FAILED
            message += hints
    if verdict is Verdict.PASSED and any(finding.level == "E" for finding in findings):
        verdict = Verdict.FAILED
    if tracing is not None:
        tracing.end(failed=verdict is not Verdict.PASSED)
    return CaseReport(
        shape=shape,
        lds=bench.problem.lds,
        inputs=kind,
        completion=completion,
        seed=seed,
        verdict=verdict,
        seconds=time.perf_counter() - started,
        launch=bench.launches[0],
        table=bench.host.program.tables.get(bench.launches[0].kernel),
        mismatch=mismatch,
        error_ratio=ratio,
        message=message,
        checked=checks,
        findings=findings,
        cycles=cycles,
    )


def launch_of(call: LaunchCall) -> Launch:
    """What the emulator takes, of what the host part asked for."""
    return Launch(
        kernel=call.kernel,
        grid=call.grid,
        block=call.block,
        cluster=call.cluster,
        dynamic_smem_bytes=call.dynamic_smem_bytes,
        params=call.params,
    )


def _emulate(
    bench: _Bench, call: LaunchCall, completion: str, seed: int, step: Callable[[int, int], None], *, checks: bool
) -> RunResult:
    settings = bench.settings
    return emulate(
        bench.module,
        launch_of(call),
        bench.memory,
        completion=completion,
        seed=seed,
        jobs=settings.jobs_for(bench.problem.shape),
        progress=step,
        checks=checks,
        strict=settings.strict,
        any_leader=True,
        max_rounds=_rounds_for(bench.problem.shape),
        trace=None if settings.tracing is None else settings.tracing.trace(),
    )


def _rounds_for(shape: Shape) -> int:
    """Turns of its warps after which a CTA is taken to be endless, though it computed all of D: many for each of the
    smallest steps of a kernel.
    """
    m, n, k = (-(-size // least) for size, least in zip((shape.m, shape.n, shape.k), _LEAST_STEP, strict=True))
    return _LEAST_ROUNDS + _ROUNDS_A_STEP * m * n * (k + 1)


def changed_inputs(buffers: Buffers, inputs: Inputs | None) -> tuple[str, ...]:
    """Writes to where only reads belong."""
    if inputs is None:
        return ()
    pairs: tuple[tuple[Buffer | None, Matrix], ...] = ((buffers.a, inputs.a), (buffers.b, inputs.b))
    found: list[str] = []
    for buffer, values in pairs:
        if buffer is None:
            continue
        found.extend(buffer.stray_writes())
        if not np.array_equal(buffer.bits(), values.view(buffer.bits().dtype)):
            found.append(f"{buffer.name} was written to")
    return tuple(found)


def _report_lines(error: TmagenError) -> tuple[str, ...]:
    return tuple(error.report().removeprefix("error: ").splitlines())
