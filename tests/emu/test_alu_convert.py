# SPDX-License-Identifier: Apache-2.0
"""cvt between all kinds of numbers, and mov with vectors."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.ptx import apply
from tests.emu.test_alu_integer import M, check, s, values

INTS = [f"{k}{w}" for w in (16, 32, 64) for k in "us"]
EDGES = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 65504.0, 65519.0, 65520.0, 1e9, -1e9, 3e38, math.inf, -math.inf,
         math.nan, 2.0**-24, 2.0**-25, 2.0**-26, 1e-40, 2147483648.0, -2147483648.0, 4294967296.0, 1.0009765625,
         1.00048828125, 1.00146484375, 2049.0, 2051.0, 257.0, 259.0, -3.7, 3.3]  # fmt: skip


def f32(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def value(bits: int, significand: int, exponent: int) -> Fraction | float:
    """The number that a binary format of `significand` stored bits and `exponent` bits holds."""
    sign = -1 if bits >> (significand + exponent) else 1
    e, m = bits >> significand & ((1 << exponent) - 1), bits & ((1 << significand) - 1)
    bias = (1 << (exponent - 1)) - 1
    if e == (1 << exponent) - 1:
        return math.nan if m else sign * math.inf
    scale = Fraction(2) ** ((e or 1) - bias - significand)
    return sign * (m + ((1 << significand) if e else 0)) * scale


def nearest(x: float, significand: int, exponent: int) -> int:
    """Bits of `x` in a format, to nearest even, by search among its neighbours: no rounding trick."""
    total = 1 + significand + exponent
    top = ((1 << exponent) - 1) << significand
    if math.isnan(x):
        return (1 << (total - 1)) - 1
    sign = int(math.copysign(1, x) < 0) << (total - 1)
    if math.isinf(x):
        return sign | top
    target = abs(Fraction(x))
    low, high = 0, top  # `top` stands for the number after the largest finite one, which infinity is rounded from
    while high - low > 1:
        middle = (low + high) // 2
        if Fraction(value(middle, significand, exponent)) <= target:
            low = middle
        else:
            high = middle
    bias = (1 << (exponent - 1)) - 1
    after = Fraction(value(high, significand, exponent)) if high != top else Fraction(2) ** (bias + 1)
    below, above = target - Fraction(value(low, significand, exponent)), after - target
    return sign | (low if below < above or (below == above and low % 2 == 0) else high)


@pytest.mark.parametrize("source", INTS)
@pytest.mark.parametrize("target", INTS)
@settings(max_examples=2)
@given(data=st.data())
def test_integers(source: str, target: str, data: Any) -> None:
    have, want = int(source[1:]), int(target[1:])
    a = data.draw(values(have))
    check(
        f"cvt.{target}.{source} {{d}}, {{a}};",
        want // 8,
        [(have // 8, a)],
        lambda x: s(x, have) if source[0] == "s" else x,
    )


def test_narrow_types_in_wider_registers() -> None:
    a = [0x12345680 + i for i in range(32)]
    check("cvt.u32.u8 {d}, {a};", 4, [(4, a)], lambda x: x & 0xFF)
    check("cvt.s32.s8 {d}, {a};", 4, [(4, a)], lambda x: s(x & 0xFF, 8))
    check("cvt.s32.s16 {d}, {a};", 4, [(4, [0xABCD8000 + i for i in range(32)])], lambda x: s(x & 0xFFFF, 16))
    check("cvt.u16.u32 {d}, {a};", 2, [(4, a)], lambda x: x)
    check("cvt.sat.u8.s32 {d}, {a};", 4, [(4, [0xFFFFFFFF, 5, 300, 255] * 8)], lambda x: max(0, min(255, s(x, 32))))
    check(
        "cvt.sat.s16.s32 {d}, {a};",
        2,
        [(4, [0xFFFF0000, 5, 40000, 255] * 8)],
        lambda x: max(-32768, min(32767, s(x, 32))),
    )


@pytest.mark.parametrize(("kind", "significand", "exponent"), [("f16", 10, 5), ("bf16", 7, 8)])
def test_narrowing_to_16_bits(kind: str, significand: int, exponent: int) -> None:
    a = [f32(x) for x in EDGES]
    as_float = [struct.unpack("<f", struct.pack("<I", b))[0] for b in a]
    want = [nearest(x, significand, exponent) for x in as_float]
    assert apply(f"cvt.rn.{kind}.f32 {{d}}, {{a}};", 2, [(4, a)]) == want
    b = a[::-1]
    packed = apply(f"cvt.rn.{kind}x2.f32 {{d}}, {{a}}, {{b}};", 4, [(4, a), (4, b)])
    assert packed == [high << 16 | low for high, low in zip(want, want[::-1], strict=True)]
    assert apply(f"cvt.rn.{kind}x2.f32 {{d}}, {{a}}, {{b}};", 4, [(4, a), (4, b)], "uniform") == [packed[0]] * 32
    assert apply(f"cvt.rn.{kind}x2.f32 {{d}}, {{a}}, {{b}};", 4, [(4, a), (4, b)], "one")[5] == packed[5]
    top = (((1 << exponent) - 1) << significand) - 1
    finite = apply(f"cvt.rn.satfinite.{kind}.f32 {{d}}, {{a}};", 2, [(4, a)])
    assert finite == [w if w & 0x7FFF <= top or w == 0x7FFF else w & 0x8000 | top for w in want]
    relu = apply(f"cvt.rn.relu.{kind}.f32 {{d}}, {{a}};", 2, [(4, a)])
    assert relu == [w if w == 0x7FFF or not w >> 15 else 0 for w in want]


@settings(max_examples=5)
@given(bits=st.lists(st.integers(0, 0xFFFFFFFF), min_size=32, max_size=32))
def test_narrowing_any_bits(bits: list[int]) -> None:
    numbers = [struct.unpack("<f", struct.pack("<I", b))[0] for b in bits]
    assert apply("cvt.rn.f16.f32 {d}, {a};", 2, [(4, bits)]) == [nearest(x, 10, 5) for x in numbers]
    assert apply("cvt.rn.bf16.f32 {d}, {a};", 2, [(4, bits)]) == [nearest(x, 7, 8) for x in numbers]


def test_widening_is_exact() -> None:
    a = [0x3C00, 0x8000, 0x0001, 0x7C00, 0xFBFF, 0x3555, 0x7E00, 0x0400] * 4
    for kind, significand, exponent in (("f16", 10, 5), ("bf16", 7, 8)):
        got = apply(f"cvt.f32.{kind} {{d}}, {{a}};", 4, [(2, a)])
        for bits, out in zip(a, got, strict=True):
            x = value(bits, significand, exponent)
            y = value(out, 23, 8)
            assert (x != x and out == 0x7FFFFFFF) or (x == y and bits >> 15 == out >> 31)


@pytest.mark.parametrize("target", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
def test_to_integers(target: str, rounding: str) -> None:
    width = int(target[1:])
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if target[0] == "s" else (0, M[width])
    step = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[rounding]

    def expected(bits: int) -> int:
        x = struct.unpack("<f", struct.pack("<I", bits))[0]
        if math.isnan(x):
            return 1 << 63 if width == 64 else 0
        if math.isinf(x):
            return high if x > 0 else low
        return max(low, min(high, step(x)))

    a = [f32(x) for x in EDGES]
    check(f"cvt.{rounding}.{target}.f32 {{d}}, {{a}};", width // 8, [(4, a)], expected)


@pytest.mark.parametrize("source", ["u32", "s32", "u64", "s64"])
@settings(max_examples=3)
@given(data=st.data())
def test_from_integers(source: str, data: Any) -> None:
    width = int(source[1:])
    a = data.draw(values(width))
    numbers = [s(x, width) if source[0] == "s" else x for x in a]

    def to_f32(x: int) -> int:
        # Exactly: the nearest multiple of the float's unit, ties to even.
        if x == 0:
            return 0
        unit = 1 << max(0, abs(x).bit_length() - 24)
        q, rest = divmod(abs(x), unit)
        q += 1 if 2 * rest > unit or (2 * rest == unit and q & 1) else 0
        return f32(math.copysign(float(q * unit), x))

    got = apply(f"cvt.rn.f32.{source} {{d}}, {{a}};", 4, [(width // 8, a)])
    assert got == [to_f32(x) for x in numbers]


def test_moves_of_vectors() -> None:
    a = [0x0123456789ABCDEF + i for i in range(32)]
    check("mov.b64 {{%r90, %r91}}, {a};\nmov.b64 {d}, {{%r91, %r90}};", 8, [(8, a)], lambda x: x >> 32 | x << 32)
    check(
        "mov.b32 {{%rs30, %rs31}}, {a};\nmov.b32 {d}, {{%rs31, %rs30}};",
        4,
        [(4, [x & M[32] for x in a])],
        lambda x: x >> 16 | x << 16,
    )
    check(
        "mov.b64 {{%rs30, %rs31, %rs32, %rs33}}, {a};\nmov.b64 {d}, {{%rs33, %rs32, %rs31, %rs30}};",
        8,
        [(8, a)],
        lambda x: sum((x >> 16 * i & 0xFFFF) << 16 * (3 - i) for i in range(4)),
    )
    check("mov.b64 {{%r90, _}}, {a};\ncvt.u64.u32 {d}, %r90;", 8, [(8, a)], lambda x: x & M[32])


def test_float_literals() -> None:
    assert apply("mov.f32 %f1, 0f3F800000;\nmov.b32 {d}, %f1;", 4, [(4, [0] * 32)])[0] == 0x3F800000
    assert apply("mov.f32 %f1, 1.5;\nmov.b32 {d}, %f1;", 4, [(4, [0] * 32)])[0] == int(np.float32(1.5).view(np.uint32))
    assert apply("mov.f64 %fd1, 0d3FF8000000000000;\nmov.b64 {d}, %fd1;", 8, [(4, [0] * 32)])[0] == 0x3FF8 << 48
