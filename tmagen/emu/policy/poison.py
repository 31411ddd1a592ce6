# SPDX-License-Identifier: Apache-2.0
"""Memory whose contents nobody may use holds a pattern.

At the start that is all shared and tensor memory and every register, and tensor memory again when it is allocated and
freed. After that it is what an operation under way will write: from the issue of a load until its phase is complete its
destination may hold anything, and so may D of an MMA that does not add to it, and the destination of a bulk store. A
stage of a ring is such a destination as soon as its next load is issued, which is the first moment at which its release
can be told: whether an arrive or a commit was the last use of the bytes before it, the kernel alone knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.errors import EmulatorError
from tmagen.emu.instr_descriptor import decode
from tmagen.emu.mma import Mma, lanes_of_rows
from tmagen.emu.mma_pair import CTAS, PairMma, whole
from tmagen.emu.state.engine import Deferred, Operation
from tmagen.emu.state.transfer import Load, StartMma, Store

PATTERNS = (0xFF, 0x7F, 0x5A, 0x41, 0xC3, 0x3C, 0x55, 0xA5)
"""A byte that is repeated, by the seed: NaNs, then numbers that no sum of small integers takes for nothing."""


def pattern(seed: int) -> int:
    return PATTERNS[seed % len(PATTERNS)]


class Poison(Deferred):
    """As `Deferred`; what an operation will write is spoilt when it is issued."""

    def starts(self, operation: Operation) -> None:
        run = operation.run
        fill = self.cta.launch.fill
        if isinstance(run, Load):
            run.spoil(fill)
        elif isinstance(run, Store):
            if not run.reduces:
                _spoil_target(run, fill)
        elif isinstance(run, StartMma) and not self._reads_tensor_memory(operation.owner):
            _spoil_accumulator(run, fill)

    def _reads_tensor_memory(self, owner: tuple[int, int]) -> bool:
        """Whether an MMA before it, of the same thread, has yet to read A from there: it comes first."""
        for operation in self.pending:
            run = operation.run
            if operation.owner == owner and isinstance(run, StartMma) and _plain(run.op).a_in_tmem:
                return True
        return False


def _spoil_target(store: Store, fill: int) -> None:
    try:
        target = store.target()
    except EmulatorError:
        return  # which the copy itself will say
    if target is not None:
        target[...] = np.frombuffer(bytes([fill]) * target.itemsize, target.dtype)[0]


def _plain(op: Any) -> Mma:
    found: Mma = op.op if isinstance(op, PairMma) else op
    return found


def _spoil_accumulator(start: StartMma, fill: int) -> None:
    """D of an MMA that writes all of it."""
    cta, op = start.cta, _plain(start.op)
    if op.accumulate or op.a_in_tmem or op.disable_lanes is not None:
        return
    pair = isinstance(start.op, PairMma)
    column = op.d & 0xFFFF
    try:
        desc = decode(op.kind, op.idesc, CTAS if pair else 1)
        desc = whole(desc) if pair else desc
        tmems = [each.tmem for each in (cta.pair if pair else (cta,))]
        for tmem in tmems:
            tmem.check_columns(column, desc.n, "tcgen05.mma D")
        lanes = lanes_of_rows(desc.m, op.d >> 16)
    except EmulatorError:
        return  # which the instruction itself will say
    if cta.mma_queue:
        cta.flush_mma()
    for tmem in tmems:
        tmem.words[column : column + desc.n, lanes] = fill * 0x01010101
