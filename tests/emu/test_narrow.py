# SPDX-License-Identifier: Apache-2.0
"""cvt to and from fp8 and tf32, against values of ml_dtypes and the rounding of the PTX ISA."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.ptx import apply

FP8 = {"e4m3": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2": (ml_dtypes.float8_e5m2, 57344.0)}
FINITE = "0 -0 1 -1 1.0625 1.1875 447 448 464 500 -600 57344 61440 1e9 -1e9 0.3 -0.7 3.3 100.5 17 19 -21 5e-8 6.5 7.5"
VALUES = np.array(
    [*map(float, FINITE.split()), np.inf, -np.inf, np.nan, 2**-9, 2**-10, 3 * 2**-11, -(2**-17)], np.float32
)


def nearest(value: np.float32, kind: str) -> int:
    """The fp8 bits of the nearest value, ties to even, found by comparison with all finite ones."""
    dtype, largest = FP8[kind]
    if np.isnan(value):
        return 0x7F
    if abs(value) >= largest:
        return int(np.array(np.copysign(largest, value)).astype(dtype).view(np.uint8))
    codes = [c for c in range(128) if np.isfinite(float(np.uint8(c).view(dtype)))]
    # Exact in float64; of two equally near codes the even one.
    best = min(codes, key=lambda c: (abs(float(np.uint8(c).view(dtype)) - abs(float(value))), c & 1))
    return best | (0x80 if np.signbit(value) else 0)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("how", ["lanes", "uniform", "one"])
def test_float32_to_fp8(kind: str, relu: bool, how: str) -> None:
    high, low = VALUES, np.roll(VALUES, 5)
    columns = [(4, high.view(np.uint32).tolist()), (4, low.view(np.uint32).tolist())]
    got = apply(f"cvt.rn.satfinite{'.relu' if relu else ''}.{kind}x2.f32 {{d}}, {{a}}, {{b}};", 2, columns, how)
    both = [
        nearest(h if not relu or not h <= 0 else np.float32(0), kind) << 8
        | nearest(x if not relu or not x <= 0 else np.float32(0), kind)
        for h, x in zip(high, low, strict=True)
    ]
    assert got == expected(both, how)


def expected(results: list[int], how: str) -> list[int]:
    if how == "uniform":
        return results[:1] * 32
    return results if how == "lanes" else [r if lane == 5 else 0 for lane, r in enumerate(results)]


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("how", ["lanes", "uniform"])
def test_fp8_and_float16(kind: str, how: str) -> None:
    dtype, _ = FP8[kind]
    for start in range(0, 256, 64):
        pairs = [(start + 2 * i) | (start + 2 * i + 1) << 8 for i in range(32)]
        got = apply(f"cvt.rn.f16x2.{kind}x2 {{d}}, {{a}};", 4, [(2, pairs)], how)
        want = []
        for pair in pairs:
            with np.errstate(invalid="ignore"):
                halves = np.array([pair & 0xFF, pair >> 8], np.uint8).view(dtype).astype(np.float32).astype(np.float16)
            bits = [0x7FFF if np.isnan(h) else int(h.view(np.uint16)) for h in halves]
            want.append(bits[0] | bits[1] << 16)
        assert got == expected(want, how)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_float16_to_fp8(kind: str) -> None:
    with np.errstate(over="ignore"):
        halves = VALUES.astype(np.float16)
    words = [int(h) | int(h) << 16 for h in halves.view(np.uint16)]
    got = apply(f"cvt.rn.satfinite.{kind}x2.f16x2 {{d}}, {{a}};", 2, [(4, words)])
    assert got == [nearest(h.astype(np.float32), kind) * 0x101 for h in halves]


BITS = [0x3F800000, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0xBF801000, 0x7F7FFFFF, 0x7F800000, 0xFFC00000, 0]
BITS += [0x80000000, 0x00001000, 0x00003000, 0xBF803000, 0x3F802FFF, 0x3F804FFF] * 2 + [0x40490FDB, 0xC0490FDB] * 5


def to_tf32(bits: int, rounding: str) -> int:
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits & 0xFFFFE000 if rounding == "rna" else 0x7FFFFFFF
    sign, rest = bits & 1 << 31, bits & 0x7FFFFFFF
    kept, lost = rest >> 13, rest & 0x1FFF
    up = {"rz": False, "rna": lost >= 0x1000, "rn": lost > 0x1000 or (lost == 0x1000 and kept & 1 == 1)}[rounding]
    return sign | (kept + up) << 13


@pytest.mark.parametrize("rounding", ["rn", "rna", "rz"])
@pytest.mark.parametrize("how", ["lanes", "one"])
def test_tf32(rounding: str, how: str) -> None:
    got = apply(f"cvt.{rounding}.tf32.f32 {{d}}, {{a}};", 4, [(4, BITS)], how)
    assert got == expected([to_tf32(bits, rounding) for bits in BITS], how)


def test_tf32_that_keeps_to_finite_or_positive_numbers() -> None:
    got: list[Any] = apply("cvt.rn.satfinite.tf32.f32 {d}, {a};", 4, [(4, BITS)])
    assert got[6] == got[7] == 0x7F7FE000
    got = apply("cvt.rn.relu.tf32.f32 {d}, {a};", 4, [(4, BITS)])
    assert [got[i] for i in (0, 5, 8, 10)] == [0x3F800000, 0, 0x7FFFFFFF, 0]
