# SPDX-License-Identifier: Apache-2.0
"""What a spec costs on a target: bytes of shared memory and columns of tensor memory.

The shared memory of a block is, in this order and each part aligned to 1,024 bytes: the ring (``depth`` stages of an A
tile and a B tile), the staging buffer of the epilogue, and the barriers with the word that receives the TMEM address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tmagen.arch import Arch, arch_of
from tmagen.ir import Gemm

SMEM_ALIGN_BYTES = 1_024
"""The 128-byte swizzle repeats every 8 rows of 128 bytes, and a tile has to start where the pattern starts (PTX ISA
"Swizzling Modes", "Strides" of the matrix descriptor): no part of the map is aligned to less."""

OPERAND_ATOM_BYTES = 128
"""The widest swizzle atom: a longer row of A or B is several atoms, each a box and a tile of its own."""

D_BOX_BYTES = (128, 64, 32, 16)
"""Rows of one TMA store box, widest first: each is a swizzle mode but the last, which is one unit of 16 bytes and has
nothing to swizzle. The innermost size of a swizzled box may not be wider than its mode (PTX ISA "Swizzling Modes")."""

STAGING_ROW_BYTES = 256
"""The staging buffer holds at most this much of each row of the D tile: 32,768 bytes for 128 rows."""

MBARRIER_BYTES = 8
"""Size of an mbarrier object (PTX ISA "Size and alignment of mbarrier object")."""

TMEM_ADDRESS_BYTES = 4
"""Size of the word in shared memory to which tcgen05.alloc writes the address."""


@dataclass(frozen=True)
class Budget:
    """The cost of one spec. Everything that the shared-memory map and the copies need is here once."""

    atom_bytes: int  # one row of an A or B swizzle atom, bytes: 64 or 128
    atoms_per_row: int  # swizzle atoms side by side in one row of an A or B tile
    stage_a_bytes: int  # the A tile of one stage
    stage_b_bytes: int  # the B tile of one stage
    tx_bytes: int  # what TMA writes into one stage, and its barrier expects
    ring_bytes: int  # all stages

    d_box_bytes: int  # one row of a TMA store box of D: 128, 64 or 32
    d_boxes: int  # boxes side by side in one row of the D tile
    boxes_per_pass: int  # boxes that the staging buffer holds
    passes: int  # column passes of the epilogue; the last may have fewer boxes
    staging_bytes: int  # the staging buffer

    barriers: int  # mbarriers: one for each stage, one for the MMA
    barrier_bytes: int  # barriers and TMEM address, rounded up
    smem_bytes: int  # dynamic shared memory of the block
    tmem_columns: int  # columns to allocate: a power of two


def round_up(value: int, step: int) -> int:
    """The least multiple of ``step`` that is no less than ``value``."""
    return -(-value // step) * step


def power_of_two_at_least(value: int) -> int:
    """The least power of two that is no less than ``value``, which is positive."""
    return 1 << (value - 1).bit_length()


def tmem_columns_of(spec: Gemm, arch: Arch) -> int:
    """Columns that the accumulator needs: one 32-bit column for each column of the tile (PTX ISA "Tensor Memory
    Allocation": powers of two, at least 32)."""
    if arch.tmem_columns == 0:
        return 0  # the accumulator is in registers
    return max(arch.tmem_columns_min, power_of_two_at_least(spec.tile.n))


def _barriers(depth: int, arch: Arch) -> int:
    """One mbarrier for each stage that TMA fills, and one for an MMA that completes on an mbarrier."""
    return depth + (arch.tmem_columns > 0)


def _barrier_bytes(depth: int, arch: Arch) -> int:
    tmem_address_bytes = TMEM_ADDRESS_BYTES if arch.tmem_columns else 0
    return round_up(_barriers(depth, arch) * MBARRIER_BYTES + tmem_address_bytes, SMEM_ALIGN_BYTES)


def budget_of(spec: Gemm, arch: Arch | None = None) -> Budget:
    """The cost of ``spec`` on ``arch`` (default: its own target), whether or not it fits.

    Raises ValueError for a tile that has no such layout: a row of A or B that is neither within one swizzle atom nor
    whole atoms, or a row of D that no box divides. :func:`tmagen.legality.check` refuses these first.
    """
    arch = arch or arch_of(spec.target)
    tile, problem, depth = spec.tile, spec.problem, spec.pipeline.depth

    row_bytes = tile.k * problem.a.bytes
    atom_bytes = min(row_bytes, OPERAND_ATOM_BYTES)
    if row_bytes % atom_bytes:
        raise ValueError(f"a row of {row_bytes} bytes is no whole number of {atom_bytes}-byte swizzle atoms")
    stage_a_bytes = tile.m * row_bytes
    stage_b_bytes = tile.n * tile.k * problem.b.bytes
    # The stages of one operand lie densely: whole repeats of its swizzle, the narrowest 512 bytes for 64-byte rows.
    ring_bytes = sum(round_up(depth * stage, SMEM_ALIGN_BYTES) for stage in (stage_a_bytes, stage_b_bytes))

    d_row_bytes = tile.n * problem.d.bytes
    d_box_bytes = next((width for width in D_BOX_BYTES if d_row_bytes % width == 0), None)
    if d_box_bytes is None:
        raise ValueError(f"no TMA store box divides a row of {d_row_bytes} bytes")
    d_boxes = d_row_bytes // d_box_bytes
    boxes_per_pass = min(d_boxes, STAGING_ROW_BYTES // d_box_bytes)
    staging_bytes = boxes_per_pass * d_box_bytes * tile.m

    barrier_bytes = _barrier_bytes(depth, arch)
    return Budget(
        atom_bytes=atom_bytes,
        atoms_per_row=row_bytes // atom_bytes,
        stage_a_bytes=stage_a_bytes,
        stage_b_bytes=stage_b_bytes,
        tx_bytes=stage_a_bytes + stage_b_bytes,
        ring_bytes=ring_bytes,
        d_box_bytes=d_box_bytes,
        d_boxes=d_boxes,
        boxes_per_pass=boxes_per_pass,
        passes=-(-d_boxes // boxes_per_pass),
        staging_bytes=staging_bytes,
        barriers=_barriers(depth, arch),
        barrier_bytes=barrier_bytes,
        smem_bytes=ring_bytes + staging_bytes + barrier_bytes,
        tmem_columns=tmem_columns_of(spec, arch),
    )


def _with_depth(spec: Gemm, depth: int) -> Gemm:
    return replace(spec, pipeline=replace(spec.pipeline, depth=depth))


def deepest_pipeline(spec: Gemm, arch: Arch | None = None) -> int:
    """The most stages of this tile that fit into the shared memory of a block; 0 if not even one does."""
    arch = arch or arch_of(spec.target)
    cost = budget_of(spec, arch)
    room = arch.smem_per_block_bytes - cost.staging_bytes
    depth = max(0, room // cost.tx_bytes)
    while depth > 0 and budget_of(_with_depth(spec, depth), arch).smem_bytes > arch.smem_per_block_bytes:
        depth -= 1
    return depth


def resident_ctas(cost: Budget, arch: Arch) -> int:
    """CTAs that one SM holds at a time as far as shared memory and tensor memory go; registers may allow fewer."""
    by_smem = arch.smem_per_sm_bytes // (cost.smem_bytes + arch.smem_reserved_bytes)
    return min(by_smem, arch.tmem_columns // cost.tmem_columns) if cost.tmem_columns else by_smem
