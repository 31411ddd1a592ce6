# SPDX-License-Identifier: Apache-2.0
"""Holding one warp, or one CTA of a cluster, back for as long as anything else can go on."""

from __future__ import annotations

from collections import deque
from typing import Any

from tmagen.emu.policy.policy import victims
from tmagen.emu.policy.schedules import Favouring
from tmagen.emu.state.fragments import Warp


class Starving(Favouring):
    """The victim has a turn when nobody else can run and nothing is under way. The seed names it: warps by their index
    in each CTA, then the CTAs of the cluster by rank.
    """

    def __init__(self, cluster: Any, seed: int) -> None:
        super().__init__(cluster, seed)
        self._number = seed % victims(cluster.context.launch)

    def place(self, warp: Warp) -> int:
        cta = warp.cta
        held = warp.index == self._number if self._number < cta.nwarps else cta.rank == self._number - cta.nwarps
        return 1 if held else 0

    def turns(self, queue: deque[Warp]) -> int:
        # What is under way is over before the victim runs.
        while all(self.place(warp) for warp in queue) and self.cluster.step():
            pass
        return super().turns(queue)
