# SPDX-License-Identifier: Apache-2.0
"""Integer instructions against Python integers, lane by lane, uniform and in one lane alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.ptx import apply

M = {16: 0xFFFF, 32: 0xFFFFFFFF, 64: 0xFFFFFFFFFFFFFFFF}


def s(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def values(width: int) -> st.SearchStrategy[list[int]]:
    edges = [0, 1, 2, M[width], M[width] >> 1, (M[width] >> 1) + 1, 31, 32, 33, 63, 64]
    one = st.one_of(st.sampled_from([e & M[width] for e in edges]), st.integers(0, M[width]))
    return st.lists(one, min_size=32, max_size=32)


def truncated(x: int, y: int) -> int:
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def binary(width: int) -> dict[str, Callable[[int, int], int]]:
    def sg(f: Callable[[int, int], int]) -> Callable[[int, int], int]:
        return lambda x, y: f(s(x, width), s(y, width))

    table: dict[str, Callable[[int, int], int]] = {
        f"add.s{width}": lambda x, y: x + y,
        f"sub.s{width}": lambda x, y: x - y,
        f"add.u{width}": lambda x, y: x + y,
        f"mul.lo.s{width}": lambda x, y: x * y,
        f"mul.hi.u{width}": lambda x, y: x * y >> width,
        f"mul.hi.s{width}": sg(lambda x, y: x * y >> width),
        f"min.u{width}": min,
        f"max.u{width}": max,
        f"min.s{width}": sg(min),
        f"max.s{width}": sg(max),
        f"and.b{width}": lambda x, y: x & y,
        f"or.b{width}": lambda x, y: x | y,
        f"xor.b{width}": lambda x, y: x ^ y,
    }
    return table


def check(op: str, result: int, columns: list[tuple[int, list[int]]], expected: Callable[..., int]) -> None:
    rows = list(zip(*(column for _, column in columns), strict=True))
    mask = (1 << (8 * result)) - 1
    want = [expected(*row) & mask for row in rows]
    assert apply(op, result, columns) == want
    assert apply(op, result, columns, "uniform") == [want[0]] * 32
    assert apply(op, result, columns, "one") == [want[5] if i == 5 else 0 for i in range(32)]


CASES = [(op, width, f) for width in (16, 32, 64) for op, f in binary(width).items()]


@pytest.mark.parametrize(("op", "width", "function"), CASES, ids=[c[0] for c in CASES])
@settings(max_examples=4)
@given(data=st.data())
def test_binary(op: str, width: int, function: Callable[[int, int], int], data: Any) -> None:
    n = width // 8
    a, b = data.draw(values(width)), data.draw(values(width))
    check(f"{op} {{d}}, {{a}}, {{b}};", n, [(n, a), (n, b)], function)


DIVISION = [(f"{op}.{kind}{width}", width) for op in ("div", "rem") for kind in "us" for width in (16, 32, 64)]


@pytest.mark.parametrize(("op", "width"), DIVISION, ids=[c[0] for c in DIVISION])
@settings(max_examples=4)
@given(data=st.data())
def test_division(op: str, width: int, data: Any) -> None:
    def expected(x: int, y: int) -> int:
        if ".s" in op:
            x, y = s(x, width), s(y, width)
        q = truncated(x, y)
        return q if op.startswith("div") else x - q * y

    n = width // 8
    a = data.draw(values(width))
    b = [v or 3 for v in data.draw(values(width))]
    check(f"{op} {{d}}, {{a}}, {{b}};", n, [(n, a), (n, b)], expected)
    # By an immediate, as tile schedulers divide.
    by = {16: 7, 32: 1000003, 64: 148}[width]
    check(f"{op} {{d}}, {{a}}, {by};", n, [(n, a)], lambda x: expected(x, by))


@pytest.mark.parametrize("width", [16, 32])
@settings(max_examples=4)
@given(data=st.data())
def test_wide_and_mad(width: int, data: Any) -> None:
    n = width // 8
    a, b = data.draw(values(width)), data.draw(values(width))
    c = data.draw(values(2 * width))
    check(f"mul.wide.u{width} {{d}}, {{a}}, {{b}};", 2 * n, [(n, a), (n, b)], lambda x, y: x * y)
    check(f"mul.wide.s{width} {{d}}, {{a}}, {{b}};", 2 * n, [(n, a), (n, b)], lambda x, y: s(x, width) * s(y, width))
    check(
        f"mad.wide.s{width} {{d}}, {{a}}, {{b}}, {{c}};",
        2 * n,
        [(n, a), (n, b), (2 * n, c)],
        lambda x, y, z: s(x, width) * s(y, width) + z,
    )
    check(f"mad.lo.s{width} {{d}}, {{a}}, {{b}}, {{a}};", n, [(n, a), (n, b)], lambda x, y: x * y + x)


SHIFTS = [(f"{op}{width}", width) for width in (16, 32, 64) for op in ("shl.b", "shr.u", "shr.s")]


@pytest.mark.parametrize(("op", "width"), SHIFTS, ids=[c[0] for c in SHIFTS])
@settings(max_examples=4)
@given(data=st.data())
def test_shifts(op: str, width: int, data: Any) -> None:
    def expected(x: int, by: int) -> int:
        if op.startswith("shl"):
            return x << by if by < width else 0
        if ".u" in op:
            return x >> by
        return s(x, width) >> min(by, width - 1)

    n = width // 8
    a = data.draw(values(width))
    by = data.draw(st.lists(st.one_of(st.integers(0, 70), st.just(0xFFFFFFFF)), min_size=32, max_size=32))
    check(f"{op} {{d}}, {{a}}, {{b}};", n, [(n, a), (4, by)], expected)
    for amount in (0, 1, width - 1, width, 200):
        check(f"{op} {{d}}, {{a}}, {amount};", n, [(n, a)], lambda x, amount=amount: expected(x, amount))


@pytest.mark.parametrize("width", [32, 64])
@settings(max_examples=4)
@given(data=st.data())
def test_unary(width: int, data: Any) -> None:
    n = width // 8
    a = data.draw(values(width))
    check(f"not.b{width} {{d}}, {{a}};", n, [(n, a)], lambda x: ~x)
    check(f"neg.s{width} {{d}}, {{a}};", n, [(n, a)], lambda x: -x)
    check(f"abs.s{width} {{d}}, {{a}};", n, [(n, a)], lambda x: abs(s(x, width)))
    check(f"popc.b{width} {{d}}, {{a}};", 4, [(n, a)], lambda x: x.bit_count())
    check(f"clz.b{width} {{d}}, {{a}};", 4, [(n, a)], lambda x: width - x.bit_length())
    check(f"brev.b{width} {{d}}, {{a}};", n, [(n, a)], lambda x: int(f"{x:0{width}b}"[::-1], 2))
    check(f"bfind.u{width} {{d}}, {{a}};", 4, [(n, a)], lambda x: x.bit_length() - 1)
    check(
        f"bfind.shiftamt.s{width} {{d}}, {{a}};",
        4,
        [(n, a)],
        lambda x: (
            -1
            if x in (0, M[width])
            else width - max(x.bit_length() if not x >> (width - 1) else (x ^ M[width]).bit_length(), 0)
        ),
    )


@settings(max_examples=6)
@given(data=st.data())
def test_bit_fields(data: Any) -> None:
    a, b = data.draw(values(32)), data.draw(values(32))
    pos = data.draw(st.lists(st.integers(0, 40), min_size=32, max_size=32))
    length = data.draw(st.lists(st.integers(0, 40), min_size=32, max_size=32))

    def unsigned(x: int, p: int, n: int) -> int:
        return (x >> p) & ((1 << n) - 1)

    def signed(x: int, p: int, n: int) -> int:
        # The PTX ISA's own text: bit i of the result is bit pos + i of the source, or the sign bit of the field.
        if n == 0:
            return 0
        sign = x >> min(p + n - 1, 31) & 1
        return sum((x >> (p + i) & 1 if i < n and p + i <= 31 else sign) << i for i in range(32))

    def insert(x: int, y: int, p: int, n: int) -> int:
        out = y
        for i in range(n):
            if p + i > 31:
                break
            out = (out & ~(1 << (p + i))) | ((x >> i & 1) << (p + i))
        return out

    check("bfe.u32 {d}, {a}, {b}, {c};", 4, [(4, a), (4, pos), (4, length)], unsigned)
    check("bfe.s32 {d}, {a}, {b}, {c};", 4, [(4, a), (4, pos), (4, length)], signed)
    check(
        "bfi.b32 {d}, {a}, {b}, {c}, {e};",
        4,
        [(4, a), (4, b), (4, pos), (4, a), (4, length)],
        lambda x, y, p, _, n: insert(x, y, p, n),
    )


@settings(max_examples=4)
@given(data=st.data())
def test_permutes(data: Any) -> None:
    a, b, c = (data.draw(values(32)) for _ in range(3))

    def prmt(x: int, y: int, z: int) -> int:
        source = [(x | y << 32) >> (8 * i) & 0xFF for i in range(8)]
        out = 0
        for i in range(4):
            sel = z >> (4 * i) & 15
            byte = source[sel & 7]
            out |= (0xFF * (byte >> 7) if sel & 8 else byte) << (8 * i)
        return out

    check("prmt.b32 {d}, {a}, {b}, {c};", 4, [(4, a), (4, b), (4, c)], prmt)
    for table in (0x80, 0xE8, 0x96, 0xCA, 0x1B):
        check(
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};",
            4,
            [(4, a), (4, b), (4, c)],
            lambda x, y, z, table=table: sum(
                (table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i for i in range(32)
            ),
        )
    check(
        "shf.l.wrap.b32 {d}, {a}, {b}, {c};",
        4,
        [(4, a), (4, b), (4, c)],
        lambda x, y, n: (y << 32 | x) << (n & 31) >> 32,
    )
    check(
        "shf.r.clamp.b32 {d}, {a}, {b}, {c};", 4, [(4, a), (4, b), (4, c)], lambda x, y, n: (y << 32 | x) >> min(n, 32)
    )


def test_operands_wrap_and_immediates() -> None:
    assert apply("add.s32 {d}, {a}, -1;", 4, [(4, [0] * 32)]) == [0xFFFFFFFF] * 32
    assert apply("sub.s32 {d}, 0, {a};", 4, [(4, list(range(32)))])[:3] == [0, 0xFFFFFFFF, 0xFFFFFFFE]
    assert apply("add.s64 {d}, {a}, -9223372036854775808;", 8, [(8, [1] * 32)])[0] == (1 << 63) + 1
    assert apply("and.b32 {d}, {a}, 0xFF;", 4, [(4, [0x1234] * 32)])[0] == 0x34


def test_nth_set_bit() -> None:
    """The fourth column is what `fns` says: from `base` upwards, downwards, or at `base` itself."""
    none = 0xFFFFFFFF
    cases = [
        (0b1011_0010, 0, 1, 1), (0b1011_0010, 1, 1, 1), (0b1011_0010, 2, 1, 4), (0b1011_0010, 0, 4, 7),
        (0b1011_0010, 0, 5, none), (0b1011_0010, 6, -1, 5), (0b1011_0010, 7, -4, 1), (0b1011_0010, 0, -1, none),
        (0b1011_0010, 4, 0, 4), (0b1011_0010, 3, 0, none), (1 << 31, 31, 1, 31), (0, 5, 1, none), (1, 40, -1, none),
    ]  # fmt: skip
    rows = [*cases, *[cases[0]] * (32 - len(cases))]
    columns = [(4, [row[i] & 0xFFFFFFFF for row in rows]) for i in range(3)]
    for how in ("lanes", "uniform"):
        got = apply("fns.b32 {d}, {a}, {b}, {c};", 4, columns, how)
        assert got == [row[3] for row in (rows if how == "lanes" else [rows[0]] * 32)]
