# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for legal specs."""

from __future__ import annotations

from hypothesis import strategies as st

from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Tile
from tmagen.legality import check

_OPERANDS = st.sampled_from([DType.F16, DType.BF16])
_SIZES = st.integers(0, 2**31 - 1) | st.integers(0, 5000)


@st.composite
def legal_specs(draw: st.DrawFn) -> Gemm:
    """Any legal spec of sm_100a."""
    operand = draw(_OPERANDS)
    depth = draw(st.integers(1, 12))
    persistent = draw(st.booleans())
    spec = Gemm(
        problem=Problem(
            a=operand,
            b=operand,
            d=draw(st.sampled_from(DType)),
            shape=draw(st.none() | st.builds(Shape, _SIZES, _SIZES, _SIZES)),
        ),
        tile=Tile(128, draw(st.sampled_from(range(16, 257, 16))), draw(st.sampled_from([32, 64, 128]))),
        pipeline=Pipeline(depth, Policy.SERIAL if depth == 1 else Policy.PREFETCH),
        schedule=Schedule(
            persistent,
            draw(st.none() | st.integers(1, 2**31 - 1)) if persistent else None,
            draw(st.integers(1, 2**31 - 1) | st.integers(1, 16)) if persistent else 8,
        ),
        name=draw(st.none() | st.from_regex(r"k[a-z0-9]{0,20}", fullmatch=True)),
    )
    if check(spec):  # too deep for the tile, or too many tiles: rare, and not worth a cleverer strategy
        from hypothesis import reject

        reject()
    return spec
