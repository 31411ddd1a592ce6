# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from tmagen.arch import arch_of
from tmagen.budget import (
    Budget,
    budget_of,
    deepest_pipeline,
    power_of_two_at_least,
    resident_ctas,
    round_up,
)
from tmagen.ir import DType, Gemm, Pipeline, Problem, Target, Tile

LEGAL_TILES = [Tile(128, n, k) for n in range(16, 257, 16) for k in (32, 64, 128)]
OUTPUTS = [DType.F16, DType.F32]


def gemm(tile: Tile, d: DType = DType.F16, depth: int = 2) -> Gemm:
    return Gemm(problem=Problem(d=d), tile=tile, pipeline=Pipeline(depth))


def test_depth_7() -> None:
    cost = budget_of(gemm(Tile(), depth=7))
    assert (cost.ring_bytes, cost.staging_bytes, cost.barrier_bytes) == (229_376, 32_768, 1_024)
    assert cost.smem_bytes == 263_168


def test_step_5() -> None:
    assert budget_of(Gemm()) == Budget(
        atom_bytes=128,
        atoms_per_row=1,
        stage_a_bytes=16_384,
        stage_b_bytes=16_384,
        tx_bytes=32_768,
        ring_bytes=65_536,
        d_box_bytes=128,
        d_boxes=2,
        boxes_per_pass=2,
        passes=1,
        staging_bytes=32_768,
        barriers=3,
        barrier_bytes=1_024,
        smem_bytes=99_328,
        tmem_columns=128,
    )


@pytest.mark.parametrize(("k", "atom_bytes", "atoms"), [(32, 64, 1), (64, 128, 1), (128, 128, 2)])
def test_swizzle_atoms(k: int, atom_bytes: int, atoms: int) -> None:
    cost = budget_of(gemm(Tile(128, 128, k)))
    assert (cost.atom_bytes, cost.atoms_per_row) == (atom_bytes, atoms)


@pytest.mark.parametrize(
    ("n", "d", "box_bytes", "boxes", "per_pass", "passes", "staging_bytes"),
    [
        (16, DType.F16, 32, 1, 1, 1, 4_096),
        (32, DType.F16, 64, 1, 1, 1, 8_192),
        (48, DType.F16, 32, 3, 3, 1, 12_288),
        (96, DType.F16, 64, 3, 3, 1, 24_576),
        (144, DType.F16, 32, 9, 8, 2, 32_768),
        (160, DType.F16, 64, 5, 4, 2, 32_768),
        (192, DType.F16, 128, 3, 2, 2, 32_768),
        (256, DType.F16, 128, 4, 2, 2, 32_768),
        (16, DType.F32, 64, 1, 1, 1, 8_192),
        (128, DType.F32, 128, 4, 2, 2, 32_768),
        (240, DType.F32, 64, 15, 4, 4, 32_768),
        (256, DType.F32, 128, 8, 2, 4, 32_768),
    ],
)
def test_epilogue_passes(
    n: int, d: DType, box_bytes: int, boxes: int, per_pass: int, passes: int, staging_bytes: int
) -> None:
    cost = budget_of(gemm(Tile(128, n, 64), d))
    assert (cost.d_box_bytes, cost.d_boxes, cost.boxes_per_pass, cost.passes, cost.staging_bytes) == (
        box_bytes,
        boxes,
        per_pass,
        passes,
        staging_bytes,
    )


@pytest.mark.parametrize("tile", LEGAL_TILES)
@pytest.mark.parametrize("d", OUTPUTS)
def test_every_legal_tile(tile: Tile, d: DType) -> None:
    cost = budget_of(gemm(tile, d, depth=1))
    for part in (cost.stage_a_bytes, cost.stage_b_bytes, cost.staging_bytes, cost.barrier_bytes):
        assert part % 1024 == 0
    # Each swizzle atom of an operand is a tile of its own, and it is aligned too.
    assert (tile.n * cost.atom_bytes) % 1024 == 0
    assert cost.atom_bytes * cost.atoms_per_row == tile.k * 2
    assert cost.d_box_bytes * cost.d_boxes == tile.n * d.bytes
    assert (cost.passes - 1) * cost.boxes_per_pass < cost.d_boxes <= cost.passes * cost.boxes_per_pass
    assert cost.staging_bytes <= 32_768
    assert cost.tmem_columns in (32, 64, 128, 256)
    assert tile.n <= cost.tmem_columns < max(2 * tile.n, 33)


@pytest.mark.parametrize("tile", LEGAL_TILES)
def test_deepest_pipeline_is_the_last_that_fits(tile: Tile) -> None:
    limit = arch_of(Target.SM_100A).smem_per_block_bytes
    deepest = deepest_pipeline(gemm(tile))
    assert deepest >= 2
    assert budget_of(gemm(tile, depth=deepest)).smem_bytes <= limit
    assert budget_of(gemm(tile, depth=deepest + 1)).smem_bytes > limit


def test_deepest_pipeline_without_room() -> None:
    small = replace(arch_of(Target.SM_100A), smem_per_block_bytes=48 * 1024)
    assert deepest_pipeline(Gemm(), small) == 0
    assert deepest_pipeline(gemm(Tile(128, 16, 32)), small) == 4


def test_barriers_beyond_one_kilobyte() -> None:
    assert budget_of(gemm(Tile(), depth=126)).barrier_bytes == 1_024
    assert budget_of(gemm(Tile(), depth=127)).barrier_bytes == 2_048


@pytest.mark.parametrize("tile", [Tile(128, 4, 64), Tile(128, 128, 96)])
def test_no_layout(tile: Tile) -> None:
    with pytest.raises(ValueError, match=r"swizzle atoms|no TMA store box"):
        budget_of(gemm(tile))


def test_rounding() -> None:
    assert [round_up(value, 16) for value in (0, 1, 16, 17)] == [0, 16, 16, 32]
    assert [power_of_two_at_least(value) for value in (1, 2, 3, 128, 129)] == [1, 2, 4, 128, 256]


@pytest.mark.parametrize(
    ("tile", "depth", "ctas"),
    [
        (Tile(), 2, 2),  # 233,472 // 100,352
        (Tile(), 6, 1),
        (Tile(), 1, 3),  # 233,472 // 67,584
        (Tile(128, 256, 32), 1, 2),  # 512 columns // 256; shared memory has room for 3
        (Tile(128, 16, 32), 2, 9),  # 233,472 // 24,576
    ],
)
def test_resident_ctas(tile: Tile, depth: int, ctas: int) -> None:
    assert resident_ctas(budget_of(gemm(tile, depth=depth)), arch_of(Target.SM_100A)) == ctas
