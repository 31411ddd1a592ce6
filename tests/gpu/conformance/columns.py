# SPDX-License-Identifier: Apache-2.0
"""Questions about arithmetic: one instruction on columns of operands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tests.gpu.conformance.question import Question, data, out

_TYPES = {1: ("u16", "h", "u2"), 2: ("u16", "h", "u2"), 4: ("u32", "r", "u4"), 8: ("u64", "l", "u8")}

F32 = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000,
    0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x3F000000, 0x3FC00000, 0x40200000, 0xC0200000,
    0x4B7FFFFF, 0x4B800001, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000,
    0x5F000000, 0xDF000000, 0x5F800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
    0x7F800001, 0xFFFFFFFF, 0x7F7F8000, 0x7F7F7FFF, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x38800000,
    0x387FC000, 0x33800000, 0x33000000, 0x33000001, 0x32FFFFFF, 0x00004000, 0x00008000, 0x00018000,
    0x3F808000, 0x3F818000, 0x3F80FFFF, 0x3F801000, 0x3F803000, 0x3F801001, 0x43E00000, 0x43E80000,
    0x43E7FFFF, 0x43F00000, 0x47600000, 0x47700000, 0x476FFFFF, 0x3C800000, 0x3B000000, 0x3A800000,
    0x3AC00000, 0x38000000, 0x37800000, 0x37000000, 0x37000001, 0x3F880000, 0x3F980000, 0x3F8C0000,
    0x42FF0000, 0x437F0000, 0x43800000, 0xC3000000, 0xC3008000, 0x46FFFE00, 0x47000000, 0xC7000100,
)  # fmt: skip
"""Bits of f32: both zeros, subnormals, ties of every narrower format, their largest and smallest, infinities, NaN."""

F16 = (
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x3800, 0x3E00,
    0x4100, 0xC100, 0x5BFF, 0x5C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF, 0x1400, 0x0800, 0x5640,
    0x57FF, 0x7800, 0x4200, 0xC200,
)  # fmt: skip

INTEGERS = (
    0, 1, 2, 3, 5, 7, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x00FFFFFF, 0x01000001,
    0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFF80, 0xFFFFFF7F, 0xFFFFFFFE, 0xFFFFFFFF,
    0x12345678, 0x9ABCDEF0, 0xDEADBEEF, 0x55555555, 0xAAAAAAAA, 0x00800080, 0xC0000003, 0x0F0F0F0F,
)  # fmt: skip


def cross(*columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Columns whose rows are all combinations."""
    return tuple(zip(*itertools.product(*columns), strict=True))


def column(
    id: str,
    asks: str,
    ptx: str,
    instruction: str,
    columns: Sequence[Sequence[int]],
    widths: str = "44",
) -> Question:
    """`instruction` with `{d}`, `{a}`, `{b}`, ... for the operands on every row of `columns`.

    `widths` are the bytes of the result's and each operand's register; `{d2}` is a second result of 32 bits.
    """
    rows = len(columns[0])
    second = "{d2}" in instruction
    kinds = [_TYPES[int(width)] for width in widths]
    names = "abcdef"[: len(columns)]
    places = {"d": "%0"} | ({"d2": "%1"} if second else {})
    places |= {name: f"%{len(places) + i}" for i, name in enumerate(names)}
    text = instruction.format(**places)
    ins = ", ".join(f'"{kind[1]}"({name}[i])' for kind, name in zip(kinds[1:], names, strict=True))
    given = ", ".join(f"const {kind[0]}* {name}" for kind, name in zip(kinds[1:], names, strict=True))
    more = ', "=r"(d2[i])' if second else ""
    source = f"""
extern "C" __global__ void question({kinds[0][0]}* d, {"u32* d2, " if second else ""}{given}) {{
#pragma unroll 1
  for (u32 i = threadIdx.x; i < {rows}; i += 32)
    asm volatile("{text}" : "={kinds[0][1]}"(d[i]){more} : {ins});
}}
"""
    outputs = (out(rows, kinds[0][2]), *((out(rows, "u4", "more"),) if second else ()))
    inputs = (data(rows, kind[2], name, tuple(c)) for kind, name, c in zip(kinds[1:], names, columns, strict=True))
    return Question(id, asks, ptx, source, (*outputs, *inputs), policies=("eager",))
