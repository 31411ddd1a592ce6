# SPDX-License-Identifier: Apache-2.0
"""The emulator on text that it was not made for: TVM's CUDA for the TIRx chapter's own kernels of steps 4 to 6.

The kernels' source is read from the chapter, TVM lowers it, nvcc compiles TVM's text, and tensor maps, grid, block and
shared memory are those of TVM's host function. Inputs are integers, so the result is exact whatever the order of sums.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests import tirx_text
from tmagen import emu
from tmagen.emu import Launch, TensorMap
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode
from tmagen.toolchain import compile_ptx, find_nvcc

SHAPES = [(256, 256, 256), (512, 384, 256)]
CASES = [(step, *shape) for step in (4, 5, 6) for shape in SHAPES]
COMPLETIONS = ["eager", "lazy", "newest-first", "random", "timed"]
GUARD = 4096
TYPES = {"float16": DataType.FLOAT16}


@pytest.fixture(scope="module", autouse=True)
def _available():
    tirx_text.require()


def lowered():
    """What TVM makes of every case, by case."""
    return tirx_text.lowered(tirx_text.CASES)


@cache
def module(case):
    """TVM's text of one case, compiled and parsed."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text(lowered()[case]["text"])
        return emu.parse(compile_ptx(find_nvcc(), source, flags=tirx_text.FLAGS))


class Problem:
    """Guarded operands in global memory, and the launch that TVM's host function would make on them."""

    def __init__(self, case):
        _, m, n, k = case
        rng = np.random.default_rng(sum(case))
        self.kernel = lowered()[case]
        self.memory = GlobalMemory()
        self.a = rng.integers(-8, 9, (m, k))
        self.b = rng.integers(-8, 9, (n, k))
        self.buffers = {name: self.place(value.astype(np.float16)) for name, value in (("A", self.a), ("B", self.b))}
        self.buffers["D"] = self.place(np.full((m, n), np.nan, np.float16))
        self.maps = [self.tensor_map(fields) for fields in self.kernel["maps"]]
        self.shape = (m, n)

    def place(self, matrix):
        allocation = self.memory.allocate(matrix.nbytes + 2 * GUARD, align=4096)
        allocation.data[:] = 0xA5
        allocation.data[GUARD:-GUARD] = matrix.reshape(-1).view(np.uint8)
        return allocation

    def tensor_map(self, fields):
        return TensorMap(
            data_type=TYPES[fields["dtype"]],
            rank=fields["rank"],
            address=self.buffers[fields["buffer"]].address + GUARD + fields["offset"],
            dims=tuple(fields["dims"]),
            strides=tuple(fields["strides"]),
            box=tuple(fields["box"]),
            element_strides=tuple(fields["element_strides"]),
            interleave=Interleave(fields["interleave"]),
            swizzle=SwizzleMode(fields["swizzle"]),
            l2_promotion=L2Promotion(fields["l2_promotion"]),
            oob_fill=OobFill(fields["oob_fill"]),
        )

    def run(self, module, completion, seed=0):
        entry = module.entries[self.kernel["kernel"]]
        assert [parameter.size for parameter in entry.params] == [128] * len(self.maps)
        params = bytearray(max(parameter.offset + parameter.size for parameter in entry.params))
        for parameter, tmap in zip(entry.params, self.maps, strict=True):
            params[parameter.offset : parameter.offset + parameter.size] = tmap.encode()
        launch = Launch(
            kernel=self.kernel["kernel"],
            grid=tuple(self.kernel["grid"]),
            block=tuple(self.kernel["block"]),
            dynamic_smem_bytes=self.kernel["dynamic_smem_bytes"],
            params=bytes(params),
        )
        before = {name: allocation.data.copy() for name, allocation in self.buffers.items()}
        emu.run(module, launch, self.memory, completion=completion, seed=seed)
        for name, allocation in self.buffers.items():
            inside = slice(GUARD, -GUARD) if name == "D" else slice(0, 0)
            unchanged = allocation.data == before[name]
            unchanged[inside] = True
            assert unchanged.all(), f"bytes of {name} changed that no store may touch"
        return self.buffers["D"].data[GUARD:-GUARD].view(np.float16).reshape(self.shape)

    @property
    def want(self):
        return (self.a @ self.b.T).astype(np.float16)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "v{}-{}x{}x{}".format(*case))
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_every_element_is_exact(case, completion):
    problem = Problem(case)
    got = problem.run(module(case), completion)
    assert np.array_equal(got.view(np.uint16), problem.want.view(np.uint16))


@pytest.mark.parametrize("operand", ["A", "D"])
def test_a_map_without_the_swizzle_gives_wrong_values(operand):
    """The comparison above can fail: shared memory is laid out by the map, and read by the kernel's descriptors."""
    case = CASES[0]
    problem = Problem(case)
    for i, fields in enumerate(problem.kernel["maps"]):
        if fields["buffer"] == operand:
            problem.maps[i] = replace(problem.maps[i], swizzle=SwizzleMode.NONE)
    got = problem.run(module(case), "eager")
    assert not np.array_equal(got.view(np.uint16), problem.want.view(np.uint16))
