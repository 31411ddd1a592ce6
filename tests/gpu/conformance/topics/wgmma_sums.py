# SPDX-License-Identifier: Apache-2.0
"""wgmma: how products are summed, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emu.warpgroup import DTYPE, size_of
from tests.gpu.conformance.question import Question
from tests.gpu.conformance.values import Array, cancelling, kept_bits, many_small, near, wide
from tests.gpu.conformance.wgmma_text import product

PTX = "wgmma.mma_async: precision and rounding, which the ISA leaves open"


def _k(kind: str) -> int:
    return 32 // size_of(kind)


def _random(a_kind: str, b_kind: str, d: str = "f32", *, steps: int = 1, old: bool = False, **options: Any) -> Question:
    k = _k(a_kind) * steps
    seed = [*"f16 bf16 tf32 e4m3 e5m2".split()].index(a_kind) * 10 + steps
    start = None
    parts = [a_kind if a_kind == b_kind else f"{a_kind}-{b_kind}", "registers" if options.get("in_registers") else ""]
    asks = f"Bit by bit, what is the sum of {k} products of {a_kind} and {b_kind} of many magnitudes"
    if d == "f16":
        asks, parts = f"{asks} in f16", [*parts, "f16"]
    if steps > 1:
        asks, parts = f"{asks}, {steps} instructions in a row", [*parts, "chain"]
    if old:
        asks, parts = f"{asks}, on an old D", [*parts, "old-d"]
        start = np.random.default_rng(seed).standard_normal((64, 16)) * 2.0 ** np.arange(-24, 40, 4)[None, :]
    if options.get("in_registers"):
        asks += ", with A in registers"
    name = "-".join(["wgmma-sum", *(part for part in parts if part)])
    a, b = wide(a_kind, seed, 64, k), wide(b_kind, seed + 1, 16, k)
    if d == "f16":
        a, b = near(a_kind, seed, 64, k), near(b_kind, seed + 1, 16, k)
        start = np.random.default_rng(seed).standard_normal((64, 16)) * 2.0 ** np.arange(-8, 8)[None, :]
    return product(name, f"{asks}?", (a_kind, b_kind), a, b, d=d, start=start, ptx=PTX, **options)


def _kept(kind: str, step: int) -> Question:
    asks = f"How far below a product of {kind} may another one be and still count, and is it rounded or cut off?"
    a, b = kept_bits(kind, _k(kind), step)
    return product(f"wgmma-kept-bits-{kind}", asks, (kind, kind), a, b, ptx=PTX)


def _small(kind: str, size: float) -> Question:
    asks = f"Are products of {kind} that are too small to be seen alone summed before they are cut off?"
    a, b = many_small(kind, _k(kind), size)
    return product(f"wgmma-many-small-{kind}", asks, (kind, kind), a, b, ptx=PTX)


def _cancel(kind: str, big: float, small: float) -> Question:
    asks = f"What is left of small products of {kind} where two big ones cancel, by the places of the big ones?"
    a, b = cancelling(kind, _k(kind), big, small)
    return product(f"wgmma-cancel-{kind}", asks, (kind, kind), a, b, ptx=PTX)


def _cancels_old(kind: str, big: float, small: float) -> Question:
    """The first product is -`big` or near it, the old D is `big`."""
    k = _k(kind)
    a, b = np.zeros((64, k)), np.ones((8, k))
    for i in range(64):
        a[i] = small * (1 + (np.arange(k) * 3 + i) % 8 / 8) * (-1) ** (i // 8)
        a[i, i % k] = -big
    start = np.full((64, 8), big) * (1 + np.arange(8) * 2.0**-21)[None, :]
    asks = f"What is left of small products of {kind} where a big one cancels the old D?"
    name = f"wgmma-cancel-old-d-{kind}"
    return product(name, asks, (kind, kind), a.astype(DTYPE[kind]), b.astype(DTYPE[kind]), start=start, ptx=PTX)


def _bits(kind: str, patterns: tuple[int, ...]) -> Array:
    return np.array(patterns, f"u{size_of(kind)}").view(DTYPE[kind])


def _special(kind: str, patterns: tuple[int, ...], d: str = "f32", **options: Any) -> Question:
    """Each pattern times each; the other products are 0 * 0."""
    k = _k(kind)
    values = _bits(kind, patterns)
    a, b = np.zeros((64, k), DTYPE[kind]), np.zeros((-(-len(values) // 8) * 8, k), DTYPE[kind])
    for i in range(64):
        a[i, i // len(values) % k] = values[i % len(values)]
    for j in range(b.shape[0]):
        b[j] = values[j % len(values)]
    name = f"wgmma-special-{kind}" + ("-f16" if d == "f16" else "")
    asks = f"What are products of NaN, infinities, zeros, the largest and the smallest numbers of {kind} in {d}?"
    return product(name, asks, (kind, kind), a, b, d=d, ptx=PTX, **options)


def _old_d() -> Question:
    """D that is special, and products of +0, -0 and 1."""
    patterns = (
        0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
        0xFF800000, 0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0x3F800001, 0xBF800000, 0x4B800000, 0x33800001,
    )  # fmt: skip
    start = np.array(patterns, np.uint32).view(np.float32)[np.arange(64)[:, None] % 16 + np.zeros((1, 8), int)]
    a, b = np.zeros((64, 16)), np.zeros((8, 16))
    a[:, 3] = np.repeat((1.0, -1.0, 0.0, -0.0), 16)
    b[:, 3] = (1.0, -1.0, 0.0, -0.0, 2.0**-24, 65504.0, np.inf, np.nan)
    b[:, :3] = -1.0
    asks = "What becomes of an old D that is NaN, infinite, zero or subnormal?"
    return product("wgmma-special-old-d", asks, ("f16", "f16"), a, b, start=start, ptx=PTX)


def _subnormal() -> Question:
    """Products of bf16 around and below the smallest normal f32."""
    a, b = np.zeros((64, 16)), np.zeros((8, 16))
    for i in range(64):
        a[i, i % 16] = (1.0, -1.5, 1.9921875, -1.0078125)[i // 16] * 2.0 ** (-60 - i % 8)
        a[i, (i + 5) % 16] = 2.0**-70 if i % 2 else 0
    for j in range(8):
        b[j] = 2.0 ** (-61 - 3 * j) * (1 + j / 8)
    kind = DTYPE["bf16"]
    asks = "Are sums below the smallest normal f32 kept?"
    return product("wgmma-subnormal-result", asks, ("bf16", "bf16"), a.astype(kind), b.astype(kind), ptx=PTX)


def _subnormal_inputs() -> Question:
    patterns = (0x0001, 0x8001, 0x03FF, 0x83FF, 0x0200, 0x0400, 0x7BFF, 0x3C01)
    values = _bits("f16", patterns)
    chance = np.random.default_rng(8)
    a, b = values[chance.integers(0, 8, (64, 16))], values[chance.integers(0, 6, (8, 16))]
    asks = "Are subnormal operands of f16 taken as they are, and aligned by which exponent?"
    return product("wgmma-subnormal-operands", asks, ("f16", "f16"), a, b, ptx=PTX)


def _overflow() -> Question:
    """Sums of bf16 that leave f32, in part or in whole."""
    a, b = np.zeros((64, 16)), np.ones((8, 16))
    for i in range(64):
        count, sign = 1 + i % 8, -1 if i & 8 else 1
        a[i, :count] = sign * 2.0**126
        a[i, 8 : 8 + i // 16 * 2] = -sign * 2.0**126
    for j in range(8):
        b[j] *= (1, 1.9921875, 2, 3)[j % 4]
        b[j, 15] = 2.0**100
    kind = DTYPE["bf16"]
    asks = "Do sums overflow to infinity that leave f32 in part only?"
    return product("wgmma-overflow", asks, ("bf16", "bf16"), a.astype(kind), b.astype(kind), ptx=PTX)


def _zeros() -> Question:
    """Products that are all -0, or of either sign, on an old D of either zero."""
    a, b = np.zeros((64, 16)), np.full((8, 16), -1.0)
    a[16:32] = -0.0
    a[32:48, 5] = -0.0
    a[48:, 5], a[48:, 6] = 1.0, -1.0
    start = np.where(np.arange(8)[None, :] % 2, -0.0, 0.0) * np.ones((64, 1))
    asks = "Which sign has a sum of zeros?"
    return product("wgmma-zero-signs", asks, ("f16", "f16"), a, b, start=start, ptx=PTX)


def _half_ties() -> Question:
    """Ties of a float16 D, and what is below any bit of float32 beside them."""
    a, b = np.zeros((64, 16)), np.zeros((8, 16))
    for i in range(64):
        a[i, :4] = (1 + i % 4 / 1024) * (-1) ** (i // 32), 2.0**-11, 0, 0
        a[i, 4 + i // 4 % 8] = (1, -1)[i // 4 % 2] * 2.0**-12
    b[:, :4] = 1
    for j in range(8):
        b[j, 4:] = 2.0 ** (-7 - j)
    asks = "Is a float16 D rounded once, from all bits that are kept?"
    return product("wgmma-half-ties", asks, ("f16", "f16"), a, b, d="f16", ptx=PTX)


def _negated() -> Question:
    a, b = wide("f16", 91, 64, 16), wide("f16", 92, 16, 16)
    start = np.random.default_rng(93).standard_normal((64, 16)) * 8
    asks = "Is a sum that is negated by its immediate cut off as the one that is not?"
    return product("wgmma-sum-negated", asks, ("f16", "f16"), a, b, start=start, signs="-1, 1", ptx=PTX)


def _tf32_low_bits() -> Question:
    patterns = (0x3F800FFF, 0x3F801000, 0x3F801FFF, 0xBF803FFF, 0x7F800001, 0xFF801FFF, 0x7F802000, 0x00001FFF)
    values = _bits("tf32", patterns)
    a, b = np.zeros((64, 8), np.float32), np.zeros((8, 8), np.float32)
    for i in range(64):
        a[i, i // 8] = values[i % 8]
    for j in range(8):
        b[j] = (1.0, values[1], values[3], 2.0**-120, np.float32(2.0**100), values[7], -1.0, 0.0)[j]
    asks = "Are the low 13 bits of tf32 ignored, also those that alone make a NaN?"
    return product("wgmma-tf32-low-bits", asks, ("tf32", "tf32"), a, b, ptx=PTX)


_HALF = (0x7E00, 0xFD55, 0x7C00, 0xFC00, 0x0000, 0x8000, 0x7BFF, 0x0001)
_BRAIN = (0x7FC0, 0xFF81, 0x7F80, 0xFF80, 0x0000, 0x8000, 0x7F7F, 0x0001)
_SINGLE = (0x7FC00000, 0xFF812345, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x7F7FE000, 0x00002000)

QUESTIONS = (
    _kept("f16", 4),
    _kept("bf16", 4),
    _kept("tf32", 4),
    _kept("e4m3", 2),
    _kept("e5m2", 2),
    _small("f16", 2.0**-22),
    _small("tf32", 2.0**-22),
    _small("e4m3", 2.0**-2),
    _cancel("f16", 4096, 2.0**-12),
    _cancel("bf16", 4096, 2.0**-12),
    _cancel("tf32", 4096, 2.0**-12),
    _cancel("e4m3", 256, 2.0**-5),
    _cancels_old("f16", 4096, 2.0**-12),
    _cancels_old("tf32", 4096, 2.0**-12),
    _cancels_old("e4m3", 256, 2.0**-5),
    _random("f16", "f16"),
    _random("f16", "f16", old=True),
    _random("f16", "f16", steps=4),
    _random("f16", "f16", in_registers=True),
    _random("bf16", "bf16", old=True),
    _random("tf32", "tf32"),
    _random("tf32", "tf32", old=True),
    _random("tf32", "tf32", steps=4),
    _random("e4m3", "e4m3"),
    _random("e4m3", "e4m3", old=True),
    _random("e4m3", "e4m3", steps=4),
    _random("e5m2", "e5m2"),
    _random("e5m2", "e4m3", old=True),
    _random("f16", "f16", "f16"),
    _random("f16", "f16", "f16", steps=4),
    _random("e4m3", "e4m3", "f16"),
    _special("f16", _HALF),
    _special("f16", _HALF, "f16"),
    _special("bf16", _BRAIN),
    _special("tf32", _SINGLE),
    _special("e4m3", (0x7F, 0xFF, 0x7E, 0xFE, 0x00, 0x80, 0x01, 0x38)),
    _special("e5m2", (0x7D, 0xFF, 0x7C, 0xFC, 0x00, 0x80, 0x7B, 0x01)),
    _half_ties(),
    _old_d(),
    _zeros(),
    _subnormal(),
    _subnormal_inputs(),
    _overflow(),
    _negated(),
    _tf32_low_bits(),
)
