# SPDX-License-Identifier: Apache-2.0
"""What D must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tmagen.ir import DType
from tmagen.verify.elements import Matrix, bits_dtype, half_ulp, value_dtype
from tmagen.verify.inputs import Inputs

_CHUNK_ELEMS = 1 << 22  # rows of D are done in chunks of about this many elements of f64

# The tensor core adds the products of 16 elements of K to the accumulator at a time, aligned to the largest of them and
# cut off below f32's last place: each such step may lose a unit of 2^-23 of what is summed.
_BLOCK_K = 16
_UNIT = 2.0**-23
_SAFETY = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """D to the last bit."""

    bits: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """D in f64, and how far from it each element may be."""

    values: npt.NDArray[np.float64]
    tolerance: npt.NDArray[np.float32]


Reference = Exact | Bounded


def zeros(rows: int, columns: int, element: DType) -> Exact:
    """D of a product with K = 0."""
    return Exact(np.zeros((rows, columns), bits_dtype(element)))


def exact_reference(inputs: Inputs, element: DType) -> Exact:
    """The product of integers: exact in f32, then rounded once, to nearest even, as the kernel's epilogue rounds."""
    a, b = inputs.a, inputs.b
    bits = np.empty((len(a), len(b)), bits_dtype(element))
    b_rows = b.astype(np.float32)
    for rows in _chunks(len(a), max(len(b), a.shape[1])):
        product = a[rows].astype(np.float32) @ b_rows.T
        with np.errstate(over="ignore"):  # beyond the largest finite number the rounded value is infinity
            bits[rows] = product.astype(value_dtype(element)).view(bits_dtype(element))
    return Exact(bits)


def bounded_reference(inputs: Inputs, element: DType) -> Bounded:
    """The product in f64, with the error that f32 accumulation and one rounding to D's type may add.

    |d - d64| <= 2 (ceil(K / 16) + 2) 2^-23 sum |a b| + half a unit in D's last place.
    """
    a, b = inputs.a, inputs.b
    values = np.empty((len(a), len(b)), np.float64)
    tolerance = np.empty((len(a), len(b)), np.float32)
    factor = accumulation_factor(a.shape[1])
    b_wide, b_size = b.astype(np.float64), np.abs(b.astype(np.float32))
    for rows in _chunks(len(a), max(len(b), a.shape[1])):
        values[rows] = a[rows].astype(np.float64) @ b_wide.T
        accumulated = factor * (np.abs(a[rows].astype(np.float32)) @ b_size.T).astype(np.float64)
        tolerance[rows] = accumulated + half_ulp(element, np.abs(values[rows]) + accumulated)
    return Bounded(values, tolerance)


def accumulation_factor(k: int) -> float:
    """How far f32 accumulation of K products may be off, as a share of the sum of their magnitudes."""
    return _SAFETY * (-(-k // _BLOCK_K) + 2) * _UNIT


def _chunks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK_ELEMS // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))
