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
from tmagen.emu import GlobalMemory, Module, parse
from tmagen.errors import TmagenError
from tmagen.hostrun import HostProgram, build
from tmagen.ir import Gemm, Shape, Target
from tmagen.toolchain import Nvcc, find_nvcc
from tmagen.verify.cases import Problem, Settings, run_problem
from tmagen.verify.host import Host
from tmagen.verify.progress import NoProgress, Progress
from tmagen.verify.report import CaseReport, Report, Verdict
from tmagen.verify.shapes import (
    check_leading_dims,
    check_shapes,
    default_leading_dims,
    default_shapes,
    rounded_note,
)

COMPLETIONS = ("eager", "lazy", "newest-first", "random")
INPUTS = ("integer", "normal")


def verify(
    subject: Path | str | Gemm,
    shapes: Sequence[Shape] | None = None,
    *,
    completion: str | Sequence[str] = "all",
    inputs: str = "both",
    seed: int = 0,
    checks: bool = True,
    strict: bool = False,
    lds: LeadingDims | None = None,
    jobs: int | None = None,
    nvcc: Nvcc | Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compiles a kernel, emulates what its own host part launches, and compares D with the matrix product.

    `subject` is a kernel file (Path), the text of one (str) or a specification (Gemm), which is emitted first. Without
    `shapes` a small set is tried that meets tails, K = 0 and empty problems, or the one shape that is baked in.
    `completion` is the order in which asynchronous work completes: one or several of COMPLETIONS, or "all". `inputs` is
    "integer" (compared bit by bit), "normal" (compared with an error bound) or "both". With `checks` the first run of
    each problem is observed for races and other broken rules, which fail it; `strict` adds rules that are formal or
    that one run cannot settle, and they fail nothing. `lds` replaces the leading
    dimensions, which are otherwise K, K and N rounded up to 16 bytes. `jobs` is how many processes emulate a large
    problem, one per core by default.

    Raises TmagenError where there is nothing to judge: no compiler, a file that does not compile or is of another form,
    an illegal specification, a shape that the kernel is not for.
    """
    settings = Settings(_completions(completion), _inputs(inputs), seed, jobs, progress or NoProgress(), checks, strict)
    with _source_of(subject) as (path, label):
        target = target_of(path.read_text(encoding="utf-8", errors="replace"))
        compiler = nvcc if isinstance(nvcc, Nvcc) else find_nvcc(nvcc, arch=target.value)
        started = time.perf_counter()
        with build(path, nvcc=compiler, target=target) as program:
            module = parse(program.ptx, filename=f"{label} (PTX)")
            seconds = time.perf_counter() - started
            cases, notes = _run(program, module, shapes, lds, settings)
            if not isinstance(subject, Path):
                cases = [_without_folder(case, path) for case in cases]
            return Report(
                subject=label,
                target=target.value,
                compiler=str(compiler),
                elements=(program.elements[0].value, program.elements[1].value, program.elements[2].value),
                resources=program.cubin.kernels,
                notes=(*compiler.passed_over, *notes),
                cases=tuple(cases),
                build_seconds=seconds,
            )


def _run(
    program: HostProgram,
    module: Module,
    shapes: Sequence[Shape] | None,
    lds: LeadingDims | None,
    settings: Settings,
) -> tuple[list[CaseReport], list[str]]:
    cases: list[CaseReport] = []
    notes: list[str] = []
    with Host(program) as host:
        if shapes is None:
            chosen = default_shapes(program.static_mnk, host.ctas_of)
        else:
            chosen = check_shapes(shapes, program.static_mnk)
        for shape in chosen:
            dims = lds or default_leading_dims(shape, program.elements)
            check_leading_dims(shape, dims, program.elements)
            note = None if lds else rounded_note(shape, dims)
            if note:
                notes.append(f"{shape.m} x {shape.n} x {shape.k}: {note}")
            problem = Problem(shape, dims, program.elements)
            for case in run_problem(problem, host, module, GlobalMemory(), settings):
                settings.progress.case_ends(case)
                if case.verdict is Verdict.NOT_JUDGED:
                    # What is not understood once is not understood again: one report of it is enough.
                    cases.append(replace(case, message=(*case.message, "the cases after this one were not run")))
                    settings.progress.close()
                    return cases, notes
                cases.append(case)
        settings.progress.close()
    return cases, notes


@contextmanager
def _source_of(subject: Path | str | Gemm) -> Iterator[tuple[Path, str]]:
    """The kernel as a file, and what to call it in reports."""
    if isinstance(subject, Path):
        if not subject.is_file():
            raise TmagenError(f"{subject}: no such file")
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


def _without_folder(case: CaseReport, path: Path) -> CaseReport:
    """The case with the kernel's file by its name alone: the folder is gone when the report is read."""
    return replace(case, message=tuple(line.replace(str(path), path.name) for line in case.message))


def _completions(asked: str | Sequence[str]) -> tuple[str, ...]:
    chosen = COMPLETIONS if asked == "all" else (asked,) if isinstance(asked, str) else tuple(asked)
    unknown = [name for name in chosen if name not in COMPLETIONS]
    if unknown or not chosen:
        raise TmagenError(f"completion {', '.join(unknown) or 'of no kind'}: choose from {', '.join(COMPLETIONS)}, all")
    return chosen


def _inputs(asked: str) -> tuple[str, ...]:
    if asked == "both":
        return INPUTS
    if asked not in INPUTS:
        raise TmagenError(f"input {asked}: choose from {', '.join(INPUTS)}, both")
    return (asked,)
