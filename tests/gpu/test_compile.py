# SPDX-License-Identifier: Apache-2.0
"""What is built for a GPU, as far as no GPU is needed: libraries load, say what they are, and refuse to launch."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import pytest

from tmagen.emit import emit
from tmagen.errors import SpecError
from tmagen.gpu import driver
from tmagen.gpu.compile import GemmArgs, launch_library
from tmagen.gpu.errors import MissingError
from tmagen.gpu.kernels import FileKernel, PlannedKernel, build_kernel
from tmagen.hostrun import SourceFormError
from tmagen.ir import DType, Gemm, Problem, Shape, Target
from tmagen.plan import plan
from tmagen.toolchain import CompileError, find_nvcc

SPEC = Gemm(Problem(DType.BF16, DType.BF16, DType.F32, shape=Shape(64, 72, 80)), target=Target.SM_90A)


def has_driver() -> bool:
    try:
        driver.library()
    except MissingError:
        return False
    return True


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernel") / "kernel.cu"
    path.write_text(emit(plan(SPEC)))
    return path


def test_a_library_says_what_it_is(source: Path) -> None:
    library = launch_library(source, Target.SM_90A, find_nvcc(arch="sm_90a"))
    assert library.name == plan(SPEC).name
    assert library.elements == (DType.BF16, DType.BF16, DType.F32)
    assert library.static_mnk == (64, 72, 80)
    assert [kernel.spill_store_bytes for kernel in library.resources] == [0]
    wrong = GemmArgs(None, None, None, 1, 2, 3, 8, 8, 8)
    assert library.launch(ctypes.byref(wrong), None) != 0
    assert b"64" in library.last_error()
    if not has_driver():
        right = GemmArgs(1 << 20, 2 << 20, 3 << 20, 64, 72, 80, 80, 80, 72)
        assert library.launch(ctypes.byref(right), None) != 0
        assert library.last_error().startswith(b"cudaGetDevice")


def test_a_planned_kernel_has_its_c_symbol() -> None:
    kernel = build_kernel(SPEC, None)
    assert isinstance(kernel, PlannedKernel)
    (resources,) = kernel.resources
    assert resources.name == kernel.plan.launch.kernel == kernel.name
    assert kernel.static_mnk == (64, 72, 80)


def test_a_file_is_launched_by_itself(source: Path) -> None:
    kernel = build_kernel(source, None)
    assert isinstance(kernel, FileKernel)
    assert kernel.target is Target.SM_90A
    with pytest.raises(SpecError, match="cannot build"):
        build_kernel(source, None, compiler="pycuda")


def test_files_of_another_form(tmp_path: Path, source: Path) -> None:
    nvcc = find_nvcc(arch="sm_90a")
    path = tmp_path / "other.cu"
    path.write_text("__global__ void kernel() {}\n")
    with pytest.raises(SourceFormError, match="no namespace"):
        launch_library(path, Target.SM_90A, nvcc)
    text = source.read_text()
    path.write_text(text.replace("int64_t m, n, k;", "int64_t n, m, k;"))
    with pytest.raises(CompileError) as rejected:
        launch_library(path, Target.SM_90A, nvcc)
    assert "the members of GemmArgs are" in rejected.value.output
    path.write_text(text.replace("#ifdef TMAGEN_EXTERN_C\n// The same", "#if 0\n// The same"))
    with pytest.raises(CompileError) as lacking:
        launch_library(path, Target.SM_90A, nvcc)
    assert "_launch" in lacking.value.output


@pytest.mark.skipif(importlib.util.find_spec("pycuda") is not None, reason="PyCUDA is installed")
def test_its_compiler_without_pycuda() -> None:
    with pytest.raises(MissingError, match="PyCUDA cannot be imported") as missing:
        build_kernel(SPEC, None, compiler="pycuda")
    assert "--compiler nvcc" in missing.value.report()
