# SPDX-License-Identifier: Apache-2.0
"""The contents of A and B: integers whose product is known to the last bit, and normal random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tmagen.errors import TmagenError
from tmagen.ir import DType, Shape
from tmagen.verify.elements import Matrix, value_dtype

_EXACT_LIMIT = 1 << 24  # integers up to here are exact in f32, whatever the order of a sum

# Sixteen values each, so that four random bits pick one. No zero: an element that gets lost changes the sum. Mixed
# signs keep sums small, where f16 and bf16 tell neighbours apart; primes keep products distinct.
_INTEGERS = (
    (1, 2, 3, 5, 7, 1, 3, 7, -1, -2, -3, -5, -7, -2, -5, -7),
    (1, 2, 3, 1, 2, 3, 1, 3, -1, -2, -3, -1, -2, -3, -2, -3),
    (1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1),
)


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """A of M x K and B of N x K elements, as values of their own type."""

    a: Matrix
    b: Matrix
    kind: str  # "integer" or "normal"


def integer_inputs(shape: Shape, elements: tuple[DType, DType], seed: int) -> Inputs:
    """Random small integers. Every partial sum of every dot product is an integer below 2^24, so exact in f32.

    Raises TmagenError where K is so long that no such integers exist.
    """
    table = next((values for values in _INTEGERS if shape.k * max(values) ** 2 < _EXACT_LIMIT), None)
    if table is None:
        raise TmagenError(f"k = {shape.k:,}: sums of that many products are not exact in f32; use --input normal")
    random = _generator(seed, shape, stream=1)
    a, b = (
        np.array(table, np.float32).astype(value_dtype(element))[_nibbles(random, rows, shape.k)]
        for element, rows in zip(elements, (shape.m, shape.n), strict=True)
    )
    return Inputs(a, b, "integer")


def normal_inputs(shape: Shape, elements: tuple[DType, DType], seed: int) -> Inputs:
    """Standard normal numbers, rounded to the element type."""
    random = _generator(seed, shape, stream=2)
    a, b = (
        random.standard_normal((rows, shape.k), np.float32).astype(value_dtype(element))
        for element, rows in zip(elements, (shape.m, shape.n), strict=True)
    )
    return Inputs(a, b, "normal")


def _generator(seed: int, shape: Shape, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, shape.m, shape.n, shape.k, stream])))


def _nibbles(random: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.uint8]:
    """Uniform integers 0..15."""
    drawn = np.frombuffer(random.bytes(rows * columns), np.uint8).reshape(rows, columns)
    return drawn & np.uint8(15)
