# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic against exact rational arithmetic, rounded once."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.ptx import apply
from tests.emu.test_alu_convert import nearest, value

FORMATS = {"f16": (10, 5, 2), "bf16": (7, 8, 2), "f32": (23, 8, 4)}


def floats(kind: str) -> st.SearchStrategy[list[int]]:
    significand, exponent, nbytes = FORMATS[kind]
    top = ((1 << exponent) - 1) << significand
    edges = [0, 1, 1 << significand, top, top - 1, top | 1, 0x3C00, 0x3F80]
    edges += [e | 1 << (8 * nbytes - 1) for e in edges]
    one = st.one_of(
        st.sampled_from([e & ((1 << 8 * nbytes) - 1) for e in edges]), st.integers(0, (1 << 8 * nbytes) - 1)
    )
    return st.lists(one, min_size=32, max_size=32)


def rounded(x: Fraction, significand: int, exponent: int) -> int:
    """`nearest` of an exact number: scaled so that a Python float carries it would lose bits, so by comparison."""
    total = significand + exponent
    sign = int(x < 0) << total
    target = abs(x)
    top = ((1 << exponent) - 1) << significand
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if Fraction(value(middle, significand, exponent)) <= target else (low, middle)
    after = Fraction(value(high, significand, exponent)) if high != top else Fraction(2) ** (1 << (exponent - 1))
    below, above = target - Fraction(value(low, significand, exponent)), after - target
    return sign | (low if below < above or (below == above and low % 2 == 0) else high)


def result(kind: str, function: Callable[..., Fraction], plain: Callable[..., float], *bits: int) -> int:
    """The bits of `function` of the operands; `plain` decides what infinities, NaNs and zeros give."""
    significand, exponent, nbytes = FORMATS[kind]
    numbers = [value(b, significand, exponent) for b in bits]
    signed = [
        math.copysign(float(n) if n != 0 else 0.0, -1.0 if b >> (8 * nbytes - 1) else 1.0) if n == n else math.nan
        for n, b in zip(numbers, bits, strict=True)
    ]
    if all(isinstance(n, Fraction) or (isinstance(n, int | float) and math.isfinite(n)) for n in numbers):
        exact = function(*(Fraction(n) for n in numbers))
        if exact:
            return rounded(exact, significand, exponent)
    return nearest(plain(*signed), significand, exponent)


CASES: dict[str, tuple[str, int, Callable[..., Fraction], Callable[..., float]]] = {
    "add": ("add{q}.{k} {{d}}, {{a}}, {{b}};", 2, lambda x, y: x + y, lambda x, y: x + y),
    "sub": ("sub{q}.{k} {{d}}, {{a}}, {{b}};", 2, lambda x, y: x - y, lambda x, y: x - y),
    "mul": ("mul{q}.{k} {{d}}, {{a}}, {{b}};", 2, lambda x, y: x * y, lambda x, y: x * y),
    "fma": ("fma.rn.{k} {{d}}, {{a}}, {{b}}, {{c}};", 3, lambda x, y, z: x * y + z, lambda x, y, z: x * y + z),
}


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize("name", list(CASES))
@settings(max_examples=6)
@given(data=st.data())
def test_arithmetic(kind: str, name: str, data: st.DataObject) -> None:
    text, count, exact, plain = CASES[name]
    nbytes = FORMATS[kind][2]
    columns = [data.draw(floats(kind)) for _ in range(count)]
    instruction = text.format(q="" if kind != "f32" else ".rn", k=kind)
    want = [result(kind, exact, plain, *row) for row in zip(*columns, strict=True)]
    pairs = [(nbytes, c) for c in columns]
    assert apply(instruction, nbytes, pairs) == want
    assert apply(instruction, nbytes, pairs, "uniform") == [want[0]] * 32
    assert apply(instruction, nbytes, pairs, "one")[5] == want[5]
    if kind != "f32":
        packed = [(4, [c[i] << 16 | c[31 - i] for i in range(32)]) for c in columns]
        got = apply(text.format(q="", k=kind + "x2"), 4, packed)
        assert got == [want[i] << 16 | want[31 - i] for i in range(32)]


def test_fma_rounds_once() -> None:
    # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the product alone would round the last bit away, the addition needs it.
    a = struct.unpack("<I", struct.pack("<f", 1 + 2.0**-12))[0]
    c = struct.unpack("<I", struct.pack("<f", -(1 + 2.0**-11)))[0]
    want = struct.unpack("<I", struct.pack("<f", 2.0**-24))[0]
    assert apply("fma.rn.f32 {d}, {a}, {a}, {b};", 4, [(4, [a] * 32), (4, [c] * 32)]) == [want] * 32


def test_min_max_and_signs() -> None:
    one, two, nan, minus = 0x3F800000, 0x40000000, 0x7FC00000, 0x80000000
    a, b = [one, nan, nan, minus] * 8, [two, one, nan, 0] * 8
    assert apply("min.f32 {d}, {a}, {b};", 4, [(4, a), (4, b)])[:4] == [one, one, 0x7FFFFFFF, minus]
    assert apply("max.f32 {d}, {a}, {b};", 4, [(4, a), (4, b)])[:4] == [two, one, 0x7FFFFFFF, 0]
    assert apply("max.NaN.f32 {d}, {a}, {b};", 4, [(4, a), (4, b)])[:2] == [two, 0x7FFFFFFF]
    assert apply("neg.f32 {d}, {a};", 4, [(4, a)])[:4] == [one | minus, nan | minus, nan | minus, 0]
    assert apply("abs.f32 {d}, {a};", 4, [(4, [one | minus] * 32)])[0] == one
    assert apply("neg.bf16x2 {d}, {a};", 4, [(4, [0x3F80BF80] * 32)])[0] == 0xBF803F80


def test_flush_and_saturate() -> None:
    assert apply("add.ftz.f32 {d}, {a}, {b};", 4, [(4, [1] * 32), (4, [1] * 32)])[0] == 0
    assert apply("add.f32 {d}, {a}, {b};", 4, [(4, [1] * 32), (4, [1] * 32)])[0] == 2
    assert apply("add.sat.f32 {d}, {a}, {a};", 4, [(4, [0x3F800000, 0xBF800000, 0x7FC00000, 0x3E800000] * 8)])[:4] == [
        0x3F800000,
        0,
        0,
        0x3F000000,
    ]
