# SPDX-License-Identifier: Apache-2.0
"""What nvcc makes of the emitted text: no warning, no spill, no loop around an instruction that one thread issues."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests import tirx_text
from tmagen.emit import emit
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.toolchain import (
    CompileError,
    Nvcc,
    compile_cubin,
    compile_nvrtc,
    compile_object,
    disassemble,
)
from tools.regen import pinned_nvcc

FLAGS = ("-O3",)
WARNINGS = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")

CORNERS = [
    Gemm(tile=Tile(128, 16, 32), pipeline=Pipeline(24)),
    Gemm(tile=Tile(128, 48, 128), pipeline=Pipeline(1, Policy.SERIAL), schedule=Schedule(True, 3, 1)),
    Gemm(tile=Tile(128, 240, 64), schedule=Schedule(True)),
    Gemm(problem=Problem(a=DType.BF16, b=DType.BF16, d=DType.F32), tile=Tile(128, 256, 64), pipeline=Pipeline(4)),
    Gemm(problem=Problem(d=DType.F32), tile=Tile(128, 16, 64), schedule=Schedule(True)),
    Gemm(problem=Problem(shape=Shape(129, 136, 0)), schedule=Schedule(True)),
    Gemm(problem=Problem(d=DType.BF16, shape=Shape(300, 300, 300)), tile=Tile(128, 80, 32)),
    # ptxas spilled these before it was told that one CTA per SM is enough.
    Gemm(problem=Problem(d=DType.F32, shape=Shape(1000, 1000, 1000)), pipeline=Pipeline(1, Policy.SERIAL)),
    Gemm(problem=Problem(d=DType.F32, shape=Shape(1000, 1000, 1000)), tile=Tile(128, 128, 32)),
]

HOPPER_CORNERS = [
    Gemm(tile=Tile(64, 8, 32), pipeline=Pipeline(30), target=Target.SM_90A),
    Gemm(tile=Tile(64, 256, 128), schedule=Schedule(True), target=Target.SM_90A),
    Gemm(tile=Tile(128, 136, 64), pipeline=Pipeline(1, Policy.SERIAL), target=Target.SM_90A),
    Gemm(problem=Problem(d=DType.F32), tile=Tile(128, 256, 64), schedule=Schedule(True), target=Target.SM_90A),
    Gemm(problem=Problem(d=DType.BF16, shape=Shape(300, 300, 300)), tile=Tile(128, 24, 32), target=Target.SM_90A),
]


@pytest.fixture(scope="module")
def nvcc() -> Nvcc:
    return pinned_nvcc()


def source_of(spec: Gemm, folder: Path) -> Path:
    path = folder / "kernel.cu"
    path.write_text(emit(plan(spec)))
    return path


@pytest.mark.parametrize("target", Target)
def test_compile_whole_without_a_warning(target: Target, nvcc: Nvcc, tmp_path: Path) -> None:
    """All of a target as one translation unit: most of nvcc's time goes into the headers."""
    specs = [replace(preset.spec, target=target) for preset in PRESETS.values()]
    plans = [plan(spec) for spec in (*specs, *CORNERS, *HOPPER_CORNERS) if spec.target is target]
    for one in plans:
        (tmp_path / f"{one.name}.cu").write_text(emit(one))
    unit, out = tmp_path / "unit.cu", tmp_path / "out"
    unit.write_text("".join(f'#include "{one.name}.cu"\n' for one in plans))
    out.mkdir()
    kernels = compile_object(nvcc, unit, out, arch=target.value, flags=(*FLAGS, *WARNINGS)).cubin.kernels
    assert len(kernels) == len(plans)
    assert {k.name for k in kernels if k.spill_store_bytes or k.spill_load_bytes or k.stack_bytes} == set()


def test_compiles_with_c_symbols(nvcc: Nvcc, tmp_path: Path) -> None:
    spec = PRESETS["step6"].spec
    (tmp_path / "out").mkdir()
    flags = (*FLAGS, *WARNINGS, "-DTMAGEN_EXTERN_C")
    compiled = compile_object(nvcc, source_of(spec, tmp_path), tmp_path / "out", flags=flags)
    assert [kernel.name for kernel in compiled.cubin.kernels] == [plan(spec).name]


@pytest.mark.parametrize("step", [4, 5, 6])
def test_issued_once_and_no_more_registers_than_tvm(step: int, nvcc: Nvcc, tmp_path: Path) -> None:
    tirx_text.require()
    cubin = compile_cubin(nvcc, source_of(PRESETS[f"step{step}"].spec, tmp_path), flags=FLAGS)
    sass = disassemble(cubin.data, nvcc=nvcc)
    assert "UTCHMMA" in sass
    assert "UTMALDG" in sass
    assert "UTMASTG" in sass
    assert "BRA.U.ANY" not in sass
    theirs = tmp_path / "theirs.cu"
    theirs.write_text(tirx_text.lowered(tirx_text.CASES)[step, 4096, 4096, 4096]["text"])
    (our_kernel,) = cubin.kernels
    (their_kernel,) = compile_cubin(nvcc, theirs, flags=tirx_text.FLAGS).kernels
    assert our_kernel.registers <= their_kernel.registers


@pytest.mark.parametrize("step", ["step4", "step6", "step6-4096"])
def test_nvrtc_compiles_the_device_part_alone(step: str) -> None:
    spec = PRESETS[step].spec
    compiled = compile_nvrtc(emit(plan(spec)))
    assert plan(spec).name in compiled.ptx


def test_builds_for_several_architectures_at_once(nvcc: Nvcc, tmp_path: Path) -> None:
    blackwell, hopper = (
        plan(replace(PRESETS["step6"].spec, target=target)) for target in (Target.SM_100A, Target.SM_90A)
    )
    both = tmp_path / "both.cu"
    both.write_text(emit(blackwell) + emit(hopper))
    targets = [("100a", "100a"), ("90a", "90a"), ("80", "80")]
    gencode = [f for virtual, real in targets for f in ("-gencode", f"arch=compute_{virtual},code=sm_{real}")]
    command = [nvcc.path, *FLAGS, *WARNINGS, "-std=c++17", *gencode, "-c", both, "-o", tmp_path / "both.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arch", ["sm_100", "sm_90"])
def test_the_architecture_without_its_a_is_refused(arch: str, nvcc: Nvcc, tmp_path: Path) -> None:
    target = Target(f"{arch}a")
    with pytest.raises(CompileError) as raised:
        compile_cubin(nvcc, source_of(replace(PRESETS["step6"].spec, target=target), tmp_path), arch=arch)
    assert "the a matters" in raised.value.report()
