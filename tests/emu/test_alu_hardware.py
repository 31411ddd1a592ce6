# SPDX-License-Identifier: Apache-2.0
"""Forms and edges of arithmetic whose results an H200 has given; `tests/gpu/conformance` asks for many more."""

from __future__ import annotations

import pytest

from tests.emu.ptx import apply

ONE, MINUS_ZERO, TINY, NAN = 0x3F800000, 0x80000000, 0x00800000, 0x7FFFFFFF


def each(instruction: str, *columns: list[int], result: int = 4, widths: tuple[int, ...] = ()) -> list[int]:
    """The instruction on rows of operands, both as lanes and each row uniform; the results."""
    sizes = widths or (4,) * len(columns)
    rows = len(columns[0])
    padded = [(size, [*column, *[column[0]] * (32 - rows)]) for size, column in zip(sizes, columns, strict=True)]
    got = apply(instruction, result, padded)[:rows]
    for row in range(rows):
        same = [(size, [column[row]] * 32) for size, column in zip(sizes, columns, strict=True)]
        assert apply(instruction, result, same, "uniform")[0] == got[row]
    return got


@pytest.mark.parametrize(
    ("mode", "results"),
    [
        ("f4e", [0x44332211, 0x55443322, 0x66554433, 0x77665544]),
        ("b4e", [0x66778811, 0x77881122, 0x88112233, 0x11223344]),
        ("rc8", [0x11111111, 0x22222222, 0x33333333, 0x44444444]),
        ("ecl", [0x44332211, 0x44332222, 0x44333333, 0x44444444]),
        ("ecr", [0x11111111, 0x22222211, 0x33332211, 0x44332211]),
        ("rc16", [0x22112211, 0x44334433, 0x22112211, 0x44334433]),
    ],
)
def test_prmt_modes(mode: str, results: list[int]) -> None:
    got = each(
        f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}};", [0x44332211] * 4, [0x88776655] * 4, [0, 1, 2, 0x77777773]
    )
    assert got == results


def test_saturating_sums() -> None:
    top, bottom = 0x7FFFFFFF, 0x80000000
    assert each("add.sat.s32 {d}, {a}, {b};", [top, bottom, 5], [1, 0xFFFFFFFF, 0xFFFFFFFE]) == [top, bottom, 3]
    assert each("sub.sat.s32 {d}, {a}, {b};", [top, bottom, 0], [0xFFFFFFFF, 1, bottom]) == [top, bottom, top]
    assert each("mad.hi.sat.s32 {d}, {a}, {b}, {c};", [top], [top], [top]) == [top]


def test_products_of_24_bits() -> None:
    a, b = [0xFF000003, 0x00FFFFFF, 0x00800000], [5, 0xFFFFFFFF, 0x00800000]
    assert each("mul24.lo.s32 {d}, {a}, {b};", a, b) == [15, 1, 0]
    assert each("mul24.hi.u32 {d}, {a}, {b};", a, b) == [0, 0xFFFFFE00, 0x40000000]
    assert each("mad24.lo.u32 {d}, {a}, {b}, {c};", a[:1], b[:1], [7]) == [22]


def test_dot_products() -> None:
    a, b = [0x01FF7F80], [0xFF02FE03]
    signs = {"s32.s32": -128 * 3 + 127 * -2 - 2 - 1, "u32.s32": 128 * 3 + 127 * -2 + 255 * 2 - 1}
    signs |= {"s32.u32": -128 * 3 + 127 * 254 - 2 + 255, "u32.u32": 128 * 3 + 127 * 254 + 255 * 2 + 255}
    for kinds, want in signs.items():
        assert each(f"dp4a.{kinds} {{d}}, {{a}}, {{b}}, {{c}};", a, b, [10]) == [(want + 10) & 0xFFFFFFFF]
    high, low = 511 * -1 + 32640 * 2, 511 * -2 + 32640 * 3
    assert each("dp2a.hi.s32.s32 {d}, {a}, {b}, {c};", [0x01FF7F80], b, [0]) == [high & 0xFFFFFFFF]
    assert each("dp2a.lo.s32.s32 {d}, {a}, {b}, {c};", [0x01FF7F80], b, [0]) == [low & 0xFFFFFFFF]


def test_a_remainder_by_zero_is_all_ones() -> None:
    assert each("rem.s32 {d}, {a}, {b};", [5, 0x80000000], [0, 0]) == [0xFFFFFFFF] * 2
    assert each("rem.u64 {d}, {a}, {b};", [5], [0], result=8, widths=(8, 8)) == [(1 << 64) - 1]


def test_directed_rounding() -> None:
    a, b = [ONE, ONE, 0x7F7FFFFF, ONE], [0x33000001, 0xB3000001, 0x7F7FFFFF, ONE ^ MINUS_ZERO]
    up, down = 0x3F800001, 0x3F7FFFFF
    assert each("add.rz.f32 {d}, {a}, {b};", a, b) == [ONE, down, 0x7F7FFFFF, 0]
    assert each("add.rm.f32 {d}, {a}, {b};", a, b) == [ONE, down, 0x7F7FFFFF, MINUS_ZERO]
    assert each("add.rp.f32 {d}, {a}, {b};", a, b) == [up, ONE, 0x7F800000, 0]
    assert each("sub.rm.f32 {d}, {a}, {b};", [ONE], [ONE]) == [MINUS_ZERO]
    assert each("mul.rp.f32 {d}, {a}, {b};", [1], [1]) == [1]
    assert each("fma.rz.f32 {d}, {a}, {b}, {c};", [ONE], [ONE], [0xB3000001]) == [down]


def test_results_are_flushed_by_what_24_bits_of_them_are() -> None:
    """(1 - 2^-24) * 2^-126 is subnormal and rounds to 2^-126; a number nearer to it counts as 2^-126."""
    assert each("mul.rn.f32 {d}, {a}, {b};", [0x3F7FFFFF], [TINY]) == [TINY]
    assert each("mul.rn.ftz.f32 {d}, {a}, {b};", [0x3F7FFFFF], [TINY]) == [0]
    near = "fma.rn.ftz.f32 {d}, {a}, {b}, {c};"
    assert each(near, [0x00800001], [0x32800000 ^ MINUS_ZERO], [TINY]) == [TINY]


def test_saturation_has_no_negative_zero() -> None:
    assert each("mul.sat.f32 {d}, {a}, {b};", [MINUS_ZERO, NAN, 0xBF800000], [ONE] * 3) == [0, 0, 0]
    assert each("mul.rn.sat.f16x2 {d}, {a}, {b};", [0x80007E00], [0x3C003C00]) == [0]


def test_minimum_and_maximum() -> None:
    assert each("max.ftz.f32 {d}, {a}, {b};", [1, 0x80000001], [0, MINUS_ZERO]) == [0, MINUS_ZERO]
    crossed = "min.xorsign.abs.f32 {d}, {a}, {b};"
    assert each(crossed, [0xC0000000, 0xC0000000, NAN], [ONE, 0xBF800000, 0xBF800000]) == [0xBF800000, ONE, 0xBF800000]
    assert each("max.NaN.bf16x2 {d}, {a}, {b};", [0x3F807FC1], [0x40003F80]) == [0x40007FFF]


def test_signs_and_classes() -> None:
    assert each("copysign.f32 {d}, {a}, {b};", [MINUS_ZERO, ONE], [ONE, 0xC0000000]) == [0xBF800000, 0x40000000]
    assert each("slct.b32.f32 {d}, {a}, {b}, {c};", [1] * 3, [2] * 3, [MINUS_ZERO, 0xBF800000, NAN]) == [1, 2, 2]
    classes = "testp.{} %p1, {{a}};\nselp.b32 {{d}}, 1, 0, %p1;"
    values = [0, 1, ONE, 0x7F800000, NAN]
    assert each(classes.format("normal.f32"), values) == [1, 0, 1, 0, 0]
    assert each(classes.format("subnormal.f32"), values) == [0, 1, 0, 0, 0]
    assert each(classes.format("infinite.f32"), values) == [0, 0, 0, 1, 0]
    assert each(classes.format("notanumber.f32"), values) == [0, 0, 0, 0, 1]
    assert each(classes.format("finite.f32"), values) == [1, 1, 1, 0, 0]


def test_conversions_towards_zero_and_to_0_1() -> None:
    assert each("cvt.rz.f16x2.f32 {d}, {a}, {b};", [0x477FFFFF], [0xBF803FFF]) == [0x7BFFBC01]
    assert each("cvt.rz.bf16x2.f32 {d}, {a}, {b};", [0x7F7FFFFF], [0x7F800000]) == [0x7F7F7F80]
    assert each("cvt.rn.sat.f16.f32 {d}, {a};", [0xBF800000, NAN, 0x40000000], result=2, widths=(4,)) == [0, 0, 0x3C00]
    assert each("cvt.ftz.sat.f32.f32 {d}, {a};", [1, 0x3F000000, 0x40000000]) == [0, 0x3F000000, ONE]
    assert each("cvt.rmi.ftz.s32.f32 {d}, {a};", [0x80000001, 0xBF000000]) == [0, 0xFFFFFFFF]
    assert each("cvt.rz.f32.u32 {d}, {a};", [0xFFFFFFFF]) == [0x4F7FFFFF]
    assert each("cvt.rm.f32.u64 {d}, {a};", [(1 << 63) + 1], widths=(8,)) == [0x5F000000]
    assert each("cvt.rp.f32.f64 {d}, {a};", [0x3FF0000000000001], widths=(8,)) == [0x3F800001]


def test_nan_through_conversions() -> None:
    """Between f32 and f64 a NaN keeps its sign and upper bits; bf16 widens by a shift; tf32 is cut."""
    assert each("cvt.f64.f32 {d}, {a};", [0x7F800001, 0xFFFFFFFF], result=8, widths=(4,)) == [
        0x7FF8000020000000,
        0xFFFFFFFFE0000000,
    ]
    assert each("cvt.rn.f32.f64 {d}, {a};", [0xFFF0000000000001, 0x7FF8000040000000], widths=(8,)) == [
        0xFFC00000,
        0x7FC00002,
    ]
    assert each("cvt.f32.bf16 {d}, {a};", [0xFFFF], widths=(2,)) == [0xFFFF0000]
    assert each("cvt.rna.tf32.f32 {d}, {a};", [0x7FC00001, 0x7F800001]) == [0x7FC00000, 0x7F800000]


def test_carries() -> None:
    a, b = [0xFFFFFFFF, 1, 0x80000000], [1, 0xFFFFFFFE, 0x80000000]
    sums = "{{{{ .reg .b32 x; {0}.cc.u32 x, {{a}}, {{b}}; {0}c.u32 {{d}}, {{b}}, {{a}}; }}}}"
    assert each(sums.format("add"), a, b) == [1, 0xFFFFFFFF, 1]
    assert each(sums.format("sub"), a, b) == [2, 0xFFFFFFFC, 0]
    wide = "{{ .reg .b64 x; mad.lo.cc.u64 x, {a}, {b}, {b}; madc.hi.u64 {d}, {a}, {b}, 7; }}"
    top = (1 << 64) - 1
    product = top * top + top
    assert each(wide, [top], [top], result=8, widths=(8, 8)) == [((product >> 64) + 7) & top]
