# SPDX-License-Identifier: Apache-2.0
"""Questions to PTX and machine code: all of a topic in one translation unit, so that nvcc runs a few times."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from tests.gpu.conformance.question import Question
from tmagen.emu import Module, parse
from tmagen.toolchain import compile_cubin, compile_ptx, find_nvcc

ARCH = "sm_90a"
PRELUDE = Path(__file__).with_name("prelude.cuh")


def unit(questions: Sequence[Question]) -> str:
    """One translation unit; the kernel of each question is called after it."""
    parts = [PRELUDE.read_text()]
    for q in questions:
        inner = f'#line 1 "{q.id}"\n{q.source.strip()}\n'
        parts.append(f"#define question {q.kernel}\nnamespace n{q.kernel} {{\n{inner}}}\n#undef question\n")
    return "\n".join(parts)


def to_ptx(questions: Sequence[Question]) -> str:
    """The PTX of all of them. Raises CompileError, which names the question as the file."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder) / "unit.cu"
        source.write_text(unit(questions))
        return compile_ptx(find_nvcc(arch=ARCH), source, arch=ARCH)


def to_cubin(questions: Sequence[Question]) -> bytes:
    """The machine code of all of them. Raises CompileError."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder) / "unit.cu"
        source.write_text(unit(questions))
        return compile_cubin(find_nvcc(arch=ARCH), source, arch=ARCH).data


def cubin_path(folder: Path, topic: str, questions: Sequence[Question]) -> Path:
    """Where the machine code of a topic is kept: under the digest of its text."""
    return folder / f"{topic}-{hashlib.sha256(unit(questions).encode()).hexdigest()[:16]}.cubin"


def build_cubins(topics: dict[str, tuple[Question, ...]], folder: Path, jobs: int) -> dict[str, Path]:
    """The machine code of each topic in `folder`, compiled where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {topic: cubin_path(folder, topic, questions) for topic, questions in topics.items()}

    def build(topic: str) -> None:
        if not paths[topic].is_file():
            paths[topic].write_bytes(to_cubin(topics[topic]))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(build, topics))
    return paths


@lru_cache(maxsize=64)
def module(questions: tuple[Question, ...]) -> Module:
    """The parsed PTX of a topic."""
    return parse(to_ptx(questions))
