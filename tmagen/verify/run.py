# SPDX-License-Identifier: Apache-2.0
"""From a kernel file to a verdict."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tmagen.bind import LeadingDims
from tmagen.emu import GlobalMemory, Module, Tracing, parse
from tmagen.errors import TmagenError
from tmagen.hostrun import build
from tmagen.ir import Gemm, Shape, Target
from tmagen.toolchain import Nvcc, find_nvcc
from tmagen.verify.arguments import check_arguments
from tmagen.verify.cases import Settings, run_problem
from tmagen.verify.choose import COMPLETIONS, INPUTS, Choice, asked_ways, choose
from tmagen.verify.host import Host
from tmagen.verify.memory import require_memory
from tmagen.verify.progress import NoProgress, Progress
from tmagen.verify.report import CaseReport, Report, Verdict
from tmagen.words import unreadable

__all__ = ["COMPLETIONS", "INPUTS", "target_of", "verify"]


def verify(
    subject: Path | str | Gemm,
    shapes: Sequence[Shape] | None = None,
    *,
    completion: str | Sequence[str] | None = None,
    thorough: bool = False,
    inputs: str | None = None,
    seed: int = 0,
    checks: bool = True,
    strict: bool = False,
    fail_fast: bool = False,
    lds: LeadingDims | None = None,
    jobs: int | None = None,
    nvcc: Nvcc | Path | str | None = None,
    kernel: str | None = None,
    progress: Progress | None = None,
    tracing: Tracing | None = None,
) -> Report:
    """Compiles a kernel, emulates what its own host part launches, and compares D with the matrix product.

    `subject` is a kernel file (a Path, or a str of one line that names one), the text of one (str) or a specification
    (Gemm), which is emitted first; `kernel` is the namespace to judge where a file holds several kernels. Without
    `shapes` a small set is tried that meets tails, K = 0 and empty problems, or the one shape that is baked in.
    `completion` is the execution policy, which says when asynchronous work completes and what else PTX leaves open: one
    or several of COMPLETIONS, "usual" or "all". `thorough` runs all policies, or those of `completion`, and each with
    all seeds that can make a difference, from `seed` on; those beyond the usual ones on the first kind of inputs alone.
    `inputs` is "integer" (compared bit by bit), "normal" (compared with an error bound) or "both". None means the usual
    policies and both, but a few for a large shape that is baked in. With `checks` the first run of each problem is
    observed for races and other broken rules, which fail it; `strict` adds rules that are formal or that one run cannot
    settle, and they fail nothing. `fail_fast` stops at the first case that fails. `lds` replaces the leading
    dimensions: by default K, K and N rounded up to 16 bytes, and some more for a few shapes of the set. `jobs` is how
    many processes emulate a large problem, one per core by default. `tracing` gets a
    trace of the first case that fails, else of the first.

    Raises TmagenError where there is nothing to judge: no compiler, a file that does not compile or is of another form,
    an illegal specification, a shape that the kernel is not for, a problem that does not fit into memory, an argument
    of another type.
    """
    check_arguments(
        subject,
        shapes,
        completion=completion,
        inputs=inputs,
        seed=seed,
        lds=lds,
        jobs=jobs,
        nvcc=nvcc,
        kernel=kernel,
    )
    ways = asked_ways(completion, inputs, thorough)
    progress = progress or NoProgress()
    subject = _path_or_text(subject)
    with _source_of(subject) as (path, label):
        target = target_of(path.read_text(encoding="utf-8", errors="replace"))
        compiler = nvcc if isinstance(nvcc, Nvcc) else find_nvcc(nvcc, arch=target.value)
        started = time.perf_counter()
        # A kernel that came as no file is told by its name: its folder is gone when the report is read.
        named = None if isinstance(subject, Path) else path.name
        with build(path, nvcc=compiler, target=target, called=named, kernel=kernel) as program:
            ptx = program.ptx if named is None else program.ptx.replace(str(path), named)
            module = parse(ptx, filename=f"{label} (PTX)")
            seconds = time.perf_counter() - started
            with Host(program) as host:
                choice = choose(host, shapes, lds, ways)
                settings = Settings(
                    choice.completions, choice.inputs, seed, jobs, progress, checks, strict, tracing, thorough
                )
                for problem in choice.problems:
                    require_memory(problem, settings)
                report = Report(
                    subject=label,
                    target=target.value,
                    compiler=str(compiler),
                    elements=(program.elements[0].value, program.elements[1].value, program.elements[2].value),
                    resources=program.cubin.kernels,
                    notes=(*compiler.passed_over, *choice.notes),
                    cases=(),
                    build_seconds=seconds,
                )
                progress.built(report)
                cases, stopped = _run(host, module, choice, settings, fail_fast=fail_fast)
                return replace(report, cases=tuple(cases), stopped=stopped)


def _run(
    host: Host, module: Module, choice: Choice, settings: Settings, *, fail_fast: bool
) -> tuple[list[CaseReport], str | None]:
    """The cases, and why those that would have followed were not run."""
    cases: list[CaseReport] = []
    for problem in choice.problems:
        for case in run_problem(problem, host, module, GlobalMemory(), settings):
            settings.progress.case_ends(case)
            cases.append(case)
            stopped = None
            if case.verdict is Verdict.NOT_JUDGED:
                # What is not understood once is not understood again: one report of it is enough.
                stopped = "what is not judged: no case after it was run"
            elif fail_fast and case.verdict is Verdict.FAILED:
                stopped = "the first failure: no case after it was run"
            if stopped is not None:
                settings.progress.close()
                return cases, stopped
    settings.progress.close()
    return cases, None


def _path_or_text(subject: Path | str | Gemm) -> Path | str | Gemm:
    """A str of one line that names a file, or holds no code at all, is a path."""
    if not isinstance(subject, str) or "\n" in subject:
        return subject
    return Path(subject) if "{" not in subject or unreadable(subject) is None else subject


@contextmanager
def _source_of(subject: Path | str | Gemm) -> Iterator[tuple[Path, str]]:
    """The kernel as a file, and what to call it in reports."""
    if isinstance(subject, Path):
        reason = unreadable(str(subject))
        if reason is not None:
            raise TmagenError(f"cannot read {str(subject)!r}: {reason}")
        yield subject, str(subject)
        return
    if isinstance(subject, str):
        name, text = "kernel", subject
    else:
        from tmagen.emit import emit
        from tmagen.plan import plan

        planned = plan(subject)
        name, text = planned.name, emit(planned)
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        path = Path(folder) / f"{name}.cu"
        path.write_text(text, encoding="utf-8")
        yield path, name


def target_of(text: str) -> Target:
    """What a kernel file is compiled for: the target that its comments tell nvcc, else that of its MMA instruction.

    Nothing else depends on it: a file that is not for this target fails to compile, or refuses the device.
    """
    told = re.search(r"\bcode=(sm_\w+)", text)
    if told is not None and told[1] in {target.value for target in Target}:
        return Target(told[1])
    return Target.SM_90A if "wgmma." in text else Target.SM_100A
