# SPDX-License-Identifier: Apache-2.0
"""Conversions: cvt.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.columns import F16, F32, INTEGERS, column
from tests.gpu.conformance.question import Question

_ROTATED = (*F32[17:], *F32[:17])
_F64 = (
    0,
    1 << 63,
    1,
    0x3FF0000000000000,
    0x3FF0000010000000,
    0x3FF0000030000000,
    0x3FF0000010000001,
    0x47EFFFFFE0000000,
    0x47EFFFFFEFFFFFFF,
    0x47EFFFFFF0000000,
    0x36A0000000000000,
    0x3690000000000000,
    0x3690000000000001,
    0x7FF0000000000000,
    0x7FF8000000000000,
    0xFFF0000000000001,
    0x41DFFFFFFFC00000,
    0x41E0000000000000,
    0x43E0000000000000,
    0xC3E0000000000000,
    0xC3E0000000000001,
    0x43EFFFFFFFFFFFFF,
    0x4004000000000000,
    0xC00C000000000000,
)
_I64 = (
    0,
    1,
    1 << 24,
    (1 << 24) + 1,
    (1 << 24) + 3,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
    (1 << 53) + 1,
    0x7FFFFF4000000000,
    0x7FFFFFC000000000,
    0xFFFFFF7FFFFFFFFF,
    0xFFFFFF8000000000,
)
_E8 = tuple(high << 8 | low for low, high in zip(range(256), range(255, -1, -1), strict=True))


def pack(id: str, what: str, form: str, words: bool = True) -> Question:
    """Two f32 to two narrow numbers."""
    return column(
        id,
        f"How does cvt.{form} round, and what becomes of what is too large, of NaN and of subnormals ({what})?",
        "cvt: floating-point conversions to packed types",
        f"cvt.{form} {{d}}, {{a}}, {{b}};",
        (F32, _ROTATED),
        "444" if words else "244",
    )


def one(id: str, asks: str, form: str, values: tuple[int, ...], widths: str, more: str = "") -> Question:
    """One number to another."""
    return column(id, asks, "cvt" + more, f"cvt.{form} {{d}}, {{a}};", (values,), widths)


def rounds(id: str, form: str, widths: str, values: tuple[int, ...], what: str) -> Question:
    """A conversion with a rounding mode."""
    return one(id, f"What does cvt.{form} give for ties, limits, infinities and NaN ({what})?", form, values, widths)


QUESTIONS = (
    pack("cvt-bf16x2-rn", "to nearest even", "rn.bf16x2.f32"),
    pack("cvt-bf16x2-rz", "towards zero", "rz.bf16x2.f32"),
    pack("cvt-bf16x2-rn-relu", "negative to 0", "rn.relu.bf16x2.f32"),
    pack("cvt-f16x2-rn", "to nearest even", "rn.f16x2.f32"),
    pack("cvt-f16x2-rz", "towards zero", "rz.f16x2.f32"),
    pack("cvt-f16x2-rn-relu", "negative to 0", "rn.relu.f16x2.f32"),
    pack("cvt-e4m3x2", "saturating", "rn.satfinite.e4m3x2.f32", words=False),
    pack("cvt-e5m2x2", "saturating", "rn.satfinite.e5m2x2.f32", words=False),
    pack("cvt-e4m3x2-relu", "saturating, negative to 0", "rn.satfinite.relu.e4m3x2.f32", words=False),
    one(
        "cvt-e4m3x2-f16x2",
        "How do two halves round to e4m3?",
        "rn.satfinite.e4m3x2.f16x2",
        tuple(a | b << 16 for a, b in zip(F16, reversed(F16), strict=True)),
        "24",
    ),
    one(
        "cvt-e5m2x2-f16x2",
        "How do two halves round to e5m2?",
        "rn.satfinite.e5m2x2.f16x2",
        tuple(a | b << 16 for a, b in zip(F16, reversed(F16), strict=True)),
        "24",
    ),
    one("cvt-f16x2-e4m3x2", "Which half is each of the 256 e4m3 codes?", "rn.f16x2.e4m3x2", _E8, "42"),
    one("cvt-f16x2-e5m2x2", "Which half is each of the 256 e5m2 codes?", "rn.f16x2.e5m2x2", _E8, "42"),
    rounds("cvt-tf32-rna", "rna.tf32.f32", "44", F32, "nearest, ties away"),
    rounds("cvt-f16-rn", "rn.f16.f32", "24", F32, "nearest even"),
    rounds("cvt-f16-rz", "rz.f16.f32", "24", F32, "towards zero"),
    rounds("cvt-bf16-rn", "rn.bf16.f32", "24", F32, "nearest even"),
    rounds("cvt-f16-rn-sat", "rn.sat.f16.f32", "24", F32, "to 0 ... 1"),
    rounds("cvt-f32-f16", "f32.f16", "42", F16, "exact"),
    rounds("cvt-f32-bf16", "f32.bf16", "42", F16, "exact"),
    rounds("cvt-s32-rni", "rni.s32.f32", "44", F32, "nearest even"),
    rounds("cvt-s32-rzi", "rzi.s32.f32", "44", F32, "truncated"),
    rounds("cvt-s32-rmi-ftz", "rmi.ftz.s32.f32", "44", F32, "floor"),
    rounds("cvt-u32-rpi", "rpi.u32.f32", "44", F32, "ceiling"),
    rounds("cvt-s8-sat", "rni.sat.s8.f32", "44", F32, "8 bits"),
    rounds("cvt-s64-rzi", "rzi.s64.f32", "84", F32, "64 bits"),
    rounds("cvt-u64-f64", "rzi.u64.f64", "88", _F64, "64 bits of f64"),
    rounds("cvt-s32-f16", "rzi.s32.f16", "42", F16, "of f16"),
    rounds("cvt-f32-f64-rn", "rn.f32.f64", "48", _F64, "nearest even"),
    rounds("cvt-f32-f64-rp", "rp.f32.f64", "48", _F64, "up"),
    rounds("cvt-f64-f32", "f64.f32", "84", F32, "exact"),
    rounds("cvt-f32-s64", "rn.f32.s64", "48", _I64, "of integers"),
    rounds("cvt-f32-u64-rm", "rm.f32.u64", "48", _I64, "of integers, down"),
    rounds("cvt-f32-u32-rz", "rz.f32.u32", "44", INTEGERS, "of integers, towards zero"),
    rounds("cvt-f16-s32", "rn.f16.s32", "24", INTEGERS, "of integers"),
    rounds("cvt-sat-s16", "sat.s16.s32", "24", INTEGERS, "of integers"),
    rounds("cvt-sat-u8", "sat.u8.s32", "44", INTEGERS, "of integers"),
    rounds("cvt-s8-extend", "s32.s8", "44", INTEGERS, "sign of the low byte"),
    rounds("cvt-f32-rni", "rni.f32.f32", "44", F32, "to an integral number"),
    rounds("cvt-f32-ftz-sat", "ftz.sat.f32.f32", "44", F32, "flushed, to 0 ... 1"),
)
