# SPDX-License-Identifier: Apache-2.0
"""Copies that land piece by piece, at random moments and in random order."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import EmulatorError
from tmagen.emu.state.engine import Operation, Random
from tmagen.emu.state.transfer import Load, Store

_UNIT = 16  # bytes that land together at least
_MOST_PIECES = 4


class Split(Random):
    """As `Random`, with copies that take several steps: a few pieces of their bytes, then what is told of it."""

    def starts(self, operation: Operation) -> None:
        run = operation.run
        if isinstance(run, Load):
            operation.run = _Pieces(_load_steps(run, self.random))
        elif isinstance(run, Store):
            operation.run = _Pieces(_store_steps(run, self.random))

    def advance(self, operation: Operation) -> None:
        pieces = operation.run
        if isinstance(pieces, _Pieces) and len(pieces.steps) > 1:
            self.do(operation, pieces.steps.pop(0))
        else:
            self.complete(operation)


class _Pieces:
    """What is still to be done of a copy, in order."""

    def __init__(self, steps: list[Callable[[], None]]) -> None:
        self.steps = steps

    def __call__(self) -> None:
        while self.steps:
            self.steps.pop(0)()


def _load_steps(load: Load, draw: random.Random) -> list[Callable[[], None]]:
    """Pieces of the bytes, and the mbarrier last."""
    _, nbytes = load.region()
    total = [0]
    pieces = [_LoadPiece(load, mask, total) for mask in _masks(-(-nbytes // _UNIT), draw)]
    return [*pieces, lambda: load.tell(total[0])]


class _LoadPiece:
    """The units of a load that a mask names. Everything is moved, and put back where the mask says no."""

    def __init__(self, load: Load, mask: npt.NDArray[np.bool_], total: list[int]) -> None:
        self.load, self.mask, self.total = load, mask, total

    def __call__(self) -> None:
        load = self.load
        first, nbytes = load.region()
        cta = load.receiver
        if cta.mma_queue:
            cta.flush_mma()
        before = cta.smem[first : first + nbytes].copy()
        self.total[0] = load.move()
        window = cta.smem[first : first + nbytes]
        window[...] = np.where(np.repeat(self.mask, _UNIT)[: window.size], window, before)


def _store_steps(store: Store, draw: random.Random) -> list[Callable[[], None]]:
    """Pieces of what is written; each reads its part of the source when it lands."""
    try:
        target = store.target()
    except EmulatorError:
        target = None  # which the copy itself will say
    if target is None:
        return [store]
    # Whole elements of a box; of contiguous bytes whole units, in which no element of a reduction is cut.
    unit = max(1, _UNIT // target.itemsize) if target.ndim == 1 else 1
    masks = _masks(-(-target.size // unit), draw)
    return [_StorePiece(store, target, np.repeat(mask, unit)[: target.size]) for mask in masks]


class _StorePiece:
    """The elements of a store that a mask names, in the same way."""

    def __init__(self, store: Store, target: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> None:
        self.store, self.target, self.mask = store, target, mask

    def __call__(self) -> None:
        target = self.target
        before = target.copy()
        self.store()
        target[...] = np.where(self.mask.reshape(target.shape), target, before)


def _masks(count: int, draw: random.Random) -> list[npt.NDArray[np.bool_]]:
    """Up to four runs of `count` units, in random order."""
    pieces = draw.randint(2, _MOST_PIECES)
    cuts = sorted({draw.randrange(count + 1) for _ in range(pieces - 1)} | {0, count})
    spans = list(pairwise(cuts)) or [(0, count)]
    draw.shuffle(spans)
    place = np.arange(count)
    return [(place >= start) & (place < end) for start, end in spans]
