# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: a spec as this generator writes it, the same by way of TIRx, or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tmagen.diff.code import Code, compile_text, ptx_of_text
from tmagen.diff.launching import launch_of_plan, launch_of_tirx
from tmagen.diff.problem import Elements, Problem, trial_ctas
from tmagen.emit import emit
from tmagen.emu import Launch
from tmagen.ir import Gemm, Shape
from tmagen.plan import Plan, plan
from tmagen.spec import to_command
from tmagen.tirx import tirx_script
from tmagen.tirx.build import build_scripts
from tmagen.toolchain import Nvcc

Addresses = Mapping[str, int]
Launcher = Callable[[Problem, Addresses], Launch]


@dataclass(frozen=True, slots=True)
class Side:
    """One kernel: what it is called, its code, and how it is launched; None where nothing says so.

    `code` is what is asked for, and what cost and plan are about; `trial` is the same kernel for the problem that is
    emulated, which is other code where shapes are baked in.
    """

    label: str
    made_by: str
    code: Code
    trial: Code
    launch: Launcher | None
    trial_launch: Launcher | None


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
        launch=lambda problem, at: launch_of_tirx(full, full.kernel, at),
        trial_launch=lambda problem, at: launch_of_tirx(small, small.kernel, at),
    )
