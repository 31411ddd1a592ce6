# SPDX-License-Identifier: Apache-2.0
"""Threads and bytes in words."""

from __future__ import annotations

from typing import Any

from tmagen.emu.isa.values import M32
from tmagen.emu.report import lanes_text
from tmagen.emu.state.fragments import lane_set
from tmagen.emu.tmem import LANES


def thread_text(warp: int, mask: int) -> str:
    """ "warp 2", "warp 0 lane 0"."""
    return f"warp {warp}" if mask == M32 else f"warp {warp} {lanes_text(lane_set(mask))}"


def shared_text(cta: Any, cells: Any) -> str:
    if not cells.size:
        return "shared memory"
    low, high = int(cells[0]), int(cells[-1])
    dense = "" if cells.size == high - low + 1 else ", not all of the bytes between"
    of = f" of {cta.title}" if cta.cluster.size > 1 else ""
    return f"{cells.size:,} of {cta.place(low)} to {high:#x}{of}{dense}"


def tensor_text(cells: Any) -> str:
    if not cells.size:
        return "tensor memory"
    columns, lanes = cells // LANES, cells % LANES
    return (
        f"tensor memory lanes {int(lanes.min())} to {int(lanes.max())}, "
        f"columns {int(columns.min())} to {int(columns.max())}"
    )
