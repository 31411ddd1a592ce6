# SPDX-License-Identifier: Apache-2.0
"""What only a GPU can tell. `pytest -m gpu tests/gpu` runs these; elsewhere they are deselected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.gpu.campaign import Draw, draws, judge
from tests.gpu.test_parameters import ADDRESSES
from tmagen.bind import LeadingDims, bind
from tmagen.cli import main
from tmagen.emit import emit
from tmagen.gpu import tensor_maps
from tmagen.gpu.cublas import LibraryCublas, find_cublas
from tmagen.gpu.device import PyCudaGpu
from tmagen.gpu.driver import Graph
from tmagen.gpu.errors import DriverError
from tmagen.gpu.kernels import LaunchRefusedError, build_kernel
from tmagen.gpu.memory import DeviceMemory
from tmagen.gpu.torch_reference import find_torch
from tmagen.gpu.torch_reference import judge as judge_by_torch
from tmagen.gpu.validate import RunSettings, validate
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.verify import Verdict
from tmagen.verify.buffers import allocate
from tmagen.verify.inputs import normal_inputs

pytestmark = pytest.mark.gpu

SPEC = Gemm(target=Target.SM_90A, schedule=Schedule(persistent=True))
TAILS = (Shape(256, 256, 256), Shape(129, 137, 71), Shape(1, 1, 1), Shape(333, 500, 0), Shape(1111, 2001, 520))


def free_bytes() -> int:
    import pycuda.driver as cuda

    return int(cuda.mem_get_info()[0])


def on_sm_90a(spec: Gemm) -> Gemm:
    parts = {name: getattr(spec, name) for name in ("problem", "tile", "pipeline", "schedule")}
    return Gemm(**parts, target=Target.SM_90A)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(hopper: PyCudaGpu, preset: str) -> None:
    kernel = build_kernel(on_sm_90a(PRESETS[preset].spec), hopper.info)
    shapes = None if None in kernel.static_mnk else [Shape(*kernel.static_mnk)]  # type: ignore[arg-type]
    before = free_bytes()
    cases, _ = validate(kernel, hopper, shapes, RunSettings(repeat=8), torch=find_torch())
    assert [case.line() for case in cases if case.verdict is not Verdict.PASSED] == []
    if find_torch() is None:
        assert free_bytes() >= before - (2 << 20)


def test_a_file_by_its_own_launch_and_pycudas_compiler(hopper: PyCudaGpu, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(emit(plan(SPEC)))
    for kernel in (build_kernel(source, hopper.info), build_kernel(SPEC, hopper.info, compiler="pycuda")):
        shapes = (*TAILS, Shape(0, 8, 8))
        cases, _ = validate(kernel, hopper, shapes, RunSettings(repeat=4), torch=find_torch())
        assert [case.line() for case in cases if case.verdict is not Verdict.PASSED] == []
    wide = LeadingDims(1024, 1040, 2048)
    cases, _ = validate(kernel, hopper, [Shape(1000, 1000, 1000)], RunSettings(), lds=wide)
    assert {case.verdict for case in cases} == {Verdict.PASSED}


def test_a_refused_launch_is_told(hopper: PyCudaGpu, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(emit(plan(SPEC)))
    launch = build_kernel(source, hopper.info).prepare(
        hopper, Shape(64, 64, 64), LeadingDims(37, 64, 64), (1 << 20, 1 << 20, 1 << 20)
    )
    with pytest.raises(LaunchRefusedError, match="lda = 37"):
        launch()


def test_a_driver_error_names_its_call(hopper: PyCudaGpu) -> None:
    with pytest.raises(DriverError, match="cuMemAlloc"):
        hopper.allocate(1 << 50)
    with pytest.raises(DriverError, match="cuModule"):
        hopper.load(b"no cubin", "kernel", 0)


def test_both_encoders_write_the_same_map(hopper: PyCudaGpu) -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    bound = bind(plan(SPEC), Shape(1000, 1000, 1000))
    assert bound is not None
    for tensor_map in bound.tensor_maps:
        arguments = tensor_maps.encode_arguments(tensor_map, ADDRESSES[tensor_map.operand])
        ours = tensor_maps.encode_with_libcuda(arguments)
        assert any(ours)
        assert ours == tensor_maps.encode_with_bindings(bindings, arguments)


def test_torch_goes_on_in_the_same_process(hopper: PyCudaGpu) -> None:
    torch = pytest.importorskip("torch")
    kept = torch.arange(1000, device="cuda")
    cases, _ = validate(build_kernel(SPEC, hopper.info), hopper, TAILS, RunSettings(), torch=torch)
    assert {case.verdict for case in cases} == {Verdict.PASSED}
    assert int((kept * 2).sum()) == 999_000


def test_torch_finds_one_wrong_element(hopper: PyCudaGpu) -> None:
    torch = pytest.importorskip("torch")
    shape = Shape(100, 120, 64)
    with DeviceMemory(hopper) as memory:
        a, b, d = (
            allocate(memory, name, DType.BF16, rows, columns, columns)
            for name, rows, columns in (("A", 100, 64), ("B", 120, 64), ("D", 100, 120))
        )
        inputs = normal_inputs(shape, (DType.BF16, DType.BF16), 0)
        a.write(inputs.a)
        b.write(inputs.b)
        d.write((inputs.a.astype(np.float64) @ inputs.b.astype(np.float64).T).astype(d.values().dtype))
        memory.upload()
        right = judge_by_torch(torch, a, b, d, exact=False, ordinal=0)
        assert right.wrong == 0
        assert right.error_ratio is not None and 0.3 < right.error_ratio <= 1
        d.values()[17, 3] += np.asarray(1, d.values().dtype)
        memory.upload()
        wrong = judge_by_torch(torch, a, b, d, exact=False, ordinal=0)
        assert (wrong.wrong, wrong.first) == (1, (17, 3))


def test_launches_in_a_graph(hopper: PyCudaGpu) -> None:
    kernel = build_kernel(SPEC, hopper.info)
    shape, lds = Shape(300, 304, 128), LeadingDims(128, 128, 304)
    with DeviceMemory(hopper) as memory:
        a, b, d = (
            allocate(memory, name, DType.F16, rows, columns, columns)
            for name, rows, columns in (("A", 300, 128), ("B", 304, 128), ("D", 300, 304))
        )
        a.write(np.ones((300, 128), np.float16))
        b.write(np.ones((304, 128), np.float16))
        d.fill_poison()
        memory.upload()
        graph = Graph.capture(hopper.stream, kernel.prepare(hopper, shape, lds, (a.address, b.address, d.address)))
        memory.download()
        assert d.unwritten() == 300 * 304, "what is captured does not run"
        graph.launch(hopper.stream)
        hopper.wait(10)
        memory.download()
        graph.close()
        assert (d.values() == 128).all()
        assert d.stray_writes() == ()


def test_cublas_by_both_ways(hopper: PyCudaGpu) -> None:
    for through, elements in (("torch", (DType.BF16,) * 3), ("library", (DType.F16, DType.F16, DType.F32))):
        cublas = find_cublas(hopper, elements, through)  # type: ignore[arg-type]
        if cublas is None:
            pytest.skip(f"no cuBLAS through {through}")
        with DeviceMemory(hopper) as memory:
            a = allocate(memory, "A", elements[0], 200, 136, 144)
            b = allocate(memory, "B", elements[1], 304, 136, 136)
            d = allocate(memory, "D", elements[2], 200, 304, 312)
            inputs = normal_inputs(Shape(200, 304, 136), elements[:2], 1)
            a.write(inputs.a)
            b.write(inputs.b)
            d.fill_poison()
            memory.upload()
            cublas.prepare(hopper, a, b, d)()
            hopper.wait(10)
            memory.download()
            expected = inputs.a.astype(np.float32) @ inputs.b.astype(np.float32).T
            assert np.allclose(d.values().astype(np.float32), expected, rtol=0.02, atol=0.1)
        cublas.close()
    assert isinstance(cublas, LibraryCublas)


def test_random_specs(hopper: PyCudaGpu, tmp_path: Path) -> None:
    found = [judge(hopper, draw, tmp_path, 2, find_torch()) for draw in draws(8, seed=7)]
    assert [lines for lines in found if lines] == []


def test_a_long_k_and_the_deepest_pipeline(hopper: PyCudaGpu, tmp_path: Path) -> None:
    spec = Gemm(tile=Tile(64, 64, 64), pipeline=Pipeline(12, Policy.PREFETCH), target=Target.SM_90A)
    assert judge(hopper, Draw(spec, (Shape(130, 70, 16_392),)), tmp_path, 2, find_torch()) == []
    wide = Gemm(Problem(d=DType.F32), Tile(128, 256, 64), Pipeline(2), target=Target.SM_90A)
    assert judge(hopper, Draw(wide, (Shape(513, 771, 4096),)), tmp_path, 2, find_torch()) == []


def test_the_command(hopper: PyCudaGpu, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--target", "sm_90a", "--shape", "129,136,72", "--repeat", "3", "--json"]
    assert main(["run", "--preset", "step6", *quick]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [case["verdict"] for case in found["cases"]] == ["passed", "passed"]
    assert main(["run", "--preset", "step6"]) == 2
    assert "the kernel is for sm_100a, the device is of sm_90" in capsys.readouterr().err


def test_wrong_kernels_are_found(hopper: PyCudaGpu, tmp_path: Path) -> None:
    """Each in a process of its own: a fault takes the context with it, and a hang the process."""
    text = emit(plan(SPEC))
    mutants = {
        "wrong": ("args.ldb * kElementBytes", "2 * args.ldb * kElementBytes", "elements of D are wrong"),
        "hangs": ("kTxBytes = 32768;", "kTxBytes = 32784;", "it hangs"),
    }
    for name, (right, wrong, said) in mutants.items():
        source = tmp_path / f"{name}.cu"
        mutated = text.replace(right, wrong)
        if name == "hangs":
            mutated = mutated.replace("static_assert(kTxBytes ==", "static_assert(kTxBytes != 0 || kTxBytes ==")
        assert mutated != text
        source.write_text(mutated)
        command = [sys.executable, "-m", "tmagen", "run", str(source), "--shape", "256,256,256", "--timeout", "2"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1, done.stderr
        assert said in done.stdout
