# SPDX-License-Identifier: Apache-2.0
"""What the TIRx scripts cannot express, and why: TVM itself would compile most of it, into a kernel that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from tmagen.arch import arch_of
from tmagen.errors import Diagnostic
from tmagen.ir import Gemm, Policy, Shape, Target
from tmagen.plan import Plan, tile_counts


def refusals(plan: Plan) -> tuple[Diagnostic, ...]:
    """Every reason why there is no TIRx script for ``plan``; empty where there is one. Its shape is baked in."""
    spec = plan.spec
    shape = spec.problem.shape
    assert shape is not None, "a TIRx script has a shape"
    found = list(_target(spec))
    if shape.m == 0 or shape.n == 0 or shape.k == 0:
        return (*found, _empty(shape))
    found += _tails(spec, shape)
    found += _grid(spec, shape)
    return (*found, *_parity(plan, shape))


def _target(spec: Gemm) -> Iterator[Diagnostic]:
    if spec.target is not Target.SM_100A:
        yield Diagnostic(
            f"target {spec.target.value}: the TIRx backend issues tcgen05, which {Target.SM_100A.value} has",
            hint=f"--target {Target.SM_100A.value}",
        )


def _empty(shape: Shape) -> Diagnostic:
    if shape.k == 0:
        return Diagnostic(
            "k = 0: a TIRx script loops over K tiles and stores what the MMAs left, so nothing would write the zeros",
            hint="--backend cuda, which takes any shape",
        )
    return Diagnostic(
        f"m, n = {shape.m}, {shape.n}: a TIRx kernel has a grid of its own size, and an empty one cannot be launched",
        hint="--backend cuda, which launches nothing then",
    )


def _tails(spec: Gemm, shape: Shape) -> Iterator[Diagnostic]:
    """Tile counts are rounded down there, and D's tensor map has a dimension of whole swizzle atoms."""
    names = ("m", "n", "k")
    why = (
        "rows past the last whole tile would not be computed",
        "columns past the last whole tile would not be computed",
        "elements of K past the last whole tile would not be added",
    )
    extents = (shape.m, shape.n, shape.k)
    blocks = (spec.tile.m, spec.tile.n, spec.tile.k)
    for name, extent, block, reason in zip(names, extents, blocks, why, strict=True):
        if extent % block:
            rounded = [(-(-e // b) * b) for e, b in zip(extents, blocks, strict=True)]
            yield Diagnostic(
                f"{name} = {extent:,} is no multiple of tile.{name} = {block}: a TIRx script has no tails",
                detail=(f"TVM compiles it without a word, and {reason}",),
                hint=f"--shape {rounded[0]},{rounded[1]},{rounded[2]}",
            )


def _grid(spec: Gemm, shape: Shape) -> Iterator[Diagnostic]:
    n_tiles = -(-shape.n // spec.tile.n)
    limit = arch_of(spec.target).grid_y
    if not spec.schedule.persistent and n_tiles > limit:
        yield Diagnostic(
            f"{n_tiles:,} tiles along n: the grid of a TIRx kernel has at most {limit:,}", hint="--persistent"
        )


def _parity(plan: Plan, shape: Shape) -> Iterator[Diagnostic]:
    """Each tile starts its parities from 0. That is right as long as every barrier ends a tile where it began it."""
    spec = plan.spec
    m_tiles, n_tiles, k_tiles = tile_counts(spec, shape)
    if not spec.schedule.persistent or m_tiles * n_tiles <= plan.schedule.ctas or shape.k % spec.tile.k:
        return
    depth = 1 if spec.pipeline.policy is Policy.SERIAL else spec.pipeline.depth
    if k_tiles % (2 * depth):
        step = 2 * depth * spec.tile.k
        yield Diagnostic(
            f"{k_tiles:,} K tiles a tile are no multiple of 2 x {depth} stages: the parities of a persistent TIRx "
            "kernel would be wrong from the second tile on",
            detail=(
                "each tile resets its parities to 0, so every barrier has to go through an even number of phases in it",
            ),
            hint=f"--shape {shape.m},{shape.n},{-(-shape.k // step) * step}",
        )
