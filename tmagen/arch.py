# SPDX-License-Identifier: Apache-2.0
"""What each target offers: one frozen row per target.

Whatever differs from one target to the next is a column here, so that no rule asks for a target by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tmagen.ir import DType, Target


@dataclass(frozen=True)
class Arch:
    """The limits of one target. Sizes of shared memory are what CUDA reports for the device."""

    target: Target
    compute_capability: tuple[int, int]
    nvcc_arch: str  # the virtual architecture, for `-gencode arch=`
    nvcc_code: str  # the real architecture, for `-gencode code=`
    cuda_arch: int  # the value of __CUDA_ARCH__
    feature_macro: str  # what nvcc defines for this architecture alone, its `a` features included
    sm_count: int  # SMs of the part that the target is named for; the default grid of a persistent kernel

    smem_per_block_bytes: int  # dynamic shared memory that one block may opt in to
    smem_per_sm_bytes: int  # shared memory of one SM, the reserved part of each block included
    smem_reserved_bytes: int  # shared memory of each block that the system keeps
    registers_per_thread: int
    registers_per_sm: int
    threads_per_block: int
    grid_x: int  # the largest grid, blocks
    grid_y: int

    tmem_columns: int  # columns of 32-bit cells of one SM (PTX ISA "Tensor Memory"); 0 where there is none
    tmem_lanes: int
    tmem_columns_min: int  # the least that tcgen05.alloc gives; the rest are the powers of two above it

    # Legal sets of the dense f16 and bf16 MMA (PTX ISA "Matrix shape" and "Data types" of tcgen05.mma kind::f16).
    block_m: tuple[int, ...]
    block_n: tuple[int, ...]
    block_k: tuple[int, ...]  # whole 64-byte or 128-byte swizzle atoms of 16-bit elements
    mma_m: int  # rows of one MMA instruction
    mma_kind: str  # which instruction: it chooses the partials that issue it, and its descriptors
    accumulator_elems: int  # of a warpgroup's tile, where the accumulator is in registers: block_m x block_n at most
    mma_k_bytes: int  # bytes of one operand row that one MMA instruction reads
    operands: tuple[DType, ...]  # A and B
    accumulators: tuple[DType, ...]
    outputs: tuple[DType, ...]
    clusters: tuple[tuple[int, int], ...]  # CTAs along M and N


ARCHES: Mapping[Target, Arch] = MappingProxyType(
    {
        Target.SM_90A: Arch(
            target=Target.SM_90A,
            compute_capability=(9, 0),
            nvcc_arch="compute_90a",
            nvcc_code="sm_90a",
            cuda_arch=900,
            feature_macro="__CUDA_ARCH_FEAT_SM90_ALL",
            sm_count=132,
            smem_per_block_bytes=232_448,
            smem_per_sm_bytes=233_472,
            smem_reserved_bytes=1_024,
            registers_per_thread=255,
            registers_per_sm=65_536,
            threads_per_block=1_024,
            grid_x=2**31 - 1,
            grid_y=65_535,
            tmem_columns=0,
            tmem_lanes=0,
            tmem_columns_min=0,
            block_m=(64, 128),
            block_n=tuple(range(8, 257, 8)),
            block_k=(32, 64, 128),
            mma_m=64,
            mma_kind="wgmma",
            accumulator_elems=128 * 128,
            mma_k_bytes=32,
            operands=(DType.F16, DType.BF16),
            accumulators=(DType.F32,),
            outputs=(DType.F16, DType.BF16, DType.F32),
            clusters=((1, 1),),
        ),
        Target.SM_100A: Arch(
            target=Target.SM_100A,
            compute_capability=(10, 0),
            nvcc_arch="compute_100a",
            nvcc_code="sm_100a",
            cuda_arch=1000,
            feature_macro="__CUDA_ARCH_FEAT_SM100_ALL",
            sm_count=148,
            smem_per_block_bytes=232_448,
            smem_per_sm_bytes=233_472,
            smem_reserved_bytes=1_024,
            registers_per_thread=255,
            registers_per_sm=65_536,
            threads_per_block=1_024,
            grid_x=2**31 - 1,
            grid_y=65_535,
            tmem_columns=512,
            tmem_lanes=128,
            tmem_columns_min=32,
            block_m=(128,),
            block_n=tuple(range(16, 257, 16)),
            block_k=(32, 64, 128),
            mma_m=128,
            mma_kind="tcgen05",
            accumulator_elems=128 * 256,
            mma_k_bytes=32,
            operands=(DType.F16, DType.BF16),
            accumulators=(DType.F32,),
            outputs=(DType.F16, DType.BF16, DType.F32),
            clusters=((1, 1),),
        ),
    }
)


def arch_of(target: Target) -> Arch:
    """The row of ``target``."""
    return ARCHES[target]
