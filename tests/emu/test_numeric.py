# SPDX-License-Identifier: Apache-2.0
"""Every bit pattern of the narrow formats against ml_dtypes; float32 narrowing at ties, limits and at random."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmagen.emu import numeric

ALL16 = np.arange(1 << 16, dtype=np.uint16)
ALL8 = np.arange(1 << 8, dtype=np.uint8)
WORDS = st.integers(0, 0xFFFFFFFF)


def float32(bits: int) -> np.ndarray:
    return np.array([bits], np.uint32).view(np.float32)


def is_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF > 0x7F800000


@pytest.mark.parametrize(
    ("widen", "bits", "dtype"),
    [
        (numeric.f16_to_f32, ALL16, np.float16),
        (numeric.bf16_to_f32, ALL16, ml_dtypes.bfloat16),
        (numeric.e4m3_to_f32, ALL8, ml_dtypes.float8_e4m3fn),
        (numeric.e5m2_to_f32, ALL8, ml_dtypes.float8_e5m2),
    ],
)
def test_widening_of_every_pattern(widen, bits, dtype):
    with np.errstate(invalid="ignore"):
        want = bits.view(dtype).astype(np.float32)
    got = widen(bits)
    assert got.dtype == np.float32
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


def test_widening_keeps_the_shape():
    assert numeric.f16_to_f32(ALL16.reshape(16, -1)).shape == (16, 4096)
    assert numeric.bf16_to_f32(ALL16.reshape(16, -1).T).shape == (4096, 16)


@pytest.mark.parametrize(
    ("narrow", "narrow_scalar", "widen_scalar", "dtype", "nan"),
    [
        (numeric.f32_to_f16, numeric.f32_to_f16_scalar, numeric.f16_to_f32_scalar, np.float16, 0x7FFF),
        (numeric.f32_to_bf16, numeric.f32_to_bf16_scalar, numeric.bf16_to_f32_scalar, ml_dtypes.bfloat16, 0x7FFF),
    ],
)
class TestNarrowing:
    def test_every_16_bit_value_survives(self, narrow, narrow_scalar, widen_scalar, dtype, nan):
        with np.errstate(invalid="ignore"):
            wide = ALL16.view(dtype).astype(np.float32)
        want = np.where(np.isnan(wide), np.uint16(nan), ALL16)
        assert np.array_equal(narrow(wide), want)
        for bits in range(0, 1 << 16, 7):
            wide_bits = widen_scalar(bits)
            assert narrow_scalar(wide_bits) == want[bits]
            if not np.isnan(wide[bits]):
                assert wide_bits == int(wide.view(np.uint32)[bits])

    def test_between_neighbours_ties_go_to_even(self, narrow, narrow_scalar, widen_scalar, dtype, nan):
        """Below, at and above the midpoint of every pair of finite neighbours."""
        limit = 0x7C00 if dtype is np.float16 else 0x7F80
        low = np.arange(limit - 1, dtype=np.uint16)
        values = low.view(dtype).astype(np.float64), (low + 1).astype(np.uint16).view(dtype).astype(np.float64)
        middle = ((values[0] + values[1]) / 2).astype(np.float32)  # exact: one more bit than the narrow format
        even = low + (low & 1)
        assert np.array_equal(narrow(middle), even)
        assert np.array_equal(narrow(-middle), even | 0x8000)
        assert np.array_equal(narrow(np.nextafter(middle, np.float32(0))), low)
        assert np.array_equal(narrow(np.nextafter(middle, np.float32(np.inf))), low + 1)
        for i in range(0, len(low), 97):
            assert narrow_scalar(int(middle.view(np.uint32)[i])) == even[i]

    def test_overflow_and_infinity(self, narrow, narrow_scalar, widen_scalar, dtype, nan):
        infinity = 0x7C00 if dtype is np.float16 else 0x7F80
        largest = np.array([infinity - 1], np.uint16).view(dtype).astype(np.float64)[0]
        step = largest - np.array([infinity - 2], np.uint16).view(dtype).astype(np.float64)[0]
        tie = np.array([largest + step / 2], np.float32)
        assert narrow(tie)[0] == infinity
        assert narrow(np.nextafter(tie, np.float32(0)))[0] == infinity - 1
        assert narrow(np.array([-np.inf], np.float32))[0] == infinity | 0x8000
        assert narrow_scalar(int(tie.view(np.uint32)[0])) == infinity
        assert narrow_scalar(0xFF800000) == infinity | 0x8000

    @given(bits=WORDS)
    def test_any_float32(self, narrow, narrow_scalar, widen_scalar, dtype, nan, bits):
        with np.errstate(over="ignore", invalid="ignore"):
            want = nan if is_nan(bits) else int(float32(bits).astype(dtype).view(np.uint16)[0])
        assert narrow(float32(bits))[0] == want
        assert narrow_scalar(bits) == want


@pytest.mark.parametrize(
    ("pack", "narrow"),
    [(numeric.f32_pair_to_f16x2, numeric.f32_to_f16), (numeric.f32_pair_to_bf16x2, numeric.f32_to_bf16)],
)
def test_pairs(pack, narrow):
    bits = np.random.default_rng(1).integers(0, 1 << 32, (2, 4096), np.uint32)
    bits[:, :3] = [[0x7FC00001, 0xFF800000, 0x7F7FFFFF], [0xFFFFFFFF, 0x80000000, 0x33000001]]
    low, high = bits.view(np.float32)
    got = pack(low, high)
    assert got.dtype == np.uint32
    assert np.array_equal(got & 0xFFFF, narrow(low))
    assert np.array_equal(got >> 16, narrow(high))


@given(bits=WORDS)
def test_tf32_drops_the_low_13_bits(bits):
    assert numeric.tf32_truncate(np.array([bits], np.uint32)).view(np.uint32)[0] == bits >> 13 << 13


@given(value=st.floats())
def test_float_to_bits(value):
    with np.errstate(over="ignore"):
        want = 0x7FFFFFFF if value != value else int(np.array([value]).astype(np.float32).view(np.uint32)[0])
    assert numeric.float_to_bits(value) == want


@given(bits=WORDS)
def test_bits_to_float_is_exact(bits):
    value = numeric.bits_to_float(bits)
    assert value != value if is_nan(bits) else numeric.float_to_bits(value) == bits
