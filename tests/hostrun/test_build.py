# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tmagen.hostrun import NotModelledError, build
from tmagen.toolchain import CompileError

HEAD = """\
#include <cuda_runtime.h>
namespace small {
struct GemmArgs { const float* a; const float* b; float* d; long m, n, k, lda, ldb, ldd; };
constexpr long kStaticM = -1, kStaticN = -1, kStaticK = -1;
inline const char* last_error() { return ""; }
static __global__ void kernel() {}
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_behind(scratch: Path) -> list[Path]:
    """What is left but for the compiled stand-in, which serves all builds of a process."""
    return [
        folder
        for folder in scratch.iterdir()
        if {file.name for file in folder.iterdir()} - {"runtime.o", "runtime.cpp"}
    ]


def test_call_that_the_stand_in_lacks(tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "small.cu"
    source.write_text(
        HEAD
        + """\
static cudaError_t launch(const GemmArgs&, cudaStream_t) {
  int blocks = 0;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32, 0);
}
}
"""
    )
    with pytest.raises(NotModelledError, match="lacks cudaOccupancyMaxActiveBlocksPerMultiprocessor"):
        build(source)
    assert left_behind(scratch) == []


def test_source_that_does_not_compile(tmp_path: Path, scratch: Path) -> None:
    source = tmp_path / "small.cu"
    source.write_text(HEAD + "static cudaError_t launch(const GemmArgs&, cudaStream_t) { return nonsense; }\n}\n")
    with pytest.raises(CompileError) as raised:
        build(source)
    assert f'{source}(7): error: identifier "nonsense" is undefined' in raised.value.report()
    assert left_behind(scratch) == []


def test_element_type_without_a_name(tmp_path: Path) -> None:
    source = tmp_path / "small.cu"
    text = HEAD.replace("const float* b", "const double* b")
    source.write_text(text + "static cudaError_t launch(const GemmArgs&, cudaStream_t) { return cudaSuccess; }\n}\n")
    with pytest.raises(CompileError) as raised:
        build(source)
    assert "element_name" in raised.value.report()
