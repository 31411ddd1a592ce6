# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on pairs in one register, three operands at once, approximations, and what compilers use of them."""

from __future__ import annotations

import math
import struct

import ml_dtypes
import numpy as np
import pytest

from tests.emu.ptx import LANE, apply, words

HOWS = ["lanes", "uniform", "one"]
X = [1.5, -2.25, 1e30, 3e-39, -0.0, 65536.0, 0.1, -7.0] * 4
Y = [0.25, 8.0, 1e30, 1e-39, 0.0, -3.5, 0.2, 7.0] * 4
Z = [3.0, -1.0, -1e38, 2.0, -0.0, 1.0, 0.3, -0.5] * 4


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def pairs(low: list[float], high: list[float]) -> list[int]:
    return [bits(a) | bits(b) << 32 for a, b in zip(low, high, strict=True)]


def chosen(want: list[int], how: str) -> list[int]:
    return want if how == "lanes" else [want[0]] * 32 if how == "uniform" else [want[5] * (i == 5) for i in range(32)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_pairs_of_f32(name: str, how: str) -> None:
    """Each half as the instruction on one number."""
    columns = [(X, Y), (Y, Z), (Z, X)][: 3 if name == "fma" else 2]
    opcode = f"{name}.rn.f32"
    texts = ", ".join("{" + letter + "}" for letter in "abc"[: len(columns)])
    halves = [
        apply(f"{opcode} {{d}}, {texts};", 4, [(4, [bits(x) for x in column[half]]) for column in columns])
        for half in (0, 1)
    ]
    want = [low | high << 32 for low, high in zip(*halves, strict=True)]
    got = apply(f"{opcode}x2 {{d}}, {texts};", 8, [(8, pairs(*column)) for column in columns], how)
    assert got == chosen(want, how)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_three_operands(name: str, how: str) -> None:
    pick = min if name == "min" else max
    want = [bits(pick(float(np.float32(v)) for v in row)) for row in zip(X, Y, Z, strict=True)]
    want[4::8] = [bits(-0.0) if name == "min" else bits(0.0)] * 4
    columns = [(4, [bits(v) for v in column]) for column in (X, Y, Z)]
    assert apply(f"{name}.f32 {{d}}, {{a}}, {{b}}, {{c}};", 4, columns, how) == chosen(want, how)


def test_a_nan_among_three() -> None:
    nan, one, two = 0x7FC00000, bits(1.0), bits(2.0)
    columns = [(4, [nan] * 32), (4, [one] * 32), (4, [two] * 32)]
    assert apply("max.f32 {d}, {a}, {b}, {c};", 4, columns)[0] == two
    assert apply("max.NaN.f32 {d}, {a}, {b}, {c};", 4, columns)[0] == 0x7FFFFFFF


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    ("opcode", "function"),
    [
        ("max.u16x2", lambda a, b: max(a, b)),
        ("min.u16x2", lambda a, b: min(a, b)),
        ("max.s16x2", lambda a, b: max(a, b, key=lambda v: v - (v >> 15 << 16))),
        ("min.s16x2", lambda a, b: min(a, b, key=lambda v: v - (v >> 15 << 16))),
        ("add.u16x2", lambda a, b: (a + b) & 0xFFFF),
        ("add.s16x2", lambda a, b: (a + b) & 0xFFFF),
        ("max.relu.s16x2", lambda a, b: max(0, *(v - (v >> 15 << 16) for v in (a, b)))),
    ],
)
def test_pairs_of_16_bit_integers(opcode: str, function, how: str) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    a, b = ([int(v) for v in rng.integers(0, 1 << 32, 32)] for _ in range(2))
    want = [function(x & 0xFFFF, y & 0xFFFF) | function(x >> 16, y >> 16) << 16 for x, y in zip(a, b, strict=True)]
    assert apply(f"{opcode} {{d}}, {{a}}, {{b}};", 4, [(4, a), (4, b)], how) == chosen(want, how)


def test_max_relu_of_32_bits() -> None:
    a, b = [5, 0xFFFFFFFB, 0xFFFFFFF0, 7] * 8, [0xFFFFFFFF, 0xFFFFFFFE, 3, 9] * 8
    assert apply("max.relu.s32 {d}, {a}, {b};", 4, [(4, a), (4, b)])[:4] == [5, 0, 3, 9]
    assert apply("min.relu.s32 {d}, {a}, {b};", 4, [(4, a), (4, b)])[:4] == [0, 0, 0, 7]


@pytest.mark.parametrize("sign", ["abs", "neg"])
def test_signs_flush(sign: str) -> None:
    values = [1, 0x80000001, bits(-2.0), 0x7FC01234]
    flushed = [0, 0x80000000, bits(-2.0), 0x7FC01234]
    want = [v & 0x7FFFFFFF if sign == "abs" else v ^ 0x80000000 for v in flushed]
    assert apply(f"{sign}.ftz.f32 {{d}}, {{a}};", 4, [(4, values * 8)])[:4] == want


@pytest.mark.parametrize("opcode", ["div.full.f32", "div.approx.f32", "div.approx.ftz.f32", "div.rn.f32"])
def test_division(opcode: str) -> None:
    a, b = [1.0, -7.0, 10.0, 0.5] * 8, [3.0, 2.0, -4.0, 9.0] * 8
    want = [bits(np.float32(x) / np.float32(y)) for x, y in zip(a, b, strict=True)]
    assert apply(f"{opcode} {{d}}, {{a}}, {{b}};", 4, [(4, [bits(v) for v in column]) for column in (a, b)]) == want


@pytest.mark.parametrize("name", ["sin", "cos", "tanh"])
def test_functions_of_f32(name: str) -> None:
    values = [0.0, 0.5, -1.25, 3.0] * 8
    want = [bits(getattr(math, name)(v)) for v in values]
    assert apply(f"{name}.approx.f32 {{d}}, {{a}};", 4, [(4, [bits(v) for v in values])]) == want


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["ex2", "tanh"])
def test_functions_of_halves(kind: str, name: str) -> None:
    dtype = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    values = np.array([0.5, -1.25, 2.0, -0.75] * 8, dtype)
    exact = np.exp2(values.astype(np.float64)) if name == "ex2" else np.tanh(values.astype(np.float64))
    want = exact.astype(np.float32).astype(dtype).view(np.uint16).tolist()
    text = f"{name}.approx{'.ftz' if kind == 'bf16' and name == 'ex2' else ''}.{kind}"
    assert apply(f"{text} {{d}}, {{a}};", 2, [(2, values.view(np.uint16).tolist())]) == want
    both = [w | w << 16 for w in values.view(np.uint16).tolist()]
    assert apply(f"{text}x2 {{d}}, {{a}};", 4, [(4, both)]) == [w | w << 16 for w in want]


@pytest.mark.parametrize(("source", "target"), [("f16", "bf16"), ("bf16", "f16")])
def test_between_halves(source: str, target: str) -> None:
    types = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
    values = np.array([1.0009765625, -3.140625, 65504.0, 0.0] * 8).astype(types[source])
    with np.errstate(over="ignore"):
        want = values.astype(np.float32).astype(types[target]).view(np.uint16).tolist()
    got = apply(f"cvt.rn.{target}.{source} {{d}}, {{a}};", 2, [(2, values.view(np.uint16).tolist())])
    assert got == want


@pytest.mark.parametrize(
    ("opcode", "want"), [("max", 31.0), ("min", -0.5), ("max.abs", 31.0), ("min.abs", 0.5), ("max.NaN", math.nan)]
)
def test_reduction_of_f32_over_a_warp(opcode: str, want: float) -> None:
    """Lane 0 has -0.5, lane 7 NaN, the others their number."""
    body = LANE + (
        "cvt.rn.f32.u32 %f1, %r0;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 mov.f32 %f1, 0fBF000000;\n"
        "setp.eq.u32 %p2, %r0, 7;\n@%p2 mov.f32 %f1, 0f7FC00000;\n"
        f"redux.sync.{opcode}.f32 %f2, %f1, -1;\nst.global.f32 [%rd41], %f2;\n"
    )
    got = words(body)
    assert len(set(got)) == 1
    number = struct.unpack("<f", struct.pack("<I", got[0]))[0]
    assert math.isnan(number) if math.isnan(want) else number == want
