# SPDX-License-Identifier: Apache-2.0
"""The CUDA compilers and disassemblers, found and called: none of them needs a GPU.

>>> nvcc = find_nvcc()                                  # --nvcc, CUDA_HOME, PATH, else the toolchain from PyPI
>>> cubin = compile_cubin(nvcc, Path("kernel.cu"))      # SASS, with what ptxas says about it
>>> cubin.kernels[0].registers
"""

from __future__ import annotations

from tmagen.toolchain.compile import CompiledObject, Cubin, compile_cubin, compile_object, compile_ptx, ptx_flags
from tmagen.toolchain.errors import CompileError, ToolchainError
from tmagen.toolchain.host import compile_host, link_host
from tmagen.toolchain.nvcc import Nvcc, find_nvcc
from tmagen.toolchain.nvrtc import NvrtcResult, compile_nvrtc
from tmagen.toolchain.ptxas import KernelResources, parse_ptxas_report
from tmagen.toolchain.sass import assembler, count_opcodes, disassemble, disassembler

__all__ = [
    "CompileError",
    "CompiledObject",
    "Cubin",
    "KernelResources",
    "Nvcc",
    "NvrtcResult",
    "ToolchainError",
    "assembler",
    "compile_cubin",
    "compile_host",
    "compile_nvrtc",
    "compile_object",
    "compile_ptx",
    "count_opcodes",
    "disassemble",
    "disassembler",
    "find_nvcc",
    "link_host",
    "parse_ptxas_report",
    "ptx_flags",
]
