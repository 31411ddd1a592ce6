# SPDX-License-Identifier: Apache-2.0
"""The barrier of a cluster (PTX ISA, "barrier.cluster")."""

from __future__ import annotations

from typing import Any

from tmagen.emu.errors import Fault
from tmagen.emu.state.fragments import BLOCK, WAIT, Fragment, Warp


class ClusterBarrier:
    """barrier.cluster: every thread of the cluster arrives, then waits. Threads that have exited count as arrived."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.arrived: dict[Warp, int] = {}  # lanes that arrived in this phase
        self.owing: dict[Warp, int] = {}  # lanes that arrived and have not waited yet
        self.waiters: list[Fragment] = []

    def arrive(self, fragment: Fragment) -> None:
        """Raises Fault for a thread that has not waited since it last arrived."""
        warp, mask = fragment.warp, fragment.mask
        if self.owing.get(warp, 0) & mask:
            raise Fault("barrier.cluster.arrive by a thread that did not wait since its last one", rule="CB-01")
        self.arrived[warp] = self.arrived.get(warp, 0) | mask
        self.owing[warp] = self.owing.get(warp, 0) | mask
        self.recheck()

    def recheck(self) -> None:
        """Complete the phase where every live thread has arrived."""
        if not self.arrived:
            return
        for cta in self.cluster.ctas:
            for warp in cta.warps:
                if warp.live & ~self.arrived.get(warp, 0):
                    return
        self.arrived.clear()
        waiters, self.waiters = self.waiters, []
        for fragment in waiters:
            self.owing[fragment.warp] &= ~fragment.mask
            fragment.wake()

    def missing(self) -> list[str]:
        """Who the phase waits for."""
        return [
            f"CTA rank {cta.rank} warp {warp.index}"
            for cta in self.cluster.ctas
            for warp in cta.warps
            if warp.live & ~self.arrived.get(warp, 0)
        ]


class ClusterWait:
    """Why a fragment is blocked: it waits at the cluster's barrier."""

    def __init__(self, barrier: ClusterBarrier, number: int) -> None:
        self.barrier = barrier
        self.number = number

    def describe(self, cta: Any) -> str:
        missing = self.barrier.missing()
        shown = ", ".join(missing[:6]) + (", ..." if len(missing) > 6 else "")
        return f"waits at the cluster's barrier for {shown}"


def cluster_arrive(fragment: Fragment, cta: Any) -> None:
    """barrier.cluster.arrive."""
    cta.cluster.barrier.arrive(fragment)


def cluster_wait(fragment: Fragment, cta: Any, next_block: int, number: int) -> int:
    """barrier.cluster.wait: block until the phase that the threads arrived in is complete."""
    barrier: ClusterBarrier = cta.cluster.barrier
    warp, mask = fragment.warp, fragment.mask
    if mask & ~barrier.owing.get(warp, 0):
        raise Fault("barrier.cluster.wait by a thread that has not arrived", rule="CB-01")
    if not barrier.arrived.get(warp, 0) & mask:
        barrier.owing[warp] &= ~mask
        return next_block
    fragment.pc = next_block
    fragment.state = WAIT
    fragment.wait = ClusterWait(barrier, number)
    barrier.waiters.append(fragment)
    return BLOCK
