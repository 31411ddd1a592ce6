# SPDX-License-Identifier: Apache-2.0
"""Triton's matrix products, launched as Triton launches them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tmagen.emu import Launch, Module, TensorMap
from tmagen.emu.module import Entry
from tmagen.emu.tensormap import DataType, SwizzleMode
from tools.peers.cases import TRITON, Shape, TritonCase
from tools.peers.outcome import USUAL_WAYS, Outcome, Ways
from tools.peers.problem import TYPES, Problem
from tools.peers.triton_runs import Given, Run, compiled, packed, tried

# Element types of tensor maps as Triton (and tensormap.replace) numbers them.
_ELEMENTS = {0: DataType.UINT8, 6: DataType.FLOAT16, 7: DataType.FLOAT32, 10: DataType.BFLOAT16}
_PROGRAMS = 3  # of a persistent kernel


def run_all(pattern: str = "", ways: Ways = USUAL_WAYS) -> Iterator[Outcome]:
    """Every case whose name holds `pattern`."""
    for case in compiled(TRITON, pattern):
        yield run_case(case, ways)


def run_case(case: TritonCase, ways: Ways) -> Outcome:
    """One kernel: all of its shapes under every policy."""

    def begin(record: dict[str, Any], module: Module, shape: Shape) -> Run:
        problem = Problem(case.types, shape, kn=case.kernel.endswith("_kn"))
        launch = launch_of(case, record, module, problem, shape)
        # A row of a box is stored in whole chunks of 16 bytes; the last row of D may reach past its end.
        return Run(launch, problem.memory, lambda: problem.wrong(0 if case.kernel == "pointers" else 16))

    def given(record: dict[str, Any], module: Module) -> Iterator[Given]:
        for shape in case.shapes:
            yield "x".join(map(str, shape)), partial(begin, record, module, shape)

    return tried(case.name, ways, given)


def launch_of(case: TritonCase, record: dict[str, Any], module: Module, problem: Problem, shape: Shape) -> Launch:
    """How Triton launches a kernel for a shape; `record` is what the compiling process noted."""
    entry = module.entries[record["kernel"]]
    m, n, _ = shape
    tiles = -(-m // case.tile[0]), -(-n // case.tile[1])
    programs = (_PROGRAMS, 1) if case.kernel == "persistent" else tiles
    grid = (programs[0] * record["ctas"], programs[1], 1)
    scratch = problem.memory.allocate(max(16, record["scratch"] * programs[0] * programs[1] * record["ctas"]))
    return Launch(
        record["kernel"],
        grid,
        (entry.directives["reqntid"][0], 1, 1),
        (record["ctas"], 1, 1),
        record["shared"],
        _params(case, record, entry, problem, shape, scratch.address),
    )


def _params(
    case: TritonCase, record: dict[str, Any], entry: Entry, problem: Problem, shape: Shape, scratch: int
) -> bytes:
    """The parameter block: a map with its extents and strides, or a pointer, for each matrix; m, n, k; scratch."""
    m, n, k = shape
    extents = {"a": (m, k), "b": (k, n) if case.kernel.endswith("_kn") else (n, k), "d": (m, n)}
    values: list[int | bytes] = []
    for index, (name, (rows, columns)) in enumerate(extents.items()):
        if record["maps"]:
            values += [_map(case, record["maps"][index], problem, name, rows, columns), rows, columns, columns, 1]
        else:
            values.append(problem.address(name))
    values += [m, n, k, scratch, 0]
    return packed(entry, values)


def _map(case: TritonCase, facts: list[Any], problem: Problem, name: str, rows: int, columns: int) -> bytes:
    swizzle, element, box = facts
    nbytes = np.dtype(TYPES[case.types["abd".index(name)]][0]).itemsize
    tmap = TensorMap(
        _ELEMENTS[element],
        2,
        problem.address(name),
        (columns, rows),
        (columns * nbytes,),
        tuple(reversed(box)),
        (1, 1),
        swizzle=SwizzleMode(swizzle),
    )
    return tmap.encode()
