# SPDX-License-Identifier: Apache-2.0
"""A plan for one shape: every tensor map, parameter and grid as numbers, and who computes which tiles.

This is what the host part of an emitted file computes at run time; the tests hold the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import Shape
from tmagen.plan import Plan, tile_counts

ALIGN_BYTES = 16
"""Base addresses and leading dimensions (PTX ISA and CUDA driver API, cuTensorMapEncodeTiled: globalStrides)."""


@dataclass(frozen=True, slots=True)
class LeadingDims:
    """Elements from one row to the next."""

    a: int
    b: int
    d: int


@dataclass(frozen=True, slots=True)
class BoundMap:
    """The arguments of cuTensorMapEncodeTiled but for the address, dimension 0 innermost."""

    name: str
    operand: str
    dtype: str
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    swizzle_bytes: int
    l2_promotion_bytes: int


@dataclass(frozen=True, slots=True)
class TileSchedule:
    """How many output tiles each CTA computes."""

    m_tiles: int
    n_tiles: int
    k_tiles: int
    tiles: int
    ctas: int
    waves: int  # rounds that the busiest CTA takes
    share: tuple[tuple[int, int], ...]  # (CTAs, tiles each), most tiles first


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """A launch, complete but for addresses."""

    shape: Shape
    leading_dims: LeadingDims
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    smem_bytes: int
    tensor_maps: tuple[BoundMap, ...]  # those that are encoded: with k = 0 that of D alone
    parameters: tuple[tuple[str, str | int], ...]  # (name, tensor map's or pointer's name or value), in order
    schedule: TileSchedule


def default_leading_dims(plan: Plan, shape: Shape) -> LeadingDims:
    """Rows as close as TMA allows: the row's length, rounded up to 16 bytes."""
    problem = plan.spec.problem

    def rounded(elems: int, element_bytes: int) -> int:
        step = ALIGN_BYTES // element_bytes
        return max(1, -(-elems // step)) * step

    return LeadingDims(
        a=rounded(shape.k, problem.a.bytes), b=rounded(shape.k, problem.b.bytes), d=rounded(shape.n, problem.d.bytes)
    )


def bind(plan: Plan, shape: Shape, leading_dims: LeadingDims | None = None) -> BoundLaunch | None:
    """The launch of ``plan`` on ``shape``; None where M or N is 0 and nothing is launched.

    Raises :class:`tmagen.errors.SpecError` for a shape other than one that is baked in.
    """
    static = plan.spec.problem.shape
    if static is not None and static != shape:
        raise SpecError(
            Diagnostic(
                f"shape {shape.m},{shape.n},{shape.k}: the kernel is for {static.m},{static.n},{static.k} only",
                hint="leave --shape out of the spec to make M, N and K run-time arguments",
            )
        )
    if shape.m == 0 or shape.n == 0:
        return None
    lds = leading_dims or default_leading_dims(plan, shape)
    schedule = tile_schedule(plan, shape)
    persistent = plan.schedule.persistent
    grid = (schedule.ctas, 1, 1) if persistent else (schedule.m_tiles, schedule.n_tiles, 1)
    edge = shape.n % plan.epilogue.chunk_cols
    values = {
        "m_tiles": schedule.m_tiles,
        "n_tiles": schedule.n_tiles,
        "k_tiles": schedule.k_tiles,
        "m": shape.m,
        "ldd": lds.d,
        "n_first": shape.n - edge,
        "n_edge": edge,
    }
    return BoundLaunch(
        shape=shape,
        leading_dims=lds,
        grid=grid,
        block=plan.launch.block,
        cluster=plan.launch.cluster,
        smem_bytes=plan.launch.smem_bytes,
        tensor_maps=_tensor_maps(plan, shape, lds),
        parameters=tuple(
            (parameter.name, values.get(parameter.value, parameter.value)) for parameter in plan.launch.parameters
        ),
        schedule=schedule,
    )


def tile_schedule(plan: Plan, shape: Shape) -> TileSchedule:
    """Output tiles, waves and the share of each CTA."""
    m_tiles, n_tiles, k_tiles = tile_counts(plan.spec, shape)
    tiles = m_tiles * n_tiles
    ctas = min(plan.schedule.ctas, tiles) if plan.schedule.persistent else tiles
    most, busiest = (-(-tiles // ctas), tiles % ctas or ctas) if tiles else (0, 0)
    share = [(busiest, most)] if tiles else []
    if tiles and busiest < ctas:
        share.append((ctas - busiest, most - 1))
    return TileSchedule(
        m_tiles=m_tiles, n_tiles=n_tiles, k_tiles=k_tiles, tiles=tiles, ctas=ctas, waves=most, share=tuple(share)
    )


def tile_of(plan: Plan, schedule: TileSchedule, tile_id: int) -> tuple[int, int]:
    """The (m, n) tile with this id in the order that persistent CTAs take them: group by group, rows first."""
    rows_per_group = min(plan.schedule.l2_group, schedule.m_tiles)
    group, within = divmod(tile_id, rows_per_group * schedule.n_tiles)
    rows = min(rows_per_group, schedule.m_tiles - group * rows_per_group)
    n, row = divmod(within, rows)
    return group * rows_per_group + row, n


def _tensor_maps(plan: Plan, shape: Shape, lds: LeadingDims) -> tuple[BoundMap, ...]:
    whole = shape.n - shape.n % plan.epilogue.chunk_cols
    extents = {"m": shape.m, "n": shape.n, "k": shape.k, "n_whole": whole or shape.n}
    leading = {"A": lds.a, "B": lds.b, "D": lds.d}
    return tuple(
        BoundMap(
            name=tensor_map.name,
            operand=tensor_map.operand,
            dtype=tensor_map.dtype.value,
            dims=tuple(extents[dim] for dim in tensor_map.dims),
            strides=(leading[tensor_map.operand] * tensor_map.dtype.bytes,),
            box=tensor_map.box,
            element_strides=tensor_map.element_strides,
            swizzle_bytes=tensor_map.swizzle_bytes,
            l2_promotion_bytes=tensor_map.l2_promotion_bytes,
        )
        for tensor_map in plan.tensor_maps
        if shape.k > 0 or tensor_map.operand == "D"
    )
