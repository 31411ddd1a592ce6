# SPDX-License-Identifier: Apache-2.0
"""Bulk reductions: cp.reduce.async.bulk.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

import numpy as np

from tests.gpu.conformance.question import Fill, Question, data, out

_32 = (0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678)
_OTHER = (0xFFFFFFFF, 1, 7, 1, 0x7FFFFFFF, 0xFFFFFFFF, 3, 0x0F0F0F0F)
_64 = (0, 1, 1 << 63, (1 << 64) - 1, (1 << 63) - 1, 0xFFFFFFFF)
_64_OTHER = (5, (1 << 64) - 1, 1 << 63, 2, 1, 1)


def reduction(id: str, asks: str, form: str, dtype: str, into: Fill, what: Fill, ptx: str = "") -> Question:
    """`into` becomes `into op what`, element by element, by one bulk reduction of 256 bytes. Bits of both are given."""
    count = 256 // np.dtype(dtype).itemsize
    source = f"""
extern "C" __global__ void question(u32* out, const u32* in) {{
  __shared__ __align__(128) u32 tile[64];
  for (u32 i = 0; i < 64; ++i) tile[i] = in[i];
  fence_async();
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{form} [%0], [%1], 256;"
               ::"l"(out), "r"(smem(tile)) : "memory");
  bulk_commit();
  bulk_wait();
}}
"""
    values = out(count, dtype, fill=into), data(count, dtype, fill=what)
    return Question(id, asks, ptx or "cp.reduce.async.bulk: types and operations", source, values, block=(1, 1, 1))


_F32 = (
    0x00000001,
    0x80000001,
    0x007FFFFF,
    0x00800000,
    0x3F800000,
    0x3F800000,
    0x7F7FFFFF,
    0x7F800000,
    0x7FC00001,
    0x00800000,
    0x80000000,
    0x4B800000,
    0x3F800000,
    0x00400000,
    0xFF800000,
    0x33800000,
)
_F32_OTHER = (
    0x00000001,
    0x00000000,
    0x00000001,
    0x80000001,
    0x33800000,
    0x33800001,
    0x7F7FFFFF,
    0xFF800000,
    0x3F800000,
    0x80800001,
    0x80000000,
    0x3F800000,
    0xBF800000,
    0x00400000,
    0x3F800000,
    0x3F800000,
)
_F16 = (0x0001, 0x03FF, 0x0400, 0x3C00, 0x3C00, 0x7BFF, 0x7C00, 0x7E01, 0x8000, 0x3C00, 0x8001, 0xFC00, 0x6800)
_F16_OTHER = (0x0001, 0x0001, 0x8001, 0x1000, 0x1001, 0x7BFF, 0xFC00, 0x3C00, 0x8000, 0xBC00, 0x0001, 0x3C00, 0x3C00)
_BF16 = (0x0001, 0x007F, 0x0080, 0x3F80, 0x3F80, 0x7F7F, 0x7F80, 0x7FC1, 0x8000, 0x3F80, 0x8001, 0xFF80, 0x4380)
_BF16_OTHER = (0x0001, 0x0001, 0x8001, 0x3B80, 0x3B81, 0x7F7F, 0xFF80, 0x3F80, 0x8000, 0xBF80, 0x0001, 0x3F80, 0x3F80)
_F64 = (0x3FF0000000000000, 1, 0x3FF0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF8000000000001)
_F64_OTHER = (0x3CA0000000000000, 1, 0x3CA0000000000001, 0x7FEFFFFFFFFFFFFF, 0x3FF0000000000000)

QUESTIONS = (
    reduction("reduce-add-u32", "Does a bulk add of u32 wrap?", "add.u32", "u4", _32, _OTHER),
    reduction(
        "reduce-add-u64", "Does a bulk add of u64 carry into the high word and wrap?", "add.u64", "u8", _64, _64_OTHER
    ),
    reduction("reduce-min-s32", "Does a bulk min of s32 compare as signed?", "min.s32", "u4", _32, _OTHER),
    reduction("reduce-max-u32", "Does a bulk max of u32 compare as unsigned?", "max.u32", "u4", _32, _OTHER),
    reduction("reduce-max-s64", "Does a bulk max of s64 compare as signed?", "max.s64", "u8", _64, _64_OTHER),
    reduction("reduce-min-u64", "Does a bulk min of u64 compare as unsigned?", "min.u64", "u8", _64, _64_OTHER),
    reduction(
        "reduce-inc",
        "Does a bulk inc wrap to 0 at the operand, per element?",
        "inc.u32",
        "u4",
        (0, 5, 7, 8, 0xFFFFFFFF, 3),
        (7, 7, 7, 7, 7, 0),
        "atom: inc is (old >= b) ? 0 : old + 1",
    ),
    reduction(
        "reduce-dec",
        "Does a bulk dec wrap to the operand at 0 and above it?",
        "dec.u32",
        "u4",
        (0, 5, 7, 8, 0xFFFFFFFF, 3),
        (7, 7, 7, 7, 7, 0),
        "atom: dec is (old == 0 || old > b) ? b : old - 1",
    ),
    reduction("reduce-and-b32", "Does a bulk and take b32?", "and.b32", "u4", _32, _OTHER),
    reduction("reduce-or-b64", "Does a bulk or take b64?", "or.b64", "u8", _64, _64_OTHER),
    reduction("reduce-xor-b64", "Does a bulk xor take b64?", "xor.b64", "u8", _64, _64_OTHER),
    reduction(
        "reduce-add-f32",
        "How does a bulk add of f32 round, and what becomes of subnormals and NaN?",
        "add.f32",
        "u4",
        _F32,
        _F32_OTHER,
        "cp.reduce.async.bulk: .add of .f32 flushes subnormal inputs and results",
    ),
    reduction(
        "reduce-add-f64",
        "How does a bulk add of f64 round, and does it keep subnormals?",
        "add.f64",
        "u8",
        _F64,
        _F64_OTHER,
    ),
    reduction(
        "reduce-add-f16",
        "How does a bulk add of f16 round, and does .noftz keep subnormals?",
        "add.noftz.f16",
        "u2",
        _F16,
        _F16_OTHER,
        "cp.reduce.async.bulk: .noftz preserves subnormals",
    ),
    reduction(
        "reduce-add-bf16",
        "How does a bulk add of bf16 round, and does .noftz keep subnormals?",
        "add.noftz.bf16",
        "u2",
        _BF16,
        _BF16_OTHER,
        "cp.reduce.async.bulk: .noftz preserves subnormals",
    ),
    reduction(
        "reduce-min-f16",
        "What does a bulk min of f16 give for NaN, and for zeros of both signs?",
        "min.f16",
        "u2",
        (0x7E00, 0x3C00, 0x0000, 0x8000, 0xFC00, 0x7E01, 0x0001),
        (0x3C00, 0x7E00, 0x8000, 0x0000, 0x7C00, 0x7E02, 0x0002),
    ),
    reduction(
        "reduce-max-bf16",
        "What does a bulk max of bf16 give for NaN, and for zeros of both signs?",
        "max.bf16",
        "u2",
        (0x7FC0, 0x3F80, 0x0000, 0x8000, 0xFF80, 0x7FC1, 0x0001),
        (0x3F80, 0x7FC0, 0x8000, 0x0000, 0x7F80, 0x7FC2, 0x0002),
    ),
)
