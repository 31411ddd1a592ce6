# SPDX-License-Identifier: Apache-2.0
"""The plan: its numbers for known kernels, and what must hold for every legal spec."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.strategies import legal_specs
from tmagen.errors import SpecError
from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Target, Tile
from tmagen.plan import Plan, derived_name, plan

STEP4 = Gemm(pipeline=Pipeline(depth=1, policy=Policy.SERIAL))
STEP5 = Gemm()
STEP6 = Gemm(schedule=Schedule(persistent=True))


def test_step4_is_the_kernel_of_the_course() -> None:
    p = plan(STEP4)
    full, mma_done = p.barriers
    assert (full.count, full.arrivals, full.tx_bytes) == (1, 1, 32_768)
    assert (mma_done.count, mma_done.arrivals, mma_done.tx_bytes) == (1, 1, 0)
    assert p.smem.bytes == 66_560
    assert p.launch.grid == ("m_tiles", "n_tiles", "1")
    assert p.launch.threads == 128
    assert p.tmem.columns == 128
    assert [m.box for m in p.tensor_maps] == [(64, 128), (64, 128), (64, 128)]
    assert [m.swizzle_bytes for m in p.tensor_maps] == [128, 128, 128]
    assert p.tensor_maps[2].dims == ("n_whole", "m")


def test_step5_has_a_barrier_per_stage() -> None:
    p = plan(STEP5)
    assert p.barriers[0].count == 2
    assert p.smem.bytes == 99_328


def test_step6_takes_the_sm_count_and_groups_of_eight() -> None:
    p = plan(STEP6)
    assert (p.schedule.persistent, p.schedule.ctas, p.schedule.l2_group) == (True, 148, 8)
    assert p.launch.grid == ("min(m_tiles * n_tiles, 148)", "1", "1")


def test_block_k_128_is_two_atoms_per_operand() -> None:
    p = plan(Gemm(tile=Tile(128, 128, 128)))
    assert (p.operand.atoms, p.operand.atom_elems, p.operand.loads_per_stage) == (2, 64, 4)
    assert p.operand.tx_bytes == 65_536
    assert (p.mma.steps_per_atom, p.mma.steps_per_stage) == (4, 8)


def test_block_k_32_takes_the_64_byte_swizzle() -> None:
    p = plan(Gemm(tile=Tile(128, 128, 32)))
    assert (p.operand.atoms, p.operand.atom_bytes, p.operand.atom_elems) == (1, 64, 32)
    assert p.mma.steps_per_stage == 2


@pytest.mark.parametrize(
    ("block_n", "d", "box_bytes", "boxes", "per_pass", "passes"),
    [
        (128, DType.F16, 128, 2, 2, 1),
        (256, DType.F16, 128, 4, 2, 2),
        (256, DType.F32, 128, 8, 2, 4),
        (16, DType.F16, 32, 1, 1, 1),
        (96, DType.BF16, 64, 3, 3, 1),
        (240, DType.F16, 32, 15, 8, 2),
        (16, DType.F32, 64, 1, 1, 1),
    ],
)
def test_epilogue_boxes(block_n: int, d: DType, box_bytes: int, boxes: int, per_pass: int, passes: int) -> None:
    e = plan(Gemm(problem=Problem(d=d), tile=Tile(128, block_n, 64))).epilogue
    assert (e.box_bytes, e.boxes, e.boxes_per_pass, e.passes) == (box_bytes, boxes, per_pass, passes)


def test_static_tiles() -> None:
    assert plan(STEP6).static_tiles is None
    assert plan(Gemm(problem=Problem(shape=Shape(129, 136, 72)))).static_tiles == (2, 2, 2)


def test_an_illegal_spec_has_no_plan() -> None:
    with pytest.raises(SpecError):
        plan(Gemm(pipeline=Pipeline(depth=7)))


def test_a_given_name_is_kept() -> None:
    assert plan(Gemm(name="my_gemm")).name == "my_gemm"


def test_different_specs_have_different_names() -> None:
    specs = [
        Gemm(problem=Problem(a=a, b=a, d=d, shape=shape), tile=tile, pipeline=pipeline, schedule=schedule)
        for a, d, shape, tile, pipeline, schedule in itertools.product(
            (DType.F16, DType.BF16),
            (DType.F16, DType.BF16, DType.F32),
            (None, Shape(256, 256, 256)),
            (Tile(), Tile(128, 256, 32)),
            (Pipeline(1, Policy.SERIAL), Pipeline(2), Pipeline(3)),
            (Schedule(), Schedule(True), Schedule(True, 132), Schedule(True, None, 4), Schedule(True, 132, 4)),
        )
    ]
    assert len({derived_name(spec) for spec in specs}) == len(specs)


@settings(max_examples=200, deadline=None)
@given(legal_specs())
def test_every_legal_spec(spec: Gemm) -> None:
    p = plan(spec)
    _check_smem_map(p)
    assert p.epilogue.boxes * p.epilogue.box_cols == spec.tile.n
    assert p.epilogue.staging_bytes <= 32_768
    assert p.operand.atoms * p.operand.atom_elems == spec.tile.k
    assert p.mma.steps_per_stage * p.mma.k == spec.tile.k
    assert p.operand.tx_bytes == (spec.tile.m + spec.tile.n) * spec.tile.k * 2
    if spec.target is Target.SM_100A:
        assert spec.tile.n <= p.tmem.columns <= max(32, 2 * spec.tile.n - 2)
    else:
        # 128 f32 accumulators per thread at most, so that they and the addresses fit into 255 registers.
        assert p.tmem.columns == 0
        assert spec.tile.m * spec.tile.n // p.launch.threads <= 128
    assert hash(p) == hash(plan(spec))


def _check_smem_map(p: Plan) -> None:
    end = 0
    for region in p.smem.regions:
        assert region.offset >= end
        assert region.offset % region.align == 0
        end = region.offset + region.bytes
    assert end <= p.smem.bytes <= p.arch.smem_per_block_bytes
    for matrix in ("a", "b", "d"):
        assert next(r for r in p.smem.regions if r.name == matrix).offset % 1024 == 0


def test_sm_90a_keeps_the_sum_in_registers_of_one_warpgroup_or_two() -> None:
    small = plan(replace(STEP6, target=Target.SM_90A))
    assert (small.launch.threads, small.schedule.ctas, small.smem.bytes) == (128, 132, 99_328)
    assert [barrier.name for barrier in small.barriers] == ["full"]
    assert small.mma.instruction == "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
    assert small.mma.instr_descriptor is None
    wide = plan(Gemm(tile=Tile(128, 256, 64), pipeline=Pipeline(4), target=Target.SM_90A))
    assert wide.launch.threads == 256
    assert plan(Gemm(tile=Tile(64, 256, 64), target=Target.SM_90A)).launch.threads == 128


def test_the_narrowest_box_has_nothing_to_swizzle() -> None:
    p = plan(Gemm(tile=Tile(64, 8, 32), target=Target.SM_90A))
    assert (p.epilogue.box_bytes, p.tensor_maps[2].swizzle_bytes) == (16, 0)
