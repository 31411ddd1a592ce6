# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: a spec as this generator writes it, the same by way of TIRx, or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tmagen.diff.code import Code, compile_ptx_text, compile_text, ptx_of_text
from tmagen.diff.launching import launch_of_plan, launch_of_tirx
from tmagen.diff.problem import Elements, Problem, trial_ctas
from tmagen.emit import emit
from tmagen.emu import Launch
from tmagen.errors import Diagnostic, SpecError
from tmagen.hostrun import Arguments, HostProgram, HostSession, LaunchCall
from tmagen.ir import Gemm, Shape
from tmagen.plan import Plan, plan
from tmagen.spec import to_command
from tmagen.tirx import tirx_script
from tmagen.tirx.build import build_scripts
from tmagen.toolchain import Nvcc
from tmagen.verify.shapes import default_leading_dims

Addresses = Mapping[str, int]
Launcher = Callable[[Problem, Addresses], Launch]


@dataclass(frozen=True, slots=True)
class Side:
    """One kernel: what it is called, its code, and how it is launched.

    `code` is what is asked for, and what cost and plan are about; `trial` is the same kernel for the problem that is
    emulated, which is other code where shapes are baked in.
    """

    label: str
    made_by: str
    code: Code
    trial: Code
    launch: Launcher
    trial_launch: Launcher


def spec_elements(spec: Gemm) -> Elements:
    """The types of A, B and D."""
    return spec.problem.a, spec.problem.b, spec.problem.d


def for_trial(spec: Gemm, shape: Shape) -> Gemm:
    """The spec for the trial: another shape, and a persistent grid so small that its CTAs take several tiles."""
    schedule = spec.schedule
    if schedule.persistent:
        schedule = replace(schedule, ctas=trial_ctas(spec, shape))
    return replace(spec, problem=replace(spec.problem, shape=shape), schedule=schedule, name=None)


def own_side(spec: Gemm, trial: Shape, nvcc: Nvcc) -> Side:
    """The kernel that `tmagen emit` writes. Raises CompileError."""
    chosen = plan(spec)
    arch = spec.target.value
    code = compile_text(emit(chosen), chosen.name, nvcc, arch)
    trial_spec = for_trial(spec, trial)
    if spec.problem.shape is None:
        trial_plan = plan(replace(trial_spec, problem=replace(trial_spec.problem, shape=None)))
        trial_code = code
    else:
        trial_plan = plan(trial_spec)
        trial_code = code if trial == spec.problem.shape else ptx_of_text(emit(trial_plan), trial_plan.name, nvcc, arch)
    return Side(
        label="tmagen",
        made_by=to_command(spec),
        code=code,
        trial=trial_code,
        launch=_plan_launcher(chosen, code),
        trial_launch=_plan_launcher(trial_plan, trial_code),
    )


def _plan_launcher(chosen: Plan, code: Code) -> Launcher:
    def launch(problem: Problem, at: Addresses) -> Launch:
        return launch_of_plan(chosen, code.entry.name, problem.shape, problem.lds, at)

    return launch


def tirx_side(spec: Gemm, shape: Shape, trial: Shape, nvcc: Nvcc) -> Side:
    """The same spec as a TIRx script, by way of TVM, for both shapes. Raises SpecError, TirxError, CompileError."""
    asked = replace(spec, problem=replace(spec.problem, shape=shape))
    scripts = [tirx_script(asked), tirx_script(for_trial(spec, trial))]
    full, small = build_scripts(scripts)
    arch = spec.target.value
    with ThreadPoolExecutor(2) as pool:
        small_code = pool.submit(ptx_of_text, small.text, "tirx", nvcc, arch)
        code = compile_text(full.text, "tirx", nvcc, arch)
        trial_code = small_code.result()
    return Side(
        label="TIRx",
        made_by=f"{to_command(asked)} --backend tirx-cuda",
        code=code,
        trial=trial_code,
        launch=lambda problem, at: launch_of_tirx(full, at),
        trial_launch=lambda problem, at: launch_of_tirx(small, at),
    )


class FileHost:
    """The host part of a file, asked for launches."""

    def __init__(self, program: HostProgram) -> None:
        self.program = program
        self.session: HostSession = program.start()

    def call(self, problem: Problem, at: Addresses) -> LaunchCall:
        """The one launch for a problem. Raises SpecError where the file launches nothing, or several kernels."""
        shape, lds = problem.shape, problem.lds
        arguments = Arguments(at.get("A", 0), at.get("B", 0), at["D"], shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)
        outcome = self.session.launch(arguments)
        if not outcome.result.ok or len(outcome.launches) != 1:
            said = outcome.result.last_error or outcome.result.error
            raise SpecError(
                Diagnostic(f"launch() of {self.program.namespace} made {len(outcome.launches)} launches: {said}")
            )
        return outcome.launches[0]

    def is_persistent(self, elements: Elements) -> bool:
        """Whether the grid stops growing with the problem."""
        grids = [self._ctas(Shape(m, 4096, 512), elements) for m in (65536, 131072)]
        return grids[0] == grids[1]

    def _ctas(self, shape: Shape, elements: Elements) -> int:
        problem = Problem(shape, elements, default_leading_dims(shape, elements))
        x, y, z = self.call(problem, {"A": 1 << 40, "B": 2 << 40, "D": 3 << 40}).grid
        return x * y * z


def file_code(path: Path, nvcc: Nvcc, arch: str) -> Code:
    """A .cu file, compiled. Raises CompileError and SpecError."""
    return compile_text(path.read_text(encoding="utf-8", errors="replace"), path.stem, nvcc, arch)


def file_side(path: Path, host: FileHost, code: Code) -> Side:
    """A file of the form that `tmagen emit` writes, edited or not, launched by its own host part."""
    program = host.program
    persistent = None not in program.static_mnk or host.is_persistent(program.elements)
    runtime_shape = None in program.static_mnk

    def launch(problem: Problem, at: Addresses) -> Launch:
        call = host.call(problem, at)
        return Launch(
            kernel=code.entry.name,
            grid=call.grid,
            block=call.block,
            cluster=call.cluster,
            dynamic_smem_bytes=call.dynamic_smem_bytes,
            params=call.params,
        )

    def trial_launch(problem: Problem, at: Addresses) -> Launch:
        found = launch(problem, at)
        x, y, z = found.grid
        if not (persistent and runtime_shape and y == z == 1):
            return found
        return replace(found, grid=(max(1, x // 3), 1, 1))

    return Side(path.name, str(path), code, code, launch, trial_launch)


def foreign_side(path: Path, model: Side, nvcc: Nvcc, arch: str) -> Side:
    """A file that brings no host part: PTX, or CUDA of another form, launched as `model` is where its parameters match.

    Raises SpecError where they do not: nothing says how it is launched then.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    build = compile_ptx_text if path.suffix == ".ptx" else compile_text
    code = build(text, path.stem, nvcc, arch)
    mine, theirs = (
        [(parameter.offset, parameter.size) for parameter in entry.params] for entry in (code.entry, model.trial.entry)
    )
    if mine != theirs:
        raise SpecError(
            Diagnostic(
                f"{path.name}: nothing says how its kernel is launched",
                (
                    f"its parameters take {[size for _, size in mine]} bytes; those of the spec's kernel "
                    f"{[size for _, size in theirs]}",
                ),
                hint="a file with the host part that `tmagen emit` writes",
            )
        )
    name = code.entry.name
    return Side(
        label=path.name,
        made_by=str(path),
        code=code,
        trial=code,
        launch=lambda problem, at: replace(model.launch(problem, at), kernel=name),
        trial_launch=lambda problem, at: replace(model.trial_launch(problem, at), kernel=name),
    )
