# SPDX-License-Identifier: Apache-2.0
"""The problems of a comparison: the one that plans and costs are about, and the small one that is emulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tmagen.bind import LeadingDims
from tmagen.emu import GlobalMemory
from tmagen.ir import DType, Gemm, Pipeline, Policy, Shape, Tile
from tmagen.verify.buffers import Buffer, Buffers, allocate
from tmagen.verify.shapes import default_leading_dims

TRIAL = 512
"""About the size of what is emulated, in each direction."""

TILES_PER_CTA = 3
"""A persistent grid is cut down to so few CTAs that each takes about so many tiles: what is kept from tile to tile is
only seen then."""

Elements = tuple[DType, DType, DType]


@dataclass(frozen=True, slots=True)
class Problem:
    """A shape with the types and rows of its matrices."""

    shape: Shape
    elements: Elements
    lds: LeadingDims

    @property
    def spans(self) -> dict[str, int]:
        """Bytes from the first to past the last element of each matrix."""
        of_a, of_b, of_d = self.elements
        shape, lds = self.shape, self.lds
        return {
            "A": max(1, shape.m * lds.a * of_a.bytes),
            "B": max(1, shape.n * lds.b * of_b.bytes),
            "D": shape.m * lds.d * of_d.bytes,
        }

    @property
    def pitches(self) -> dict[str, int]:
        """Bytes from row to row."""
        of_a, of_b, of_d = self.elements
        return {"A": self.lds.a * of_a.bytes, "B": self.lds.b * of_b.bytes, "D": self.lds.d * of_d.bytes}


def problem_of(shape: Shape, elements: Elements) -> Problem:
    """With the shortest rows that TMA takes."""
    return Problem(shape, elements, default_leading_dims(shape, elements))


def trial_shape(tile: Tile, pipeline: Pipeline) -> Shape:
    """Whole tiles, and as many of K as leave every parity where it was: what a TIRx kernel can do too."""
    depth = 1 if pipeline.policy is Policy.SERIAL else pipeline.depth
    step = 2 * depth * tile.k
    return Shape(tile.m * max(1, TRIAL // tile.m), tile.n * max(2, TRIAL // tile.n), step * max(1, TRIAL // step))


def trial_ctas(spec: Gemm, shape: Shape) -> int:
    """CTAs of a persistent grid for the trial."""
    tiles = -(-shape.m // spec.tile.m) * -(-shape.n // spec.tile.n)
    return max(1, tiles // TILES_PER_CTA)


def pretended_addresses(problem: Problem) -> Mapping[str, int]:
    """Addresses for a launch that is looked at and not run, far apart."""
    return {name: number << 44 for number, name in enumerate("ABD", start=1) if name == "D" or problem.shape.k}


def allocated(problem: Problem, memory: GlobalMemory) -> Buffers:
    """The matrices in emulated memory. K is not 0."""
    of_a, of_b, of_d = problem.elements
    shape, lds = problem.shape, problem.lds
    return Buffers(
        allocate(memory, "A", of_a, shape.m, shape.k, lds.a),
        allocate(memory, "B", of_b, shape.n, shape.k, lds.b),
        allocate(memory, "D", of_d, shape.m, shape.n, lds.d),
    )


def addresses_of(buffers: Buffers) -> Mapping[str, int]:
    """Where the matrices begin."""
    named: dict[str, Buffer | None] = {"A": buffers.a, "B": buffers.b, "D": buffers.d}
    return {name: buffer.address for name, buffer in named.items() if buffer is not None}
