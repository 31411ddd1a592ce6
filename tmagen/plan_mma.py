# SPDX-License-Identifier: Apache-2.0
"""What a plan takes from the kind of MMA: the instruction, who issues it, how it completes, where the sum is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tmagen.arch import Arch
from tmagen.budget import MBARRIER_BYTES, TMEM_ADDRESS_BYTES, Budget
from tmagen.descriptors import instr_descriptor, smem_descriptor, wgmma_smem_descriptor
from tmagen.ir import Gemm, Policy
from tmagen.plan_types import Barrier, MmaPlan, Role

WARPGROUP_THREADS = 128
MAIN_LOOP_BARRIER_ID = 2  # named barrier; 0 is __syncthreads() and 1 the epilogue's

Member = tuple[str, int, int, str]
"""A member of the shared storage: name, bytes, alignment, what it holds."""


@dataclass(frozen=True, slots=True)
class MmaParts:
    """What one kind of MMA adds to a plan. Offsets of its barriers are filled in by the plan."""

    mma: MmaPlan
    threads: int
    roles: tuple[Role, ...]
    full_waits: str  # who waits for a loaded stage
    smem_members: tuple[Member, ...]
    barriers: tuple[Barrier, ...]


def mma_parts(spec: Gemm, arch: Arch, cost: Budget) -> MmaParts:
    """The parts for the MMA of ``arch``."""
    return _KINDS[arch.mma_kind](spec, arch, cost)


def _tcgen05(spec: Gemm, arch: Arch, cost: Budget) -> MmaParts:
    problem, tile = spec.problem, spec.tile
    mma = MmaPlan(
        instruction="tcgen05.mma.cta_group::1.kind::f16",
        m=tile.m,
        n=tile.n,
        barrier_id=0,
        smem_descriptor=smem_descriptor(cost.atom_bytes),
        instr_descriptor=instr_descriptor(problem.a, problem.b, problem.acc, tile.m, tile.n),
        **_k_steps(spec, arch, cost),
    )
    mma_done = Barrier(
        name="mma_done",
        offset=0,
        count=1,
        arrivals=1,
        tx_bytes=0,
        arrives="tcgen05.commit",
        waits="the same thread, after each K tile",
        readable="the accumulator in TMEM",
        reusable="A and B" if spec.pipeline.policy is Policy.SERIAL else "A and B of the stage",
    )
    return MmaParts(
        mma=mma,
        threads=WARPGROUP_THREADS,
        roles=(
            Role("load", "0", 1, "the elected thread starts the TMA loads"),
            Role("MMA", "0", 1, "the same thread issues tcgen05.mma and waits for it"),
            Role("epilogue", "0-3", WARPGROUP_THREADS, "TMEM -> registers -> shared memory, a row a thread"),
            Role("store", "0", 1, "the elected thread starts the TMA stores"),
            Role("TMEM", "0", 32, "the whole warp allocates and frees"),
        ),
        full_waits="the same thread, before the MMA",
        smem_members=(
            ("mma_done", MBARRIER_BYTES, MBARRIER_BYTES, "mbarrier: the MMAs of a K tile are complete"),
            ("tmem_base", TMEM_ADDRESS_BYTES, TMEM_ADDRESS_BYTES, "where tcgen05.alloc writes the TMEM address"),
        ),
        barriers=(mma_done,),
    )


def _wgmma(spec: Gemm, arch: Arch, cost: Budget) -> MmaParts:
    tile = spec.tile
    warpgroups = 1 if tile.m * tile.n <= arch.accumulator_elems else tile.m // arch.mma_m
    threads = warpgroups * WARPGROUP_THREADS
    warps = f"0-{threads // 32 - 1}"
    dtype = spec.problem.a.value
    mma = MmaPlan(
        instruction=f"wgmma.mma_async.sync.aligned.m64n{tile.n}k{arch.mma_k_bytes // spec.problem.a.bytes}"
        f".f32.{dtype}.{dtype}",
        m=arch.mma_m,
        n=tile.n,
        barrier_id=MAIN_LOOP_BARRIER_ID,
        smem_descriptor=wgmma_smem_descriptor(cost.atom_bytes),
        instr_descriptor=None,
        **_k_steps(spec, arch, cost),
    )
    return MmaParts(
        mma=mma,
        threads=threads,
        roles=(
            Role("load", "0", 1, "the elected thread starts the TMA loads"),
            Role("MMA", warps, threads, "each warpgroup multiplies its rows and waits for it"),
            Role("epilogue", warps, threads, "registers -> shared memory, as the fragments lie"),
            Role("store", "0", 1, "the elected thread starts the TMA stores"),
        ),
        full_waits="all threads, before the MMA",
        smem_members=(),
        barriers=(),
    )


def _k_steps(spec: Gemm, arch: Arch, cost: Budget) -> dict[str, int]:
    steps_per_atom = cost.atom_bytes // arch.mma_k_bytes
    return {
        "k": arch.mma_k_bytes // spec.problem.a.bytes,
        "steps_per_atom": steps_per_atom,
        "steps_per_stage": steps_per_atom * cost.atoms_per_row,
        "k_step_units": arch.mma_k_bytes >> 4,
    }


_KINDS: Mapping[str, Callable[[Gemm, Arch, Budget], MmaParts]] = MappingProxyType(
    {"tcgen05": _tcgen05, "wgmma": _wgmma}
)
