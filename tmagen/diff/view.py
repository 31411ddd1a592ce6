# SPDX-License-Identifier: Apache-2.0
"""What one side does and decides, read off its code, its launch and a recorded run of one CTA."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.diff.event import Event
from tmagen.diff.events import events_of
from tmagen.diff.layout import Map, Names, maps_of, names_of
from tmagen.diff.problem import Problem, addresses_of, allocated, pretended_addresses
from tmagen.diff.record import Recording, record
from tmagen.diff.results import is_large
from tmagen.diff.sections import Section, sections_of
from tmagen.diff.sides import Side
from tmagen.diff.tile_order import TileOrder, scheduled
from tmagen.emu import GlobalMemory, Launch
from tmagen.emu.compile_emit import PARAM_WINDOW
from tmagen.verify.inputs import integer_inputs


@dataclass(frozen=True, slots=True)
class View:
    """One side, looked at."""

    side: Side
    launch: Launch  # for the problem that is asked about, at addresses that nothing lies at
    maps: tuple[Map, ...]  # of that launch
    trial: Launch
    recording: Recording  # of CTA 0 of the trial
    names: Names
    events: tuple[Event, ...]
    sections: tuple[Section, ...]
    order: TileOrder  # of the problem that is asked about


def look_at(side: Side, problem: Problem, trial: Problem, seed: int) -> View:
    """Runs the trial on the emulator, records CTA 0, and reads the launch. Raises what the emulator raises."""
    assert side.launch is not None and side.trial_launch is not None, "a side that nothing launches is not looked at"
    memory = GlobalMemory()
    buffers = allocated(trial, memory)
    inputs = integer_inputs(trial.shape, trial.elements[:2], seed)
    assert buffers.a is not None
    assert buffers.b is not None
    buffers.a.write(inputs.a)
    buffers.b.write(inputs.b)
    at = addresses_of(buffers)
    launch = side.trial_launch(trial, at)
    recording = record(side.trial.module, launch, memory, alone=is_large(trial.shape))
    maps = maps_of(side.trial.entry, launch, {name: (at[name], at[name] + size) for name, size in trial.spans.items()})
    names = names_of(recording, maps, PARAM_WINDOW, trial.pitches)
    events = tuple(events_of(recording.events, names, recording.threads))
    pretended = pretended_addresses(problem)
    asked = side.launch(problem, pretended)
    spans = {name: (pretended[name], pretended[name] + problem.spans[name]) for name in pretended}
    maps = maps_of(side.code.entry, asked, spans)
    return View(
        side=side,
        launch=asked,
        maps=maps,
        trial=launch,
        recording=recording,
        names=names,
        events=events,
        sections=sections_of(events),
        order=scheduled(side, asked, maps, problem.pitches["D"]),
    )
