# SPDX-License-Identifier: Apache-2.0
"""Triton's programs of `programs`: run as Triton launches them, and compared with NumPy."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tmagen import emu
from tmagen.emu import Allocation, EmulatorError, GlobalMemory, Launch
from tmagen.emu.module import Entry
from tools.peers.outcome import USUAL_WAYS, Outcome, Ways
from tools.peers.programs import PROGRAMS, Given, Program
from tools.peers.triton import FOLDER, VERSION, compile_all, install


def run_all(pattern: str = "", ways: Ways = USUAL_WAYS) -> Iterator[Outcome]:
    """Every program whose name holds `pattern`."""
    programs = tuple(program for program in PROGRAMS if pattern in program.name)
    install()
    compile_all(programs)
    for program in programs:
        yield run_program(program, ways)


def run_program(program: Program, ways: Ways = USUAL_WAYS) -> Outcome:
    """One program, in all ways."""
    outcome = Outcome(f"triton {VERSION}", program.name)
    record = json.loads((FOLDER / "ptx" / f"{program.name}.json").read_text())
    if "error" in record:
        outcome.refused = record["error"]
        return outcome
    path = FOLDER / "ptx" / f"{program.name}.ptx"
    module = emu.parse(path.read_text(), path.name)
    entry = module.entries[record["kernel"]]
    given = program.given()
    start = time.perf_counter()
    for policy, seed, checks in ways.runs(Launch(record["kernel"], given.grid, (entry.directives["reqntid"][0], 1, 1))):
        memory = GlobalMemory()
        places = place(memory, given)
        launch = launch_of(record, entry, given, memory, places)
        where = f"{policy}, seed {seed}"
        try:
            result = emu.run(module, launch, memory, completion=policy, seed=seed, checks=checks)
        except EmulatorError as error:
            outcome.problems.append(f"{where}: {error.report()}")
            continue
        outcome.judge(where, result.findings, wrong(given, places))
    outcome.seconds = time.perf_counter() - start
    return outcome


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
    params = bytearray(entry.param_bytes)
    for param, value in zip(entry.params, values, strict=True):
        params[param.offset : param.offset + param.size] = value.to_bytes(param.size, "little")
    block = (entry.directives["reqntid"][0], 1, 1)
    return Launch(record["kernel"], given.grid, block, dynamic_smem_bytes=record["shared"], params=bytes(params))


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
