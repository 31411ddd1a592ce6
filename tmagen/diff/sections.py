# SPDX-License-Identifier: Apache-2.0
"""The phases of a CTA's life: set-up, and for each output tile the first loads, each K tile, and the epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tmagen.diff.event import Event
from tmagen.diff.layout import DONE, FULL

SETUP, FILL, K_TILE, EPILOGUE, TEARDOWN = "set-up", "fill", "K tile", "epilogue", "tear-down"
LOADS = {("expect", FULL), ("TMA load", "A"), ("TMA load", "B")}
_MMAS_DONE = {("wait", DONE), ("MMA wait", "")}
_OF_THE_LOOP = {("wait", FULL), ("MMA", ""), ("commit", DONE), *LOADS, *_MMAS_DONE}
_OF_THE_EPILOGUE = ("TMEM load", "store", "TMA store")


@dataclass(frozen=True, slots=True)
class Section:
    """A phase: its name, which output tile of the CTA and which K tile of that it belongs to (-1: to none)."""

    name: str
    tile: int
    k: int
    events: tuple[Event, ...]

    @property
    def key(self) -> tuple[str, int, int]:
        return self.name, self.tile, self.k

    @property
    def kind(self) -> tuple[object, ...]:
        """The section but for what varies from one to the next."""
        return self.name, tuple(event.kind for event in self.events)


def sections_of(events: Sequence[Event]) -> tuple[Section, ...]:
    """Cuts the events of a CTA into phases, by what a GEMM kernel has to do in any order that works.

    The first load after the stores of a tile begins the next tile; a wait for a loaded stage begins a K tile; reading
    tensor memory or writing shared memory is the epilogue, with what comes between it and the last step of the loop;
    freeing tensor memory is the end.
    """
    cut = _Cut()
    for event in events:
        cut.take(event)
    if cut.name == EPILOGUE:
        cut.tear_down()
    cut.close()
    return tuple(cut.found)


class _Cut:
    def __init__(self) -> None:
        self.found: list[Section] = []
        self.name, self.tile, self.k = SETUP, -1, -1
        self.events: list[Event] = []
        self.computed = False  # the MMAs of the K tile are waited for
        self.after = 0  # steps up to the last one of the loop

    def take(self, event: Event) -> None:
        key = event.key
        if event.op in ("relinquish", "dealloc") and self.name == EPILOGUE:
            self.tear_down()
        elif key in LOADS and self.name in (SETUP, EPILOGUE):
            self.begin(FILL, self.tile_number() + 1, -1)
        elif key == ("wait", FULL) and self.name in (FILL, K_TILE):
            self.begin(K_TILE, self.tile, self.k + 1)
        elif self.name == K_TILE and self.computed and event.op in _OF_THE_EPILOGUE:
            before = self.events[self.after :]
            del self.events[self.after :]
            self.begin(EPILOGUE, self.tile, -1)
            self.events = before
        self.events.append(event)
        self.computed = self.computed or key in _MMAS_DONE
        if key in _OF_THE_LOOP:
            self.after = len(self.events)

    def tear_down(self) -> None:
        """What the last epilogue has beyond the others belongs to the end of the CTA."""
        usual = next((section.events for section in self.found if section.name == EPILOGUE), None)
        surplus: list[Event] = []
        if usual is not None and [e.kind for e in usual] == [e.kind for e in self.events[: len(usual)]]:
            surplus = self.events[len(usual) :]
            self.events = self.events[: len(usual)]
        self.begin(TEARDOWN, -1, -1)
        self.events = surplus

    def tile_number(self) -> int:
        return max((section.tile for section in self.found), default=-1)

    def begin(self, name: str, tile: int, k: int) -> None:
        self.close()
        self.name, self.tile, self.k = name, tile, k
        self.events = []
        self.computed = False
        self.after = 0

    def close(self) -> None:
        if self.events:
            self.found.append(Section(self.name, self.tile, self.k, tuple(self.events)))
