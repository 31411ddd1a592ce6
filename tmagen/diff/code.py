# SPDX-License-Identifier: Apache-2.0
"""Compiled code of one side: text, PTX and machine code of one kernel, by one set of flags for both sides."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tmagen.emu import Entry, Module, parse
from tmagen.errors import Diagnostic, SpecError
from tmagen.toolchain import Cubin, Nvcc, compile_cubin, compile_ptx

FLAGS = ("-O3",)
"""What both sides are compiled with: figures of different flags say nothing about the kernels."""


@dataclass(frozen=True, slots=True)
class Code:
    """One kernel, compiled. `text` is None where the side is PTX, and `cubin` where it is not compiled further."""

    text: str | None
    ptx: str
    module: Module
    cubin: Cubin | None
    seconds: float  # that nvcc took; 0 where it did not run

    @property
    def entry(self) -> Entry:
        """The only kernel."""
        (entry,) = self.module.entries.values()
        return entry


def compile_ptx_text(ptx: str, name: str, nvcc: Nvcc, arch: str) -> Code:
    """PTX, and the machine code that ptxas makes of it. Raises CompileError and SpecError as :func:`compile_text`."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        started = time.perf_counter()
        cubin = compile_cubin(nvcc, source, arch=arch, flags=FLAGS)
        seconds = time.perf_counter() - started
    return of_ptx(ptx, name, cubin=cubin, seconds=seconds)


def ptx_of_text(text: str, name: str, nvcc: Nvcc, arch: str) -> Code:
    """As :func:`compile_text`, without machine code: for code that the emulator alone runs."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, f"{name}.cu")
        source.write_text(text, encoding="utf-8")
        ptx = compile_ptx(nvcc, source, arch=arch, flags=FLAGS)
    return of_ptx(ptx.replace(str(source), source.name), name, text=text)


def compile_text(text: str, name: str, nvcc: Nvcc, arch: str) -> Code:
    """One nvcc run, PTX kept. Raises CompileError, and SpecError for a file with no kernel or several."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, f"{name}.cu")
        source.write_text(text, encoding="utf-8")
        started = time.perf_counter()
        cubin = compile_cubin(nvcc, source, arch=arch, flags=(*FLAGS, "--keep", "--keep-dir", folder))
        seconds = time.perf_counter() - started
        ptx = source.with_suffix(".ptx").read_text()
    return of_ptx(ptx.replace(str(source), source.name), name, text=text, cubin=cubin, seconds=seconds)


def of_ptx(ptx: str, name: str, *, text: str | None = None, cubin: Cubin | None = None, seconds: float = 0.0) -> Code:
    """Code that is PTX already. Raises SpecError for a module with no kernel or several."""
    module = parse(ptx, filename=f"{name} (PTX)")
    if len(module.entries) != 1:
        raise SpecError(
            Diagnostic(f"{name}: {len(module.entries)} kernels; a comparison takes exactly one", tuple(module.entries))
        )
    return Code(text, ptx, module, cubin, seconds)
