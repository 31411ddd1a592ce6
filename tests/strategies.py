# SPDX-License-Identifier: Apache-2.0
"""Random legal specs for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from tmagen.arch import arch_of
from tmagen.budget import deepest_pipeline
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile


@st.composite
def legal_specs(draw: st.DrawFn) -> Gemm:
    """Any tile, depth, type, schedule and shape that the target takes."""
    dtype = draw(st.sampled_from([DType.F16, DType.BF16]))
    target = draw(st.sampled_from(list(Target)))
    arch = arch_of(target)
    tile = Tile(*(draw(st.sampled_from(legal)) for legal in (arch.block_m, arch.block_n, arch.block_k)))
    out = draw(st.sampled_from([DType.F16, DType.BF16, DType.F32]))
    shape = draw(st.none() | st.builds(Shape, st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 5000)))
    problem = Problem(a=dtype, b=dtype, d=out, shape=shape)
    depth = draw(st.integers(1, deepest_pipeline(Gemm(problem=problem, tile=tile, target=target))))
    schedule = draw(
        st.just(Schedule()) | st.builds(Schedule, st.just(True), st.none() | st.integers(1, 1000), st.integers(1, 64))
    )
    return Gemm(
        problem=problem,
        tile=tile,
        pipeline=Pipeline(depth, Policy.SERIAL if depth == 1 else Policy.PREFETCH),
        schedule=schedule,
        target=target,
    )
