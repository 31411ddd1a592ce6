# SPDX-License-Identifier: Apache-2.0
"""Sums as an H200 makes them, against the same rule in exact fractions, one product at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tmagen.emu import sums
from tmagen.emu.instr_descriptor import Format

DTYPE = {
    Format.F16: np.float16,
    Format.BF16: ml_dtypes.bfloat16,
    Format.TF32: np.float32,
    Format.E4M3: ml_dtypes.float8_e4m3fn,
    Format.E5M2: ml_dtypes.float8_e5m2,
}
LEAST = {Format.F16: -14, Format.BF16: -126, Format.TF32: -126, Format.E4M3: -6, Format.E5M2: -14}
# Products at a time, bits below the largest exponent, and bits of fraction of the sum.
RULE = {
    Format.F16: (16, 25, 23),
    Format.BF16: (16, 25, 23),
    Format.TF32: (8, 25, 23),
    Format.E4M3: (32, 13, 13),
    Format.E5M2: (32, 13, 13),
}


def exponent(value: float, least: int) -> int:
    return max(math.frexp(value)[1] - 1, least)


def cut(value: Fraction, last: int) -> Fraction:
    """Toward zero, to a multiple of 2^last."""
    unit = Fraction(2) ** last
    whole = abs(value) // unit * unit
    return whole if value >= 0 else -whole


def reference(a: list[float], b: list[float], old: float, kinds: tuple[Format, Format]) -> float:
    block, bits, fraction = RULE[kinds[0]]
    total = Fraction(old)
    for first in range(0, len(a), block):
        pairs = [(x, y) for x, y in zip(a[first : first + block], b[first : first + block], strict=True) if x and y]
        terms = [
            (Fraction(x) * Fraction(y), exponent(x, LEAST[kinds[0]]) + exponent(y, LEAST[kinds[1]])) for x, y in pairs
        ]
        if total:
            terms.append((total, exponent(float(total), -126)))
        if not terms:
            continue
        last = max(e for _, e in terms) - bits
        total = sum((cut(value, last) for value, _ in terms), Fraction(0))
        if total:
            top = math.frexp(float(total))[1] - 1
            while abs(total) >= Fraction(2) ** (top + 1):
                top += 1
            while abs(total) < Fraction(2) ** top:
                top -= 1
            total = cut(total, max(top - fraction, -149))
    return float(total)


@pytest.mark.parametrize(
    "kinds",
    [
        (Format.F16, Format.F16),
        (Format.BF16, Format.BF16),
        (Format.TF32, Format.TF32),
        (Format.E4M3, Format.E4M3),
        (Format.E5M2, Format.E4M3),
        (Format.E5M2, Format.E5M2),
    ],
    ids=lambda kinds: "-".join(kind.name.lower() for kind in kinds),
)
@pytest.mark.parametrize("spread", [1, 6])
def test_against_exact_fractions(kinds: tuple[Format, Format], spread: int) -> None:
    chance = np.random.default_rng(spread)

    def operand(kind: Format, rows: int) -> np.ndarray:
        values = chance.standard_normal((rows, 32 // kind.nbytes)) * 2.0 ** chance.integers(-spread, spread, (rows, 1))
        values[chance.random(values.shape) < 0.1] = 0
        found = values.astype(DTYPE[kind]).astype(np.float32)
        return (found.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if kind is Format.TF32 else found

    a, b = operand(kinds[0], 12), operand(kinds[1], 9)
    old = (chance.standard_normal((12, 9)) * 2.0 ** chance.integers(-9, 9, (12, 9))).astype(np.float32)
    got = sums.wgmma(a, b, old, *kinds, Format.F32)
    want = [
        [reference(x.tolist(), y.tolist(), float(old[i, j]), kinds) for j, y in enumerate(b)] for i, x in enumerate(a)
    ]
    assert np.array_equal(got.view(np.uint32), np.array(want, np.float32).view(np.uint32))


def test_float16_d_is_rounded_to_the_nearest() -> None:
    """1 + 2^-11 is a tie, and stays 1; 1 + 3 * 2^-11 goes up to the even 1 + 2^-9."""
    a = np.zeros((2, 16), np.float32)
    a[:, :2] = [[1, 2**-11], [1, 3 * 2**-11]]
    got = sums.wgmma(a, np.ones((8, 16), np.float32), None, Format.F16, Format.F16, Format.F16)
    assert got[:, 0].tolist() == [1, 1 + 2**-9]
    exact = sums.wgmma(a, np.ones((8, 16), np.float32), None, Format.F16, Format.F16, Format.F32)
    assert exact[:, 0].tolist() == [1 + 2**-11, 1 + 3 * 2**-11]


@pytest.mark.parametrize(("beside", "want"), [(0, 1), (2**-24, 1 + 2**-10), (2**-25, 1 + 2**-10), (-(2**-24), 1)])
def test_float16_d_is_rounded_once(beside: float, want: float) -> None:
    """A tie, and less than float32 would keep beside it."""
    a = np.zeros((1, 16), np.float32)
    a[0, :3] = 1, 2**-11, beside * 2**10
    b = np.ones((8, 16), np.float32)
    b[:, 2] = 2**-10
    assert sums.wgmma(a, b, None, Format.F16, Format.F16, Format.F16)[0, 0] == want


@pytest.mark.parametrize(("low", "seen"), [(25, 0), (24, 2**-23), (23, 2**-22)])
def test_small_products_are_summed_before_the_sum_is_cut_off(low: int, seen: float) -> None:
    """Two products of 2^-low beside 1: their sum shows if it has a place in float32, and each is kept to 2^-25."""
    a = np.zeros((1, 16), np.float32)
    a[0, :3] = 1, 2.0 ** (-low + 10), 2.0 ** (-low + 10)
    b = np.full((8, 16), 2.0**-10, np.float32)
    b[:, 0] = 1
    assert sums.wgmma(a, b, None, Format.BF16, Format.BF16, Format.F32)[0, 0] == 1 + seen


def test_fp8_keeps_13_bits() -> None:
    a = np.zeros((3, 32), np.float32)
    a[:, :3] = [[128, 2**-6, 0], [128, 2**-7, 2**-7], [128, -(2**-7), 0]]
    b = np.ones((8, 32), np.float32)
    got = sums.wgmma(a, b, None, Format.E4M3, Format.E4M3, Format.F32)
    assert got[:, 0].tolist() == [128 + 2**-6, 128, 128]


def test_fp8_of_mma_sync_is_float16_and_adds_the_old_d_by_itself() -> None:
    """2^-7 beside 128 is kept; and the old D is rounded to the nearest: 2^24 + 1 is a tie, 2^24 + 3 goes up."""
    a = np.zeros((16, 32), np.float32)
    a[:, 3] = np.arange(16) * 2
    a[0, :2] = 128, 2**-7
    b = np.ones((8, 32), np.float32)
    old = np.full((16, 8), 2.0**24 - 1, np.float32)
    old[0] = 0
    got = sums.mma_sync(a, b, old, Format.E4M3, Format.E4M3, Format.F32)
    assert got[0, 0] == 128 + 2**-7
    assert got[1:4, 0].tolist() == [2**24, 2**24 + 4, 2**24 + 4]


def test_what_is_no_number() -> None:
    a = np.zeros((5, 16), np.float32)
    a[:, 3] = [np.inf, np.nan, np.inf, -np.inf, 3e38]
    a[2, 4] = -np.inf
    b = np.ones((8, 16), np.float32)
    b[1] = 0
    old = np.zeros((5, 8), np.float32)
    old[3, 2] = np.inf
    got = sums.wgmma(a, b, old, Format.BF16, Format.BF16, Format.F32)
    nan = 0x7FFFFFFF
    assert got[:, 0].view(np.uint32).tolist() == [0x7F800000, nan, nan, 0xFF800000, np.float32(3e38).view(np.uint32)]
    assert got[:4, 1].view(np.uint32).tolist() == [nan, nan, nan, nan]
    assert got[3, 2].view(np.uint32) == nan
