# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tmagen.toolchain import compile_ptx, find_nvcc
from tmagen.toolchain.compile import from_here


def test_relative_folders_mean_those_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("-Iinclude", "-I", "other", "-isystem", "/abs", "-DNAME=include", "-include", "first.h", "-O2")
    assert from_here(given) == (
        f"-I{tmp_path}/include", "-I", f"{tmp_path}/other", "-isystem", "/abs", "-DNAME=include", "-include",
        f"{tmp_path}/first.h", "-O2",
    )  # fmt: skip


def test_a_caller_chooses_folders_and_the_standard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("include").mkdir()
    Path("include/size.h").write_text("constexpr int kSize = 3;\n")
    Path("k.cu").write_text('#include "size.h"\nstatic_assert(__cplusplus >= 202002L);\n__global__ void k() {}\n')
    text = compile_ptx(find_nvcc(), Path("k.cu"), flags=("-Iinclude", "-std=c++20"))
    assert ".entry _Z1kv" in text
