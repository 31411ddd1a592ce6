# SPDX-License-Identifier: Apache-2.0
"""Host programs, unmodified, with their kernels on the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tmagen.check import Report, Verdict, run_host
from tmagen.check.host import _Kernels, _Session
from tmagen.check.run import Runner
from tmagen.errors import TmagenError
from tmagen.hostrun import NotModelledError, Program, build_program
from tmagen.toolchain import CompileError
from tmagen.verify import NoProgress

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with build_program([HERE / "program.cu"]) as built:
        yield built


def ran(program: Program, mode: str, completion: str = "eager") -> Report:
    """One run of the program; building it once serves all tests."""
    session = _Session(program, _Kernels(program), Runner(0, 1, False, NoProgress()), completion, checked=True)
    return Report(("program.cu",), str(program.nvcc), (), (session.run([mode]),), 0.0)


@pytest.mark.parametrize("mode", ["sum", "host memory", "copies", "constant", "thread"])
@pytest.mark.parametrize("completion", ["eager", "random"])
def test_a_right_program(program: Program, mode: str, completion: str) -> None:
    report = ran(program, mode, completion)
    assert report.exit_code == 0, report.text()
    assert report.cases[0].launches
    if mode == "sum":
        assert report.cases[0].output == ("0 wrong",)


@pytest.mark.parametrize(
    ("mode", "code", "rule", "words"),
    [
        ("short", 1, "fault", "just past the end of allocation 3 (3,996 bytes)"),
        ("freed", 1, "fault", "byte 0 of allocation 2, which was freed (4,000 bytes)"),
        ("status", 1, "host-exit", "exit status 42"),
        ("abort", 1, "host-crash", "SIGABRT"),
        ("null", 1, "host-crash", "SIGSEGV"),
        ("touch", 1, "host-touches-device-memory", "byte 4 of allocation 1 (16 bytes)"),
        ("variable", 2, "not-judged", "count reads counter, which an earlier launch wrote"),
        ("nothing", 2, "not-judged", "launched no kernel"),
        ("attribute", 2, "not-judged", "the device attribute"),
    ],
)
def test_what_is_wrong_is_told(program: Program, mode: str, code: int, rule: str, words: str) -> None:
    report = ran(program, mode)
    assert report.exit_code == code, report.text()
    assert [finding.rule for finding in report.findings] == [rule]
    assert words in report.text()


def test_where_a_kernel_went_wrong(program: Program) -> None:
    (finding,) = ran(program, "short").findings
    assert finding.source is not None
    assert finding.source[0].endswith("program.cu")
    line = (HERE / "program.cu").read_text().splitlines()[finding.source[1] - 1]
    assert "c[i] = a[i] + b[i]" in line


def test_output_before_the_end_is_kept(program: Program) -> None:
    assert ran(program, "status").cases[0].output == ("so long",)
    assert ran(program, "touch").cases[0].output == ("before",)


def test_a_refused_launch_is_a_warning(program: Program) -> None:
    report = ran(program, "refused")
    assert report.exit_code == 0
    (finding,) = report.findings
    assert (finding.rule, finding.severity.value) == ("refused-call", "review")
    assert "cudaErrorInvalidValue" in finding.message


def test_memory_is_fresh_in_every_run(program: Program) -> None:
    again = replace(program)
    assert [ran(again, "sum").exit_code for _ in range(3)] == [0, 0, 0]


def test_the_example_project_in_every_order() -> None:
    """Two files that include the same kernel, and one of them another: the files as they stand."""
    example = ROOT / "examples" / "cmake"
    report = run_host([example / "main.cu", example / "gemm.cu"], nvcc_flags=[f"-I{ROOT / 'generated' / 'sm_100a'}"])
    assert report.exit_code == 0, report.text()
    assert len(report.cases) == 4
    for case in report.cases:
        assert len(case.launches) == 2
        assert any("0 of 196608 elements differ" in line for line in case.output)


def test_a_c_function_in_place_of_main(tmp_path: Path) -> None:
    source = tmp_path / "library.cu"
    source.write_text((HERE / "program.cu").read_text().replace("int main(", "int not_main("))
    other = tmp_path / "other.cpp"
    other.write_text('extern "C" int called();\nextern "C" int both() { return called() + called(); }\n')
    saved = tmp_path / "saved.ptx"
    report = run_host([source, other], call="both", completion="lazy", save_ptx=saved)
    assert report.exit_code == 0, report.text()
    assert len(report.cases[0].launches) == 2
    assert ".entry" in saved.read_text()


def test_what_cannot_be_built(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("int main() { nonsense(); }\n")
    with pytest.raises(CompileError, match="rejects"):
        run_host([source])
    source.write_text("#include <cuda_runtime.h>\nint main() { return cudaDeviceSetLimit(cudaLimitStackSize, 1); }\n")
    with pytest.raises(NotModelledError, match="lacks cudaDeviceSetLimit"):
        run_host([source])
    source.write_text("void elsewhere();\nint main() { elsewhere(); }\n")
    with pytest.raises(CompileError, match="cannot link"):
        run_host([source])
    for sources, options, message in (
        ([source], {"target": "sm_12"}, "no GPU of that kind is known"),
        ([source], {"call": "a b"}, "no C function's name"),
        ([tmp_path / "k.txt"], {}, "there is no such file"),
        ([HERE / "test_host.py"], {}, "made of .cu and C"),
    ):
        with pytest.raises(TmagenError, match=message):
            run_host(sources, **options)  # type: ignore[arg-type]


def passes(source: Path, text: str) -> None:
    """The program exits with 0, and nothing is wrong with its kernel."""
    source.write_text(text)
    report = run_host([source], completion="eager")
    assert report.cases[0].verdict is Verdict.PASSED, report.text()


PACKED_MAPS = """
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void nothing() {}

// Whether a map of 256 rows of `elements` elements is made.
static bool made(CUtensorMapDataType type, char* start, cuuint64_t elements, cuuint64_t pitch, cuuint32_t row,
                 CUtensorMapSwizzle swizzle) {
  alignas(64) CUtensorMap map;
  const cuuint64_t dims[] = {elements, 256}, strides[] = {pitch};
  const cuuint32_t box[] = {row, 128}, steps[] = {1, 1};
  return cuTensorMapEncodeTiled(&map, type, 2, start, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int main() {
  constexpr auto dense = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, padded = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
  constexpr auto six = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
  constexpr auto b128 = CU_TENSOR_MAP_SWIZZLE_128B, b64 = CU_TENSOR_MAP_SWIZZLE_64B;
  char* memory;
  cudaMalloc(&memory, 1 << 20);
  nothing<<<1, 1>>>();
  bool right = made(dense, memory, 512, 256, 256, b128) && made(dense, memory + 16, 510, 272, 128, b64);
  right &= !made(dense, memory, 511, 256, 256, b128) && !made(dense, memory, 512, 256, 16, b128);
  right &= made(padded, memory, 512, 256, 128, b128) && !made(padded, memory + 16, 512, 256, 128, b128);
  right &= !made(padded, memory, 512, 272, 128, b128) && !made(padded, memory, 512, 256, 64, b128);
  right &= !made(padded, memory, 500, 256, 128, b128) && !made(padded, memory, 512, 256, 128, b64);
  right &= made(six, memory, 512, 384, 128, b128) && !made(six, memory, 512, 384, 128, b64);
  return !right;
}
"""


def test_maps_of_packed_elements_and_an_empty_kernel(tmp_path: Path) -> None:
    passes(tmp_path / "maps.cu", PACKED_MAPS)


POINTERS = """
#include <cuda_runtime.h>

__global__ void nothing() {}

static bool is(const void* pointer, cudaMemoryType type, bool on_device, bool on_host) {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, pointer) != cudaSuccess || found.type != type) return false;
  return (found.devicePointer == pointer) == on_device && (found.hostPointer == pointer) == on_host;
}

int main() {
  nothing<<<1, 1>>>();
  char *device, *pinned, *managed, local;
  cudaMalloc(&device, 1000);
  cudaMallocHost(&pinned, 1000);
  cudaMallocManaged(&managed, 1000);
  bool right = is(device, cudaMemoryTypeDevice, true, false) && is(device + 999, cudaMemoryTypeDevice, true, false);
  right &= is(pinned + 1, cudaMemoryTypeHost, true, true) && is(managed, cudaMemoryTypeManaged, true, true);
  right &= is(&local, cudaMemoryTypeUnregistered, false, true);
  right &= is(device + 1000, cudaMemoryTypeUnregistered, false, true);
  cudaFree(device);
  right &= is(device, cudaMemoryTypeUnregistered, false, true);
  return !right;
}
"""


def test_what_a_pointer_is(tmp_path: Path) -> None:
    passes(tmp_path / "pointers.cu", POINTERS)
