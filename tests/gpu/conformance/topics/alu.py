# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, logic and shifts at their edges.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.gpu.conformance.columns import F16, F32, INTEGERS, column, cross
from tests.gpu.conformance.question import Outputs, Question

_FEW = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x9ABCDEF0, 0xFFFFFF9C)
_AMOUNTS = (0, 1, 7, 31, 32, 33, 63, 64, 255, 256, 0x80000000, 0xFFFFFFFF)
_WIDE = (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x123456789ABCDEF0, 0xFFFFFFFF, 1 << 32)
_HALVES = tuple(low | high << 16 for low, high in zip(F16, (*F16[5:], *F16[:5]), strict=True))
_FLOATS = F32[:16] + F32[26:34]
_SELECTORS = (0x3210, 0x7654, 0x0123, 0x8888, 0xFEDC, 0x19B5, 0x0, 0x1, 0x2, 0x3, 0x7777, 0xFFFFFFFF)
_BYTES = cross((0x03824180, 0xFF7F0180), (0x8899AABB, 0x11F27304), _SELECTORS)


def two(
    id: str, asks: str, instruction: str, values: tuple[int, ...] = INTEGERS, widths: str = "444", ptx: str = ""
) -> Question:
    """All pairs of some values."""
    return column(
        id, asks, ptx or instruction.split(".")[0], f"{instruction} {{d}}, {{a}}, {{b}};", cross(values, values), widths
    )


def one(id: str, asks: str, instruction: str, values: tuple[int, ...] = INTEGERS, widths: str = "44") -> Question:
    """Each of some values."""
    return column(id, asks, instruction.split(".")[0], f"{instruction} {{d}}, {{a}};", (values,), widths)


def approximates(name: str, low: float, high: float, function: Callable[[Any], Any]) -> Question:
    """How near to the exact result an approximation is: its bits are left open."""
    values = np.linspace(low, high, 512).astype(np.float32)
    exact = function(values.astype(np.float64))

    def reduced(found: Outputs) -> str:
        error = np.abs(found["out"].view(np.float32).astype(np.float64) / exact - 1).max()
        return f"relative error below 2^-21: {bool(error < 2.0**-21)}"

    asked = one(
        f"{name}-approx-error",
        f"How far is {name}.approx.ftz.f32 from the exact result?",
        f"{name}.approx.ftz.f32",
        tuple(values.view(np.uint32).tolist()),
    )
    return replace(asked, varies=reduced)


_COMPARE = (
    "{{ .reg .pred p, q, r; .reg .b32 x, y; setp.ltu.f32 p, {a}, {b}; setp.ge.f32 q, {a}, {b}; "
    "setp.num.f32 r, {a}, {b}; selp.b32 x, 1, 0, p; selp.b32 y, 2, 0, q; or.b32 x, x, y; selp.b32 y, 4, 0, r; "
    "or.b32 {d}, x, y; }}"
)
_TESTP = (
    "{{ .reg .pred p, q; .reg .b32 x, y; testp.subnormal.f32 p, {a}; testp.normal.f32 q, {a}; "
    "selp.b32 x, 1, 0, p; selp.b32 y, 2, 0, q; or.b32 {d}, x, y; }}"
)

QUESTIONS = (
    *(
        column(
            f"prmt-{mode or 'default'}",
            f"Which bytes does prmt{'.b32.' + mode if mode else ''} pick, with selectors beyond its range?",
            "prmt",
            f"prmt.b32{'.' + mode if mode else ''} {{d}}, {{a}}, {{b}}, {{c}};",
            _BYTES,
            "4444",
        )
        for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    ),
    column(
        "bfe-u32",
        "What does bfe.u32 give for any position and length?",
        "bfe: pseudocode",
        "bfe.u32 {d}, {a}, {b}, {c};",
        cross((0x9ABCDEF1, 0x7FFFFFFF), _AMOUNTS, _AMOUNTS),
        "4444",
    ),
    column(
        "bfe-s32",
        "Which sign does bfe.s32 extend for any position and length?",
        "bfe: pseudocode",
        "bfe.s32 {d}, {a}, {b}, {c};",
        cross((0x9ABCDEF1, 0x7FFFFFFF), _AMOUNTS, _AMOUNTS),
        "4444",
    ),
    column(
        "bfe-s64",
        "Which sign does bfe.s64 extend for any position and length up to 255?",
        "bfe: pseudocode",
        "bfe.s64 {d}, {a}, {b}, {c};",
        cross((0x9ABCDEF112345678, (1 << 63) - 1), _AMOUNTS[:9], _AMOUNTS[:9]),
        "8844",
    ),
    column(
        "bfi",
        "What does bfi insert for any position and length?",
        "bfi: pseudocode",
        "bfi.b32 {d}, {a}, 0x5a5a5a5a, {b}, {c};",
        cross((0x9ABCDEF1, 0xFFFFFFFF), _AMOUNTS, _AMOUNTS),
        "4444",
    ),
    one("bfind-u32", "What does bfind.u32 give for 0?", "bfind.u32"),
    one("bfind-s32", "What does bfind.s32 give for 0 and -1?", "bfind.s32"),
    one("bfind-shiftamt", "What does bfind.shiftamt.s32 give for 0 and -1?", "bfind.shiftamt.s32"),
    one("bfind-u64", "What does bfind.u64 give?", "bfind.u64", _WIDE, "48"),
    one("clz", "What does clz give for 0?", "clz.b32"),
    one("brev-64", "Does brev.b64 reverse all 64 bits?", "brev.b64", _WIDE, "88"),
    one("popc-64", "What does popc.b64 give?", "popc.b64", _WIDE, "48"),
    one("cnot", "What does cnot give?", "cnot.b32"),
    *(
        column(
            f"lop3-{table:02x}",
            f"Which function of three words is lop3 {table:#04x}?",
            "lop3: immLut",
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};",
            cross((0xF0F0F0F0, 0x12345678), (0xCCCCCCCC, 0xDEADBEEF), (0xAAAAAAAA, 0x0BADF00D)),
            "4444",
        )
        for table in (0x1B, 0xE8)
    ),
    *(
        column(
            f"shf-{way}-{how}",
            f"What does shf.{way}.{how} give for amounts of 32 and more?",
            "shf",
            f"shf.{way}.{how}.b32 {{d}}, {{a}}, {{b}}, {{c}};",
            cross((0x9ABCDEF1, 0), (0x12345678, 0xFFFFFFFF), _AMOUNTS),
            "4444",
        )
        for way in "lr"
        for how in ("wrap", "clamp")
    ),
    column(
        "shl-over",
        "What does shl.b32 give for amounts of 32 and more?",
        "shl: amounts are clamped",
        "shl.b32 {d}, {a}, {b};",
        cross(_FEW, _AMOUNTS),
        "444",
    ),
    column(
        "shr-s32-over",
        "What does shr.s32 give for amounts of 32 and more?",
        "shr: amounts are clamped",
        "shr.s32 {d}, {a}, {b};",
        cross(_FEW, _AMOUNTS),
        "444",
    ),
    column(
        "shr-u64-over",
        "What does shr.u64 give for amounts of 64 and more?",
        "shr: amounts are clamped",
        "shr.u64 {d}, {a}, {b};",
        cross(_WIDE, _AMOUNTS),
        "884",
    ),
    two("mul-hi-s32", "What is the high half of a signed product?", "mul.hi.s32"),
    two("mul-hi-u64", "What is the high half of an unsigned product of 64 bits?", "mul.hi.u64", _WIDE, "888"),
    two("mul-hi-s64", "What is the high half of a signed product of 64 bits?", "mul.hi.s64", _WIDE, "888"),
    two("mul24-lo-s32", "What does mul24.lo.s32 make of operands wider than 24 bits?", "mul24.lo.s32"),
    two("mul24-hi-u32", "What does mul24.hi.u32 give?", "mul24.hi.u32"),
    column(
        "mad-wide-s32",
        "Does mad.wide.s32 add 64 bits?",
        "mad",
        "mad.wide.s32 {d}, {a}, {b}, {c};",
        cross(_FEW, _FEW, _WIDE),
        "8448",
    ),
    column(
        "mad-hi-sat",
        "When does mad.hi.sat.s32 saturate?",
        "mad: .sat",
        "mad.hi.sat.s32 {d}, {a}, {b}, {c};",
        cross(_FEW, _FEW, _FEW),
        "4444",
    ),
    two("add-sat", "When does add.sat.s32 saturate?", "add.sat.s32", _FEW),
    two("sub-sat", "When does sub.sat.s32 saturate?", "sub.sat.s32", _FEW),
    two(
        "div-s32",
        "What do division by zero and of the most negative number by -1 give?",
        "div.s32",
        _FEW,
        ptx="div: by zero is machine-specific",
    ),
    two(
        "div-u32",
        "What does an unsigned division by zero give?",
        "div.u32",
        _FEW,
        ptx="div: by zero is machine-specific",
    ),
    two(
        "rem-s32",
        "What does a remainder by zero give, and which sign has it?",
        "rem.s32",
        _FEW,
        ptx="rem: machine-specific for negative numbers",
    ),
    two("rem-u64", "What does an unsigned remainder of 64 bits by zero give?", "rem.u64", _WIDE, "888"),
    two("div-s64", "What does a division of 64 bits by zero give?", "div.s64", _WIDE, "888"),
    column(
        "sad-s32",
        "Is sad.s32's difference signed?",
        "sad",
        "sad.s32 {d}, {a}, {b}, {c};",
        cross(_FEW, _FEW, (0, 5)),
        "4444",
    ),
    one("abs-s32", "What does abs.s32 make of the most negative number?", "abs.s32"),
    column(
        "dp4a",
        "Which signs has dp4a.s32.u32?",
        "dp4a",
        "dp4a.s32.u32 {d}, {a}, {b}, {c};",
        cross(_FEW, _FEW, (0, 0x7FFFFFFF)),
        "4444",
    ),
    column(
        "addc",
        "Do add.cc, addc.cc and addc carry through 96 bits?",
        "Extended-Precision Integer Arithmetic Instructions",
        "{{ .reg .b32 x; add.cc.u32 x, {a}, {b}; addc.cc.u32 x, {b}, {c}; addc.u32 {d}, {a}, {c}; }}",
        cross(_FEW, _FEW, _FEW),
        "4444",
    ),
    two("min-f32", "What does min.f32 give for one NaN, two, and zeros of both signs?", "min.f32", _FLOATS),
    two("max-nan-f32", "Does max.NaN.f32 give the canonical NaN?", "max.NaN.f32", _FLOATS),
    two("max-ftz-f32", "Does max.ftz.f32 flush before it compares?", "max.ftz.f32", _FLOATS),
    two("min-xorsign-abs", "Which sign has min.xorsign.abs.f32?", "min.xorsign.abs.f32", _FLOATS),
    two("min-f16x2", "What does min.f16x2 give for NaN and zeros?", "min.f16x2", _HALVES),
    two("max-nan-bf16x2", "What does max.NaN.bf16x2 give for NaN and zeros?", "max.NaN.bf16x2", _HALVES),
    two("add-f32", "Does add.f32 keep subnormals, and which NaN does it give?", "add.f32", _FLOATS),
    two("add-ftz-f32", "Does add.ftz.f32 flush operands and results?", "add.ftz.f32", _FLOATS),
    two("add-rz-f32", "How does add.rz.f32 round and overflow?", "add.rz.f32", F32[:32]),
    two("add-rm-f32", "Which sign has an exact 0 of add.rm.f32?", "add.rm.f32", F32[:32]),
    two("mul-rp-f32", "How does mul.rp.f32 round at the subnormals?", "mul.rp.f32", F32[:32]),
    two("mul-ftz-sat-f32", "What does mul.ftz.sat.f32 make of NaN?", "mul.ftz.sat.f32", _FLOATS),
    column(
        "fma-f32",
        "Does fma.rn.f32 round once, also at the subnormals?",
        "fma",
        "fma.rn.f32 {d}, {a}, {b}, {c};",
        cross(F32[:12] + F32[27:33], F32[4:14], F32[:8] + F32[27:32]),
        "4444",
    ),
    column(
        "fma-ftz-f32",
        "Does fma.rn.ftz.f32 flush operands and results?",
        "fma",
        "fma.rn.ftz.f32 {d}, {a}, {b}, {c};",
        cross(F32[:12] + F32[27:33], F32[4:14], F32[:8] + F32[27:32]),
        "4444",
    ),
    column(
        "fma-f16x2-relu",
        "What does fma.rn.relu.f16x2 make of negative results and NaN?",
        "fma",
        "fma.rn.relu.f16x2 {d}, {a}, {b}, {c};",
        cross(_HALVES, _HALVES[:8], _HALVES[8:16]),
        "4444",
    ),
    column(
        "fma-bf16x2",
        "Does fma.rn.bf16x2 round once, and keep subnormals?",
        "fma",
        "fma.rn.bf16x2 {d}, {a}, {b}, {c};",
        cross(_HALVES, _HALVES[:8], _HALVES[8:16]),
        "4444",
    ),
    two("add-f16x2", "Does add.rn.f16x2 keep subnormals and overflow to infinity?", "add.rn.f16x2", _HALVES),
    two("mul-f16x2-sat", "What does mul.rn.sat.f16x2 make of NaN?", "mul.rn.sat.f16x2", _HALVES),
    two("div-rn-f32", "Is div.rn.f32 right to the last bit, at the subnormals too?", "div.rn.f32", F32[:32]),
    one("sqrt-rn-f32", "Is sqrt.rn.f32 right to the last bit?", "sqrt.rn.f32", F32),
    one("rcp-rn-f32", "Is rcp.rn.f32 right to the last bit?", "rcp.rn.f32", F32),
    one(
        "ex2-whole",
        "Is ex2.approx.ftz.f32 exact for whole numbers, and flushed?",
        "ex2.approx.ftz.f32",
        (
            0,
            0x80000000,
            0x3F800000,
            0xBF800000,
            0x42FC0000,
            0x43000000,
            0xC2FC0000,
            0xC2FE0000,
            0xC3000000,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
            0x00000001,
            0x41200000,
        ),
    ),
    one(
        "rcp-approx-powers",
        "What does rcp.approx.ftz.f32 give for powers of two, zeros and infinities?",
        "rcp.approx.ftz.f32",
        (
            0,
            0x80000000,
            0x3F800000,
            0x40000000,
            0xBE800000,
            0x7E800000,
            0x7F000000,
            0x00800000,
            0x00000001,
            0x7F800000,
            0xFF800000,
            0x7FC00000,
        ),
    ),
    one(
        "rsqrt-approx-powers",
        "What does rsqrt.approx.f32 give for powers of four, zeros and negative numbers?",
        "rsqrt.approx.f32",
        (0, 0x80000000, 0x3F800000, 0x40800000, 0xBF800000, 0x7E800000, 0x00800000, 0x7F800000, 0xFF800000, 0x7FC00000),
    ),
    one(
        "lg2-approx-powers",
        "What does lg2.approx.ftz.f32 give for powers of two, zeros and negative numbers?",
        "lg2.approx.ftz.f32",
        (0, 0x80000000, 0x3F800000, 0x40000000, 0xBF800000, 0x7E800000, 0x7F800000, 0xFF800000, 0x7FC00000),
    ),
    approximates("ex2", -20.0, 20.0, np.exp2),
    approximates("rcp", 0.001, 1000.0, np.reciprocal),
    approximates("rsqrt", 0.001, 1000.0, lambda x: 1 / np.sqrt(x)),
    approximates("lg2", 2.5, 1000.0, np.log2),
    two("copysign", "Whose sign does copysign.f32 take?", "copysign.f32", _FLOATS),
    column(
        "set-nan",
        "Are ordered comparisons false for NaN, and unordered ones true?",
        "setp: comparison operators",
        _COMPARE,
        cross(_FLOATS, _FLOATS),
        "444",
    ),
    column(
        "slct-f32",
        "What does slct choose for a NaN and for -0?",
        "slct",
        "slct.b32.f32 {d}, {a}, {b}, {c};",
        cross((1,), (2,), F32),
        "4444",
    ),
    column(
        "testp",
        "Which numbers are subnormal to testp, and which normal?",
        "testp",
        _TESTP,
        (F32,),
        "44",
    ),
)
