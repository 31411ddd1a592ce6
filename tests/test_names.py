# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tmagen.names import refusal


@pytest.mark.parametrize(
    "name",
    [
        *(
            "gemm",
            "step6",
            "my_kernel",
            "hgemm_v6",
            "stream_k",
            "strassen",
            "int4_gemm",
            "K",
            "a" * 64,
            "gemm64",
            "trailing_",
        ),
        *("current", "custom", "cuda_gemm", "half_gemm", "make_gemm", "max_tile", "isolated", "memory_bound", "total"),
        "gemm_sm100a_f16_128x128x64_depth2_persistent_ctas132_group4",
    ],
)
def test_allowed(name: str) -> None:
    assert refusal(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        ("a" * 65, "has 65 characters"),
        ("a" * 1_000_000, "has 1,000,000 characters"),
        *(
            (name, "is not an identifier")
            for name in ("2d", "a-b", "a b", "a.b", "a\n", "gémm", "\uff41", "_x", "x;y", "x/*", '"')
        ),
        *((name, "double underscore") for name in ("a__b", "a__", "x___y")),
        *(
            (name, "keyword")
            for name in ("int", "and", "xor_eq", "co_await", "template", "restrict", "typeof", "consteval")
        ),
        *((name, "is taken") for name in ("main", "std", "cuda", "linux", "posix")),
        *(
            (name, "belongs to CUDA")
            for name in ("threadIdx", "float4", "half", "cudaMalloc", "cuInit", "CUdevice", "max")
        ),
        *(
            (name, "belongs to CUDA")
            for name in ("atomicAdd", "dim3", "make_float4", "CU_STREAM_LEGACY", "nv_bfloat16")
        ),
        *(
            (name, "C library")
            for name in ("exp", "expf", "printf", "y1", "NULL", "sinf32x", "strtol_l", "pthread_self")
        ),
        ("uint32_t", "ends in _t"),
    ],
)
def test_refused(name: str, reason: str) -> None:
    found = refusal(name)
    assert found is not None
    assert reason in found


HEADERS = "cstdint cstdio cstdlib cstring cmath cerrno ctime cwchar cctype climits vector string mutex thread algorithm"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_no_name_clashes_with_the_c_library(tmp_path: Path) -> None:
    """Each lower-case identifier of the headers becomes a namespace; all that clash are refused."""
    includes = "".join(f"#include <{header}>\n" for header in HEADERS.split())
    source = tmp_path / "headers.cpp"
    source.write_text(includes)
    text = subprocess.run(["g++", "-E", "-dD", source], check=True, capture_output=True, text=True).stdout
    words = sorted({word for word in re.findall(r"\b[A-Za-z]\w*\b", text) if "__" not in word and not word.isupper()})
    probe = tmp_path / "probe.cpp"
    probe.write_text(
        includes + "".join(f"namespace {word} {{ inline int probe; }}\n" for word in words) + "int last;\n"
    )
    first = len(HEADERS.split()) + 1
    errors = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", "-fmax-errors=0", "-fno-diagnostics-show-caret", probe],
        check=False,
        capture_output=True,
        text=True,
    ).stderr
    lines = {int(line) - first for line in re.findall(r"probe\.cpp:(\d+):\d+: error", errors)}
    clashing = {words[line] for line in lines if line < len(words)}  # an unbalanced macro errs on the line after
    assert len(clashing) > 500
    assert [word for word in sorted(clashing) if refusal(word) is None] == []


@pytest.mark.parametrize("name", ["assert", "va_start", "signbit", "htons"])
def test_macros_of_the_c_library(name: str) -> None:
    assert refusal(name) == "belongs to the C library"


@pytest.mark.parametrize("name", ["launch", "ptx", "kernel", "status", "Tile", "problem", "tile", "GemmArgs", "map_a"])
def test_names_of_the_emitted_file_itself(name: str) -> None:
    assert refusal(name) == "is a name that the emitted file uses for something else"
