# SPDX-License-Identifier: Apache-2.0
"""From what is asked to a comparison: builds both sides at the same time, and compares them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tmagen.diff.compare import PARTS, Comparison, Half, compare, half_of
from tmagen.diff.problem import Elements, Problem, problem_of, trial_shape
from tmagen.diff.results import is_large
from tmagen.diff.sides import FileHost, Side, file_code, file_side, foreign_side, own_side, spec_elements, tirx_side
from tmagen.diff.tools import tools_of
from tmagen.errors import Diagnostic, SpecError
from tmagen.hostrun import HostProgram, SourceFormError, build
from tmagen.ir import Gemm, Pipeline, Shape, Tile
from tmagen.legality import require_legal
from tmagen.toolchain import Nvcc, find_nvcc
from tmagen.verify.run import target_of

DEFAULT_SHAPE = Shape(4096, 4096, 4096)


@dataclass(frozen=True, slots=True)
class Request:
    """How two sides are compared."""

    shape: Shape | None = None  # of plan and cost
    emulate: Shape | None = None  # of what is emulated
    parts: tuple[str, ...] = PARTS
    seed: int = 0
    jobs: int | None = None
    nvcc: str | None = None

    def processes(self, trial: Problem) -> int:
        """Processes that emulate a side: the two sides share the cores as it is."""
        return self.jobs or (len(os.sched_getaffinity(0)) if is_large(trial.shape) else 1)


def diff_spec(spec: Gemm, against: Path | None = None, request: Request | None = None) -> Comparison:
    """The kernel of `spec` against TIRx's, or against a file.

    Raises SpecError for an illegal spec, one that a TIRx script cannot express, and a file that nothing launches;
    TirxError, ToolchainError and CompileError where a program is missing or rejects its input.
    """
    request = request or Request()
    require_legal(spec)
    static = spec.problem.shape
    if static is not None and request.shape not in (None, static):
        raise SpecError(
            Diagnostic(f"--shape differs from the shape that is baked in: {static.m},{static.n},{static.k}")
        )
    shape = static or request.shape or DEFAULT_SHAPE
    trial = request.emulate or trial_shape(spec.tile, spec.pipeline)
    nvcc = find_nvcc(request.nvcc, arch=spec.target.value)
    elements = spec_elements(spec)
    problem, small = problem_of(shape, elements), problem_of(trial, elements)

    def own() -> Side:
        return own_side(spec, trial, nvcc)

    if against is None:
        return _compared(own, lambda: tirx_side(spec, shape, trial, nvcc), problem, small, request, nvcc)
    with ExitStack() as stack:
        try:
            host = _host(against, nvcc, stack)
        except SourceFormError:
            mine = own()
            if static is not None and trial != static:
                # A file of one shape runs on that alone.
                mine = replace(mine, trial=mine.code, trial_launch=mine.launch)
                small = problem
            other = foreign_side(against, mine, nvcc, spec.target.value)
            return _compared(lambda: mine, lambda: other, problem, small, request, nvcc)
        _same_types(elements, host.program.elements)
        small = _fitting(small, host.program)
        return _compared(
            lambda: own_side(spec, small.shape, nvcc),
            lambda: file_side(against, host, file_code(against, nvcc, spec.target.value)),
            problem,
            small,
            request,
            nvcc,
        )


def diff_files(left: Path, right: Path, request: Request | None = None) -> Comparison:
    """Two files of the form that `tmagen emit` writes, each launched by its own host part.

    Raises SourceFormError for a file of another form, and what :func:`diff_spec` raises.
    """
    request = request or Request()
    targets = [target_of(path.read_text(encoding="utf-8", errors="replace")) for path in (left, right)]
    if targets[0] is not targets[1]:
        raise SpecError(Diagnostic(f"{left.name} is for {targets[0].value}, {right.name} for {targets[1].value}"))
    nvcc = find_nvcc(request.nvcc, arch=targets[0].value)
    with ExitStack() as stack:
        with ThreadPoolExecutor(2) as pool:
            codes = [pool.submit(file_code, path, nvcc, targets[0].value) for path in (left, right)]
            hosts = [_host(path, nvcc, stack) for path in (left, right)]
        elements = hosts[0].program.elements
        _same_types(elements, hosts[1].program.elements)
        problem = problem_of(request.shape or DEFAULT_SHAPE, elements)
        small = problem_of(request.emulate or trial_shape(Tile(), Pipeline()), elements)
        for host in hosts:
            problem, small = _fitting(problem, host.program), _fitting(small, host.program)
        return _compared(
            lambda: file_side(left, hosts[0], codes[0].result()),
            lambda: file_side(right, hosts[1], codes[1].result()),
            problem,
            small,
            request,
            nvcc,
        )


def _host(path: Path, nvcc: Nvcc, stack: ExitStack) -> FileHost:
    if path.suffix == ".ptx":
        raise SourceFormError(f"{path}: PTX has no host part", hint="tmagen diff SPEC --against FILE.ptx")
    target = target_of(path.read_text(encoding="utf-8", errors="replace"))
    program = stack.enter_context(build(path, nvcc=nvcc, target=target))
    host = FileHost(program)
    stack.callback(host.session.close)
    return host


def _same_types(mine: Elements, theirs: Elements) -> None:
    if mine != theirs:
        words = [", ".join(element.value for element in elements) for elements in (mine, theirs)]
        raise SpecError(
            Diagnostic(f"A, B, D are {words[0]} on one side and {words[1]} on the other: nothing to compare")
        )


def _fitting(problem: Problem, program: HostProgram) -> Problem:
    """The problem, with the extents that a file has baked in."""
    shape = problem.shape
    m, n, k = (
        asked if fixed is None else fixed
        for asked, fixed in zip((shape.m, shape.n, shape.k), program.static_mnk, strict=True)
    )
    return problem_of(Shape(m, n, k), problem.elements)


def _compared(
    left: Callable[[], Side],
    right: Callable[[], Side],
    problem: Problem,
    trial: Problem,
    request: Request,
    nvcc: Nvcc,
    arch: str,
    *,
    tvm: bool = False,
) -> Comparison:
    def half(build_side: Callable[[], Side]) -> Callable[[], Half]:
        jobs = request.processes(trial)
        return lambda: half_of(
            build_side(), problem, trial, nvcc=nvcc, parts=request.parts, seed=request.seed, jobs=jobs
        )

    return compare(
        half(left),
        half(right),
        problem,
        trial,
        tools=lambda: tools_of(nvcc, arch, tvm=tvm, disassembled="cost" in request.parts),
        parts=request.parts,
        seed=request.seed,
    )
