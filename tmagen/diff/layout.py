# SPDX-License-Identifier: Apache-2.0
"""What the addresses of a recording stand for: barriers, stages and tensor maps, named by what happens to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tmagen.diff.record import Executed, Recording
from tmagen.emu import Entry, Launch, TensorMap

FULL, DONE = "full", "mma_done"


@dataclass(frozen=True, slots=True)
class Box:
    """What a TMA copy moves: rows and columns of a matrix."""

    operand: str  # A, B or D, or ? for a map of something else
    row: int
    rows: int
    column: int
    columns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map of the launch."""

    parameter: int  # position among the kernel's parameters
    offset: int  # into the parameter block
    operand: str
    fields: TensorMap

    def box_at(self, coords: tuple[int, ...], pitch: int) -> Box:
        """The part of the matrix at `coords`, in rows of `pitch` bytes; map dimensions beyond two fold into columns."""
        fields = self.fields
        element = fields.element_bytes
        steps = (element, *fields.strides)
        offset = sum(at * step for at, step in zip(coords, steps, strict=True))
        row, column = divmod(offset, pitch)
        rows = next((n for n, step in zip(fields.box, steps, strict=True) if step == pitch), 1)
        span = sum((n - 1) * step for n, step in zip(fields.box, steps, strict=True) if step != pitch)
        return Box(self.operand, row, rows, column // element, span // element + 1, fields.box_bytes)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one side's addresses."""

    barriers: Mapping[int, str]  # shared address -> full[0], mma_done, ...
    maps: Mapping[int, Map]  # generic address -> map
    pitches: Mapping[str, int]  # operand -> bytes from row to row
    stages: tuple[tuple[str, int, int, int], ...]  # operand, stage, first byte, bytes
    dynamic_base: int

    def stage_of(self, address: int) -> int | None:
        """The stage that a shared address lies in."""
        return next((stage for _, stage, start, size in self.stages if start <= address < start + size), None)


def maps_of(entry: Entry, launch: Launch, operands: Mapping[str, tuple[int, int]]) -> tuple[Map, ...]:
    """The tensor maps among the parameters of a launch. `operands` is where each matrix begins and ends."""
    found = []
    for position, parameter in enumerate(entry.params):
        raw = launch.params[parameter.offset : parameter.offset + parameter.size]
        if parameter.size != 128 or not any(raw):
            continue
        fields = TensorMap.decode(raw)
        operand = next((name for name, (at, end) in operands.items() if at <= fields.address < end), "?")
        found.append(Map(position, parameter.offset, operand, fields))
    return tuple(found)


def names_of(recording: Recording, maps: Iterable[Map], window: int, pitches: Mapping[str, int]) -> Names:
    """Names from use: a barrier that loads complete on is `full`, one that commits arrive on is `mma_done`.

    `window` is the generic address of the parameter block.
    """
    by_address = {window + found.offset: found for found in maps}
    loads = [event for event in recording.events if event.kind == "tma_load"]
    full = sorted({event.operands[3] for event in loads})
    done = sorted({event.operands[0] for event in recording.events if event.kind == "commit"} - set(full))
    inits = sorted({event.operands[0] for event in recording.events if event.kind == "barrier_init"})
    barriers = _numbered(FULL, full) | _numbered(DONE, done)
    barriers |= _numbered("barrier", [at for at in inits if at not in barriers])
    return Names(
        barriers=barriers,
        maps=by_address,
        pitches=pitches,
        stages=_stages(loads, by_address, full),
        dynamic_base=recording.dynamic_base,
    )


def _numbered(name: str, addresses: list[int]) -> dict[int, str]:
    if len(addresses) == 1:
        return {addresses[0]: name if name != FULL else f"{FULL}[0]"}
    return {address: f"{name}[{i}]" for i, address in enumerate(addresses)}


def _stages(loads: list[Executed], maps: Mapping[int, Map], full: list[int]) -> tuple[tuple[str, int, int, int], ...]:
    """Where the boxes of each operand and stage lie, those of one stage together."""
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for event in loads:
        place, tensor_map, _, barrier = event.operands
        found = maps.get(tensor_map)
        if found is None:
            continue
        key = (found.operand, full.index(barrier))
        low, high = spans.get(key, (place, place))
        spans[key] = (min(low, place), max(high, place + found.fields.footprint))
    return tuple((operand, stage, low, high - low) for (operand, stage), (low, high) in sorted(spans.items()))
