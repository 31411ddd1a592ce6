# SPDX-License-Identifier: Apache-2.0
"""How the K loop of one output tile walks the ring: stage, phases and refill of each K tile."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.ir import Policy
from tmagen.plan import Plan

Load = tuple[int, int]
"""A K tile, and the stage that it is loaded into."""


@dataclass(frozen=True, slots=True)
class KStep:
    """One turn of the K loop."""

    k: int  # the K tile that is multiplied
    stage: int  # where it lies
    full_phase: int  # parity of the wait for its bytes
    mma_phase: int  # parity of the wait for its MMAs
    loads: tuple[Load, ...]  # loads that this turn starts: serial before its waits, prefetch after them


@dataclass(frozen=True, slots=True)
class KLoop:
    """The K loop of the first output tile of a CTA."""

    prefetch: tuple[Load, ...]  # loads before the first turn
    steps: tuple[KStep, ...]
    next_stage: int  # where the ring stands for the CTA's next output tile
    next_full_phase: int
    next_mma_phase: int


def k_loop(plan: Plan, k_tiles: int) -> KLoop:
    """The K loop of ``plan`` over ``k_tiles`` tiles, from a fresh start: stage 0, both phases 0."""
    depth = plan.spec.pipeline.depth
    serial = plan.spec.pipeline.policy is Policy.SERIAL

    def loads(k: int) -> tuple[Load, ...]:
        if serial:
            return ((k, 0),)
        return ((k + depth, k % depth),) if k + depth < k_tiles else ()

    return KLoop(
        prefetch=() if serial else tuple((k, k) for k in range(min(depth, k_tiles))),
        steps=tuple(
            KStep(k=k, stage=k % depth, full_phase=k // depth % 2, mma_phase=k % 2, loads=loads(k))
            for k in range(k_tiles)
        ),
        next_stage=k_tiles % depth,
        next_full_phase=k_tiles // depth % 2,
        next_mma_phase=k_tiles % 2,
    )
