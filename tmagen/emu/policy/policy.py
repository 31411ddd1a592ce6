# SPDX-License-Identifier: Apache-2.0
"""An execution policy: one choice of everything that PTX leaves open about a run.

Each part is a value of its own, so that a policy is a row of the catalog and not a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tmagen.emu.policy.choices import Clusters, Leader, TensorMemory, all_given, from_the_first, lowest

if TYPE_CHECKING:
    from tmagen.emu.launch import Launch
    from tmagen.emu.policy.schedules import Schedule
    from tmagen.emu.policy.waits import Refusals
    from tmagen.emu.state.engine import Engine

SEEDS = 8
"""Runs of a policy that draws lots, where all policies are tried."""


class Seeds(Enum):
    """What a policy's seed is."""

    NONE = "none"  # every run is the same
    DRAWN = "drawn"  # it starts the draw
    VICTIM = "victim"  # it names the warp or the CTA that is held back


@dataclass(frozen=True)
class Policy:
    """How a run goes where PTX leaves it open."""

    name: str
    what: str  # for documents: how a run goes
    finds: str  # for documents: which mistakes show
    completion: type[Engine]  # when asynchronous operations take effect
    schedule: type[Schedule] | None = None  # which warps run; None: each in turn
    waits: type[Refusals] | None = None  # which looks at an mbarrier are answered with false
    spoils: bool = False  # memory that nobody may read, from the start on, holds what the seed draws
    leader: Leader = lowest  # of elect.sync
    tensor_memory: TensorMemory = from_the_first  # where a CTA's first allocation is
    clusters: Clusters = all_given  # what clusterlaunchcontrol.try_cancel gives
    seeds: Seeds = Seeds.NONE

    @property
    def draws(self) -> bool:
        """Whether a run draws lots, so that it may come back to a state and go on in another way."""
        return self.seeds is Seeds.DRAWN

    def seeds_from(self, first: int, launch: Launch) -> tuple[int, ...]:
        """The seeds to try a launch with, so that all that the policy can find is found: `first` alone where runs do
        not differ, SEEDS of them where lots are drawn, and one for each warp and CTA that may be held back.
        """
        if self.seeds is Seeds.NONE:
            return (first,)
        return tuple(range(first, first + (SEEDS if self.seeds is Seeds.DRAWN else victims(launch))))


def victims(launch: Launch) -> int:
    """How many there are that one may hold back: the warps of a CTA, and the CTAs of a cluster of several."""
    x, y, z = launch.block
    cx, cy, cz = launch.cluster
    size = cx * cy * cz
    return -(-x * y * z // 32) + (size if size > 1 else 0)
