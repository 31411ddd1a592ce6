# SPDX-License-Identifier: Apache-2.0
"""Launching over and over: a kernel without races writes the same bits each time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tmagen.gpu.device import Gpu
from tmagen.gpu.kernels import Launch
from tmagen.gpu.memory import Mirrored
from tmagen.gpu.torch_reference import borrow

_POISON = 0xFF
_BURST = 4  # launches without a wait between them

WAYS = ("alone", "with a cold L2", "in a burst", "beside other traffic")
"""How launches alternate, since a race that timing hides in one may show in another."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first launch that gave another D."""

    launch: int  # counted from 1
    way: str
    bytes: int  # of D and around it that differ

    def __str__(self) -> str:
        return f"launch {self.launch}, {self.way}, wrote {self.bytes:,} bytes otherwise than the first: a race"


def repeat(
    gpu: Gpu, launch: Launch, d: Mirrored, times: int, *, torch: Any | None, timeout: float
) -> Difference | None:
    """Launches `times` times more, D poisoned before each, and compares D and its surroundings with the first result.

    `d` holds that result on the device and in its mirror. Returns the first difference, and leaves it in the mirror.
    """
    size = d.data.size
    golden = d.data.copy()
    view = kept = None
    if torch is not None:
        view = borrow(torch, d.address, (size,), (1,), "|u1", gpu.info.ordinal)
        kept = view.clone()
        torch.cuda.synchronize()
    scratch_bytes = 2 * gpu.info.l2_bytes
    scratch = gpu.allocate(scratch_bytes)
    try:
        for index in range(1, times + 1):
            way = WAYS[index % len(WAYS)]
            gpu.fill(d.address, _POISON, size)
            if way == "with a cold L2":
                gpu.fill(scratch, 0, scratch_bytes)
            if way == "beside other traffic":
                gpu.wait(timeout)
                gpu.disturb(scratch, scratch_bytes)
            for _ in range(_BURST if way == "in a burst" else 1):
                launch()
            gpu.wait(timeout)
            if torch is not None and torch.equal(view, kept):
                continue
            gpu.download(d.address, d.data)
            differing = int(np.count_nonzero(d.data != golden))
            if differing:
                return Difference(index, way, differing)
    finally:
        gpu.free(scratch)
    return None
