# SPDX-License-Identifier: Apache-2.0
"""TVM's CUDA text for the chapter's own kernels, for the tests that hold ours or the emulator against it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tmagen.toolchain import ToolchainError, find_nvcc

CHAPTER = Path(__file__).resolve().parents[2] / "shared" / "seed" / "gemm-tma-pipeline-chapter.zh.txt"
NO_CHAPTER = "the chapter is not beside the checkout"
SHAPES = ((4096, 4096, 4096), (512, 384, 256), (256, 256, 256))
CASES = tuple((step, *shape) for step in (4, 5, 6) for shape in SHAPES)
"""What the tests ask for, so that TVM starts once for all of them: they are one group of `groups.py`."""
FLAGS = ("-O3", "--use_fast_math")  # as TVM itself compiles


def missing() -> str | None:
    """What this machine lacks to make the text."""
    if not CHAPTER.is_file():
        return f"{NO_CHAPTER}: no {CHAPTER.name} in {CHAPTER.parent}"
    if importlib.util.find_spec("tvm") is None:
        return "TVM is not installed (the `tirx` extra)"
    try:
        find_nvcc()
    except ToolchainError as error:
        return str(error)
    return None


def require() -> None:
    """Skips the test that cannot have the text, and says why; `conftest.py` says where that is a failure."""
    if (reason := missing()) is not None:
        pytest.skip(reason)


@cache
def lowered(cases: tuple[tuple[int, int, int, int], ...]) -> dict[tuple[int, int, int, int], dict[str, Any]]:
    """What TVM makes of each (step, m, n, k)."""
    command: list[str | Path] = [sys.executable, Path(__file__).with_name("tirx_lower.py"), CHAPTER]
    done = subprocess.run(
        [*command, *(",".join(map(str, case)) for case in cases)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(cases, json.loads(done.stdout), strict=True))
