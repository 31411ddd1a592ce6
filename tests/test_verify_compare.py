# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from tmagen.emu import GlobalMemory
from tmagen.ir import DType
from tmagen.verify.buffers import Buffer, allocate
from tmagen.verify.compare import Mismatch, compare, to_dict
from tmagen.verify.elements import bits_dtype, value_dtype
from tmagen.verify.reference import Bounded, Exact

ROWS, COLUMNS = 192, 160


def filled(element: DType = DType.F16, ld: int = 176) -> tuple[Buffer, Exact]:
    """D as it should be."""
    buffer = allocate(GlobalMemory(), "D", element, ROWS, COLUMNS, ld)
    values = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 2039 - 1000
    right = values.astype(np.float32).astype(value_dtype(element))
    buffer.write(right)
    return buffer, Exact(right.view(bits_dtype(element)).copy())


def mismatch_of(buffer: Buffer, reference: Exact | Bounded) -> Mismatch:
    mismatch = compare(buffer, reference).mismatch
    assert mismatch is not None
    return mismatch


@pytest.mark.parametrize("element", [DType.F16, DType.BF16, DType.F32])
def test_right(element: DType) -> None:
    buffer, reference = filled(element)
    assert compare(buffer, reference).mismatch is None


def test_minus_zero_is_zero_and_nan_is_nothing() -> None:
    buffer, reference = filled()
    row, column = np.argwhere(reference.bits == 0)[0]
    buffer.bits()[row, column] = 0x8000
    assert compare(buffer, reference).mismatch is None
    buffer.bits()[row, column] = 0x7E00
    mismatch = mismatch_of(buffer, reference)
    assert mismatch.wrong == 1
    assert mismatch.lines()[-1] == f"  D[{row}, {column}] = nan, expected 0"
    assert to_dict(mismatch)["first"] == [{"row": row, "column": column, "got": "nan", "expected": 0.0}]


def test_one_bit() -> None:
    buffer, reference = filled()
    buffer.bits()[17, 3] ^= 1
    mismatch = mismatch_of(buffer, reference)
    assert (mismatch.wrong, mismatch.total, mismatch.unwritten) == (1, ROWS * COLUMNS, 0)
    assert (mismatch.first[0].row, mismatch.first[0].column) == (17, 3)
    assert mismatch.hints == ("all in rows 17, columns 3",)


def test_unwritten_tile() -> None:
    buffer, reference = filled()
    buffer.bits()[128:, 64:128] = 0xFFFF
    mismatch = mismatch_of(buffer, reference)
    assert mismatch.unwritten == mismatch.wrong == 64 * 64
    assert mismatch.hints[0] == "all in rows 128-191, columns 64-127"
    assert mismatch.lines()[0] == "4,096 of 30,720 elements of D are wrong, 4,096 of them were never written"


def test_first_elements_are_the_first() -> None:
    buffer, reference = filled()
    places = [(3, 150), (4, 0), (4, 159), (90, 7), (190, 1), (191, 1)]
    for row, column in places:
        buffer.bits()[row, column] ^= 0x100
    assert [(e.row, e.column) for e in mismatch_of(buffer, reference).first] == places[:5]


SWIZZLES: dict[str, Callable[[int], int]] = {
    "128 bytes": lambda row: row % 8,
    "64 bytes": lambda row: row // 2 % 4,
    "32 bytes": lambda row: row // 4 % 2,
    "none": lambda row: 0,
}


@pytest.mark.parametrize(("one", "other"), list(combinations(SWIZZLES, 2)))
def test_chunks_of_another_swizzle_are_recognised(one: str, other: str) -> None:
    """Rows whose 16-byte chunks are XORed with the row, as an unmatched swizzle leaves them."""
    buffer, reference = filled()
    bits = buffer.bits()
    for row in range(ROWS):
        by = SWIZZLES[one](row) ^ SWIZZLES[other](row)
        for start in (0, 64):
            chunks = bits[row, start : start + 64].reshape(8, 8).copy()
            bits[row, start : start + 64] = chunks[np.arange(8) ^ by].reshape(64)
    (hint,) = (hint for hint in mismatch_of(buffer, reference).hints if "chunks" in hint)
    assert "a swizzle that does not match" in hint
    assert one in hint.split("match")[1] and other in hint.split("match")[1]


@pytest.mark.parametrize("element", [DType.F16, DType.F32])
def test_columns_of_other_columns_are_named_and_are_no_swizzle(element: DType) -> None:
    buffer, reference = filled(element)
    buffer.bits()[5:130, 0:64] = reference.bits[5:130, 96:160]
    told = "columns 0-63 hold those of columns 96-159: was the staging buffer overwritten too early?"
    assert mismatch_of(buffer, reference).hints[1:] == (told,)
    buffer, reference = filled(element)
    buffer.bits()[:, 64:128] = reference.bits[:, :64]
    hints = mismatch_of(buffer, reference).hints
    assert (
        "columns 64-127 hold those of columns 0-63: was the staging buffer stored before it was filled again?" in hints
    )
    assert not any("swizzle" in hint for hint in hints)


def test_chunks_that_rotate_are_no_swizzle() -> None:
    buffer, reference = filled()
    buffer.bits()[:] = np.roll(reference.bits.reshape(ROWS, -1, 8), 1, axis=1).reshape(ROWS, COLUMNS)
    hints = mismatch_of(buffer, reference).hints
    assert not any("swizzle" in hint for hint in hints)
    assert any("columns 8-159 hold those of columns 0-151" in hint for hint in hints)


def test_chunks_in_an_order_of_their_own_get_no_hint() -> None:
    buffer, reference = filled()
    order = np.random.default_rng(1)
    for row in range(ROWS):
        chunks = reference.bits[row].reshape(-1, 8)
        buffer.bits()[row] = chunks[order.permutation(len(chunks))].reshape(-1)
    assert not any("swizzle" in hint or "hold" in hint for hint in mismatch_of(buffer, reference).hints)


def test_moved_rows_and_columns_are_recognised() -> None:
    buffer, reference = filled()
    buffer.bits()[3:-1] = reference.bits[4:]
    assert "row 3 holds what belongs in row 4" in mismatch_of(buffer, reference).hints
    buffer, reference = filled()
    buffer.bits()[:, 8:] = reference.bits[:, :-8]
    assert "column 8 holds what belongs in column 0" in mismatch_of(buffer, reference).hints


def test_bounded() -> None:
    buffer, reference = filled(DType.F32)
    values = reference.bits.view(np.float32).astype(np.float64)
    bounded = Bounded(values, np.full((ROWS, COLUMNS), 0.25, np.float32))
    buffer.values()[5, 6] += np.float32(0.125)
    comparison = compare(buffer, bounded)
    assert comparison.mismatch is None
    assert comparison.error_ratio == 0.5
    buffer.values()[5, 6] += np.float32(0.25)
    buffer.values()[6, 6] = np.nan
    mismatch = mismatch_of(buffer, bounded)
    assert [(e.row, e.column) for e in mismatch.first] == [(5, 6), (6, 6)]


def test_whole_and_scattered() -> None:
    buffer, reference = filled()
    buffer.bits()[:] ^= 1
    assert mismatch_of(buffer, reference).hints[0] == "all of D"
    buffer, reference = filled()
    buffer.bits()[::2, ::16] ^= 1
    assert mismatch_of(buffer, reference).hints[0] == (
        "all in rows 0, 2, 4, 6 and 92 more ranges, columns 0, 16, 32, 48 and 6 more ranges"
    )
