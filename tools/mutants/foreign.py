# SPDX-License-Identifier: Apache-2.0
"""Kernels that other compilers wrote: TVM's of our TIRx scripts, and Triton's where `make peers` has fetched Triton."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tmagen.emu import Launch, TensorMap, parse
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode
from tmagen.ir import Gemm, Shape
from tmagen.tirx import TirxKernel, tirx_script
from tmagen.tirx.build import build_scripts
from tmagen.tirx.lower import TVM_VERSION
from tmagen.toolchain import compile_ptx, find_nvcc
from tools.mutants.base import Base, Prepared
from tools.peers import triton, triton_runs
from tools.peers.cases import TritonCase
from tools.peers.problem import Problem

TVM_FLAGS = ("-O3", "--use_fast_math")  # as TVM itself compiles


class Tvm(Base):
    """What TVM makes of a spec, one text for each shape.

    All four warps wait for the MMAs of every K tile, and nothing holds the issuing one back for the others. A warp that
    misses two phases sees the parity that it saw before, and waits for ever.
    """

    foreign = True
    hangs = (("starve", 1), ("starve", 2), ("starve", 3))

    def __init__(self, name: str, spec: Gemm, shapes: tuple[Shape, ...]) -> None:
        self.name = name
        self.about = f"TVM {TVM_VERSION}, of our TIRx script"
        self.specs = tuple(replace(spec, problem=replace(spec.problem, shape=shape)) for shape in shapes)
        self.shapes = shapes
        self.cases = len(shapes)

    @cached_property
    def _kernels(self) -> tuple[tuple[TirxKernel, str], ...]:
        kernels = build_scripts([tirx_script(spec) for spec in self.specs])
        with ThreadPoolExecutor(len(kernels)) as pool:
            return tuple(zip(kernels, pool.map(_compiled, (kernel.text for kernel in kernels)), strict=True))

    def text(self, case: int) -> str:
        return self._kernels[case][1]

    def prepare(self, case: int, seed: int) -> Prepared:
        kernel = self._kernels[case][0]
        shape = self.shapes[case]
        problem = Problem(("fp16", "fp16", "fp16"), (shape.m, shape.n, shape.k))
        block = b"".join(
            TensorMap(
                data_type=DataType.FLOAT16,
                rank=len(tmap.dims),
                address=problem.address(tmap.buffer.lower()) + tmap.offset_bytes,
                dims=tmap.dims,
                strides=tmap.strides,
                box=tmap.box,
                element_strides=tmap.element_strides,
                interleave=Interleave(tmap.interleave),
                swizzle=SwizzleMode(tmap.swizzle),
                l2_promotion=L2Promotion(tmap.l2_promotion),
                oob_fill=OobFill(tmap.oob_fill),
            ).encode()
            for tmap in kernel.maps
        )
        launch = Launch(
            kernel.kernel, kernel.grid, kernel.block, dynamic_smem_bytes=kernel.dynamic_smem_bytes, params=block
        )
        return Prepared(problem.memory, (launch,), lambda: problem.wrong() is not None)


def _compiled(text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="tmagen-mutants-") as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text(text, encoding="utf-8")
        return compile_ptx(find_nvcc(), source, flags=TVM_FLAGS)


class Triton(Base):
    """What Triton makes of one of the kernels that `make peers` gives it."""

    foreign = True

    def __init__(self, name: str, case: TritonCase, *more: tuple[int, int, int]) -> None:
        """`more` are shapes beside those of the case, and go other ways."""
        self.name = name
        self.about = f"Triton {triton_runs.VERSION}: `{case.name}`"
        self.case = replace(case, shapes=(*case.shapes, *more))
        self.cases = len(self.case.shapes)
        self.others = tuple(range(len(case.shapes), self.cases))

    def missing(self) -> bool:
        """Whether Triton is not there: it is fetched by `make peers` alone."""
        return not (triton_runs.PACKAGES / "triton").is_dir()

    @cached_property
    def _built(self) -> tuple[str, dict[str, Any]]:
        triton_runs.compile_all((self.case,))
        folder = triton_runs.FOLDER / "ptx"
        record = json.loads((folder / f"{self.case.name}.json").read_text())
        return (folder / f"{self.case.name}.ptx").read_text(), record

    def text(self, case: int) -> str:
        return self._built[0]

    def prepare(self, case: int, seed: int) -> Prepared:
        text, record = self._built
        shape = self.case.shapes[case]
        problem = Problem(self.case.types, shape, kn=self.case.kernel.endswith("_kn"))
        launch = triton.launch_of(self.case, record, parse(text), problem, shape)
        return Prepared(problem.memory, (launch,), lambda: problem.wrong(16) is not None)
