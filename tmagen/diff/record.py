# SPDX-License-Identifier: Apache-2.0
"""What one CTA does, recorded while the emulator runs it: every asynchronous operation, wait, fence and store.

The threads of a CTA execute the same instructions at different moments. The recording brings them together: the n-th
time that each thread executes an instruction is one event, whoever takes part, in the order of the busiest thread.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tmagen.emu import GlobalMemory, Launch, Module, run
from tmagen.emu.launch import Dim3
from tmagen.emu.module import Instruction
from tmagen.emu.state.convergence import pick

EMULATING = Lock()
"""Held while a side is emulated. Two runs at a time would gain nothing, and each sets how many threads the BLAS takes:
sums of a run that another one disturbs are of another order."""

CtaStores = tuple[tuple[Dim3, tuple[tuple[int, ...], ...]], ...]
"""CTA -> coordinates of its TMA stores, in order."""

_FRAMES_TO_CODE = 2  # the listener is called by Cta.listen, and that by the code of a block


@dataclass(slots=True)
class Executed:
    """One event of a CTA: an instruction, and the threads that executed it the same number of times before."""

    kind: str  # as the emulator names it: tma_load, barrier_wait, ...
    instruction: Instruction
    operands: tuple[Any, ...]  # of the busiest thread that took part
    threads: dict[int, int] = field(default_factory=dict)  # warp -> mask of lanes


@dataclass(frozen=True, slots=True)
class Recording:
    """The events of one CTA, and the boxes that every CTA stores."""

    events: tuple[Executed, ...]
    stores: CtaStores
    threads: int  # of the CTA
    dynamic_base: int  # shared address of the dynamic part
    complete: bool = True  # `stores` are those of every CTA


class _Recorder:
    """The listener. It keeps all events of one CTA, and the TMA stores of the others."""

    def __init__(self, ctaid: Dim3, *, alone: bool) -> None:
        self.ctaid = ctaid
        self.alone = alone
        self.heard: list[tuple[str, int, int, Instruction, tuple[Any, ...]]] = []
        self.stores: dict[Dim3, list[tuple[int, ...]]] = {}
        self.threads = 0
        self.dynamic_base = 0

    def __call__(self, kind: str, cta: Any, fragment: Any, operands: tuple[Any, ...]) -> None:
        # CTAs run one after the other, but for those of a cluster.
        if self.alone and self.heard and cta.ctaid != self.ctaid and cta.launch.launch.cluster == (1, 1, 1):
            raise _Heard
        lane = fragment.lanes.first
        if kind == "tma_store":
            _, _, coords = operands
            self.stores.setdefault(cta.ctaid, []).append(tuple(_signed(pick(value, lane)) for value in coords))
        if cta.ctaid != self.ctaid:
            return
        self.threads, self.dynamic_base = cta.nthreads, cta.program.dynamic_base
        instruction = cta.program.instruction_at(sys._getframe(_FRAMES_TO_CODE).f_lineno)
        assert instruction is not None, "a listener hears of instructions alone"
        values = tuple(_value(operand, lane) for operand in operands)
        self.heard.append((kind, fragment.warp.index, fragment.mask, instruction, values))


class _Heard(BaseException):  # the emulator takes an Exception for a fault of its own
    """CTA 0 has ended."""


def record(
    module: Module, launch: Launch, memory: GlobalMemory, ctaid: Dim3 = (0, 0, 0), *, alone: bool = False
) -> Recording:
    """Runs `launch` to its end and returns what CTA `ctaid` did; with `alone` only as far as that CTA's own end.

    Raises EmulatorError as the emulator does.
    """
    recorder = _Recorder(ctaid, alone=alone)
    with EMULATING, suppress(_Heard):
        run(module, launch, memory, listener=recorder)
    return Recording(
        events=tuple(_together(recorder.heard)),
        stores=tuple((cta, tuple(coords)) for cta, coords in recorder.stores.items()),
        threads=recorder.threads,
        dynamic_base=recorder.dynamic_base,
        complete=not alone,
    )


def stores_of(scheduler: Module, launch: Launch) -> CtaStores:
    """The coordinates that the prefetches of a scheduler name (:func:`tmagen.diff.slicing.scheduler_of`), by CTA."""
    found: dict[Dim3, list[tuple[int, ...]]] = {}

    def hear(kind: str, cta: Any, fragment: Any, operands: tuple[Any, ...]) -> None:
        if kind == "tma_prefetch":
            lane = fragment.lanes.first
            found.setdefault(cta.ctaid, []).append(tuple(_signed(pick(value, lane)) for value in operands[1]))

    with EMULATING:
        run(scheduler, launch, GlobalMemory(), listener=hear)
    return tuple((cta, tuple(coords)) for cta, coords in found.items())


def _together(heard: Sequence[tuple[str, int, int, Instruction, tuple[Any, ...]]]) -> list[Executed]:
    """The n-th executions of an instruction as one event each."""
    counts: dict[tuple[Instruction, int, int], int] = {}
    activity: dict[tuple[int, int], int] = {}
    events: dict[tuple[Instruction, int], Executed] = {}
    first: dict[tuple[Instruction, int], list[tuple[int, int, tuple[Any, ...]]]] = {}
    for position, (kind, warp, mask, instruction, operands) in enumerate(heard):
        parts: dict[int, int] = {}  # how often before -> lanes
        for lane in _lanes(mask):
            key = (instruction, warp, lane)
            number = counts[key] = counts.get(key, -1) + 1
            parts[number] = parts.get(number, 0) | 1 << lane
            activity[warp, lane] = activity.get((warp, lane), 0) + 1
        for number, lanes in parts.items():
            event = events.setdefault((instruction, number), Executed(kind, instruction, operands))
            event.threads[warp] = event.threads.get(warp, 0) | lanes
            first.setdefault((instruction, number), []).append((position, warp * 32 + _lanes(lanes)[0], operands))
    busiest = max(activity, key=lambda thread: (activity[thread], -thread[0], -thread[1]), default=(0, 0))

    def place(key: tuple[Instruction, int]) -> int:
        """Where the busiest thread executes it; where it does not, when the first thread does."""
        event = events[key]
        if event.threads.get(busiest[0], 0) >> busiest[1] & 1:
            for position, _, operands in first[key]:
                _, warp, mask, _, _ = heard[position]
                if warp == busiest[0] and mask >> busiest[1] & 1:
                    event.operands = operands
                    return position
        return first[key][0][0]

    return [events[key] for key in sorted(events, key=place)]


def _lanes(mask: int) -> tuple[int, ...]:
    return tuple(lane for lane in range(32) if mask >> lane & 1)


def _value(operand: Any, lane: int) -> Any:
    if isinstance(operand, tuple):
        return tuple(_value(item, lane) for item in operand)
    value = pick(operand, lane)
    return value if isinstance(value, (str, bool)) or value is None else int(value)


def _signed(value: int) -> int:
    return (int(value) ^ 1 << 31) - (1 << 31)
