# SPDX-License-Identifier: Apache-2.0
"""Host programs with a main of their own: any number of source files, linked to the stand-in runtime."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tmagen.arch import ARCHES
from tmagen.errors import Diagnostic, TmagenError
from tmagen.hostrun.build import device_lines, kernel_lines, link_program, runtime_object
from tmagen.hostrun.parameters import parameter_tables
from tmagen.hostrun.session import Device, device_of
from tmagen.toolchain import CompiledObject, Nvcc, compile_host, compile_object, find_nvcc

CUDA_SUFFIXES = (".cu",)
HOST_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++")
_SYMBOL = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CALLER = 'extern "C" int {symbol}(void);\nint main() {{ return {symbol}(); }}\n'


@dataclass(frozen=True, slots=True)
class Unit:
    """The device part of one .cu."""

    source: Path
    ptx: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A linked host program. It owns a temporary folder: use it as a context manager."""

    path: Path
    units: tuple[Unit, ...]
    nvcc: Nvcc
    configuration: tuple[str, ...]  # what the stand-in runtime must know: devices and kernels
    folder: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def build_program(
    sources: Sequence[Path],
    *,
    call: str | None = None,
    target: str = "sm_100a",
    nvcc: Nvcc | Path | str | None = None,
    flags: Sequence[str] = (),
) -> Program:
    """Compiles and links `sources` unmodified. `call` is a C function, `int call(void)`, in place of main.

    `flags` go to nvcc; those that a host compiler knows too (-I, -D, -std) to it as well. Raises TmagenError for files
    of another kind and for a target whose GPU is not known, CompileError for what does not compile or link,
    NotModelledError for CUDA functions that the stand-in lacks.
    """
    device = _device(target)
    wrong = [str(path) for path in sources if path.suffix not in (*CUDA_SUFFIXES, *HOST_SUFFIXES)]
    if wrong or not sources:
        raise TmagenError(f"{', '.join(wrong) or 'nothing'}: a host program is made of .cu and C++ files")
    if call is not None and not _SYMBOL.fullmatch(call):
        raise TmagenError(f"{call!r} is no C function's name")
    compiler = nvcc if isinstance(nvcc, Nvcc) else find_nvcc(nvcc, arch=target)
    folder = Path(tempfile.mkdtemp(prefix="tmagen-"))
    try:
        with ThreadPoolExecutor(max_workers=2) as pool:
            runtime = pool.submit(runtime_object, compiler)
            compile_one = partial(_compile, nvcc=compiler, folder=folder, target=target, flags=flags)
            built = list(pool.map(compile_one, range(len(sources)), sources))
            objects = [part.path if isinstance(part, CompiledObject) else part for part in built]
            if call is not None:
                objects.append(_caller(call, compiler, folder))
            program = folder / "program"
            link_program([*objects, runtime.result()], program, ["-pthread", "-ldl"])
        lines = dict.fromkeys(device_lines([device]))
        units = []
        for source, part in zip(sources, built, strict=True):
            if isinstance(part, CompiledObject):
                lines |= dict.fromkeys(kernel_lines(parameter_tables(part.ptx), part.cubin, target))
                units.append(Unit(source, part.ptx))
        return Program(program, tuple(units), compiler, tuple(lines), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _compile(
    number: int, source: Path, *, nvcc: Nvcc, folder: Path, target: str, flags: Sequence[str]
) -> CompiledObject | Path:
    own = folder / str(number)
    own.mkdir()
    if source.suffix in CUDA_SUFFIXES:
        return compile_object(nvcc, source, own, arch=target, flags=flags)
    out = own / "unit.o"
    compile_host(nvcc, source, out, flags=[flag for flag in flags if flag.startswith(("-I", "-D", "-std"))])
    return out


def _caller(symbol: str, nvcc: Nvcc, folder: Path) -> Path:
    source, out = folder / "caller.cpp", folder / "caller.o"
    source.write_text(_CALLER.format(symbol=symbol))
    compile_host(nvcc, source, out)
    return out


def _device(target: str) -> Device:
    """The GPU that code for `target` runs on: that of the known target with the same compute capability."""
    number = re.fullmatch(r"sm_(\d+)(\d)[af]?", target)
    for known, arch in ARCHES.items():
        if number is not None and arch.compute_capability == (int(number[1]), int(number[2])):
            return device_of(known)
    names = ", ".join(known.value for known in ARCHES)
    raise _Unknown(Diagnostic(f"target {target}: no GPU of that kind is known to run a host program on", hint=names))


class _Unknown(TmagenError):
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic

    def report(self) -> str:
        return str(self.diagnostic)
