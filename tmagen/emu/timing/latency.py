# SPDX-License-Identifier: Apache-2.0
"""The table of the model: cycles of the SM's clock and bytes per cycle, by target, with the source of each figure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

MODEL = "a model, not a measurement: each CTA as if alone on the GPU, its data in L2; no contention, no caches"

_H200 = "measured on an H200 by benchmarks/latencies.cu"
_AS_H200 = "as on an H200 (benchmarks/latencies.cu), by assumption: not published for sm_100a"
_ASSUMED = "an assumption"
_B200 = "fits published B200 runs: SemiAnalysis, microbench-blackwell, umma_throughput and umma_latency"
_SPLIT = "parts, by assumption, of the 136 cycles that those runs take beside the product itself"
_SPLIT_H200 = "parts, by assumption, of the 66 cycles that an H200 takes beside the product itself"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    key: str
    value: int
    unit: str
    what: str
    source: str


@dataclass(frozen=True)
class Table:
    """The figures of a target."""

    target: str
    rows: tuple[Row, ...]

    @cached_property
    def _values(self) -> dict[str, int]:
        return {row.key: row.value for row in self.rows}

    def __getitem__(self, key: str) -> int:
        return self._values[key]

    @property
    def has_tensor_memory(self) -> bool:
        """Whether it has rows for tcgen05."""
        return "tmem_rate" in self._values

    def text(self) -> tuple[str, ...]:
        """Lines for people: every figure, and where it comes from."""
        wide = max(len(row.what) for row in self.rows)
        sources = list(dict.fromkeys(row.source for row in self.rows))
        lines = [f"timed completion is {MODEL}", f"  figures of {self.target}, with their sources"]
        for row in self.rows:
            lines.append(f"  {row.what:<{wide}} {row.value:>5} {row.unit:<9} [{sources.index(row.source) + 1}]")
        return (*lines, *(f"  [{number}] {source}" for number, source in enumerate(sources, 1)))


def _shared_rows(measured: str, wake: tuple[int, str]) -> tuple[Row, ...]:
    """What is not of the tensor cores: measured on an H200, and taken over for sm_100a."""
    c, b = "cycles", "B/cycle"
    return (
        Row("tma_issue", 55, c, "TMA instruction: its thread goes on", measured),
        Row("tma_load_latency", 326, c, "TMA load: to the first byte from L2", measured),
        Row("tma_load_rate", 120, b, "TMA loads of a CTA", measured),
        Row("tma_store_rate", 32, b, "TMA stores of a CTA", measured),
        Row("mbarrier", 37, c, "mbarrier operation, and a wait that need not wait", measured),
        Row("mbarrier_wake", wake[0], c, "mbarrier: end of a phase to the end of its waits", wake[1]),
        Row("barrier", 14, c, "named barrier: last arrival to the end of the waits", measured),
        Row("cluster_barrier", 190, c, "barrier of a cluster: the same", _ASSUMED),
        Row("group_wake", 6, c, "bulk, copy and wgmma groups: to the end of the wait", measured),
        Row("fence_async", 13, c, "fence.proxy.async", measured),
        Row("fence", 20, c, "other fences, membar", _ASSUMED),
        Row("shared_issue", 128, b, "shared memory: loads and stores of a warp", measured),
        Row("shared_latency", 22, c, "ld.shared, ldmatrix: to the use of its registers", measured),
        Row("global_latency", 259, c, "ld.global from L2, atomics: to the use of the registers", measured),
        Row("global_rate", 64, b, "global memory: loads and stores of a warp", _ASSUMED),
        Row("shuffle", 24, c, "shfl, vote, match, redux: to the use of the result", _ASSUMED),
        Row("elect", 9, c, "elect.sync", measured),
        Row("alu", 4, c, "arithmetic: to the use of the result; one issues a cycle", _ASSUMED),
        Row("special", 18, c, "division, roots, powers: to the use of the result", _ASSUMED),
        Row("cp_async", 290, c, "cp.async: to the arrival of its bytes", _ASSUMED),
    )


def _tensor_rows(macs: int, source: str, start: int, commit: int, split: str) -> tuple[Row, ...]:
    c = "cycles"
    return (
        Row("mma_macs", macs, "MAC/cycle", "tensor core, 16-bit inputs; 8-bit twice, tf32 half", source),
        Row("mma_smem_rate", 128, "B/cycle", "tensor core: operands from shared memory", source),
        Row("mma_issue", 4, c, "MMA instruction: its thread goes on", _ASSUMED),
        Row("mma_start", start, c, "MMA: to its start on an idle tensor core", split),
        Row("commit", commit, c, "MMA: its end to the commit's arrival or the group's end", split),
    )


_BLACKWELL = Table(
    "sm_100a",
    (
        *_tensor_rows(4096, _B200, 50, 41, _SPLIT),
        Row("tmem_alloc", 200, "cycles", "tcgen05.alloc, dealloc", _ASSUMED),
        Row("tmem_rate", 128, "B/cycle", "tcgen05.ld, st of a warp", _ASSUMED),
        Row("tmem_latency", 30, "cycles", "tcgen05.wait::ld, ::st: to the last word", _ASSUMED),
        *_shared_rows(_AS_H200, (45, _SPLIT)),
    ),
)
_HOPPER = Table(
    "sm_90a",
    (
        *_tensor_rows(2048, _H200, 40, 16, _SPLIT_H200),
        *_shared_rows(_H200, (45, _ASSUMED)),
    ),
)


def table_for(target: str) -> Table:
    """The table that goes with a module's target: sm_90a's up to there, else sm_100a's."""
    found = re.search(r"sm_(\d+)", target)
    return _HOPPER if found is not None and int(found[1]) < 100 else _BLACKWELL
