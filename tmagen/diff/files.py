# SPDX-License-Identifier: Apache-2.0
"""A file as a side: who says how its kernel is launched, and for which problems.

In this order: a launch file; the file's own host part, of the form that `tmagen emit` writes; TVM, for what it made of
one of our scripts. Where nobody does, what stands in the code can still be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tmagen.diff.code import Choose, Code, compile_ptx_text, compile_text
from tmagen.diff.host_side import FileHost, host_side
from tmagen.diff.launch_side import launch_file, launch_side
from tmagen.diff.problem import Elements, Problem
from tmagen.diff.sides import Side, spec_elements
from tmagen.diff.tvm_side import Retraced, retrace, takes_maps_alone, tvm_side, tvm_spec
from tmagen.errors import Diagnostic, SpecError
from tmagen.hostrun import SourceFormError, build
from tmagen.ir import Gemm, Shape
from tmagen.toolchain import Nvcc
from tmagen.verify.run import target_of
from tmagen.words import named

Extents = tuple[int | None, int | None, int | None]
ANY: Extents = (None, None, None)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file, read. `side(trial, reduced)` is the side: the shape that is emulated, and what
    :func:`tmagen.diff.host_side.host_side` takes.
    """

    path: Path
    side: Callable[[Shape, bool], Side]
    elements: Elements | None = None  # None: not known, since nothing says how it is launched
    fixed: Extents = ANY  # M, N and K where they are baked in
    any_trial: bool = False  # though the shape is baked in, another one can be emulated
    problem: Problem | None = None  # the only one that it is launched for, rows included
    tvm: bool = False  # TVM was called

    @property
    def is_launched(self) -> bool:
        return self.elements is not None


def read_text(path: Path) -> str:
    """A source file."""
    return path.read_text(encoding="utf-8", errors="replace")


def open_file(
    path: Path, launch: Path | None, spec: Gemm | None, nvcc: Nvcc, arch: str, stack: ExitStack, *, run: bool = True
) -> Opened:
    """Opens a file; `launch` is its launch file, `spec` what a kernel of TVM without a name of ours is taken for.

    Without `run` no launch is sought beyond what `launch` says. What is started ends with `stack`. Raises SpecError,
    CompileError, HostError, TirxError.
    """
    if launch is not None:
        file = launch_file(launch)
        side = launch_side(path, file, file_code(path, nvcc, arch, file.symbol))
        shape = file.problem.shape
        fixed = (shape.m, shape.n, shape.k)
        return Opened(path, lambda trial, reduced: side, file.problem.elements, fixed, problem=file.problem)
    if path.suffix != ".ptx":
        try:
            host = _host(path, nvcc, stack)
        except SourceFormError:
            pass
        else:
            code = file_code(path, nvcc, arch)
            return Opened(
                path,
                lambda trial, reduced: host_side(path, host, code, reduced=reduced),
                host.program.elements,
                host.program.static_mnk,
            )
    code = file_code(path, nvcc, arch)
    by_tvm = _by_tvm(path, code, spec, nvcc, arch) if run else None
    return by_tvm or Opened(path, lambda trial, reduced: Side(path.name, str(path), code, code, None, None))


def _by_tvm(path: Path, code: Code, spec: Gemm | None, nvcc: Nvcc, arch: str) -> Opened | None:
    if not takes_maps_alone(code) or not code.kernel.endswith("_kernel"):
        return None
    for candidate in (tvm_spec(code.kernel), spec):
        known = None if candidate is None else retrace(code, candidate, nvcc, arch)
        if known is not None:
            return _made_by_tvm(path, code, known, nvcc, arch)
    return None


def _made_by_tvm(path: Path, code: Code, known: Retraced, nvcc: Nvcc, arch: str) -> Opened:
    shape = known.spec.problem.shape
    assert shape is not None, "a TIRx script has a shape"
    return Opened(
        path,
        lambda trial, reduced: tvm_side(path, code, known, trial, nvcc, arch),
        spec_elements(known.spec),
        (shape.m, shape.n, shape.k),
        any_trial=known.unedited,
        tvm=True,
    )


def file_code(path: Path, nvcc: Nvcc, arch: str, choose: Choose | None = None) -> Code:
    """A .cu or .ptx file, compiled. Raises CompileError and SpecError."""
    compiled = compile_ptx_text if path.suffix == ".ptx" else compile_text
    return compiled(read_text(path), path.stem, nvcc, arch, choose)


def _host(path: Path, nvcc: Nvcc, stack: ExitStack) -> FileHost:
    program = stack.enter_context(build(path, nvcc=nvcc, target=target_of(read_text(path))))
    host = FileHost(program)
    stack.callback(host.session.close)
    return host


def as_model(side: Side, model: Side) -> Side | None:
    """A side that nothing launches, launched as `model` is: the same parameters at the same places; None otherwise."""
    code = side.code
    mine, theirs = (
        [(parameter.offset, parameter.size) for parameter in entry.params] for entry in (code.entry, model.trial.entry)
    )
    launch, trial_launch = model.launch, model.trial_launch
    if mine != theirs or launch is None or trial_launch is None:
        return None
    name = code.kernel
    return replace(
        side,
        made_by=f"{side.made_by}, launched as {model.label}'s",
        launch=lambda problem, at: replace(launch(problem, at), kernel=name),
        trial_launch=lambda problem, at: replace(trial_launch(problem, at), kernel=name),
    )


def require_launched(side: Side, flag: str) -> None:
    """Raises SpecError, with what can be given, where nothing says how a side is launched."""
    if side.launch is not None:
        return
    sizes = ", ".join(str(parameter.size) for parameter in side.code.entry.params) or "none"
    name = named(side.made_by)
    raise SpecError(
        Diagnostic(
            f"{side.label}: nothing says how its kernel is launched",
            (
                f"parameters, bytes: {sizes}",
                f"`tmagen check {name} --list-entries > launch.toml` prints a launch file to fill in: buffers A, B, D",
                "--only events,plan,cost tells what can be told without a launch",
            ),
            hint=f"{flag} launch.toml",
        )
    )
