# SPDX-License-Identifier: Apache-2.0
"""Generated kernels called from C++: the emitted launch() on streams and in graphs, the example, compute-sanitizer."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tmagen.gpu.device import PyCudaGpu
from tmagen.toolchain import find_nvcc

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parent.parent.parent
KERNELS = sorted(path.stem for path in (ROOT / "generated" / "sm_90a").glob("*.cu"))
STATIC = {name: name.rsplit("_", 1)[1].replace("x", ",") for name in KERNELS if name.count("x") > 2}
SHAPES = ("1,1,1", "128,128,64", "129,136,72", "257,511,0", "300,304,1000", "1111,2001,520")
SMALL = ("129,136,72", "257,130,200")


def nvcc(*arguments: str | Path) -> None:
    compiler = find_nvcc(arch="sm_90a")
    libraries = [f"-L{path}" for path in compiler.library_dirs]
    command = [compiler.path, "-std=c++17", "-O2", "-gencode", "arch=compute_90a,code=sm_90a", *libraries, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A caller of each kernel, compiled."""
    into = tmp_path_factory.mktemp("programs")

    def build(name: str) -> Path:
        defines = (f"-DKERNEL={name}", f'-DKERNEL_FILE="{name}.cu"')
        source = ROOT / "tests" / "gpu" / "consumer.cu"
        nvcc("-I", ROOT / "generated" / "sm_90a", *defines, source, "-o", into / name)
        return into / name

    with ThreadPoolExecutor() as pool:
        return dict(zip(KERNELS, pool.map(build, KERNELS), strict=True))


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", KERNELS)
def test_streams_graphs_and_leading_dimensions(hopper: PyCudaGpu, programs: dict[str, Path], name: str) -> None:
    shapes = (STATIC[name],) if name in STATIC else SHAPES
    told = run(programs[name], *shapes)
    assert told.splitlines() == [f"{shape}: 0 wrong from 4 streams, 0 from a graph" for shape in shapes]


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in STATIC])
def test_the_sanitizer_finds_nothing(hopper: PyCudaGpu, programs: dict[str, Path], name: str, tool: str) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not on PATH")
    told = run(sanitizer, "--tool", tool, "--error-exitcode", "1", programs[name], *SMALL)
    assert "ERROR SUMMARY: 0 errors" in told or "0 hazards displayed" in told


def test_the_example(hopper: PyCudaGpu, tmp_path: Path) -> None:
    example = ROOT / "examples" / "cmake"
    sources = [example / "main.cu", example / "gemm.cu"]
    nvcc("-DTMAGEN_SM=90", "-I", ROOT / "generated" / "sm_90a", *sources, "-o", tmp_path / "example")
    told = run(tmp_path / "example").splitlines()
    assert told[0].startswith("as expected: a: must not be null")
    assert told[1:] == [
        "f16 512 x 384 x 256: 0 of 196608 elements differ",
        "bf16 264 x 136 x 72: 0 of 35904 elements differ",
    ]
