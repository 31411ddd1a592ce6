# SPDX-License-Identifier: Apache-2.0
"""The units of an SM that work beside its warps, each on one thing at a time: TMA loads, TMA stores, tensor core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.timing.latency import Table

if TYPE_CHECKING:
    from tmagen.emu.observe.work import Work


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


class Units:
    """When each unit of one CTA's SM is free again, in cycles."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._load = 0
        self._store = 0
        self._tensor = 0
        self._last: dict[tuple[int, int], int] = {}  # thread -> the end of its last tensor operation

    def schedule(self, work: Work, now: int, owner: tuple[int, int]) -> tuple[int, int]:
        """(begin, end) of an operation that a thread issues at `now`."""
        table = self.table
        match work.kind:
            case "load":
                begin = max(now, self._load)
                self._load = begin + ceil_div(work.nbytes, table["tma_load_rate"])
                return begin, self._load + table["tma_load_latency"]
            case "store":
                begin = max(now, self._store)
                self._store = begin + ceil_div(work.nbytes, table["tma_store_rate"])
                return begin, self._store
            case "mma" | "tmem copy":
                begin = max(now + table["mma_start"], self._tensor)
                self._tensor = begin + self.mma_cycles(work)
                self._last[owner] = self._tensor
                return begin, self._tensor
            case "wgmma":
                begin = max(now + table["mma_start"], self._tensor)
                self._tensor = begin + self.mma_cycles(work)
                return begin, self._tensor + table["commit"]
            case "commit":
                end = max(now, self._last.get(owner, 0)) + table["commit"]
                self._last[owner] = end
                return end, end
            case "copy":
                return now, now + table["cp_async"]
        return now, now + 1

    def mma_cycles(self, work: Work) -> int:
        """Cycles of the tensor core: products, or the reading of the operands where that takes longer.

        M = 64 of tcgen05.mma takes as long as M = 128: half of the lanes are idle.
        """
        table = self.table
        if work.kind == "tmem copy":
            return max(1, ceil_div(work.nbytes, table["mma_smem_rate"]))
        m, n, k = work.shape
        rows = max(m, 128) if work.kind == "mma" else m
        macs = table["mma_macs"] * 2 // work.element_bytes
        reads = (work.reads_a * m + n) * k * work.element_bytes
        return max(ceil_div(rows * n * k, macs), ceil_div(reads, table["mma_smem_rate"]))
