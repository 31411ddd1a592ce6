# SPDX-License-Identifier: Apache-2.0
"""Run-time compilation of the device part through libnvrtc, which needs no GPU and no host compiler."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tmagen.errors import Diagnostic
from tmagen.toolchain.errors import CompileError, ToolchainError
from tmagen.toolchain.nvcc import Nvcc, nvidia_packages

_SUCCESS = 0


@dataclass(frozen=True, slots=True)
class NvrtcResult:
    """Device code from NVRTC."""

    cubin: bytes
    ptx: str
    log: str  # warnings; empty for a clean file
    version: str  # "13.0"


def compile_nvrtc(
    text: str,
    *,
    name: str = "kernel.cu",
    arch: str = "sm_100a",
    options: Sequence[str] = (),
    include_dirs: Sequence[Path] = (),
    nvcc: Nvcc | None = None,
) -> NvrtcResult:
    """Compiles `text` for `arch`. CUDA headers are searched for in `include_dirs`, else beside the library.

    Raises ToolchainError where libnvrtc is not found, CompileError with NVRTC's log where it rejects the text.
    """
    library, path = _load(None if nvcc is None else nvcc.root)
    headers = [*(nvcc.include_dirs if nvcc else ()), path.parent.parent / "include"]
    folders = [*include_dirs, *headers, *(folder / "cccl" for folder in headers)]
    flags = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        *(f"-I{folder}" for folder in folders if folder.is_dir()),
        *options,
    ]
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None))
    try:
        encoded = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = library.nvrtcCompileProgram(program, len(flags), encoded)
        log = _bytes(library, program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog)
        message = log.rstrip(b"\0").decode(errors="replace")
        if status != _SUCCESS:
            raise CompileError(f"NVRTC {_version(library)} rejects {name} ({_text(library, status)})", message)
        ptx = _bytes(library, program, library.nvrtcGetPTXSize, library.nvrtcGetPTX)
        cubin = _bytes(library, program, library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN)
        return NvrtcResult(cubin, ptx.rstrip(b"\0").decode(), message, _version(library))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@lru_cache(maxsize=4)
def _load(root: Path | None) -> tuple[ctypes.CDLL, Path]:
    homes = [*([root] if root else []), *nvidia_packages()]
    for folder in (home / sub for home in homes for sub in ("lib64", "lib")):
        for candidate in sorted(folder.glob("libnvrtc.so*"), reverse=True):
            # NVRTC opens its built-ins by bare name: outside the loader's own folders they must be loaded already.
            for builtins in sorted(folder.glob("libnvrtc-builtins.so*"), reverse=True):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return _declare(ctypes.CDLL(str(candidate))), candidate.resolve()
    raise ToolchainError(Diagnostic("libnvrtc is not installed", hint='pip install "tmagen[toolchain]"'))


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Gives every function its argument types: a size_t passed as int would be cut."""
    pointer, size = ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)
    strings = ctypes.POINTER(ctypes.c_char_p)
    library.nvrtcCreateProgram.argtypes = (
        ctypes.POINTER(pointer), ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, strings, strings,
    )  # fmt: skip
    library.nvrtcCompileProgram.argtypes = (pointer, ctypes.c_int, strings)
    library.nvrtcDestroyProgram.argtypes = (ctypes.POINTER(pointer),)
    for what in ("ProgramLog", "PTX", "CUBIN"):
        getattr(library, f"nvrtcGet{what}Size").argtypes = (pointer, size)
        getattr(library, f"nvrtcGet{what}").argtypes = (pointer, ctypes.c_char_p)
    library.nvrtcGetErrorString.argtypes = (ctypes.c_int,)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    library.nvrtcVersion.argtypes = (ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    return library


def _bytes(
    library: ctypes.CDLL,
    program: ctypes.c_void_p,
    size_of: Callable[..., int],
    get: Callable[..., int],
) -> bytes:
    size = ctypes.c_size_t()
    _check(library, size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, get(program, buffer))
    return buffer.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != _SUCCESS:
        raise ToolchainError(Diagnostic(f"NVRTC: {_text(library, status)}"))


def _text(library: ctypes.CDLL, status: int) -> str:
    text: bytes = library.nvrtcGetErrorString(status)
    return text.decode()


def _version(library: ctypes.CDLL) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(library, library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"
