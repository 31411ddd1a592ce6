# SPDX-License-Identifier: Apache-2.0
"""mma.sync: fragments, and how products are summed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emu.test_products import fragment_a, fragment_b, fragment_d, packed
from tests.emu.warpgroup import DTYPE, integers, size_of
from tests.gpu.conformance.question import Buffer, Question, out
from tests.gpu.conformance.values import Array, cancelling, kept_bits, many_small, near, wide

PTX = "mma.sync: precision and rounding, which the ISA leaves open"
_OUT = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def product(
    id: str,
    asks: str,
    kinds: tuple[str, str],
    a: Array,
    b: Array,
    *,
    d: str = "f32",
    start: Array | None = None,
    suffix: str = "",
    **options: Any,
) -> Question:
    """D = A * B transposed + D by one instruction of each warp: warp w has rows 16w of A and 8w of B and D's block.

    `a` is [16 * warps, K], `b` [8 * warps, K], `start` [16 * warps, 8].
    """
    k = 32 // size_of(kinds[0])
    warps = a.shape[0] // 16
    count = 2 if d == "f16" else 4
    if start is None:
        start = np.zeros((a.shape[0], 8))
    blocks = [
        (
            packed(a[16 * w : 16 * w + 16].astype(DTYPE[kinds[0]]), fragment_a, 4),
            packed(b[8 * w : 8 * w + 8].astype(DTYPE[kinds[1]]), fragment_b, 2),
            packed(start[16 * w : 16 * w + 16].astype(_OUT[d]), fragment_d, count),
        )
        for w in range(warps)
    ]
    shape = f"m16n8k{k}.row.col{suffix}.{d}.{kinds[0]}.{kinds[1]}.{d}"
    ds, first = _vector(0, count), count
    source = f"""
extern "C" __global__ void question(u32* out, const u32* as, const u32* bs, const u32* cs) {{
  u32 a[4], b[2], d[{count}];
  for (u32 i = 0; i < 4; ++i) a[i] = as[threadIdx.x * 4 + i];
  for (u32 i = 0; i < 2; ++i) b[i] = bs[threadIdx.x * 2 + i];
  for (u32 i = 0; i < {count}; ++i) d[i] = cs[threadIdx.x * {count} + i];
  asm volatile("mma.sync.aligned.{shape} {ds}, {_vector(first, 4)}, {_vector(first + 4, 2)}, {ds};"
               : {", ".join(f'"+r"(d[{i}])' for i in range(count))}
               : {", ".join(f'"r"(a[{i}])' for i in range(4))}, "r"(b[0]), "r"(b[1]));
  for (u32 i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i];
}}
"""
    inputs = [np.concatenate([block[i] for block in blocks]) for i in range(3)]
    buffers = [
        Buffer(name, "u4", words.size, tuple(words.ravel().tolist()))
        for name, words in zip(("as", "bs", "cs"), inputs, strict=True)
    ]
    parameters = (out(32 * warps * count), *buffers)
    return Question(id, asks, options.pop("ptx", PTX), source, parameters, block=(32 * warps, 1, 1), **options)


def _vector(first: int, count: int) -> str:
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def _k(kind: str) -> int:
    return 32 // size_of(kind)


def _exact(a_kind: str, b_kind: str, d: str) -> Question:
    k = _k(a_kind)
    low, high = (-3, 4) if d != "s32" else (0, 128)
    asks = f"Which elements has each lane with A of {a_kind}, B of {b_kind} and D of {d}?"
    a, b = integers(1, 16, k, low=low, high=high), integers(2, 8, k, low=low, high=high)
    start = integers(3, 16, 8)
    name = f"mma-fragments-{a_kind}-{b_kind}-{d}"
    return product(name, asks, (a_kind, b_kind), a, b, d=d, start=start, ptx="Matrix Fragments for mma")


def _warps(a: Array, b: Array) -> tuple[Array, Array]:
    """Four warps that have 16 rows of A each, and all of them the first 8 of B."""
    return a, np.concatenate([b[:8]] * 4)


def _random(a_kind: str, b_kind: str, d: str = "f32") -> Question:
    k = _k(a_kind)
    values = near if d == "f16" else wide
    a, b = values(a_kind, 71, 128, k), values(b_kind, 72, 64, k)
    start = np.random.default_rng(73).standard_normal((128, 8)) * 2.0 ** np.arange(-8, 8, 2)[None, :]
    names = a_kind if a_kind == b_kind else f"{a_kind}-{b_kind}"
    asks = f"Bit by bit, what is a sum of {k} products of {names} of many magnitudes and an old D of {d}?"
    name = f"mma-sum-{names}" + ("-f16" if d == "f16" else "")
    return product(name, asks, (a_kind, b_kind), a, b, d=d, start=start)


def _kept(kind: str, step: int) -> Question:
    asks = f"How far below a product of {kind} may another one be and still count in mma.sync?"
    return product(f"mma-kept-bits-{kind}", asks, (kind, kind), *_warps(*kept_bits(kind, _k(kind), step)))


def _small(kind: str, size: float) -> Question:
    asks = f"Are products of {kind} that are too small to be seen alone summed before mma.sync cuts them off?"
    return product(f"mma-many-small-{kind}", asks, (kind, kind), *_warps(*many_small(kind, _k(kind), size)))


def _cancel(kind: str, big: float, small: float) -> Question:
    """Every warp has other columns."""
    asks = f"What is left of small products of {kind} in mma.sync where two big ones cancel?"
    a, b = cancelling(kind, _k(kind), big, small)
    return product(f"mma-cancel-{kind}", asks, (kind, kind), a, np.resize(b, (32, b.shape[1])))


def _special() -> Question:
    patterns = np.array((0x7E00, 0xFD55, 0x7C00, 0xFC00, 0x0000, 0x8000, 0x7BFF, 0x0001), np.uint16).view(np.float16)
    a, b = np.zeros((16, 16), np.float16), np.zeros((8, 16), np.float16)
    for i in range(16):
        a[i, i] = patterns[i % 8]
    for j in range(8):
        b[j] = patterns[j]
    start = np.array((0x00000000, 0x80000000, 0x00000001, 0x7FC12345), np.uint32).view(np.float32)
    asks = "What are products of NaN, infinities and zeros in mma.sync, on an old D of zeros, NaN and a subnormal?"
    return product("mma-special-f16", asks, ("f16", "f16"), a, b, start=np.resize(start, (16, 8)))


def _overflow(saturate: bool) -> Question:
    a = np.where(np.arange(16)[:, None] % 2, 127, -128) * np.ones((1, 32), int)
    start = np.where(np.arange(16)[:, None] % 2, 2**31 - 5, -(2**31) + 5) * np.ones((1, 8), int)
    asks = f"Does a sum of s32 in mma.sync {'clamp with .satfinite' if saturate else 'wrap'}?"
    name, suffix = ("mma-satfinite", ".satfinite") if saturate else ("mma-wrap", "")
    return product(name, asks, ("s8", "s8"), a, np.full((8, 32), 127), d="s32", start=start, suffix=suffix)


QUESTIONS = (
    _exact("f16", "f16", "f32"),
    _exact("f16", "f16", "f16"),
    _exact("bf16", "bf16", "f32"),
    _exact("tf32", "tf32", "f32"),
    _exact("e4m3", "e5m2", "f32"),
    _exact("e5m2", "e4m3", "f16"),
    _exact("s8", "u8", "s32"),
    _overflow(False),
    _overflow(True),
    _random("f16", "f16"),
    _random("f16", "f16", "f16"),
    _random("bf16", "bf16"),
    _random("tf32", "tf32"),
    _random("e4m3", "e4m3"),
    _random("e5m2", "e4m3"),
    _random("e4m3", "e4m3", "f16"),
    _kept("f16", 4),
    _kept("tf32", 4),
    _kept("e4m3", 2),
    _small("f16", 2.0**-22),
    _small("e4m3", 2.0**-2),
    _cancel("f16", 4096, 2.0**-12),
    _cancel("e4m3", 256, 2.0**-5),
    _special(),
)
