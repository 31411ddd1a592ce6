# SPDX-License-Identifier: Apache-2.0
"""The parameter block of a plan's launch is the one that the emitted file's own host part makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tmagen.bind import LeadingDims
from tmagen.diff.host_side import FileHost
from tmagen.diff.launching import launch_of_plan
from tmagen.diff.problem import Problem
from tmagen.emit import emit
from tmagen.hostrun import build
from tmagen.ir import DType, Gemm, Schedule, Shape
from tmagen.ir import Problem as Gemms
from tmagen.plan import plan

ADDRESSES = {"A": 0x10000000, "B": 0x20000000, "D": 0x30000000}
RUNTIME = Gemm(problem=Gemms(DType.BF16, DType.BF16, DType.F32), schedule=Schedule(persistent=True))
STATIC = Gemm(problem=Gemms(shape=Shape(300, 264, 136)))


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [(RUNTIME, [Shape(512, 512, 512), Shape(129, 135, 72)]), (STATIC, [STATIC.problem.shape])],
    ids=["run-time shape", "baked-in shape"],
)
def test_as_the_host_part_launches(spec: Gemm, shapes: list[Shape], tmp_path: Path) -> None:
    chosen = plan(spec)
    path = tmp_path / f"{chosen.name}.cu"
    path.write_text(emit(chosen))
    with build(path) as program:
        host = FileHost(program)
        for shape in shapes:
            lds = LeadingDims(shape.k + 8, shape.k + 16, shape.n + 24 - shape.n % 8)
            problem = Problem(shape, program.elements, lds)
            want = host.call(problem, ADDRESSES)
            got = launch_of_plan(chosen, want.kernel, shape, lds, ADDRESSES)
            # C leaves the padding at a struct's end as it finds it.
            padding = 4 if spec is RUNTIME else 0
            assert got.params[: len(got.params) - padding] == want.params[: len(want.params) - padding]
            assert len(got.params) == len(want.params)
            assert (got.grid, got.block, got.cluster) == (want.grid, want.block, want.cluster)
            assert got.dynamic_smem_bytes == want.dynamic_smem_bytes
        host.session.close()


def test_it_can_fail() -> None:
    chosen, shape = plan(RUNTIME), Shape(512, 512, 512)
    lds = LeadingDims(512, 512, 512)
    one = launch_of_plan(chosen, "k", shape, lds, ADDRESSES)
    assert one.params != launch_of_plan(chosen, "k", shape, replace(lds, d=520), ADDRESSES).params
