# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tmagen.ir import DType, Shape
from tmagen.verify import reference
from tmagen.verify.elements import half_ulp, value_dtype
from tmagen.verify.inputs import Inputs, integer_inputs, normal_inputs
from tmagen.verify.reference import bounded_reference, exact_reference, zeros

TYPES = [DType.F16, DType.BF16, DType.F32]
F16_PAIR = (DType.F16, DType.F16)


def round_to_even(value: int, bits: int) -> int:
    """An integer rounded to `bits` significant bits, ties to even, with integer arithmetic alone."""
    magnitude, sign = abs(value), -1 if value < 0 else 1
    drop = max(0, magnitude.bit_length() - bits)
    kept, rest = magnitude >> drop, magnitude & ((1 << drop) - 1)
    half = (1 << drop) >> 1
    kept += drop > 0 and (rest > half or (rest == half and kept & 1))
    return sign * (kept << drop)


@pytest.mark.parametrize(("element", "bits"), [(DType.F16, 11), (DType.BF16, 8), (DType.F32, 24)])
def test_exact_reference_is_rounded_once(element: DType, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_CHUNK_ELEMS", 700)  # several chunks, the last one short
    inputs = integer_inputs(Shape(37, 21, 333), F16_PAIR, seed=5)
    a = [[int(v) for v in row] for row in inputs.a.astype(np.float64)]
    b = [[int(v) for v in row] for row in inputs.b.astype(np.float64)]
    values = exact_reference(inputs, element).bits.view(value_dtype(element)).astype(np.float64)
    for m in range(37):
        for n in range(21):
            total = sum(x * y for x, y in zip(a[m], b[n], strict=True))
            assert values[m, n] == round_to_even(total, bits), (m, n)


def test_sum_beyond_f16_is_infinite() -> None:
    inputs = Inputs(np.full((1, 2), 7, np.float16), np.full((1, 2), 30000, np.float16), "integer")
    assert exact_reference(inputs, DType.F16).bits[0, 0] == 0x7C00


@pytest.mark.parametrize("element", TYPES)
def test_zeros(element: DType) -> None:
    assert not zeros(3, 5, element).bits.view(value_dtype(element)).astype(np.float64).any()


@pytest.mark.parametrize(
    ("element", "significand", "least"), [(DType.F16, 11, -14), (DType.BF16, 8, -126), (DType.F32, 24, -126)]
)
def test_half_ulp(element: DType, significand: int, least: int) -> None:
    """Half the distance of neighbours, found from the neighbours themselves."""
    for value in (1.0, 1.5, 2.0, 255.9, 3.1e4, 2.0**least, 2.0 ** (least - 1), 0.0):
        exponent = max(least, int(np.floor(np.log2(value))) if value else least)
        assert half_ulp(element, np.array(value)) == 2.0 ** (exponent - significand)


def test_bounded_reference_is_the_product_and_its_bound() -> None:
    inputs = normal_inputs(Shape(5, 3, 40), F16_PAIR, seed=0)
    result = bounded_reference(inputs, DType.F16)
    for m in range(5):
        for n in range(3):
            products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(inputs.a[m], inputs.b[n], strict=True)]
            exact, size = float(sum(products)), float(sum(map(abs, products)))
            assert result.values[m, n] == pytest.approx(exact, rel=1e-14)
            accumulated = 2 * (3 + 2) * 2.0**-23 * size  # ceil(40 / 16) = 3
            rounding = 2.0 ** (np.floor(np.log2(abs(exact) + accumulated)) - 11)
            assert result.tolerance[m, n] == pytest.approx(accumulated + rounding, rel=1e-5)


@pytest.mark.parametrize("element", TYPES)
def test_rounding_the_true_product_stays_inside(element: DType) -> None:
    inputs = normal_inputs(Shape(64, 64, 256), F16_PAIR, seed=1)
    result = bounded_reference(inputs, element)
    rounded = result.values.astype(np.float32).astype(value_dtype(element)).astype(np.float64)
    assert (np.abs(rounded - result.values) <= result.tolerance).all()
    # Leaving one K element out is not inside: the bound is no wider than it must be.
    short = Inputs(inputs.a[:, :-1], inputs.b[:, :-1], "normal")
    wrong = np.abs(bounded_reference(short, element).values - result.values) > result.tolerance
    assert wrong.mean() > 0.9
