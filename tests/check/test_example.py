# SPDX-License-Identifier: Apache-2.0
"""Our own kernels through launch files written from their plans: what the host part does, once more by other means."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tmagen.check import from_mapping, run
from tmagen.check.example import example
from tmagen.emit import emit
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target
from tmagen.plan import plan

SPECS = {
    "step 4": Gemm(pipeline=Pipeline(1, Policy.SERIAL)),
    "step 6": Gemm(schedule=Schedule(persistent=True, ctas=3)),
    "bf16 to f32": Gemm(problem=Problem(a=DType.BF16, b=DType.BF16, d=DType.F32), pipeline=Pipeline(depth=3)),
    "sm_90a": Gemm(target=Target.SM_90A),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_generated_kernel(name: str, tmp_path: Path) -> None:
    spec = SPECS[name]
    source = tmp_path / "kernel.cu"
    source.write_text(emit(plan(spec)))
    # N = 131 leaves columns that are stored without TMA, and rows with padding.
    launch = from_mapping(tomllib.loads(example(spec, Shape(264, 131, 72))))
    report = run(source, launch, target=spec.target.value)
    assert report.exit_code == 0, report.text()
    assert len(report.cases) == 4


def test_a_mistake_in_the_data_is_found(tmp_path: Path) -> None:
    """The expectation can fail: with B not transposed, or with one element of it off."""
    source = tmp_path / "kernel.cu"
    source.write_text(emit(plan(Gemm())))
    document = tomllib.loads(example(shape=Shape(128, 128, 128)))
    for expect in ("D == A @ B", "D == A @ B.T + 1", "D[0, 0:2] == 0"):
        report = run(source, {**document, "expect": expect}, completion="eager")
        assert [finding.rule for finding in report.findings] == ["wrong-result"], expect
