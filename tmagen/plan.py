# SPDX-License-Identifier: Apache-2.0
"""From what is asked to what was decided: ``plan(spec)`` computes every number that a kernel and its launch need."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tmagen.arch import Arch, arch_of
from tmagen.budget import MBARRIER_BYTES, SMEM_ALIGN_BYTES, STAGING_ROW_BYTES, Budget, budget_of
from tmagen.ir import Gemm, Policy, Shape
from tmagen.legality import require_legal
from tmagen.plan_mma import MmaParts, mma_parts
from tmagen.plan_types import (
    Barrier,
    EpiloguePlan,
    LaunchPlan,
    MmaPlan,
    OperandPlan,
    Parameter,
    Role,
    SchedulePlan,
    SmemPlan,
    SmemRegion,
    TensorMapPlan,
    TmemPlan,
)

EPILOGUE_BARRIER_ID = 1  # named barrier 0 is __syncthreads()
L2_PROMOTION_BYTES = 128
TMA_CHUNK_BYTES = 16  # a TMA store writes whole chunks of a row, also of one that ends inside a chunk (seen on sm_90)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was decided about one kernel."""

    name: str
    spec: Gemm
    arch: Arch
    operand: OperandPlan
    smem: SmemPlan
    barriers: tuple[Barrier, ...]
    roles: tuple[Role, ...]
    tensor_maps: tuple[TensorMapPlan, ...]
    mma: MmaPlan
    tmem: TmemPlan
    epilogue: EpiloguePlan
    schedule: SchedulePlan
    launch: LaunchPlan
    static_tiles: tuple[int, int, int] | None  # tiles along m, n, k where the shape is baked in


def plan(spec: Gemm) -> Plan:
    """The plan of a legal spec. Raises :class:`tmagen.errors.SpecError` with every reason why a spec is not legal."""
    require_legal(spec)
    arch = arch_of(spec.target)
    cost = budget_of(spec, arch)
    name = spec.name or derived_name(spec)
    parts = mma_parts(spec, arch, cost)
    smem = _smem(spec, cost, parts)
    schedule = _schedule(spec, arch)
    epilogue = _epilogue(spec, cost, parts)
    return Plan(
        name=name,
        spec=spec,
        arch=arch,
        operand=_operand(spec, cost),
        smem=smem,
        barriers=_barriers(spec, cost, smem, parts),
        roles=parts.roles,
        tensor_maps=_tensor_maps(spec, cost, epilogue),
        mma=parts.mma,
        tmem=TmemPlan(
            columns=cost.tmem_columns, used_columns=spec.tile.n if cost.tmem_columns else 0, lanes=arch.tmem_lanes
        ),
        epilogue=epilogue,
        schedule=schedule,
        launch=_launch(spec, name, cost, schedule, parts, epilogue),
        static_tiles=None if spec.problem.shape is None else tile_counts(spec, spec.problem.shape),
    )


def derived_name(spec: Gemm) -> str:
    """A name that tells one spec from another: target, types, tile, depth, schedule, and what else is set."""
    problem, tile, schedule = spec.problem, spec.tile, spec.schedule
    parts = ["gemm", spec.target.value.replace("_", ""), problem.a.value]
    if problem.d is not problem.a:
        parts.append(problem.d.value)
    parts += [f"{tile.m}x{tile.n}x{tile.k}", f"depth{spec.pipeline.depth}"]
    if schedule.persistent:
        parts.append("persistent")
        if schedule.ctas is not None:
            parts.append(f"ctas{schedule.ctas}")
        if schedule.l2_group != type(schedule)().l2_group:
            parts.append(f"group{schedule.l2_group}")
    if problem.shape is not None:
        parts.append(f"{problem.shape.m}x{problem.shape.n}x{problem.shape.k}")
    return "_".join(parts)


def tile_counts(spec: Gemm, shape: Shape) -> tuple[int, int, int]:
    """Tiles of ``shape`` along M, N and K; the last of each may reach past the edge."""
    return tuple(  # type: ignore[return-value]
        -(-extent // block)
        for extent, block in zip((shape.m, shape.n, shape.k), (spec.tile.m, spec.tile.n, spec.tile.k), strict=True)
    )


def _operand(spec: Gemm, cost: Budget) -> OperandPlan:
    element_bytes = spec.problem.a.bytes
    return OperandPlan(
        element_bytes=element_bytes,
        atom_bytes=cost.atom_bytes,
        atom_elems=cost.atom_bytes // element_bytes,
        atoms=cost.atoms_per_row,
        stage_a_bytes=cost.stage_a_bytes,
        stage_b_bytes=cost.stage_b_bytes,
        tx_bytes=cost.tx_bytes,
        loads_per_stage=2 * cost.atoms_per_row,
    )


def _smem(spec: Gemm, cost: Budget, parts: MmaParts) -> SmemPlan:
    depth = spec.pipeline.depth
    stages = "1 stage" if depth == 1 else f"{depth} stages"
    members = (
        ("a", depth * cost.stage_a_bytes, SMEM_ALIGN_BYTES, f"A, {stages} of {cost.stage_a_bytes:,} bytes"),
        ("b", depth * cost.stage_b_bytes, SMEM_ALIGN_BYTES, f"B, {stages} of {cost.stage_b_bytes:,} bytes"),
        ("d", cost.staging_bytes, SMEM_ALIGN_BYTES, "D on its way to the TMA store"),
        ("full", depth * MBARRIER_BYTES, MBARRIER_BYTES, "mbarriers: a stage is loaded"),
        *parts.smem_members,
    )
    regions = []
    offset = 0
    for name, size, align, holds in members:
        offset = -(-offset // align) * align
        regions.append(SmemRegion(name=name, offset=offset, bytes=size, align=align, holds=holds))
        offset += size
    assert -(-offset // SMEM_ALIGN_BYTES) * SMEM_ALIGN_BYTES == cost.smem_bytes
    return SmemPlan(bytes=cost.smem_bytes, regions=tuple(regions))


def _barriers(spec: Gemm, cost: Budget, smem: SmemPlan, parts: MmaParts) -> tuple[Barrier, ...]:
    offsets = {region.name: region.offset for region in smem.regions}
    full = Barrier(
        name="full",
        offset=offsets["full"],
        count=spec.pipeline.depth,
        arrivals=1,
        tx_bytes=cost.tx_bytes,
        arrives="the elected thread, with expect_tx",
        waits=parts.full_waits,
        readable="A and B" if spec.pipeline.policy is Policy.SERIAL else "A and B of the stage",
        reusable="-",
    )
    return (full, *(replace(barrier, offset=offsets[barrier.name]) for barrier in parts.barriers))


def _tensor_maps(spec: Gemm, cost: Budget, epilogue: EpiloguePlan) -> tuple[TensorMapPlan, ...]:
    problem, tile = spec.problem, spec.tile

    def load_map(name: str, operand: str, rows: str, block_rows: int) -> TensorMapPlan:
        dtype = problem.a if operand == "A" else problem.b
        return TensorMapPlan(
            name=f"map_{name}",
            operand=operand,
            dtype=dtype,
            dims=("k", rows),
            strides=(f"ld{name} * {dtype.bytes}",),
            box=(cost.atom_bytes // dtype.bytes, block_rows),
            element_strides=(1, 1),
            swizzle_bytes=cost.atom_bytes,
            l2_promotion_bytes=L2_PROMOTION_BYTES,
            copies=f"{cost.atoms_per_row} per stage",
        )

    return (
        load_map("a", "A", "m", tile.m),
        load_map("b", "B", "n", tile.n),
        TensorMapPlan(
            name="map_d",
            operand="D",
            dtype=problem.d,
            dims=("n_whole", "m") if epilogue.ragged else ("n", "m"),
            strides=(f"ldd * {problem.d.bytes}",),
            box=(cost.d_box_bytes // problem.d.bytes, tile.m),
            element_strides=(1, 1),
            swizzle_bytes=cost.d_box_bytes if cost.d_box_bytes > 16 else 0,
            l2_promotion_bytes=L2_PROMOTION_BYTES,
            copies=f"{cost.d_boxes} per tile",
        ),
    )


def _epilogue(spec: Gemm, cost: Budget, parts: MmaParts) -> EpiloguePlan:
    chunk_cols = TMA_CHUNK_BYTES // spec.problem.d.bytes
    return EpiloguePlan(
        d_type=spec.problem.d,
        box_bytes=cost.d_box_bytes,
        box_cols=cost.d_box_bytes // spec.problem.d.bytes,
        boxes=cost.d_boxes,
        boxes_per_pass=cost.boxes_per_pass,
        passes=cost.passes,
        staging_bytes=cost.staging_bytes,
        staging_row_bytes=STAGING_ROW_BYTES,
        # The XOR takes address bits 7 and up: rows of 128 bytes count one by one, narrower ones in pairs or fours.
        swizzle_row_shift={128: 0, 64: 1, 32: 2, 16: 0}[cost.d_box_bytes],
        barrier_id=EPILOGUE_BARRIER_ID,
        barrier_threads=parts.threads,
        chunk_cols=chunk_cols,
        ragged=spec.problem.shape is None or spec.problem.shape.n % chunk_cols != 0,
    )


def _schedule(spec: Gemm, arch: Arch) -> SchedulePlan:
    if not spec.schedule.persistent:
        return SchedulePlan(persistent=False, ctas=0, l2_group=0)
    ctas = arch.sm_count if spec.schedule.ctas is None else spec.schedule.ctas
    return SchedulePlan(persistent=True, ctas=ctas, l2_group=spec.schedule.l2_group)


def _launch(
    spec: Gemm, name: str, cost: Budget, schedule: SchedulePlan, parts: MmaParts, epilogue: EpiloguePlan
) -> LaunchPlan:
    maps = tuple(Parameter(f"map_{x}", "CUtensorMap", f"map_{x}") for x in "abd")
    counted = "mnk" if schedule.persistent else "k"
    counts = tuple(Parameter(f"problem.{x}_tiles", "uint32_t", f"{x}_tiles") for x in counted)
    edge = (
        Parameter("edge.d", f"uint{8 * spec.problem.d.bytes}_t*", "d"),
        Parameter("edge.ldd", "int64_t", "ldd"),
        Parameter("edge.m", "uint32_t", "m"),
        Parameter("edge.first_column", "uint32_t", "n_first"),
        Parameter("edge.columns", "uint32_t", "n_edge"),
    )
    grid = (
        (f"min(m_tiles * n_tiles, {schedule.ctas})", "1", "1") if schedule.persistent else ("m_tiles", "n_tiles", "1")
    )
    return LaunchPlan(
        kernel=name,
        grid=grid,
        block=(parts.threads, 1, 1),
        cluster=(spec.cluster.m, spec.cluster.n, 1),
        smem_bytes=cost.smem_bytes,
        parameters=maps + (counts if spec.problem.shape is None else ()) + (edge if epilogue.ragged else ()),
    )
