# SPDX-License-Identifier: Apache-2.0
"""Checks over a whole launch: what its CTAs share."""

from __future__ import annotations

from typing import Any

from tmagen.emu.checks.barriers import WatchedClusterBarrier
from tmagen.emu.checks.clocks import Clocks
from tmagen.emu.checks.finding import Collector, Finding
from tmagen.emu.checks.flags import Flags
from tmagen.emu.checks.global_memory import GlobalShadow
from tmagen.emu.checks.predecessor import Before
from tmagen.emu.checks.shadow import Parts
from tmagen.emu.checks.sites import sites_of
from tmagen.emu.checks.watch import FIRST_CAPACITY, Watch
from tmagen.emu.launch import Launch
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.tensormap import TensorMap
from tmagen.emu.tmem import COLUMNS, LANES


class Session:
    """One launch under observation."""

    def __init__(
        self, program: Any, launch: Launch, memory: GlobalMemory, shared_bytes: int, *, strict: bool
    ) -> None:
        self.program = program
        self.sites = sites_of(program)
        self.makes_maps = any(site.instruction.parts[0] == "tensormap" for site in self.sites)
        self.collector = Collector(strict=strict)
        self.shared_parts = Parts(-(-shared_bytes // 16) * 16)
        self.tensor_parts = Parts(LANES * COLUMNS)
        before = None if launch.predecessor is None else Before(launch.predecessor)
        self.flags = Flags()
        self.memory = GlobalShadow(memory, before, follows=program.uses_global_atomics)
        self.capacity = 0
        self._number = 0
        self._clocks = Clocks(FIRST_CAPACITY)
        self.mma_plans: dict[Any, Any] = {}
        self._kept: dict[int, TensorMap] = {}
        self._last: Watch | None = None

    def keep(self, tmap: TensorMap) -> None:
        self._kept[id(tmap)] = tmap

    def attach(self, cta: Any) -> None:
        """Watch a CTA that is about to run. Those of a cluster share their clocks."""
        if cta.rank == 0:
            self._number += 1
            self._clocks = Clocks(self.capacity or FIRST_CAPACITY)
            if self.memory.before is not None:
                self.memory.before.component = self._clocks.component("the grid before this one")
            if cta.cluster.size > 1:
                cta.cluster.barrier = WatchedClusterBarrier(cta.cluster, self._clocks)
        watch = self._last = Watch(self, cta, self._clocks, self._number)
        cta.watch = watch
        cta.named = watch.named
        cta.frames = 1

    def forked(self, process: int) -> None:
        """This process goes on alone; its CTAs have numbers of their own."""
        self.memory.process = process

    def ends(self) -> tuple[Finding, ...]:
        """All CTAs of the launch have ended."""
        self.memory.ends(self._last)
        return self.collector.findings()
