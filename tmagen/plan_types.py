# SPDX-License-Identifier: Apache-2.0
"""The parts of a plan: frozen values, all of them plain numbers and words.

Whatever two consumers need (the emitted source, its host part, the emulator's tests, ``tmagen explain``) stands here
once. Sizes carry their unit in the name: bytes, elems or cols.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.descriptors import Descriptor
from tmagen.ir import DType


@dataclass(frozen=True, slots=True)
class OperandPlan:
    """One stage of A and B in shared memory."""

    element_bytes: int
    atom_bytes: int  # one row of a swizzle atom: the width of a TMA box, and of its swizzle
    atom_elems: int
    atoms: int  # atoms side by side that cover block_k
    stage_a_bytes: int
    stage_b_bytes: int
    tx_bytes: int  # delivered to the stage's barrier by all loads of one stage
    loads_per_stage: int


@dataclass(frozen=True, slots=True)
class SmemRegion:
    """A member of the shared storage. Offsets are from the start of dynamic shared memory."""

    name: str
    offset: int  # bytes
    bytes: int  # all stages
    align: int  # bytes
    holds: str


@dataclass(frozen=True, slots=True)
class SmemPlan:
    """The map of dynamic shared memory."""

    bytes: int
    regions: tuple[SmemRegion, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """An mbarrier, or an array with one per stage."""

    name: str
    offset: int  # bytes from the start of dynamic shared memory
    count: int  # barriers in the array
    arrivals: int  # the initial count: arrivals that complete a phase
    tx_bytes: int  # bytes that a phase waits for besides
    arrives: str  # who arrives
    waits: str  # who waits
    readable: str  # what may be read after the wait
    reusable: str  # what may be overwritten after the wait


@dataclass(frozen=True, slots=True)
class Role:
    """What a part of the CTA does."""

    name: str
    warps: str
    threads: int
    does: str


@dataclass(frozen=True, slots=True)
class TensorMapPlan:
    """The arguments of cuTensorMapEncodeTiled, dimension 0 innermost.

    ``dims`` and ``strides`` are expressions over m, n, k, lda, ldb, ldd; :func:`tmagen.bind.bind` gives the numbers.
    """

    name: str  # the kernel's parameter
    operand: str  # A, B or D
    dtype: DType
    dims: tuple[str, ...]  # elements
    strides: tuple[str, ...]  # bytes, of dimensions 1 and up
    box: tuple[int, ...]  # elements
    element_strides: tuple[int, ...]
    swizzle_bytes: int
    l2_promotion_bytes: int
    copies: str  # how many copies of such a box, and when


@dataclass(frozen=True, slots=True)
class MmaPlan:
    """The MMA instruction, and how it walks a stage."""

    instruction: str
    m: int
    n: int
    k: int  # elements of one instruction
    steps_per_atom: int  # instructions along K in one swizzle atom
    steps_per_stage: int
    k_step_units: int  # added to the start-address field from step to step, units of 16 bytes
    barrier_id: int  # named barrier of the main loop; 0 where it needs none
    smem_descriptor: Descriptor
    instr_descriptor: Descriptor | None  # None where the instruction itself says shapes and types


@dataclass(frozen=True, slots=True)
class TmemPlan:
    """Tensor memory."""

    columns: int  # allocated: a power of two
    used_columns: int  # columns of the accumulator
    lanes: int


@dataclass(frozen=True, slots=True)
class EpiloguePlan:
    """How D leaves: TMEM, registers, staging in shared memory, TMA store."""

    d_type: DType
    box_bytes: int  # one row of a store box, and its swizzle
    box_cols: int  # elements of that row
    boxes: int  # boxes in a row of the tile: TMA stores per tile
    boxes_per_pass: int
    passes: int
    staging_bytes: int
    staging_row_bytes: int  # of each row of the tile, at most
    swizzle_row_shift: int  # a row's XOR pattern is (row >> this) & (chunks in a row - 1)
    barrier_id: int  # named barrier
    barrier_threads: int
    chunk_cols: int  # elements of the 16 bytes that a TMA store writes whole
    ragged: bool  # rows of D may end inside such a chunk: its columns leave by ordinary stores


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """Which CTA computes which tiles."""

    persistent: bool
    ctas: int  # CTAs of a persistent grid at most; 0 when not persistent
    l2_group: int  # rows of tiles in a group


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter, in the order of the launch."""

    name: str
    type: str
    value: str  # a tensor map's name, or an expression over the tile counts


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How the kernel is launched."""

    kernel: str
    grid: tuple[str, str, str]  # expressions over m_tiles, n_tiles
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    smem_bytes: int
    parameters: tuple[Parameter, ...]

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]
