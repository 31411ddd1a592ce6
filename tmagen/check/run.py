# SPDX-License-Identifier: Apache-2.0
"""From a kernel and a launch file to a report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tmagen.check.arena import Arena
from tmagen.check.expect import judge
from tmagen.check.finding import Findings
from tmagen.check.kernels import check_params, choose, parameter_block, plain_name
from tmagen.check.places import Place, explained
from tmagen.check.read_expects import names
from tmagen.check.read_launch import from_mapping, from_toml
from tmagen.check.report import CaseReport, LaunchRecord, Report, Verdict, together, verdict_of
from tmagen.check.spec import Dim3, LaunchSpec
from tmagen.check.subject import Subject, load
from tmagen.emu import EmulatorError, Entry, GlobalMemory, Launch, Module, Tracing, table_for
from tmagen.emu import run as emulate
from tmagen.emu.policy import POLICIES, THOROUGH, USUAL
from tmagen.errors import Diagnostic, SpecError
from tmagen.toolchain import Nvcc
from tmagen.verify.choose import named_policies
from tmagen.verify.progress import NoProgress, Progress

COMPLETIONS = tuple(POLICIES)
"""The execution policies, by name."""

_SMALL_GRID = 64  # CTAs below which starting another process costs more than it saves


def run(
    subject: Path | str | Subject,
    launch: Path | Mapping[str, Any] | LaunchSpec,
    *,
    completion: str | Sequence[str] | None = None,
    thorough: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    target: str = "sm_100a",
    nvcc: Nvcc | Path | str | None = None,
    nvcc_flags: Sequence[str] = (),
    strict: bool = False,
    progress: Progress | None = None,
    tracing: Tracing | None = None,
) -> Report:
    """Runs one kernel as a launch file says, once under each execution policy, and judges what it leaves behind.

    The first run looks for races and other broken rules too; `strict` looks for formal ones as well, which then fail.

    `subject` is a .ptx or .cu file, or what :func:`load` made of one; `launch` a TOML file or a mapping of its form.
    `completion` is the policy, or several: of COMPLETIONS, "usual" or "all"; None means the usual ones. `thorough` runs
    all policies, or those of `completion`, each with all seeds that can make a difference, from `seed` on. `seed`
    varies random fills and what the policy draws; `jobs` is how many processes emulate a large grid, one per core by
    default.
    `tracing` gets a trace of the first run that fails, else of the first.

    Raises TmagenError where there is nothing to run: files that cannot be read, do not compile or parse, a launch file
    that does not fit the kernel.
    """
    orders = completions(completion, thorough)
    spec, folder, source = read_launch(launch)
    loaded = subject
    if not isinstance(loaded, Subject):
        loaded = load(Path(loaded), target=target, nvcc=nvcc, flags=nvcc_flags)
    spec, entry = fitted(spec, loaded.module, source)
    try:
        arena = Arena(spec, seed, folder)
    except SpecError as error:
        raise _in(source, error.diagnostics) from None
    params = parameter_block(spec, entry, arena)
    assert spec.block is not None and spec.cluster is not None
    what = Launch(
        entry.name,
        spec.grid,
        spec.block,
        spec.cluster,
        spec.dynamic_smem_bytes,
        params,
        spec.registers,
        arena.predecessor(spec.predecessor),
    )
    runner = Runner(seed, jobs, strict, progress or NoProgress(), tracing)
    cases: list[CaseReport] = []
    notes: list[str] = [] if spec.expects else ["the launch file expects nothing: results are not compared"]
    given = {seed: (arena, what)}  # random fills are of a seed
    for order in orders:
        runs: list[CaseReport] = []
        seeds = POLICIES[order].seeds_from(seed, what) if thorough else (seed,)
        for number, each in enumerate(seeds):
            if each in given:
                arena, what = given[each]
                arena.reset()
            else:
                arena = Arena(spec, each, folder)
                what = replace(
                    what, params=parameter_block(spec, entry, arena), predecessor=arena.predecessor(spec.predecessor)
                )
                given = {seed: given[seed], each: (arena, what)}
            runner.at(each, number, len(seeds))
            runs.append(_case(spec, loaded.module, what, arena, runner, order, checked=not cases and not runs))
            if runs[-1].verdict is not Verdict.PASSED:
                break
        cases.append(together(runs))
        if cases[-1].verdict is Verdict.NOT_JUDGED and len(orders) > len(cases):
            notes.append("what is not judged in one order is not judged in another: the rest were not run")
            break
    runner.progress.close()
    return Report((loaded.label,), loaded.compiler, tuple(notes), tuple(cases), loaded.build_seconds)


def fitted(spec: LaunchSpec, module: Module, source: str) -> tuple[LaunchSpec, Entry]:
    """The kernel that a launch file is for, and the file with what the kernel itself requires of a launch.

    `source` names the file in messages. Raises SpecError where it does not fit the kernel.
    """
    try:
        entry = choose(module, spec.kernel)
    except SpecError as error:
        raise _in(source, error.diagnostics) from None
    problems = check_params(spec.params, entry)
    spec = _with_required(spec, entry, problems)
    if problems:
        raise _in(source, problems)
    return spec, entry


def _in(source: str, problems: Iterable[Diagnostic]) -> SpecError:
    """The problems as those of a launch file."""
    return SpecError(*(Diagnostic(f"{source}: {d.message}", d.detail, d.hint) for d in problems))


def read_launch(launch: Path | Mapping[str, Any] | LaunchSpec) -> tuple[LaunchSpec, Path, str]:
    """The spec, the folder that files in it are relative to, and its name in messages. Raises SpecError."""
    if isinstance(launch, LaunchSpec):
        return launch, Path(), "launch"
    if isinstance(launch, Mapping):
        return from_mapping(launch), Path(), "launch"
    try:
        text = Path(launch).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SpecError(Diagnostic(f"cannot read {str(launch)!r}: {reason}")) from None
    return from_toml(text, str(launch)), Path(launch).parent, str(launch)


def _with_required(spec: LaunchSpec, entry: Entry, problems: list[Diagnostic]) -> LaunchSpec:
    """The spec with what the kernel itself requires of a launch where the file says nothing."""
    block = spec.block or _directive(entry, "reqntid")
    if block is None:
        most = _directive(entry, "maxntid")
        hint = None if most is None else f"block = {list(most)}"
        problems.append(Diagnostic("block is missing: threads in x, y and z, such as block = [128, 1, 1]", hint=hint))
    return replace(spec, block=block, cluster=spec.cluster or _directive(entry, "reqnctapercluster") or (1, 1, 1))


def _directive(entry: Entry, name: str) -> Dim3 | None:
    found = entry.directives.get(name)
    if not found:
        return None
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def completions(asked: str | Sequence[str] | None, thorough: bool = False) -> tuple[str, ...]:
    """The policies that are asked for. Raises TmagenError for one that does not exist."""
    if asked is None:
        return THOROUGH if thorough else USUAL
    return named_policies(asked)


class Runner:
    """Emulates launches. Whatever checks a run reports into the collector that is passed here."""

    def __init__(
        self, seed: int, jobs: int | None, strict: bool, progress: Progress, tracing: Tracing | None = None
    ) -> None:
        self.seed, self.jobs, self.strict, self.progress, self.tracing = seed, jobs, strict, progress, tracing
        self._number, self._runs = 0, 1

    def at(self, seed: int, number: int, runs: int) -> None:
        """What follows is run `number` of `runs` under one policy, with this seed."""
        self.seed, self._number, self._runs = seed, number, runs

    def _step(self, done: int, total: int) -> None:
        self.progress.step(self._number * total + done, self._runs * total)

    def emulate(
        self,
        module: Module,
        launch: Launch,
        memory: GlobalMemory,
        completion: str,
        findings: Findings,
        places: Iterable[Place],
        *,
        checked: bool,
    ) -> LaunchRecord:
        """Runs one launch. What is found, and what ends it early, goes into `findings`.

        `places` are the words for addresses; `checked` looks for races and other broken rules. Raises SpecError for
        CTAs to trace that the launch does not have.
        """
        if self.tracing is not None:
            self.tracing.require(launch.grid)
        if self._number == 0:
            times = f", {self._runs} seeds" if self._runs > 1 else ""
            self.progress.case_starts(f"{plain_name(launch.kernel)}, {completion}{times}")
        started = time.perf_counter()
        cycles: tuple[int, int] | None = None
        model: tuple[str, ...] = ()
        try:
            result = emulate(
                module,
                launch,
                memory,
                completion=completion,
                seed=self.seed,
                jobs=self._jobs_for(launch),
                progress=self._step,
                checks=checked,
                strict=checked and self.strict,
                trace=None if self.tracing is None else self.tracing.trace(),
            )
            findings.take(result.findings)
            findings.take_hints(result.hints)
            if (cycles := result.cycles) is not None:
                model = table_for(module.target).text()
        except EmulatorError as error:
            findings.take_error(error, explained(error.message, places))
        finally:
            if self._number == self._runs - 1:
                self.progress.close()
        x, y, z = launch.grid
        return LaunchRecord(
            plain_name(launch.kernel),
            (x, y, z),
            launch.block,
            launch.cluster,
            launch.dynamic_smem_bytes,
            time.perf_counter() - started,
            cycles,
            model,
        )

    def _jobs_for(self, launch: Launch) -> int:
        if self.tracing is not None:
            return 1
        if self.jobs is not None:
            return self.jobs
        x, y, z = launch.grid
        return len(os.sched_getaffinity(0)) if x * y * z >= _SMALL_GRID else 1


def _case(
    spec: LaunchSpec,
    module: Module,
    launch: Launch,
    arena: Arena,
    runner: Runner,
    completion: str,
    *,
    checked: bool,
) -> CaseReport:
    findings = Findings()
    started = time.perf_counter()
    if runner.tracing is not None:
        runner.tracing.begin(f"{plain_name(launch.kernel)}, {completion}")
    record = runner.emulate(module, launch, arena.memory, completion, findings, arena.places, checked=checked)
    # A run that did not end left nothing behind that could be judged.
    if not findings.ended_early:
        _judge(spec, arena, findings)
    if runner.tracing is not None:
        runner.tracing.end(failed=verdict_of(findings, strict=runner.strict) is not Verdict.PASSED)
    return CaseReport(
        completion=completion,
        seed=runner.seed,
        seconds=time.perf_counter() - started,
        launches=(record,),
        findings=tuple(findings),
        expectations=len(spec.expects),
        checked=checked,
        strict=runner.strict,
    )


def _judge(spec: LaunchSpec, arena: Arena, findings: Findings) -> None:
    """What a finished run left behind."""
    named: set[str] = set()
    for number, expect in enumerate(spec.expects):
        named |= {name.name for name, time in (*names(expect.that.left, "new"), *names(expect.that.right, "old"))
                  if time == "new"}  # fmt: skip
        found = judge(expect, arena, "expect" if len(spec.expects) == 1 else f"expect[{number}]")
        if found is not None:
            findings.add(replace(found, detail=(*found.detail, *findings.hints)))
    for name, buffer in arena.buffers.items():
        stray = buffer.stray_writes()
        if stray is not None:
            findings.add(stray)
        changed = None if name in named else buffer.changed()
        if changed is not None:
            findings.add(changed)
