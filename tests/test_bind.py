# SPDX-License-Identifier: Apache-2.0
"""A plan bound to a shape: the numbers of the launch, and the order of the tiles."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmagen.bind import LeadingDims, bind, default_leading_dims, tile_of, tile_schedule
from tmagen.errors import SpecError
from tmagen.ir import Gemm, Problem, Schedule, Shape
from tmagen.plan import plan

STEP5 = plan(Gemm())
STEP6 = plan(Gemm(schedule=Schedule(persistent=True)))


def test_the_course_s_exercise_3() -> None:
    schedule = tile_schedule(STEP6, Shape(4096, 4096, 4096))
    assert (schedule.tiles, schedule.ctas, schedule.waves) == (1024, 148, 7)
    assert schedule.share == ((136, 7), (12, 6))


def test_tensor_maps_in_numbers() -> None:
    launch = bind(STEP6, Shape(129, 136, 72))
    assert launch is not None
    a, b, d = launch.tensor_maps
    assert (a.dims, a.strides) == ((72, 129), (144,))
    assert (b.dims, b.strides) == ((72, 136), (144,))
    assert (d.dims, d.strides) == ((136, 129), (272,))
    assert launch.grid == (4, 1, 1)
    assert launch.parameters == (
        ("map_a", "map_a"),
        ("map_b", "map_b"),
        ("map_d", "map_d"),
        ("problem.m_tiles", 2),
        ("problem.n_tiles", 2),
        ("problem.k_tiles", 2),
        ("edge.d", "d"),
        ("edge.ldd", 136),
        ("edge.m", 129),
        ("edge.first_column", 136),
        ("edge.columns", 0),
    )


def test_one_cta_per_tile_is_a_grid_of_tiles() -> None:
    launch = bind(STEP5, Shape(300, 500, 64))
    assert launch is not None
    assert launch.grid == (3, 4, 1)


def test_leading_dims_are_rounded_up_to_16_bytes() -> None:
    assert default_leading_dims(STEP6, Shape(1, 9, 7)) == LeadingDims(a=8, b=8, d=16)
    assert default_leading_dims(STEP6, Shape(1, 8, 0)) == LeadingDims(a=8, b=8, d=8)


@pytest.mark.parametrize(("n", "map_columns", "first", "edge"), [(136, 136, 136, 0), (9, 8, 8, 1), (7, 7, 0, 7)])
def test_columns_that_tma_may_not_store(n: int, map_columns: int, first: int, edge: int) -> None:
    launch = bind(STEP6, Shape(64, n, 64))
    assert launch is not None
    assert launch.tensor_maps[2].dims == (map_columns, 64)
    values = dict(launch.parameters)
    assert (values["edge.first_column"], values["edge.columns"]) == (first, edge)


def test_a_baked_in_shape_whose_rows_end_with_a_chunk_has_no_edge() -> None:
    launch = bind(plan(Gemm(problem=Problem(shape=Shape(64, 264, 64)))), Shape(64, 264, 64))
    assert launch is not None
    assert not [name for name, _ in launch.parameters if name.startswith("edge")]


def test_no_map_of_a_and_b_where_k_is_zero() -> None:
    launch = bind(STEP6, Shape(128, 128, 0))
    assert launch is not None
    assert [m.operand for m in launch.tensor_maps] == ["D"]


@pytest.mark.parametrize("shape", [Shape(0, 128, 64), Shape(128, 0, 64)])
def test_nothing_is_launched_for_an_empty_d(shape: Shape) -> None:
    assert bind(STEP6, shape) is None


def test_a_baked_in_shape_is_the_only_one() -> None:
    fixed = plan(Gemm(problem=Problem(shape=Shape(256, 256, 256))))
    launch = bind(fixed, Shape(256, 256, 256))
    assert launch is not None
    assert [name for name, _ in launch.parameters] == ["map_a", "map_b", "map_d"]
    with pytest.raises(SpecError, match="256,256,256 only"):
        bind(fixed, Shape(256, 256, 128))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 12))
def test_every_tile_once_and_group_by_group(m_tiles: int, n_tiles: int, l2_group: int) -> None:
    p = plan(Gemm(schedule=Schedule(persistent=True, l2_group=l2_group)))
    schedule = tile_schedule(p, Shape(128 * m_tiles, 128 * n_tiles, 64))
    order = [tile_of(p, schedule, i) for i in range(schedule.tiles)]
    assert Counter(order) == Counter((m, n) for m in range(m_tiles) for n in range(n_tiles))
    # All tiles of one group come before any of the next; inside a group, a column is finished first.
    assert order == sorted(order, key=lambda tile: (tile[0] // l2_group, tile[1], tile[0]))
