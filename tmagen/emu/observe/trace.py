# SPDX-License-Identifier: Apache-2.0
"""What a trace holds: the records of the clusters that were asked for, and of the one in which the run ended early."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tmagen.emu.errors import EmulatorError
from tmagen.emu.launch import Dim3
from tmagen.emu.observe.observer import Observer
from tmagen.emu.observe.recorder import Arrow, Recorder, Slice
from tmagen.emu.timing.latency import Table

FIRST_CTAS = range(4)
"""The CTAs that are traced unless others are asked for, by their place in the grid, x fastest."""

MAX_SLICES = 200_000
"""Of a cluster; what comes later is left out."""


@dataclass(slots=True)
class CtaInfo:
    """A CTA of a record."""

    index: int  # in the grid, x fastest
    ctaid: Dim3
    rank: int
    dynamic_base: int
    whole: dict[int, int]  # warp -> the mask of all its lanes


@dataclass(slots=True)
class ClusterRecord:
    """What one cluster did."""

    ctas: tuple[CtaInfo, ...]
    slices: list[Slice]
    arrows: list[Arrow]
    end: int
    cut: bool  # at MAX_SLICES
    fault: tuple[str, ...] = ()  # the report of what ended the run in it


@dataclass(slots=True)
class Trace:
    """A run to be traced: pass it to :func:`tmagen.emu.run`, then :func:`tmagen.emu.observe.chrome.text` it.

    `ctas` are those to keep, by their place in the grid; the CTA in which a run ends early is kept too.
    """

    ctas: Collection[int] = FIRST_CTAS
    max_slices: int = MAX_SLICES
    records: list[ClusterRecord] = field(default_factory=list)
    kernel: str = ""
    completion: str = ""
    table: Table | None = None  # of a timed run; time is in steps otherwise


class Observation:
    """Makes the observer of each cluster of a launch, and takes what they have seen."""

    def __init__(self, table: Table | None, trace: Trace | None, jobs: int) -> None:
        self.table = table
        self.trace = trace
        self.process = 0
        self._cycles = mmap.mmap(-1, 16 * jobs)  # fewest and most of a CTA, of each process

    def of(self, cluster: Any) -> Observer:
        """The observer of a cluster that is about to run."""
        trace = self.trace
        return Observer(self.table, None if trace is None else Recorder(trace.max_slices))

    def ended(self, cluster: Any) -> None:
        """A cluster has run to its end."""
        observer: Observer = cluster.observer
        least, most = struct.unpack_from("<qq", self._cycles, 16 * self.process)
        least = min(least, observer.end) if least else observer.end
        struct.pack_into("<qq", self._cycles, 16 * self.process, least, max(most, observer.end))
        if self.trace is not None and any(index in self.trace.ctas for index in _indices(cluster)):
            self._keep(cluster, ())

    def failed(self, cluster: Any, error: EmulatorError | None) -> None:
        """The run ends in a cluster."""
        if self.trace is not None:
            text = "interrupted" if error is None else error.report().removeprefix("error: ")
            self._keep(cluster, tuple(text.splitlines()))

    def cycles(self) -> tuple[int, int]:
        """The fewest and the most cycles that a CTA took, in all processes."""
        found = struct.unpack(f"<{len(self._cycles) // 8}q", self._cycles[:])
        return min((n for n in found[::2] if n), default=0), max(found[1::2])

    def _keep(self, cluster: Any, fault: tuple[str, ...]) -> None:
        recorder = cluster.observer.recorder
        end = recorder.finish(cluster, cluster.observer.end)
        ctas = tuple(
            CtaInfo(index, cta.ctaid, cta.rank, cta.program.dynamic_base, _all_lanes(cta))
            for index, cta in zip(_indices(cluster), cluster.ctas, strict=True)
            if fault or self.trace is None or index in self.trace.ctas
        )
        assert self.trace is not None
        self.trace.records.append(ClusterRecord(ctas, recorder.slices, recorder.arrows, end, recorder.full, fault))


def _all_lanes(cta: Any) -> dict[int, int]:
    return {warp.index: (1 << min(32, cta.nthreads - 32 * warp.index)) - 1 for warp in cta.warps}


def _indices(cluster: Any) -> list[int]:
    grid = cluster.context.launch.grid
    return [x + grid[0] * (y + grid[1] * z) for x, y, z in (cta.ctaid for cta in cluster.ctas)]
