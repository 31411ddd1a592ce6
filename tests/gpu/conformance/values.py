# SPDX-License-Identifier: Apache-2.0
"""Operands that tell how products are summed: alignment, truncation, order, and what is not a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.emu.warpgroup import DTYPE

Array = npt.NDArray[Any]

# The largest exponent that operands of a kind get here, and the smallest: of subnormal numbers in fp8.
_EXPONENTS = {"f16": (-9, 9), "bf16": (-14, 14), "tf32": (-14, 14)}


def wide(kind: str, seed: int, *shape: int) -> Array:
    """Numbers of either sign and of many magnitudes; in fp8 all finite ones alike."""
    chance = np.random.default_rng(seed)
    if kind in ("e4m3", "e5m2"):
        codes = [code for code in range(256) if np.isfinite(np.uint8(code).view(DTYPE[kind]).astype(np.float32))]
        return chance.choice(np.array(codes, np.uint8), shape).view(DTYPE[kind])
    low, high = _EXPONENTS[kind]
    numbers = chance.uniform(1, 2, shape) * 2.0 ** chance.integers(low, high + 1, shape)
    signed = (numbers * chance.choice((-1, 1), shape)).astype(np.float32)
    if kind == "tf32":
        return signed  # all 24 bits of it, of which 11 should count
    return signed.astype(DTYPE[kind])


def near(kind: str, seed: int, *shape: int) -> Array:
    """Normal numbers, which cancel now and then."""
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPE[kind])


def kept_bits(kind: str, k: int, step: int) -> tuple[Array, Array]:
    """A product of 2^8 and one that is smaller by 4 + r + `step` * j bits in column j and row r of four.

    The small one is of either sign, has one bit or as many as there are, and is at four places of K.
    """
    most = 2 - 2.0 ** -{"e4m3": 3, "e5m2": 2, "bf16": 7}.get(kind, 10)
    a, b = np.zeros((64, k)), np.zeros((8, k))
    a[:, 0], b[:, 0] = 16, 16
    for i in range(64):
        place = (1, k // 4 + 1, k // 2 + 1, k - 1)[i // 16]
        a[i, place] = (1, -1, most, -most)[i % 4] * 2.0 ** -(i // 4 % 4)
    for j in range(8):
        b[j, 1:] = 2.0 ** (4 - step * j)
    return a.astype(DTYPE[kind]), b.astype(DTYPE[kind])


def many_small(kind: str, k: int, size: float) -> tuple[Array, Array]:
    """1 and, in row i, i % k products that are all too small to be seen alone: `size`, by B halved per column."""
    a, b = np.zeros((64, k)), np.zeros((8, k))
    a[:, k // 3], b[:, k // 3] = 1, 1
    others = [i for i in range(k) if i != k // 3]
    for i in range(64):
        a[i, others[: i % k]] = (1, 1.5, -1, 1.25)[i * 4 // 64]
    for j in range(8):
        b[j, others] = size * 2.0**-j
    return a.astype(DTYPE[kind]), b.astype(DTYPE[kind])


def cancelling(kind: str, k: int, big: float, small: float) -> tuple[Array, Array]:
    """Two big products that cancel, at every pair of distances, among small ones: what is left of these?"""
    a, b = np.zeros((64, k)), np.zeros((k, k))
    for i in range(64):
        first, second = i % k, (i + 1 + i // k * max(1, k // 4)) % k
        a[i] = small * (1 + (np.arange(k) * 5 + i) % 8 / 8)
        a[i, [first, second]] = big
    for j in range(k):
        b[j] = 1
        b[j, j] = -1
    return a.astype(DTYPE[kind]), b.astype(DTYPE[kind])
