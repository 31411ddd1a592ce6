# SPDX-License-Identifier: Apache-2.0
"""Compiled code of one side: text, PTX and machine code of one kernel, by one set of flags for both sides."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tmagen.emu import Entry, Module, parse
from tmagen.errors import Diagnostic, SpecError
from tmagen.toolchain import Cubin, Nvcc, compile_cubin, compile_ptx

FLAGS = ("-O3",)
"""What both sides are compiled with: figures of different flags say nothing about the kernels."""


Choose = Callable[[Module], str]
"""The symbol of the kernel that is meant."""


@dataclass(frozen=True, slots=True)
class Code:
    """One kernel, compiled. `text` is None where the side is PTX, and `cubin` where it is not compiled further."""

    text: str | None
    ptx: str
    module: Module
    kernel: str  # the symbol of the one that is meant
    cubin: Cubin | None
    seconds: float  # that nvcc took; 0 where it did not run

    @property
    def entry(self) -> Entry:
        """The kernel that is meant."""
        return self.module.entries[self.kernel]


def compile_ptx_text(ptx: str, name: str, nvcc: Nvcc, arch: str, choose: Choose | None = None) -> Code:
    """PTX, and the machine code that ptxas makes of it. Raises CompileError and SpecError as :func:`compile_text`."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx, encoding="utf-8")
        started = time.perf_counter()
        cubin = compile_cubin(nvcc, source, arch=arch, flags=FLAGS)
        seconds = time.perf_counter() - started
    return of_ptx(ptx, name, choose=choose, cubin=cubin, seconds=seconds)


def ptx_of_text(text: str, name: str, nvcc: Nvcc, arch: str) -> Code:
    """As :func:`compile_text`, without machine code: for code that the emulator alone runs."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, f"{name}.cu")
        source.write_text(text, encoding="utf-8")
        ptx = compile_ptx(nvcc, source, arch=arch, flags=FLAGS)
    return of_ptx(ptx.replace(str(source), source.name), name, text=text)


def compile_text(text: str, name: str, nvcc: Nvcc, arch: str, choose: Choose | None = None) -> Code:
    """One nvcc run, PTX kept; `choose` says which of several kernels is meant.

    Raises CompileError, and SpecError for a file with no kernel, or with several where none is named.
    """
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder, f"{name}.cu")
        source.write_text(text, encoding="utf-8")
        started = time.perf_counter()
        cubin = compile_cubin(nvcc, source, arch=arch, flags=(*FLAGS, "--keep", "--keep-dir", folder))
        seconds = time.perf_counter() - started
        ptx = source.with_suffix(".ptx").read_text()
    ptx = ptx.replace(str(source), source.name)
    return of_ptx(ptx, name, choose=choose, text=text, cubin=cubin, seconds=seconds)


def of_ptx(
    ptx: str,
    name: str,
    *,
    choose: Choose | None = None,
    text: str | None = None,
    cubin: Cubin | None = None,
    seconds: float = 0.0,
) -> Code:
    """Code that is PTX already; `choose` says which of several kernels is meant.

    Raises SpecError for a module with no kernel, or with several where none is named.
    """
    module = parse(ptx, filename=f"{name} (PTX)")
    if choose is not None:
        return Code(text, ptx, module, choose(module), cubin, seconds)
    if len(module.entries) != 1:
        raise SpecError(
            Diagnostic(
                f"{name}: {len(module.entries)} kernels; a comparison takes exactly one",
                tuple(f"  {symbol}" for symbol in module.entries),
                hint="a launch file that names one: --against-launch, or --launch for the first file",
            )
        )
    return Code(text, ptx, module, next(iter(module.entries)), cubin, seconds)
