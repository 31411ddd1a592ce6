# SPDX-License-Identifier: Apache-2.0
"""Rounding of float32 results other than to nearest even, and what flushing does to them (PTX ISA, "Rounding
Modifiers", ".ftz").
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MODES = ("rn", "rz", "rm", "rp")
_TINY = float(np.finfo(np.float32).tiny)


def to_f32(value: Array, mode: str = "rn") -> Array:
    """float64 numbers, exact or rounded to odd, as float32."""
    with np.errstate(all="ignore"):
        near = value.astype(np.float32)
        if mode == "rn":
            return near
        back = near.astype(np.float64)
        up, down = np.float32(np.inf), np.float32(-np.inf)
        if mode == "rz":
            return np.where(np.abs(back) > np.abs(value), np.nextafter(near, np.float32(0)), near)
        if mode == "rm":
            return np.where(back > value, np.nextafter(near, down), near)
        return np.where(back < value, np.nextafter(near, up), near)


def flush(value: Array) -> Array:
    """Subnormals to zero of the same sign (.ftz)."""
    small = np.abs(value) < np.finfo(value.dtype).tiny
    return np.where(small, np.copysign(np.zeros(1, value.dtype), value), value) if small.any() else value


def flush_exact(result: Array, exact: Array, mode: str) -> Array:
    """A float32 result of `exact`, flushed where 24 bits of it would be subnormal were there no end to the exponents:
    so does an H200, also where the rounding to a subnormal gives the smallest normal number.
    """
    small = np.abs(to_f32(exact * 2.0**64, mode)) < _TINY * 2.0**64
    return np.where(small, np.copysign(np.float32(0), exact), result).astype(np.float32) if small.any() else result


def clamp(value: Array) -> Array:
    """To 0 ... 1 (.sat): NaN and -0 become +0."""
    zero = value.dtype.type(0)
    with np.errstate(invalid="ignore"):
        out: Array = np.where(np.isnan(value), zero, np.clip(value, 0, 1) + zero).astype(value.dtype)
    return out


def half_towards_zero(bits: Array, kept: Array, value: Array) -> Array:
    """16-bit patterns of `value`, rounded to nearest and standing for the numbers `kept`, as rounded towards zero."""
    over = np.isfinite(value) & (np.abs(kept) > np.abs(value))
    return np.where(over, bits - np.uint16(1), bits).astype(np.uint16)
