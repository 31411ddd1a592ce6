# SPDX-License-Identifier: Apache-2.0
"""setp, set, selp, slct and predicate logic."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.ptx import apply
from tests.emu.test_alu_integer import check, s, values

ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
SETP = "setp.{name} %p2, {{a}}, {{b}};\nselp.u32 {{d}}, 1, 0, %p2;"


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("name", list(ORDER))
@settings(max_examples=3)
@given(data=st.data())
def test_integers(width: int, name: str, data: Any) -> None:
    n = width // 8
    a, b = data.draw(values(width)), data.draw(values(width))
    b = [x if i % 3 == 0 else y for i, (x, y) in enumerate(zip(a, b, strict=True))]
    f = ORDER[name]
    check(SETP.format(name=f"{name}.u{width}"), 4, [(n, a), (n, b)], lambda x, y: int(f(x, y)))
    check(SETP.format(name=f"{name}.s{width}"), 4, [(n, a), (n, b)], lambda x, y: int(f(s(x, width), s(y, width))))
    unsigned = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}.get(name)
    if unsigned:
        check(SETP.format(name=f"{unsigned}.u{width}"), 4, [(n, a), (n, b)], lambda x, y: int(f(x, y)))


FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, math.inf, -math.inf, math.nan, 1e-40, -3.25]


def f32(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


@pytest.mark.parametrize("name", [*ORDER, *(f"{n}u" for n in ORDER), "num", "nan"])
def test_floats(name: str) -> None:
    pairs = [(x, y) for x in FLOATS for y in FLOATS]

    def expected(x: float, y: float) -> bool:
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("num", "nan"):
            return unordered == (name == "nan")
        if name.endswith("u"):
            return unordered or ORDER[name[:-1]](x, y)
        return not unordered and ORDER[name](x, y)

    for start in range(0, len(pairs), 32):
        chunk = (pairs[start : start + 32] * 32)[:32]
        columns = [(4, [f32(x) for x, _ in chunk]), (4, [f32(y) for _, y in chunk])]
        want = [int(expected(x, y)) for x, y in chunk]
        assert apply(SETP.format(name=f"{name}.f32"), 4, columns) == want


@pytest.mark.parametrize(("combine", "function"), [("and", operator.and_), ("or", operator.or_), ("xor", operator.xor)])
def test_combined_with_a_predicate_and_two_results(combine: str, function: Callable[[bool, bool], bool]) -> None:
    # p = (a < b) op c, q = !(a < b) op c (PTX ISA, "setp").
    text = (
        "setp.gt.u32 %p1, {{c}}, 0;\n"
        "setp.lt.{combine}.s32 %p2|%p3, {{a}}, {{b}}, {sign}%p1;\n"
        "selp.u32 %r50, 1, 0, %p2;\nselp.u32 %r51, 2, 0, %p3;\nor.b32 {{d}}, %r50, %r51;"
    )
    a, b, c = [0, 0, 5, 5] * 8, [1, 1, 1, 1] * 8, [0, 1, 0, 1] * 8
    for sign in ("", "!"):
        check(
            text.format(combine=combine, sign=sign),
            4,
            [(4, a), (4, b), (4, c)],
            lambda x, y, z, sign=sign: (
                int(function(x < y, bool(z) != (sign == "!"))) + 2 * int(function(x >= y, bool(z) != (sign == "!")))
            ),
        )


def test_predicate_logic() -> None:
    text = (
        "setp.ne.s32 %p1, {a}, 0;\nsetp.ne.s32 %p2, {b}, 0;\n"
        "and.pred %p3, %p1, %p2;\nor.pred %p4, %p1, %p2;\nxor.pred %p5, %p1, %p2;\nnot.pred %p6, %p1;\n"
        "selp.u32 %r50, 1, 0, %p3;\nselp.u32 %r51, 2, 0, %p4;\nselp.u32 %r52, 4, 0, %p5;\nselp.u32 %r53, 8, 0, %p6;\n"
        "or.b32 %r50, %r50, %r51;\nor.b32 %r52, %r52, %r53;\nor.b32 {d}, %r50, %r52;"
    )
    a, b = [0, 0, 1, 1] * 8, [0, 1, 0, 1] * 8
    check(text, 4, [(4, a), (4, b)], lambda x, y: (x & y) | 2 * (x | y) | 4 * (x ^ y) | 8 * (1 - x))


def test_set_and_slct() -> None:
    a, b = list(range(32)), [16] * 32
    check("set.lt.u32.u32 {d}, {a}, {b};", 4, [(4, a), (4, b)], lambda x, y: 0xFFFFFFFF if x < y else 0)
    check("set.ge.f32.s32 {d}, {a}, {b};", 4, [(4, a), (4, b)], lambda x, y: 0x3F800000 if x >= y else 0)
    check(
        "slct.b32.s32 {d}, {a}, {b}, {c};",
        4,
        [(4, a), (4, b), (4, [0, 0xFFFFFFFF] * 16)],
        lambda x, y, z: x if z == 0 else y,
    )


@pytest.mark.parametrize("width", [16, 32, 64])
def test_selp_keeps_every_bit(width: int) -> None:
    n = width // 8
    a = [(0xFEDCBA9876543210 >> i) & ((1 << width) - 1) for i in range(32)]
    text = (
        f"and.b{width} {{d}}, {{a}}, 1;\nsetp.eq.b{width} %p1, {{d}}, 1;\n"
        f"selp.b{width} {{d}}, {{a}}, {(1 << width) - 2}, %p1;"
    )
    check(text, n, [(n, a)], lambda x: x if x & 1 else (1 << width) - 2)
