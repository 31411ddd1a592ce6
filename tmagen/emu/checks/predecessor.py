# SPDX-License-Identifier: Apache-2.0
"""The grid before a launch with programmatic dependent launch, as one more agent: it has ended for whoever is ordered
after a griddepcontrol.wait (PTX ISA, "griddepcontrol").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.finding import Finding, place_of
from tmagen.emu.checks.races import NOUNS
from tmagen.emu.checks.shadow import Access
from tmagen.emu.launch import Predecessor, Ranges

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch

_EDGE = "no griddepcontrol.wait is ordered before it"


class Before:
    """What the grid before may still touch. `component` is its clock in the cluster that runs: 1 when it has ended."""

    def __init__(self, predecessor: Predecessor) -> None:
        self.writes = predecessor.writes
        self.reads = predecessor.reads
        self.component = 0
        self.waited: set[int] = set()  # numbers of clusters in which somebody has waited

    def wait(self, watch: Watch, agents: Iterable[Lanes]) -> None:
        """griddepcontrol.wait by these lanes."""
        self.waited.add(watch.number)
        for agent in agents:
            agent.learn(self.component, 1, watch.clocks.capacity)

    def touch(
        self, watch: Watch, agent: Lanes, access: Access, places: Iterable[int], nbytes: int, *, storing: bool
    ) -> None:
        """An access to global memory, by lanes or by an operation that they issue: `nbytes` at each of `places`."""
        if agent.known[self.component]:
            return
        hit = [at for at in places if _within(self.writes, at, nbytes)]
        verb = "reads what the grid before this one may still write"
        if storing:
            verb = "overwrites what the grid before this one may still write"
            if not hit:
                hit = [at for at in places if _within(self.reads, at, nbytes)]
                verb = "overwrites what the grid before this one may still read"
        collector = watch.session.collector
        if not hit or collector.seen("GD-01", "E", access.site, None):
            return
        message = f"the {NOUNS[access.kind]} of {watch.thread(access)} {verb}"
        place = place_of(access.site.instruction, watch.name(access))
        where = f"global memory at {min(hit):#x}"
        hints = () if watch.number not in self.waited else (
            "GD-04: other threads have executed griddepcontrol.wait: it is for those that execute it, and for whom a "
            "barrier orders after them",
        )  # fmt: skip
        collector.add(Finding("GD-01", "E", message, place, None, where, _EDGE, hints), access.site, None)

    def ends(self, watch: Watch) -> None:
        """A CTA has ended. Who waits for this grid takes it that those before have ended too."""
        if watch.number not in self.waited:
            watch.exit_finding(
                "GD-05", "R",
                "the CTA ends and nobody in it has executed griddepcontrol.wait: a grid that waits for this one is not "
                "ordered after the one before",
            )  # fmt: skip


def _within(ranges: Ranges | None, address: int, nbytes: int) -> bool:
    return ranges is None or any(start < address + nbytes and address < start + size for start, size in ranges)
