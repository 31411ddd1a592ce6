# SPDX-License-Identifier: Apache-2.0
"""Kernels that can be launched: one from a spec by its C symbol, one from a file by the file's own launch()."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tmagen.arch import arch_of
from tmagen.bind import LeadingDims, bind
from tmagen.emit import emit
from tmagen.errors import Diagnostic, SpecError
from tmagen.gpu.compile import GemmArgs, LaunchLibrary, cubin_by_nvcc, cubin_by_pycuda, launch_library
from tmagen.gpu.cubin import cubin_parameters
from tmagen.gpu.device import DeviceInfo, Dim3, Gpu, require_arch
from tmagen.gpu.errors import GpuError
from tmagen.gpu.parameters import parameter_block
from tmagen.gpu.tensor_maps import Encoder, encoder
from tmagen.ir import DType, Gemm, Shape, Target
from tmagen.plan import Plan, plan
from tmagen.toolchain import KernelResources, Nvcc, find_nvcc
from tmagen.verify.run import target_of

StaticMnk = tuple[int | None, int | None, int | None]

Launch = Callable[[], None]
"""Puts one launch on the GPU's stream."""


class LaunchRefusedError(GpuError):
    """The file's launch() returned an error."""

    exit_code = 1


class Kernel(Protocol):
    """A compiled kernel."""

    name: str
    target: Target
    built_with: str
    elements: tuple[DType, DType, DType]  # of A, B and D
    static_mnk: StaticMnk  # None: given at run time
    resources: tuple[KernelResources, ...]  # empty where the compiler does not say

    def grid(self, shape: Shape, lds: LeadingDims) -> Dim3 | None:
        """The CTAs of a launch; None where nothing is launched, or that is not known."""

    def prepare(self, gpu: Gpu, shape: Shape, lds: LeadingDims, addresses: tuple[int, int, int]) -> Launch:
        """Whatever can be done before the launch, with the addresses of A, B and D (0: a null pointer)."""


class PlannedKernel:
    """A kernel of a spec: parameters and grid from the plan, launched by its C symbol."""

    def __init__(
        self,
        planned: Plan,
        cubin: bytes,
        built_with: str,
        resources: tuple[KernelResources, ...] = (),
        encode: Encoder | None = None,
    ) -> None:
        problem = planned.spec.problem
        static = problem.shape
        self.plan = planned
        self.name = planned.name
        self.target = planned.spec.target
        self.built_with = built_with
        self.elements = (problem.a, problem.b, problem.d)
        self.static_mnk: StaticMnk = (None, None, None) if static is None else (static.m, static.n, static.k)
        self.resources = resources
        self._cubin = cubin
        self._encode = encode
        self._loaded: tuple[Gpu, Any] | None = None

    def grid(self, shape: Shape, lds: LeadingDims) -> Dim3 | None:
        bound = bind(self.plan, shape, lds)
        return None if bound is None else bound.grid

    def prepare(self, gpu: Gpu, shape: Shape, lds: LeadingDims, addresses: tuple[int, int, int]) -> Launch:
        bound = bind(self.plan, shape, lds)
        if bound is None:
            return lambda: None
        assert bound.cluster == (1, 1, 1)  # a larger one needs another call
        addressed = dict(zip("ABD", addresses, strict=True))
        block = parameter_block(self.plan, bound, addressed, self._encode or encoder())
        parameters = cubin_parameters(self._cubin, self.plan.launch.kernel).buffer(block)
        function = self._function(gpu)
        return lambda: gpu.launch(function, bound.grid, bound.block, bound.smem_bytes, parameters)

    def _function(self, gpu: Gpu) -> Any:
        if self._loaded is None or self._loaded[0] is not gpu:
            self._loaded = (gpu, gpu.load(self._cubin, self.plan.launch.kernel, self.plan.launch.smem_bytes))
        return self._loaded[1]


class FileKernel:
    """A kernel file as it stands, launched by its own host part."""

    def __init__(self, library: LaunchLibrary, target: Target, built_with: str) -> None:
        self._library = library
        self.name = library.name
        self.target = target
        self.built_with = built_with
        self.elements = library.elements
        self.static_mnk = library.static_mnk
        self.resources = library.resources

    def grid(self, shape: Shape, lds: LeadingDims) -> Dim3 | None:
        return None  # launch() does not tell

    def prepare(self, gpu: Gpu, shape: Shape, lds: LeadingDims, addresses: tuple[int, int, int]) -> Launch:
        a, b, d = (address or None for address in addresses)
        args = GemmArgs(a, b, d, shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)
        library, stream = self._library, ctypes.c_void_p(gpu.stream)

        def launch() -> None:
            status = library.launch(ctypes.byref(args), stream)
            if status != 0:
                said = (library.last_error() or b"").decode(errors="replace")
                raise LaunchRefusedError(f"{library.name}_launch() returned cudaError_t {status}: {said}")

        return launch


def build_kernel(
    subject: Path | Gemm, info: DeviceInfo | None, *, compiler: str = "nvcc", nvcc: Path | str | None = None
) -> Kernel:
    """Compiles a kernel file or a spec, for its own target, which has to be that of the device if one is given.

    `compiler` is "nvcc" or "pycuda"; a file is always built by nvcc. Raises WrongDeviceError, ToolchainError,
    MissingError, SpecError.
    """
    if isinstance(subject, Path):
        if compiler != "nvcc":
            raise SpecError(
                Diagnostic(
                    f"--compiler {compiler} cannot build {str(subject)!r}: its host part needs nvcc",
                    hint="the flags of the spec instead of the file, or --compiler nvcc",
                )
            )
        target = target_of(subject.read_text(encoding="utf-8", errors="replace"))
        if info is not None:
            require_arch(info, arch_of(target))
        found = find_nvcc(nvcc, arch=target.value)
        return FileKernel(launch_library(subject, target, found), target, f"{found}, launched by its own launch()")
    planned = plan(subject)
    if info is not None:
        require_arch(info, planned.arch)
    found = find_nvcc(nvcc, arch=subject.target.value)
    return _planned(planned, compiler, found)


def _planned(planned: Plan, compiler: str, nvcc: Nvcc) -> PlannedKernel:
    text, target = emit(planned), planned.spec.target
    if compiler == "pycuda":
        return PlannedKernel(planned, cubin_by_pycuda(text, target, nvcc), f"pycuda.compiler with {nvcc}")
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        source = Path(folder) / f"{planned.name}.cu"
        source.write_text(text, encoding="utf-8")
        cubin, resources = cubin_by_nvcc(source, target, nvcc)
    return PlannedKernel(planned, cubin, str(nvcc), resources)
