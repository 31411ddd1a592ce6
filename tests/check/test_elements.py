# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmagen.check.elements import ELEMENTS, narrowed

# Precision (the hidden bit included), least normal exponent, largest finite value.
FORMATS = {
    "f16": (11, -14, 65504.0),
    "bf16": (8, -126, (2 - 2.0**-7) * 2.0**127),
    "f32": (24, -126, (2 - 2.0**-23) * 2.0**127),
    "tf32": (11, -126, (2 - 2.0**-10) * 2.0**127),
    "e4m3": (4, -6, 448.0),
    "e5m2": (3, -14, 57344.0),
}


def nearest_even(value: float, precision: int, least: int) -> float:
    """The rounding of IEEE 754, in exact arithmetic."""
    if value == 0:
        return value
    exact = Fraction(value)
    exponent = least
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - precision + 1)
    quotient, rest = divmod(abs(exact), step)
    up = rest * 2 > step or (rest * 2 == step and quotient % 2 == 1)
    return float((quotient + up) * step) * (1 if exact > 0 else -1)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_rounding_is_to_nearest_even_and_single(name: str, data: st.DataObject) -> None:
    precision, least, largest = FORMATS[name]
    bound = min(largest, 1e30)
    value = data.draw(st.floats(-bound, bound, allow_nan=False))
    # Values close to the middle of two neighbours are where a second rounding would show.
    middle = nearest_even(value, precision, least) * (1 + 2.0**-precision)
    for tried in (value, middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)):
        want = nearest_even(float(tried), precision, least)
        if abs(want) <= largest:
            assert float(narrowed(np.array([tried]), ELEMENTS[name])[0]) == want


def test_two_roundings_would_go_wrong() -> None:
    # 1 + 2^-8 lies between two bf16 numbers; a little more must round up, and f32 cannot hold that little.
    assert float(narrowed(np.array([1 + 2.0**-8 + 2.0**-40]), ELEMENTS["bf16"])[0]) == 1 + 2.0**-7
    assert float(narrowed(np.array([1 + 2.0**-8]), ELEMENTS["bf16"])[0]) == 1.0


@pytest.mark.parametrize(("name", "largest"), [("e4m3", 448.0), ("e5m2", 57344.0)])
def test_fp8_saturates(name: str, largest: float) -> None:
    got = narrowed(np.array([1e9, -1e9, np.inf, np.nan]), ELEMENTS[name]).astype(np.float64)
    assert got[:3].tolist() == [largest, -largest, largest]
    assert np.isnan(got[3])


def test_f16_overflows_to_infinity() -> None:
    assert narrowed(np.array([65520.0, 65519.0]), ELEMENTS["f16"]).tolist() == [np.inf, 65504.0]


def test_integers_wrap_and_numbers_clamp() -> None:
    assert narrowed(np.array([128, -129, 256]), ELEMENTS["s8"]).tolist() == [-128, 127, 0]
    assert narrowed(np.array([1e9, -1e9, 2.5, 3.5]), ELEMENTS["s8"]).tolist() == [127, -128, 2, 4]
