# SPDX-License-Identifier: Apache-2.0
"""cuBLAS in the same process, to compare with: through torch, or straight through libcublas."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tmagen.gpu.device import Gpu
from tmagen.gpu.errors import DriverError
from tmagen.gpu.kernels import Launch
from tmagen.gpu.torch_reference import find_torch, matrix
from tmagen.ir import DType
from tmagen.verify.buffers import Buffer

_LIBRARIES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so")
_WORKSPACE_BYTES = 32 << 20  # what cuBLAS asks for on Hopper and later, and what torch gives it

# Codes of the cuBLAS API.
_OP_N, _OP_T = 0, 1
_DATA_TYPES = {DType.F16: 2, DType.BF16: 14, DType.F32: 0}  # cudaDataType: CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F
_COMPUTE_32F = 68
_DEFAULT_ALGORITHM = -1


class Cublas(Protocol):
    """A cuBLAS that computes D = A * B^T on the GPU's stream."""

    label: str

    def takes(self, elements: tuple[DType, DType, DType]) -> bool:
        """Whether it has this combination of types of A, B and D."""

    def prepare(self, gpu: Gpu, a: Buffer, b: Buffer, d: Buffer) -> Launch: ...

    def close(self) -> None: ...


class TorchCublas:
    """torch.mm, which calls cuBLAS."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.label = f"cuBLAS through torch {torch.__version__}"

    def takes(self, elements: tuple[DType, DType, DType]) -> bool:
        return elements[0] is elements[1] is elements[2]

    def prepare(self, gpu: Gpu, a: Buffer, b: Buffer, d: Buffer) -> Launch:
        torch, ordinal = self._torch, gpu.info.ordinal
        of_a, of_b, of_d = (matrix(torch, buffer, ordinal) for buffer in (a, b, d))
        transposed = of_b.T
        stream = torch.cuda.ExternalStream(gpu.stream, device=f"cuda:{ordinal}")

        def launch() -> None:
            with torch.cuda.stream(stream):
                torch.mm(of_a, transposed, out=of_d)

        return launch

    def close(self) -> None:
        pass


class LibraryCublas:
    """cublasGemmEx of the nvidia-cublas package, or of an installed CUDA."""

    def __init__(self, library: ctypes.CDLL, gpu: Gpu) -> None:
        self._library = library
        self._gpu = gpu
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        version = ctypes.c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(version))
        self.label = f"cuBLAS {version.value // 10000}.{version.value % 10000 // 100}"
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(gpu.stream))
        self._workspace = gpu.allocate(_WORKSPACE_BYTES)  # of its own it would allocate while a graph is captured
        pointer, size = ctypes.c_void_p(self._workspace), ctypes.c_size_t(_WORKSPACE_BYTES)
        self._call("cublasSetWorkspace_v2", self._handle, pointer, size)

    def takes(self, elements: tuple[DType, DType, DType]) -> bool:
        return elements[0] is elements[1] and elements[2] in (elements[0], DType.F32)

    def prepare(self, gpu: Gpu, a: Buffer, b: Buffer, d: Buffer) -> Launch:
        # cuBLAS counts by columns: what it sees as D is the transposed matrix, B times A transposed.
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        arguments = (
            self._handle,
            *(ctypes.c_int(_OP_T), ctypes.c_int(_OP_N)),
            *(ctypes.c_int(d.columns), ctypes.c_int(d.rows), ctypes.c_int(a.columns)),
            ctypes.byref(one),
            *(ctypes.c_void_p(b.address), ctypes.c_int(_DATA_TYPES[b.element]), ctypes.c_int(b.ld)),
            *(ctypes.c_void_p(a.address), ctypes.c_int(_DATA_TYPES[a.element]), ctypes.c_int(a.ld)),
            ctypes.byref(zero),
            *(ctypes.c_void_p(d.address), ctypes.c_int(_DATA_TYPES[d.element]), ctypes.c_int(d.ld)),
            *(ctypes.c_int(_COMPUTE_32F), ctypes.c_int(_DEFAULT_ALGORITHM)),
        )
        return lambda: self._call("cublasGemmEx", *arguments)

    def close(self) -> None:
        self._library.cublasDestroy_v2(self._handle)
        self._gpu.free(self._workspace)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise DriverError(f"{name} failed: cublasStatus_t {status}")


def find_cublas(gpu: Gpu, elements: tuple[DType, DType, DType], through: str = "auto") -> Cublas | None:
    """A cuBLAS for these types: through torch where that is there and has them, else libcublas; None if neither is.

    `through` is "auto", "torch" or "library". Raises DriverError where cuBLAS does not start.
    """
    if through in ("auto", "torch"):
        torch = find_torch()
        if torch is not None and (found := TorchCublas(torch)).takes(elements):
            return found
    if through in ("auto", "library"):
        library = _load()
        if library is not None:
            made = LibraryCublas(library, gpu)
            if made.takes(elements):
                return made
            made.close()
    return None


def _load() -> ctypes.CDLL | None:
    packages = [folder / "lib" for root in map(Path, sys.path) for folder in sorted((root / "nvidia").glob("cu*"))]
    packages += [root / "nvidia" / "cublas" / "lib" for root in map(Path, sys.path)]
    # The packages first: they hold the library that torch uses, and cublasLt beside it.
    for folder in packages:
        for name in _LIBRARIES:
            if (folder / name).is_file():
                for lt in sorted(folder.glob("libcublasLt.so*")):
                    ctypes.CDLL(str(lt), mode=ctypes.RTLD_GLOBAL)
                return ctypes.CDLL(str(folder / name))
    for name in _LIBRARIES:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None
