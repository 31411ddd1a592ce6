# SPDX-License-Identifier: Apache-2.0
"""A file that TVM made of one of our scripts, or its PTX, launched as TVM's host function launches that kernel.

TVM's text has no host part: grid, shared memory and tensor maps are in TVM's own. What script it was made of stands in
the kernel's name, and TVM makes the rest of it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tmagen.diff.code import Code, ptx_of_text
from tmagen.diff.launching import launch_of_tirx
from tmagen.diff.sides import Side, for_trial
from tmagen.ir import DType, Gemm, Pipeline, Problem, Schedule, Shape, Target, Tile
from tmagen.legality import check
from tmagen.plan import derived_name
from tmagen.spec import to_command
from tmagen.tirx import TirxKernel, tirx_script
from tmagen.tirx.build import build_script
from tmagen.toolchain import Nvcc

_NAME = re.compile(
    r"gemm_(?P<target>sm\d+a?)_(?P<a>\w+?)(?:_(?P<d>f32|f16|bf16))?_(?P<tm>\d+)x(?P<tn>\d+)x(?P<tk>\d+)_depth(?P<depth>\d+)"
    r"(?P<persistent>_persistent)?(?:_ctas(?P<ctas>\d+))?(?:_group(?P<group>\d+))?_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)"
)
_KERNEL = re.compile(r"\b(gemm_\w+)_kernel\b")
_MAP_BYTES = 128


def tvm_spec(text: str) -> Gemm | None:
    """The spec that a kernel of TVM was made of, from its name in CUDA or PTX; None where the name is another."""
    told = _KERNEL.search(text)
    return None if told is None else spec_of_name(told[1])


def spec_of_name(name: str) -> Gemm | None:
    """The spec, shape included, whose derived name is `name`; None where there is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    word = found.groupdict()
    number = {key: int(text) for key, text in word.items() if text is not None and text.isdigit()}
    types = {dtype.value: dtype for dtype in DType}
    targets = {target.value.replace("_", ""): target for target in Target}
    if word["a"] not in types or word["target"] not in targets:
        return None
    of_a = types[word["a"]]
    schedule = Schedule(persistent=word["persistent"] is not None, ctas=number.get("ctas"))
    if "group" in number:
        schedule = Schedule(schedule.persistent, schedule.ctas, number["group"])
    spec = Gemm(
        problem=Problem(of_a, of_a, types[word["d"] or word["a"]], shape=Shape(number["m"], number["n"], number["k"])),
        tile=Tile(number["tm"], number["tn"], number["tk"]),
        pipeline=Pipeline(number["depth"]),
        schedule=schedule,
        target=targets[word["target"]],
    )
    return spec if derived_name(spec) == name and not check(spec) else None


def takes_maps_alone(code: Code) -> bool:
    """Whether every parameter is a tensor map by value, as those of TVM's kernels are."""
    params = code.entry.params
    return bool(params) and all(param.size == _MAP_BYTES for param in params)


@dataclass(frozen=True, slots=True)
class Retraced:
    """What TVM makes of the spec that a file was made of, and whether the file is that still."""

    spec: Gemm
    made: TirxKernel
    unedited: bool


def retrace(code: Code, spec: Gemm, nvcc: Nvcc, arch: str) -> Retraced | None:
    """Makes the kernel of `spec` again; None where it takes another number of parameters.

    Raises SpecError, TirxError, CompileError.
    """
    made = build_script(tirx_script(spec))
    if len(made.maps) != len(code.entry.params):
        return None
    if code.text is not None:
        return Retraced(spec, made, code.text.strip() == made.text.strip())
    again = ptx_of_text(made.text, "tirx", nvcc, arch)
    return Retraced(spec, made, _steps(again) == _steps(code))


def _steps(code: Code) -> list[tuple[object, ...]]:
    """The instructions, without where they come from."""
    return [(i.opcode, i.operands, i.guard) for i in code.entry.body]


def tvm_side(path: Path, code: Code, known: Retraced, trial: Shape, nvcc: Nvcc, arch: str) -> Side:
    """The side. One that is unedited is emulated for `trial`, by what TVM makes of the same script for that."""
    made = known.made
    if not known.unedited:
        return Side(
            label=path.name,
            made_by=f"{path}, launched as TVM launches the kernel of its name, though its code is another",
            code=code,
            trial=code,
            launch=lambda problem, at: launch_of_tirx(made, code.kernel, at),
            trial_launch=lambda problem, at: launch_of_tirx(made, code.kernel, at),
        )
    small = build_script(tirx_script(for_trial(known.spec, trial)))
    return Side(
        label=path.name,
        made_by=f"{path}, as TVM makes it: {to_command(known.spec)} --backend tirx-cuda",
        code=code,
        trial=ptx_of_text(small.text, "tirx", nvcc, arch),
        launch=lambda problem, at: launch_of_tirx(made, code.kernel, at),
        trial_launch=lambda problem, at: launch_of_tirx(small, small.kernel, at),
    )
