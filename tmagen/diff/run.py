# SPDX-License-Identifier: Apache-2.0
"""From what is asked to a comparison: builds both sides at the same time, and compares them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tmagen.diff.compare import PARTS, Comparison, Half, compare, half_of
from tmagen.diff.files import Opened, as_model, open_file, read_text, require_launched
from tmagen.diff.problem import Elements, Problem, problem_of, trial_shape
from tmagen.diff.results import is_large
from tmagen.diff.sides import Side, own_side, spec_elements, tirx_side
from tmagen.diff.tools import tools_of
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import DType, Gemm, Pipeline, Shape, Tile
from tmagen.legality import require_legal
from tmagen.tirx.build import require_tvm
from tmagen.toolchain import Nvcc, find_nvcc
from tmagen.verify.run import target_of

UNKNOWN: Elements = (DType.F16, DType.F16, DType.F16)
"""Types where nothing says which they are, and nothing depends on them."""
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
    launch: Path | None = None  # how the first file is launched
    against_launch: Path | None = None  # how the second one is

    @property
    def runs(self) -> bool:
        """Whether a launch is needed."""
        return "result" in self.parts

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
    arch = spec.target.value
    nvcc = find_nvcc(request.nvcc, arch=arch)
    elements = spec_elements(spec)
    asked = problem_of(shape, elements)
    small = problem_of(request.emulate or trial_shape(spec.tile, spec.pipeline), elements)
    if against is None:
        require_tvm()  # before anything that takes time
        return _compared(
            lambda: own_side(spec, small.shape, nvcc),
            lambda: tirx_side(spec, shape, small.shape, nvcc),
            _Meeting(asked, small, tvm=True),
            request,
            nvcc,
            arch,
        )
    with ExitStack() as stack:
        shaped = replace(spec, problem=replace(spec.problem, shape=shape))
        other = open_file(against, request.against_launch, shaped, nvcc, arch, stack, run=request.runs)
        meeting = _meet(_Meeting(asked, small), [other], request, "the spec", static)

        def own() -> Side:
            side = own_side(spec, meeting.small.shape, nvcc)
            exact = meeting.exact and side.trial is side.code
            return replace(side, trial_launch=side.launch) if exact else side

        if other.is_launched or not request.runs:
            return _compared(
                own, lambda: other.side(meeting.small.shape, not meeting.exact), meeting, request, nvcc, arch
            )
        mine = own()
        if static is not None and small.shape != static:
            # A file of one shape runs on that alone.
            mine = replace(mine, trial=mine.code, trial_launch=mine.launch)
            meeting = replace(meeting, small=meeting.asked)
        theirs = as_model(other.side(meeting.small.shape, False), mine) or other.side(meeting.small.shape, False)
        if request.runs:
            require_launched(theirs, "--against-launch")
        if static is not None and request.emulate not in (None, static):
            raise SpecError(
                Diagnostic(
                    f"--emulate differs from the shape that is baked in: {static.m},{static.n},{static.k}",
                    (f"{against.name} is launched as the spec's kernel is: its shape is fixed",),
                )
            )
        return _compared(lambda: mine, lambda: theirs, meeting, request, nvcc, arch)


def diff_files(left: Path, right: Path, request: Request | None = None) -> Comparison:
    """Two files, each launched by its launch file, by its own host part, or as TVM launches it.

    Raises what :func:`diff_spec` raises.
    """
    request = request or Request()
    targets = [target_of(read_text(path)) for path in (left, right)]
    if targets[0] is not targets[1]:
        raise SpecError(Diagnostic(f"{left.name} is for {targets[0].value}, {right.name} for {targets[1].value}"))
    arch = targets[0].value
    nvcc = find_nvcc(request.nvcc, arch=arch)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        pairs = ((left, request.launch), (right, request.against_launch))
        futures = [pool.submit(open_file, *pair, None, nvcc, arch, stack, run=request.runs) for pair in pairs]
        opened = [future.result() for future in futures]
        elements = next((file.elements for file in opened if file.elements is not None), UNKNOWN)
        small = problem_of(request.emulate or trial_shape(Tile(), Pipeline()), elements)
        asked = problem_of(request.shape or DEFAULT_SHAPE, elements)
        meeting = _meet(_Meeting(asked, small), opened, request, left.name, None)
        sides = [file.side(meeting.small.shape, not meeting.exact) for file in opened]
        if request.runs:
            require_launched(sides[0], "--launch")
            require_launched(sides[1], "--against-launch")
        return _compared(lambda: sides[0], lambda: sides[1], meeting, request, nvcc, arch)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """The problems that both sides take."""

    asked: Problem
    small: Problem  # that is emulated
    exact: bool = False  # one alone, which a side has baked in
    tvm: bool = False


def _meet(first: _Meeting, opened: Sequence[Opened], request: Request, who: str, static: Shape | None) -> _Meeting:
    """The problems, with what files have baked in. Raises SpecError where sides take none in common.

    `who` has the types of `first`, and `static` is the shape that it has baked in, if it has.
    """
    fixed: list[int | None] = [None, None, None]
    fixed_trial = list(fixed)
    spec_has = (None, None, None) if static is None else (static.m, static.n, static.k)
    rows: Problem | None = None
    for file in opened:
        if file.elements is not None and file.elements != first.asked.elements:
            words = [", ".join(e.value for e in elements) for elements in (first.asked.elements, file.elements)]
            raise SpecError(
                Diagnostic(f"A, B, D are {words[0]} on one side and {words[1]} on the other: nothing to compare")
            )
        if rows is not None and file.problem not in (None, rows):
            raise SpecError(Diagnostic("the two launch files are for other problems: nothing to compare"))
        rows = rows or file.problem
        for axis, theirs in enumerate(file.fixed):
            mine = spec_has[axis] if fixed[axis] is None else fixed[axis]
            if mine is not None and theirs is not None and mine != theirs:
                raise SpecError(
                    Diagnostic(f"{'MNK'[axis]} is {theirs:,} in {file.path.name} and {mine:,} in {who}, baked in")
                )
            fixed[axis] = fixed[axis] if theirs is None else theirs
            fixed_trial[axis] = fixed_trial[axis] if theirs is None or file.any_trial else theirs

    def fitting(problem: Problem, extents: Sequence[int | None]) -> Problem:
        shape = problem.shape
        pairs = zip((shape.m, shape.n, shape.k), extents, strict=True)
        return problem_of(Shape(*(asked if baked is None else baked for asked, baked in pairs)), problem.elements)

    asked, small = (
        (rows, rows) if rows is not None else (fitting(first.asked, fixed), fitting(first.small, fixed_trial))
    )
    for flag, given, found in (("--shape", request.shape, asked), ("--emulate", request.emulate, small)):
        if given is not None and given != found.shape:
            shape = found.shape
            raise SpecError(
                Diagnostic(f"{flag} differs from the shape that is baked in: {shape.m},{shape.n},{shape.k}")
            )
    return _Meeting(asked, small, exact=None not in fixed_trial, tvm=any(file.tvm for file in opened))


def _compared(
    left: Callable[[], Side],
    right: Callable[[], Side],
    meeting: _Meeting,
    request: Request,
    nvcc: Nvcc,
    arch: str,
) -> Comparison:
    """Each side is built where the other is built as well. One that is to run has a launch."""
    jobs = request.processes(meeting.small)

    def half(build_side: Callable[[], Side]) -> Half:
        return half_of(
            build_side(), meeting.asked, meeting.small, nvcc=nvcc, parts=request.parts, seed=request.seed, jobs=jobs
        )

    return compare(
        lambda: half(left),
        lambda: half(right),
        meeting.asked,
        meeting.small,
        tools=lambda: tools_of(nvcc, arch, tvm=meeting.tvm, disassembled="cost" in request.parts),
        parts=request.parts,
        seed=request.seed,
    )
