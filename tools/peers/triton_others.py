# SPDX-License-Identifier: Apache-2.0
"""Triton's programs of `programs`: run as Triton launches them, and compared with NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tmagen.emu import Allocation, GlobalMemory, Launch, Module
from tmagen.emu.module import Entry
from tools.peers.outcome import USUAL_WAYS, Outcome, Ways
from tools.peers.programs import PROGRAMS, Given, Program
from tools.peers.triton_runs import Run, compiled, packed, tried


def run_all(pattern: str = "", ways: Ways = USUAL_WAYS) -> Iterator[Outcome]:
    """Every program whose name holds `pattern`."""
    for program in compiled(PROGRAMS, pattern):
        yield run_program(program, ways)


def run_program(program: Program, ways: Ways = USUAL_WAYS) -> Outcome:
    """One program, in all ways."""
    given = program.given()

    def begin(record: dict[str, Any], module: Module) -> Run:
        memory = GlobalMemory()
        places = place(memory, given)
        launch = launch_of(record, module.entries[record["kernel"]], given, memory, places)
        return Run(launch, memory, lambda: wrong(given, places))

    return tried(program.name, ways, lambda record, module: [("", partial(begin, record, module))])


def place(memory: GlobalMemory, given: Given) -> list[Allocation]:
    """The arrays in global memory."""
    places = []
    for array in given.arrays:
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        places.append(memory.allocate(raw.size))
        places[-1].data[:] = raw
    return places


def launch_of(
    record: dict[str, Any], entry: Entry, given: Given, memory: GlobalMemory, places: list[Allocation]
) -> Launch:
    """Pointers, numbers, and the scratch memory that Triton hands to every kernel."""
    scratch = memory.allocate(max(16, record["scratch"] * given.grid[0] * given.grid[1] * given.grid[2]))
    values = [*(each.address for each in places), *given.numbers, scratch.address, 0]
    block = (entry.directives["reqntid"][0], 1, 1)
    params = packed(entry, values)
    return Launch(record["kernel"], given.grid, block, dynamic_smem_bytes=record["shared"], params=params)


def wrong(given: Given, places: list[Allocation]) -> str | None:
    """What is not as it should be, or None."""
    for index, want, tolerance in given.want:
        array = given.arrays[index]
        got = places[index].data.view(array.dtype).reshape(want.shape).astype(np.float64)
        error = np.abs(got - want.astype(np.float64))
        differ = ~(error <= tolerance * (1 + np.abs(want.astype(np.float64))))
        if differ.any():
            first = tuple(int(i) for i in np.argwhere(differ)[0])
            return f"{int(differ.sum())} of {want.size} elements of array {index} differ, first at {first}"
    return None
