# SPDX-License-Identifier: Apache-2.0
"""Machine code as text."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from tmagen.errors import Diagnostic
from tmagen.toolchain.errors import CompileError, ToolchainError
from tmagen.toolchain.nvcc import Nvcc, nvidia_packages
from tmagen.toolchain.process import run

# An instruction line of either tool: its offset as a comment, an optional predicate, the opcode with its modifiers.
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", flags=re.MULTILINE)


def disassemble(cubin: bytes, *, nvcc: Nvcc | None = None) -> str:
    """The SASS of a cubin, by cuobjdump or nvdisasm: of `nvcc`'s toolkit, on PATH, or from PyPI.

    Raises ToolchainError where neither is found, CompileError where the tool rejects the cubin.
    """
    tool, arguments = _tool(nvcc)
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = run([tool, *arguments, file], cwd=Path(folder))
    if done.status != 0:
        raise CompileError(f"{tool} cannot read the cubin", done.output)
    return done.output


def disassembler(nvcc: Nvcc | None = None) -> str:
    """The tool that :func:`disassemble` calls, with its version. Raises ToolchainError where there is none."""
    tool, _ = _tool(nvcc)
    return f"{tool.name} {_version(tool)}"


def assembler(nvcc: Nvcc) -> str:
    """The ptxas that `nvcc` calls, with its version."""
    beside = nvcc.path.with_name("ptxas")
    return f"ptxas {_version(beside if beside.is_file() else nvcc.root / 'bin' / 'ptxas')}"


def _version(tool: Path) -> str:
    try:
        found = re.search(r"\bV(\d+\.\d+\.\d+)", run([tool, "--version"]).output)
    except ToolchainError:
        found = None
    return found[1] if found else "of an unknown version"


def count_opcodes(sass: str) -> Counter[str]:
    """How often each opcode, modifiers included (`BRA.U.ANY`), stands in the text of :func:`disassemble`."""
    return Counter(_INSTRUCTION.findall(sass))


def _tool(nvcc: Nvcc | None) -> tuple[Path, tuple[str, ...]]:
    folders = [*([nvcc.root / "bin"] if nvcc else []), *(package / "bin" for package in nvidia_packages())]
    for name, arguments in (("cuobjdump", ("-sass",)), ("nvdisasm", ("-c",))):
        on_path = shutil.which(name)
        for candidate in [*(folder / name for folder in folders), *([Path(on_path)] if on_path else [])]:
            if candidate.is_file():
                return candidate, arguments
    raise ToolchainError(
        Diagnostic("neither cuobjdump nor nvdisasm is installed", hint='pip install "tmagen[toolchain]"')
    )
