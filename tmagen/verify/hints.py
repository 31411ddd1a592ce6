# SPDX-License-Identifier: Apache-2.0
"""What wrong elements of D have in common, where that tells what went wrong: said only of what fits in every row that
is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tmagen.verify.buffers import Buffer
from tmagen.verify.reference import Exact

_CHUNK_BYTES = 16  # what the TMA swizzle moves
_TELLING = 8  # elements that do not agree by chance
_ROWS = 24  # wrong rows that are looked at: three times the period of the widest swizzle
_SHOWN = 2  # ranges of columns

Wrong = npt.NDArray[np.bool_]

# By how much a swizzle XORs the index of a 16-byte chunk in a row of a box (PTX ISA "Swizzling modes"), by the bytes of
# the box's row. Boxes start at rows that are multiples of 8.
_SWIZZLES: dict[str, Callable[[int], int]] = {
    "none": lambda row: 0,
    "128 bytes": lambda row: row % 8,
    "64 bytes": lambda row: row // 2 % 4,
    "32 bytes": lambda row: row // 4 % 2,
}


def moved_hints(d: Buffer, reference: Exact, wrong: Wrong) -> Iterator[str]:
    """Right elements in the wrong place: rows or columns as a whole, chunks of a swizzle, ranges of columns."""
    yield from _moved_lines(d, reference, wrong)
    chunks = _Chunks(d, reference, wrong)
    swizzle = chunks.swizzle()
    if swizzle is None:
        yield from chunks.ranges()
    else:
        yield swizzle


def _moved_lines(d: Buffer, reference: Exact, wrong: Wrong) -> Iterator[str]:
    """Recognises a wrong coordinate or stride: a row or column that is right, but belongs elsewhere."""
    for what, axis, got, right in (("row", 1, d.bits(), reference.bits), ("column", 0, d.bits().T, reference.bits.T)):
        index = int(np.argmax(np.any(wrong, axis=axis, keepdims=True).ravel()))
        if got.shape[1] >= _TELLING:
            homes = np.flatnonzero((right == got[index]).all(axis=1))
            yield from (f"{what} {index} holds what belongs in {what} {home}" for home in homes[:1].tolist())


class _Chunks:
    """Wrong 16-byte chunks of the first wrong rows that hold what another chunk of their row should."""

    def __init__(self, d: Buffer, reference: Exact, wrong: Wrong) -> None:
        self.width = _CHUNK_BYTES // d.element.bytes
        self.rows: dict[int, dict[int, int]] = {}  # row -> chunk -> whose content it holds
        count = d.columns // self.width
        for row in np.flatnonzero(wrong[:, : count * self.width].any(axis=1))[:_ROWS].tolist():
            right = _split(reference.bits[row], count, self.width)
            got = _split(d.bits()[row], count, self.width)
            homes = {chunk: index for index, chunk in enumerate(right)}
            if len(homes) < count:
                continue  # chunks that are alike tell nothing
            places = [index for index in range(count) if got[index] != right[index]]
            moved = {index: homes[got[index]] for index in places if got[index] in homes}
            if moved:
                self.rows[row] = moved

    def swizzle(self) -> str | None:
        """Chunks whose index is XORed as one swizzle does and another does not."""
        row = next((row for row, moved in self.rows.items() if len(moved) > 1), None)
        if row is None:
            return None
        for one, other in combinations(_SWIZZLES, 2):
            if all(
                home == index ^ _SWIZZLES[one](at) ^ _SWIZZLES[other](at)
                for at, moved in self.rows.items()
                for index, home in moved.items()
            ):
                example = ", ".join(f"{home} at {index}" for index, home in list(self.rows[row].items())[:4])
                return (
                    f"row {row} holds right 16-byte chunks in the wrong places (chunk {example}): a swizzle that does "
                    f"not match, {other} on one side and {one} on the other"
                )
        return None

    def ranges(self) -> Iterator[str]:
        """Ranges of columns that hold those of others, by the same distance in all rows."""
        distances: dict[int, set[int]] = {}
        for moved in self.rows.values():
            for index, home in moved.items():
                distances.setdefault(index, set()).add(home - index)
        runs: list[tuple[int, int, int]] = []  # first chunk, last chunk, distance
        for index in sorted(index for index, found in distances.items() if len(found) == 1):
            (distance,) = distances[index]
            if runs and runs[-1][1] == index - 1 and runs[-1][2] == distance:
                runs[-1] = (runs[-1][0], index, distance)
            else:
                runs.append((index, index, distance))
        # One chunk that moved may be chance, or part of a pattern that is no shift.
        telling = [run for run in runs if run[1] > run[0]]
        for first, last, distance in telling[:_SHOWN]:
            why = "overwritten too early" if distance > 0 else "stored before it was filled again"
            yield (
                f"columns {self._columns(first, last)} hold those of columns "
                f"{self._columns(first + distance, last + distance)}: was the staging buffer {why}?"
            )
        if len(telling) > _SHOWN:
            yield f"and so do {len(telling) - _SHOWN} more ranges of columns, of others"

    def _columns(self, first: int, last: int) -> str:
        return f"{first * self.width}-{(last + 1) * self.width - 1}"


def _split(bits: npt.NDArray[np.unsignedinteger], count: int, width: int) -> list[bytes]:
    return [chunk.tobytes() for chunk in np.ascontiguousarray(bits[: count * width]).reshape(count, width)]
