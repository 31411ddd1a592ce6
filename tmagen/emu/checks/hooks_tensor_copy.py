# SPDX-License-Identifier: Apache-2.0
"""tcgen05.cp under observation: it reads shared memory as an MMA does, and runs down the pipeline of its thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.hooks_tensor import issue_mma, operand_cells
from tmagen.emu.checks.shadow import Footprint, Index
from tmagen.emu.checks.watch import Watch
from tmagen.emu.smem_descriptor import Major, locate
from tmagen.emu.state import issue
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.tmem import COLUMNS, LANES
from tmagen.emu.tmem_copy import SHAPES


def tmem_cp(frag: Fragment, cta: Any, shape: str, address: Any, descriptor: Any, pair: bool) -> None:
    watch: Watch = cta.watch
    for lane in frag.lanes.lanes:
        taddr, bits = pick(address, lane), pick(descriptor, lane)
        note, agent = issue_mma(watch, frag, lane, "tmem_cp")
        for member in cta.pair if pair else (cta,):
            theirs: Watch = member.watch
            theirs.actor = cta
            source, target = _source(theirs, shape, bits), _target(theirs, shape, taddr)
            if source is not None:
                theirs.reads(theirs.shared, source, note, agent)
            if target is not None:
                _after_another(theirs, frag, target, note.component, agent)
                theirs.writes(theirs.tensor, target, note, agent)
    issue.tmem_cp(frag, cta, shape, address, descriptor, pair)


def _source(watch: Watch, shape: str, bits: int) -> Footprint | None:
    """None where it is not wholly in shared memory, which the copy will say."""
    rows, nbytes, _ = SHAPES[shape]
    key = ("copied", shape, bits)
    known = watch.shared.parts.known(key)
    if known is not None:
        return known
    operand = locate(bits, rows, nbytes, 1, Major.K)
    if operand.end > watch.cta.smem.size:
        return None
    return watch.shared.footprint(key, lambda: operand_cells(operand))


def _target(watch: Watch, shape: str, taddr: int) -> Footprint | None:
    rows, nbytes, places = SHAPES[shape]
    column, count = taddr & 0xFFFF, nbytes // 4
    if taddr >> 16 or column + count > COLUMNS:
        return None

    def cells() -> Index:
        height = rows // len(places)
        lanes = np.unique(np.concatenate([np.arange(at, at + height) for part in places for at in part]))
        every: Index = (np.arange(column, column + count, dtype=np.intp)[:, None] * LANES + lanes).ravel()
        return every

    return watch.tensor.footprint(("copied to", shape, taddr), cells)


def _after_another(watch: Watch, frag: Fragment, target: Footprint, component: int, agent: Any) -> None:
    """Two copies of one thread to the same columns: the text names no such pair among those that follow each other."""
    if not watch.session.collector.strict:
        return
    handed = watch.clocks.handed.get(component)
    for write in watch.tensor.last_writes(target):
        if write is None or write.kind != "tmem_cp" or write.component != component:
            continue
        known = agent.known
        if known[component] < write.clock and (handed is None or known[handed] < write.clock):
            watch.lint(
                "TC-04", "W", "a tcgen05.cp to columns that an earlier one of the thread may still be writing", frag
            )
