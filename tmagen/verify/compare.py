# SPDX-License-Identifier: Apache-2.0
"""Comparing D with what it must be, and saying what kind of wrong it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.ir import DType
from tmagen.verify.buffers import Buffer
from tmagen.verify.elements import Matrix, poison, value_dtype
from tmagen.verify.hints import moved_hints
from tmagen.verify.reference import Bounded, Exact, Reference

_SHOWN = 5
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class WrongElement:
    """An element of D and what it should have been."""

    row: int
    column: int
    got: float
    expected: float


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How D differs from what it must be."""

    wrong: int  # elements
    total: int  # elements of D
    unwritten: int  # elements that still hold the poison
    first: tuple[WrongElement, ...]
    hints: tuple[str, ...]  # what the wrong elements have in common: first where they are

    def lines(self) -> tuple[str, ...]:
        """The report's lines."""
        share = f"{self.wrong:,} of {self.total:,} elements of D are wrong"
        missing = f", {self.unwritten:,} of them were never written" if self.unwritten else ""
        shown = [f"  D[{e.row}, {e.column}] = {_number(e.got)}, expected {_number(e.expected)}" for e in self.first]
        return (share + missing, *(f"  {hint}" for hint in self.hints), *shown)

    def kinds(self) -> tuple[str, ...]:
        """What kind of wrong it is, whichever elements are: the same for the same fault at other shapes."""
        return ("unwritten" if self.unwritten == self.wrong else "wrong", *self.hints[1:])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: `mismatch` is None where D is right."""

    mismatch: Mismatch | None
    error_ratio: float | None  # of inexact references: the largest error over its bound


def compare(d: Buffer, reference: Reference) -> Comparison:
    """Compares every element of D. Exact references bit by bit (0 and -0 are one value), others within their bound."""
    if isinstance(reference, Exact):
        # The common case costs one pass over D.
        wrong = d.bits() != reference.bits
        if not wrong.any():
            return Comparison(None, None)
        wrong &= ~((d.values() == 0) & (reference.bits.view(value_dtype(d.element)) == 0))
        ratio = None
    else:
        wrong, ratio = _outside(d, reference)
    return Comparison(_describe(d, reference, wrong) if wrong.any() else None, ratio)


def _outside(d: Buffer, reference: Bounded) -> tuple[npt.NDArray[np.bool_], float]:
    wrong = np.empty((d.rows, d.columns), bool)
    largest = 0.0
    values = d.values()
    for start in range(0, d.rows, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        error = np.abs(values[rows].astype(np.float64) - reference.values[rows])
        bound = reference.tolerance[rows].astype(np.float64)
        inside = error <= bound  # false for NaN
        np.logical_not(inside, out=wrong[rows])
        largest = max(largest, float(np.max(error / bound, where=inside, initial=0.0)))
    return wrong, largest


def _describe(d: Buffer, reference: Reference, wrong: npt.NDArray[np.bool_]) -> Mismatch:
    expected = _expected_values(d.element, reference)
    got = d.values()
    first = tuple(
        WrongElement(int(row), int(column), float(got[row, column]), float(expected[row, column]))
        for row, column in _first_places(wrong)
    )
    hints = [_where(wrong)]
    if isinstance(reference, Exact):
        hints.extend(moved_hints(d, reference, wrong))
    unwritten = int(np.count_nonzero((d.bits() == poison(d.element)) & wrong))
    return Mismatch(int(np.count_nonzero(wrong)), wrong.size, unwritten, first, tuple(hints))


def _expected_values(element: DType, reference: Reference) -> Matrix:
    return reference.bits.view(value_dtype(element)) if isinstance(reference, Exact) else reference.values


def _first_places(wrong: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """The first few wrong places, without a list of all of them."""
    rows = np.flatnonzero(wrong.any(axis=1))[:_SHOWN]
    places = np.argwhere(wrong[rows])[:_SHOWN]
    places[:, 0] = rows[places[:, 0]]
    return places


def _where(wrong: npt.NDArray[np.bool_]) -> str:
    """Which rows and columns hold wrong elements, and whether they fill them."""
    rows, columns = np.any(wrong, axis=1, keepdims=True).ravel(), np.any(wrong, axis=0, keepdims=True).ravel()
    area = int(rows.sum()) * int(columns.sum())
    count = int(np.count_nonzero(wrong))
    if count == wrong.size:
        return "all of D"
    share = 100 * count / area
    density = "all" if count == area else "nearly all" if share > 99 else f"{share:.0f} % of the elements"
    return f"{density} in {_ranges('row', rows)}, {_ranges('column', columns)}"


def _ranges(what: str, marked: npt.NDArray[np.bool_]) -> str:
    if marked.all():
        return f"every {what}"
    edges = np.flatnonzero(np.diff(np.concatenate(([0], marked.astype(np.int8), [0]))))
    spans = [f"{a}" if b - a == 1 else f"{a}-{b - 1}" for a, b in edges.reshape(-1, 2).tolist()]
    shown = ", ".join(spans[:4]) + (f" and {len(spans) - 4} more ranges" if len(spans) > 4 else "")
    return f"{what}s {shown}"


def _number(value: float) -> str:
    return f"{value:g}" if value != value or abs(value) >= 1e5 else f"{value:.6g}"


def to_dict(mismatch: Mismatch) -> dict[str, Any]:
    """Plain data, for JSON; numbers that JSON lacks (NaN, infinity) as text."""
    return {
        "wrong": mismatch.wrong,
        "total": mismatch.total,
        "unwritten": mismatch.unwritten,
        "hints": list(mismatch.hints),
        "first": [
            {"row": e.row, "column": e.column, "got": _json_number(e.got), "expected": _json_number(e.expected)}
            for e in mismatch.first
        ],
    }


def _json_number(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
