# SPDX-License-Identifier: Apache-2.0
"""What the instructions of a block cost the warp that runs them: it issues them in order, each when what it reads is
there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tmagen.emu.timing.latency import Table

if TYPE_CHECKING:
    from tmagen.emu.module import Instruction

_LANES = 32
_SLOW = ("div", "rem", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
_FREE = ("mov", "cvta", "ret", "exit", "bra")  # ptxas leaves most of them out
_PREFIXES = (
    ("cp.async.bulk.commit", "alu"),
    ("cp.async.bulk.wait", "alu"),
    ("cp.async.bulk", "tma_issue"),
    ("cp.reduce.async.bulk", "tma_issue"),
    ("mbarrier.pending_count", "alu"),
    ("mbarrier.", "mbarrier"),
    ("fence.proxy.async", "fence_async"),
    ("fence.mbarrier_init", "alu"),
    ("fence.", "fence"),
    ("membar.", "fence"),
    ("elect.", "elect"),
    ("tcgen05.wait", "tmem_latency"),
    ("tcgen05.mma", "mma_issue"),
    ("tcgen05.cp", "mma_issue"),
    ("tcgen05.commit", "mma_issue"),
    ("tcgen05.alloc", "tmem_alloc"),
    ("tcgen05.dealloc", "tmem_alloc"),
    ("wgmma.mma_async", "mma_issue"),
)


def cost_of(instruction: Instruction, table: Table) -> tuple[int, int]:
    """(cycles until the next instruction of the warp may issue, cycles until the results can be used)."""
    opcode, parts = instruction.opcode, instruction.parts
    head = parts[0]
    if head in _FREE:
        return 0, 0
    if head == "tcgen05" and not table.has_tensor_memory:
        return 1, 1  # no such instruction runs on this target
    for prefix, key in _PREFIXES:
        if opcode.startswith(prefix):
            cycles = table[key]
            return cycles, cycles
    if opcode.startswith(("tcgen05.ld", "tcgen05.st")):
        cycles = -(-_LANES * 4 * _repeat(parts) // table["tmem_rate"])
        return cycles, cycles
    if head in ("ld", "st", "atom", "red", "ldmatrix", "stmatrix", "ldu"):
        shared = any(part.startswith("shared") for part in parts) or head.endswith("matrix")
        if any(part.startswith("param") for part in parts):
            return 1, table["alu"]
        nbytes = _LANES * (16 if head.endswith("matrix") else _width(parts))
        issue = max(1, -(-nbytes // table["shared_issue" if shared else "global_rate"]))
        stores = head in ("st", "red", "stmatrix")
        return issue, issue if stores else issue + table["shared_latency" if shared else "global_latency"]
    if head in ("shfl", "vote", "match", "redux"):
        return 1, table["shuffle"]
    return 1, table["special"] if head in _SLOW else table["alu"]


def _width(parts: tuple[str, ...]) -> int:
    """Bytes that a lane loads or stores."""
    bits = re.search(r"\d+$", parts[-1])
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    return vector * (int(bits[0]) // 8 if bits else 4)


def _repeat(parts: tuple[str, ...]) -> int:
    """Registers of a lane that a tcgen05.ld or st moves."""
    times = next((int(part[1:]) for part in parts if re.fullmatch(r"x\d+", part)), 1)
    return times * {"16x128b": 2, "16x256b": 4}.get(next((p for p in parts if p.startswith("16x")), ""), 1)


class Clock:
    """The cycles of a block as it is compiled: `before` what comes, since it was last told."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._now = 0
        self._told = 0
        self._ready: dict[str, int] = {}

    def issue(self, instruction: Instruction, reads: tuple[str, ...], writes: tuple[str, ...]) -> tuple[int, int]:
        """(cycles since the last one that was told until this one issues, cycles that it takes)."""
        own, until = cost_of(instruction, self.table)
        begins = max([self._now, *(self._ready.get(name, 0) for name in reads)])
        for name in writes:
            self._ready[name] = begins + until
        self._now = begins + own
        return begins - self._told, own

    def copy(self) -> Clock:
        """The same, from here on apart."""
        other = Clock(self.table)
        other._now, other._told, other._ready = self._now, self._told, dict(self._ready)
        return other

    def tell(self) -> None:
        """The cycles up to here have been added."""
        self._told = self._now

    def end(self) -> int:
        """Cycles from the last one told to the block's end: what it loaded is waited for there."""
        late = max([self._now, *(at for at in self._ready.values() if at - self._now > self.table["special"])])
        return late - self._told
