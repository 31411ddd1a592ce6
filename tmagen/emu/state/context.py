# SPDX-License-Identifier: Apache-2.0
"""What the CTAs of a launch share: what is run, how, on which memory, and which clusters are still to come."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tmagen.emu.launch import Launch
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.policy.choices import lowest
from tmagen.emu.policy.policy import Policy
from tmagen.emu.state.endless import MAX_ROUNDS
from tmagen.emu.tensormap import TensorMap

if TYPE_CHECKING:
    from tmagen.emu.compile import Program

SM_SHARED_BYTES = 228 << 10
SM_THREADS = 2048
"""What an SM of sm_90 and sm_100 has for its CTAs (CUDA C++ Programming Guide, "Compute Capabilities")."""


@dataclass
class Context:
    """What the CTAs of a launch share."""

    program: Program
    launch: Launch
    memory: GlobalMemory
    policy: Policy
    seed: int
    symbols: dict[str, int]
    maps: dict[int, TensorMap] = field(default_factory=dict)  # parameters, by address
    made: dict[bytes, TensorMap] = field(default_factory=dict)  # others, by their bytes
    listener: Any = None
    session: Any = None  # of a checked run
    observation: Any = None  # of a run that is traced or timed: makes the observer of each cluster
    sm_count: int = 148
    max_rounds: int = MAX_ROUNDS
    hardware_sums: bool = False  # whether products are summed as an H200 does
    next_cluster: Callable[[int], int | None] | None = None  # one of those not yet launched, by its place among them
    clusters_left: Callable[[], int] = lambda: 1  # how many there are; 1 where it takes asking
    _asked: int = 0
    _random: random.Random | None = None
    any_leader: bool = False  # whether elect.sync may take another lane than the lowest
    _leaders: dict[int, int] = field(default_factory=dict)  # of elect.sync, by membermask
    fill: int = 0xFF  # the byte that memory holds which nobody has written
    registers: list[Any] = field(default_factory=list)  # what those hold that nobody has written

    @cached_property
    def shares_sm(self) -> bool:
        """Whether an SM has room for two CTAs of the launch, so that one may find tensor memory of the other's."""
        x, y, z = self.launch.block
        return 2 * self.shared_end <= SM_SHARED_BYTES and 2 * x * y * z <= SM_THREADS

    def take_cluster(self) -> int | None:
        """Cancel the launch of a cluster; its number, or None: a request may fail at any time."""
        self._asked += 1
        if self._random is None:
            self._random = random.Random(f"{self.seed} clusters")
        if self.next_cluster is None or not (left := self.clusters_left()):
            return None
        which = self.policy.clusters(self._random, self._asked, left)
        return None if which is None else self.next_cluster(which)

    def leader(self, mask: int) -> int:
        """The lane that elect.sync takes of a membermask: the lowest, unless any may be taken."""
        found = self._leaders.get(mask)
        if found is None:
            choose = self.policy.leader if self.any_leader else lowest
            found = self._leaders[mask] = choose(mask, self.seed)
        return found

    @property
    def shared_end(self) -> int:
        return self.program.dynamic_base + self.launch.dynamic_smem_bytes
