# SPDX-License-Identifier: Apache-2.0
"""From a kernel file to a program that can be asked to launch it."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from tmagen.hostrun.errors import NotModelledError
from tmagen.hostrun.parameters import ParameterTable, parameter_tables
from tmagen.hostrun.session import Device, HostSession, device_of
from tmagen.hostrun.source import find_namespace, harness, includable, quotable
from tmagen.ir import DType, Target
from tmagen.toolchain import (
    CompileError,
    Cubin,
    Nvcc,
    compile_host,
    compile_object,
    find_nvcc,
    link_host,
)

_RUNTIME = Path(__file__).parent / "runtime"
_WITHOUT_MAIN = (
    "state", "errors", "registration", "launch", "device", "properties", "function", "stream", "event",
    "device_memory", "memory", "tensor_map",
)  # fmt: skip
_HARNESS = "(call of launch)"  # what messages call the unit that includes the file
_SOURCES = (*_WITHOUT_MAIN, "entry_point", "protocol", "serve")


@dataclass(frozen=True)
class HostProgram:
    """A kernel file's host part, linked to the stand-in runtime, and its device part as PTX and machine code.

    It owns a temporary folder: use it as a context manager, or call :meth:`close`.
    """

    namespace: str
    nvcc: Nvcc
    target: Target
    elements: tuple[DType, DType, DType]  # of A, B and D
    static_mnk: tuple[int | None, int | None, int | None]  # None: given at run time
    ptx: str
    cubin: Cubin
    tables: dict[str, ParameterTable]
    _program: Path = field(repr=False)
    _folder: Path = field(repr=False)

    def start(self, devices: Sequence[Device] | None = None) -> HostSession:
        """Starts the program on a machine with these GPUs; by default with one, of the kind that the target names."""
        present = [device_of(self.target)] if devices is None else devices
        return HostSession(self._program, [*device_lines(present), *self.configuration()])

    def configuration(self) -> tuple[str, ...]:
        """The lines that tell the stand-in runtime about the kernels."""
        return kernel_lines(self.tables, self.cubin, self.target.value)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def build(
    source: Path,
    *,
    nvcc: Nvcc | None = None,
    target: Target = Target.SM_100A,
    flags: Sequence[str] = (),
    extern_c: bool = False,
    called: str | None = None,
    kernel: str | None = None,
) -> HostProgram:
    """Compiles `source` as it stands, once, and links its host part to the stand-in runtime.

    Errors name the file as `called`, by default by its path. `kernel` is the namespace of one of several kernels.

    Raises SourceFormError for a file of another form, CompileError where nvcc rejects it, NotModelledError where it
    calls CUDA functions that the stand-in lacks.
    """
    nvcc = nvcc or find_nvcc(arch=target.value)
    name = called or str(source)
    namespace = find_namespace(source.read_text(encoding="utf-8", errors="replace"), name, kernel)
    folder = Path(tempfile.mkdtemp(prefix="tmagen-"))
    try:
        unit = folder / "harness.cu"
        included, beside = includable(source, folder)
        unit.write_text(harness(included, namespace, extern_c=extern_c))
        options = [f"-I{_RUNTIME}", f"-I{beside}", "-w", *flags]
        if extern_c:
            options.append("-DTMAGEN_EXTERN_C")
        # Two processes: the stand-in is compiled while nvcc runs.
        with ThreadPoolExecutor(max_workers=1) as pool:
            runtime = pool.submit(runtime_object, nvcc)
            compiled = compile_object(nvcc, unit, folder, arch=target.value, flags=options)
            program = folder / "host"
            link_program([compiled.path, runtime.result()], program, ["-pthread"])
        with HostSession(program, ()) as session:
            introduction = session.introduction
        a, b, d = map(DType, introduction["elements"])
        m, n, k = (size if size >= 0 else None for size in introduction["static_mnk"])
        tables = parameter_tables(compiled.ptx)
        ptx = compiled.ptx
        if included != source.absolute():
            ptx = ptx.replace(str(included), quotable(name))
        return HostProgram(namespace, nvcc, target, (a, b, d), (m, n, k), ptx, compiled.cubin, tables, program, folder)
    except CompileError as error:
        shutil.rmtree(folder, ignore_errors=True)
        known = {str(source.absolute()): name, str(folder / "kernel.cu"): name, str(folder / "harness.cu"): _HARNESS}
        raise _about(error, name, known) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _about(error: CompileError, name: str, names: dict[str, str]) -> CompileError:
    """The error as one of the user's file, with files by the names that the user knows."""
    output = re.sub(r'(in the compilation of )".*"', rf'\1"{name}"', error.output)
    message = error.diagnostic.message
    for path, known in names.items():
        output, message = output.replace(path, known), message.replace(path, name)
    return CompileError(message, output, error.diagnostic.hint)


def build_runtime(folder: Path, *, nvcc: Nvcc | None = None) -> Path:
    """Builds the stand-in as a shared libcudart in `folder`, for programs with a main of their own.

    Such a program, linked with `--cudart shared` and run with LD_LIBRARY_PATH set to `folder`, reads its devices and
    kernels (:func:`kernel_lines`) from the file that TMAGEN_HOSTRUN_CONFIG names, and appends what it does, one JSON
    object a line, to the one that TMAGEN_HOSTRUN_RECORD names. Returns the library's path.
    """
    nvcc = nvcc or find_nvcc()
    folder.mkdir(parents=True, exist_ok=True)
    major = nvcc.version.split(".")[0]
    library = folder / f"libcudart.so.{major}"
    with tempfile.TemporaryDirectory(prefix="tmagen-") as scratch:
        built = Path(scratch) / "runtime.o"
        _compile_runtime(nvcc, (*_WITHOUT_MAIN, "entry_point", "protocol"), built, ["-fPIC"])
        link_program([built], library, ["-shared", f"-Wl,-soname,{library.name}"])
    link = folder / "libcudart.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library.name)
    return library


def kernel_lines(tables: dict[str, ParameterTable], cubin: Cubin, arch: str) -> tuple[str, ...]:
    """What the stand-in runtime must know about kernels, in the form in which it reads it."""
    static = {kernel.name: kernel.static_smem_bytes for kernel in cubin.kernels}
    return tuple(
        " ".join(
            [
                "kernel",
                name,
                arch,
                str(table.max_threads),
                str(static[name]),
                *map(str, table.cluster),
                *(f"{p.offset}:{p.size}" for p in table.parameters),
            ]
        )
        for name, table in tables.items()
    )


def device_lines(devices: Sequence[Device]) -> tuple[str, ...]:
    """The GPUs, in the form in which the stand-in runtime reads them."""
    return tuple(f"device {d.major} {d.minor} {d.sm_count} {d.smem_optin_bytes}" for d in devices)


class _SharedObject:
    """The compiled stand-in, kept for as long as this process lives: every host program links the same one."""

    def __init__(self, nvcc: Nvcc) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tmagen-")
        self.path = Path(self._folder.name) / "runtime.o"
        _compile_runtime(nvcc, _SOURCES, self.path, [])


_COMPILING = Lock()
"""Two threads that find nothing in the cache would both compile, and the object of one would be gone with it."""


@lru_cache(maxsize=4)
def _shared_object(nvcc: Nvcc) -> _SharedObject:
    return _SharedObject(nvcc)


def runtime_object(nvcc: Nvcc) -> Path:
    """The compiled stand-in, for a program whose main is elsewhere."""
    with _COMPILING:
        return _shared_object(nvcc).path


def _compile_runtime(nvcc: Nvcc, parts: Sequence[str], out: Path, flags: Sequence[str]) -> None:
    """Compiles the stand-in as one translation unit: its parts share most of their headers."""
    unit = out.with_suffix(".cpp")
    unit.write_text("".join(f'#include "{part}.cpp"\n' for part in parts))
    compile_host(nvcc, unit, out, flags=[f"-I{_RUNTIME}", "-w", "-O0", *flags])


def link_program(objects: Sequence[Path], out: Path, flags: Sequence[str]) -> None:
    """Links `objects` to `out`. Raises NotModelledError, naming them, for CUDA functions that nobody defines."""
    try:
        link_host(objects, out, flags=flags)
    except CompileError as error:
        missing = sorted(set(re.findall(r"undefined reference to [`']([^']+)'", error.output)))
        if not missing or not all(re.match(r"_*cu[A-Z]|_*cuda", name) for name in missing):
            raise
        raise NotModelledError(f"the stand-in runtime lacks {', '.join(missing)}, which the host part calls") from error
