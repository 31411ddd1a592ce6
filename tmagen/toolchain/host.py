# SPDX-License-Identifier: Apache-2.0
"""The host compiler, for C++ that holds no device code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tmagen.toolchain.errors import CompileError
from tmagen.toolchain.nvcc import Nvcc, host_compiler, no_host_compiler
from tmagen.toolchain.process import run


def compile_host(nvcc: Nvcc, source: Path, out: Path, *, flags: Sequence[str] = ()) -> None:
    """Compiles C++ `source` to the object `out`, with the CUDA headers of `nvcc`. Raises CompileError."""
    includes = [f"-I{folder}" for folder in nvcc.include_dirs]
    _gxx(["-std=c++17", "-c", *includes, *flags, source, "-o", out], f"cannot compile {source.name}")


def link_host(objects: Sequence[Path], out: Path, *, flags: Sequence[str] = ()) -> None:
    """Links `objects` into the program `out`. Raises CompileError, whose output names the undefined symbols."""
    _gxx([*objects, *flags, "-o", out], f"cannot link {out.name}")


def _gxx(arguments: Sequence[str | Path], failure: str) -> None:
    compiler = host_compiler()
    if compiler is None:
        raise no_host_compiler()
    done = run([compiler, *arguments])
    if done.status != 0:
        raise CompileError(f"{compiler}: {failure}", done.output)
