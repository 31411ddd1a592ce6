# SPDX-License-Identifier: Apache-2.0
"""nvcc runs: PTX, cubin, host object."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tmagen.toolchain.errors import CompileError
from tmagen.toolchain.nvcc import Nvcc, host_compiler, no_host_compiler
from tmagen.toolchain.process import run
from tmagen.toolchain.ptxas import KernelResources, parse_ptxas_report

_PATH_FLAGS = ("-I", "-isystem", "-include", "-L")


@dataclass(frozen=True, slots=True)
class Cubin:
    """Device code for one architecture."""

    data: bytes
    kernels: tuple[KernelResources, ...]
    output: str  # all that nvcc printed, warnings included


@dataclass(frozen=True, slots=True)
class CompiledObject:
    """One translation unit, host and device part, out of one nvcc run."""

    path: Path  # the host object; the device code is embedded in it
    ptx: str
    cubin: Cubin


def ptx_flags(arch: str = "sm_100a") -> tuple[str, ...]:
    """The flags of every compilation: the architecture, and source lines in the PTX (`.loc`).

    The virtual architecture carries the `a` too: plain compute_100 rejects tcgen05.
    """
    return ("-gencode", f"arch={arch.replace('sm_', 'compute_')},code={arch}", "-std=c++17", "-lineinfo")


def compile_ptx(nvcc: Nvcc, source: Path, *, arch: str = "sm_100a", flags: Sequence[str] = ()) -> str:
    """The PTX of `source`, with source lines. Raises CompileError."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        out = Path(folder) / "out.ptx"
        _nvcc(nvcc, source, ["-ptx", *_all_flags(arch, flags), "-o", str(out)], Path(folder))
        return out.read_text()


def compile_cubin(nvcc: Nvcc, source: Path, *, arch: str = "sm_100a", flags: Sequence[str] = ()) -> Cubin:
    """The machine code of `source` and what ptxas says about each kernel. Raises CompileError."""
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        out = Path(folder) / "out.cubin"
        output = _nvcc(
            nvcc, source, ["-cubin", *_all_flags(arch, flags), "-Xptxas", "-v", "-o", str(out)], Path(folder)
        )
        return Cubin(out.read_bytes(), parse_ptxas_report(output), output)


def compile_object(
    nvcc: Nvcc, source: Path, folder: Path, *, arch: str = "sm_100a", flags: Sequence[str] = ()
) -> CompiledObject:
    """Host object, PTX and cubin of `source`, all from one run, written into `folder` (empty; the caller's to remove).

    Raises CompileError.
    """
    out = folder / "unit.o"
    keep = ["--keep", "--keep-dir", str(folder)]
    output = _nvcc(nvcc, source, ["-c", *_all_flags(arch, flags), "-Xptxas", "-v", *keep, "-o", str(out)], folder)
    kept = folder / source.stem
    cubin = Cubin(kept.with_suffix(".cubin").read_bytes(), parse_ptxas_report(output), output)
    return CompiledObject(out, kept.with_suffix(".ptx").read_text(), cubin)


def _all_flags(arch: str, flags: Sequence[str]) -> tuple[str, ...]:
    """The flags of every compilation and the caller's, which may choose another standard."""
    chosen = any(flag.startswith(("-std", "--std")) for flag in flags)
    own = (flag for flag in ptx_flags(arch) if not (chosen and flag.startswith("-std")))
    return (*own, *from_here(flags))


def from_here(flags: Sequence[str]) -> tuple[str, ...]:
    """The flags with relative folders and files made absolute: a compiler runs in a folder of its own."""
    found: list[str] = []
    for flag in flags:
        name = next((name for name in _PATH_FLAGS if flag.startswith(name)), "")
        if name and flag != name:
            found.append(name + str(Path(flag[len(name) :]).absolute()))
        elif found and found[-1] in _PATH_FLAGS:
            found.append(str(Path(flag).absolute()))
        else:
            found.append(flag)
    return tuple(found)


def _nvcc(nvcc: Nvcc, source: Path, arguments: Sequence[str], folder: Path) -> str:
    """Runs nvcc in `folder` and returns what it printed."""
    done = run([nvcc.path, *arguments, source.absolute()], cwd=folder)
    if done.status == 0:
        return done.output
    if host_compiler() is None:
        raise no_host_compiler()
    hopper = "wgmma" in done.output and "not supported on .target 'sm_100" in done.output
    raise CompileError(f"{nvcc} rejects {source}", done.output, "--target sm_90a, which has wgmma" if hopper else None)
