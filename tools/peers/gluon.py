# SPDX-License-Identifier: Apache-2.0
"""Triton's Gluon: a matrix product with roles, CTA pairs, multicast and clusterlaunchcontrol, on clusters of several
shapes. It comes with Triton, and compiles in the same process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tmagen.emu import Launch, Module, TensorMap
from tmagen.emu.tensormap import DataType, SwizzleMode
from tools.peers.cases import Shape
from tools.peers.outcome import USUAL_WAYS, Outcome, Ways
from tools.peers.problem import Problem
from tools.peers.triton_runs import Given, Run, compiled, packed, tried

_MMA_M = 128  # rows of D that a CTA makes


@dataclass(frozen=True)
class GluonCase:
    """One kernel. `cluster` has an entry for each doubling of the cluster, (1, 0) or (2, 0) where it makes more rows of
    D and (0, 1) where it makes more columns; the first one is the pair's. `width` is how many columns of D are stored
    at a time.
    """

    cluster: tuple[tuple[int, int], ...]
    columns: int  # of D that a CTA makes
    shapes: tuple[Shape, ...]
    stages: int = 3
    width: int = 64
    target: int = 100
    tile_k: int = 64

    @property
    def name(self) -> str:
        """Unique, and readable in a table."""
        rows, columns = self.ctas
        return f"gluon_product_sm{self.target}_{rows}x{columns}_ctas_{self.stages}st"

    @property
    def ctas(self) -> tuple[int, int]:
        """CTAs of a cluster along the rows and columns of D."""
        rows = sum(row != 0 for row, _ in self.cluster)
        return 1 << rows, 1 << len(self.cluster) - rows

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows and columns of D that a cluster makes, and how far it goes in K at a time."""
        rows, columns = self.ctas
        return _MMA_M * rows, self.columns * columns, self.tile_k

    def request(self) -> dict[str, Any]:
        """What the compiling process is told."""
        constants = {"mma_m": _MMA_M, "mma_n": self.columns, "stages": self.stages}
        return {
            "name": self.name, "target": self.target, "tile": self.tile, "cluster": self.cluster, "width": self.width,
            "constants": constants,
        }  # fmt: skip


PAIR, BESIDE, BELOW = (1, 0), (0, 1), (2, 0)
CASES = (
    GluonCase((), 128, ((256, 256, 256), (512, 384, 200))),
    GluonCase((PAIR,), 128, ((512, 256, 256), (1000, 384, 136))),
    GluonCase((PAIR, BESIDE), 128, ((512, 512, 256), (1024, 712, 200)), stages=2, width=256),
    GluonCase((PAIR, BELOW), 64, ((1024, 128, 256), (1500, 376, 200)), stages=2),
)


def run_all(pattern: str = "", ways: Ways = USUAL_WAYS) -> Iterator[Outcome]:
    """Every case whose name holds `pattern`."""
    for case in compiled(CASES, pattern):
        yield run_case(case, ways)


def run_case(case: GluonCase, ways: Ways = USUAL_WAYS) -> Outcome:
    """One kernel, in all ways."""

    def begin(record: dict[str, Any], module: Module, shape: Shape) -> Run:
        problem = Problem(("fp16",) * 3, shape, kn=True)
        launch = launch_of(case, record, module, problem, shape)
        return Run(launch, problem.memory, lambda: problem.wrong(16))

    def given(record: dict[str, Any], module: Module) -> Iterator[Given]:
        for shape in case.shapes:
            yield "x".join(map(str, shape)), partial(begin, record, module, shape)

    return tried(case.name, ways, given)


def launch_of(case: GluonCase, record: dict[str, Any], module: Module, problem: Problem, shape: Shape) -> Launch:
    """As Gluon launches it: one cluster for each tile; a map, its extents and its strides for each matrix."""
    entry = module.entries[record["kernel"]]
    m, n, k = shape
    values: list[int | bytes] = []
    for (swizzle, _, box), name, (rows, columns) in zip(
        record["maps"], "abd", ((m, k), (k, n), (m, n)), strict=True
    ):  # fmt: skip
        tmap = TensorMap(
            DataType.FLOAT16, 2, problem.address(name), (columns, rows), (2 * columns,), tuple(reversed(box)), (1, 1),
            swizzle=SwizzleMode(swizzle),
        )  # fmt: skip
        values += [tmap.encode(), rows, columns, columns, 1]
    values += [0, 0]  # Triton's own memory, of which these kernels have none
    tiles = -(-m // case.tile[0]) * -(-n // case.tile[1])
    ctas = record["ctas"]
    block = (entry.directives["reqntid"][0], 1, 1)
    return Launch(record["kernel"], (tiles * ctas, 1, 1), block, (ctas, 1, 1), record["shared"], packed(entry, values))
