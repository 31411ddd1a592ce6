# SPDX-License-Identifier: Apache-2.0
"""What both sides were made with: figures of machine code belong to one release of the compiler and its flags."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.diff.code import FLAGS
from tmagen.errors import TmagenError
from tmagen.tirx.build import tvm_version
from tmagen.toolchain import Nvcc, assembler, disassembler, ptx_flags


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs with their versions; empty where one was not used."""

    nvcc: str
    ptxas: str
    flags: tuple[str, ...]  # of nvcc, for both sides
    disassembler: str
    tvm: str


def tools_of(nvcc: Nvcc, arch: str, *, tvm: bool, disassembled: bool) -> Tools:
    """What is called with `nvcc`."""
    return Tools(
        nvcc=f"nvcc {nvcc.version}",
        ptxas=assembler(nvcc),
        flags=(*FLAGS, *ptx_flags(arch)),
        disassembler=_disassembler(nvcc) if disassembled else "",
        tvm=tvm_version() if tvm else "",
    )


def _disassembler(nvcc: Nvcc) -> str:
    try:
        return disassembler(nvcc)
    except TmagenError:
        return ""
