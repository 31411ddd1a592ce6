# SPDX-License-Identifier: Apache-2.0
"""Conversions of bit patterns between integers and floating-point types (PTX ISA, "cvt"). Ints where uniform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.isa.floats import F32, f_bits, f_value, narrow, pair, widen
from tmagen.emu.isa.rounding import clamp, flush, half_towards_zero, to_f32
from tmagen.emu.isa.values import ND

Array = npt.NDArray[Any]
_FLOAT: dict[int, Any] = {32: np.float32, 64: np.float64}
_BITS: dict[int, Any] = {32: np.uint32, 64: np.uint64}
_SMALL: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def cvt_pair(high: Any, low: Any, kind: str, relu: bool, satfinite: bool, zero: bool = False) -> Any:
    """cvt.{rn,rz}.{f16x2,bf16x2}.f32 d, a, b: a becomes the upper half. `zero`: rounded towards zero."""
    if high.__class__ is ND and low.__class__ is ND and not (relu or satfinite or zero):
        out = np.empty((32, 2), np.uint16)
        convert = numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16
        out[:, 0] = convert(low.view(F32))
        out[:, 1] = convert(high.view(F32))
        return out.view(np.uint32)[:, 0]
    return pair(cvt_half(low, kind, relu, satfinite, zero), cvt_half(high, kind, relu, satfinite, zero))


def cvt_pairs(kind: str, sources: tuple[Any, ...]) -> list[Any]:
    """Several `cvt_pair`s: `sources` holds the lower and the upper half of each result in turn."""
    if any(source.__class__ is not ND for source in sources):
        return [cvt_pair(sources[i + 1], sources[i], kind, False, False) for i in range(0, len(sources), 2)]
    rows = np.array(sources, np.uint32)
    halves = (numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16)(rows.view(F32))
    out = np.empty((len(sources) // 2, 32, 2), np.uint16)
    out[:, :, 0], out[:, :, 1] = halves[0::2], halves[1::2]
    return list(out.view(np.uint32)[:, :, 0])


def cvt_half(bits: Any, kind: str, relu: bool, satfinite: bool, zero: bool = False, sat: bool = False) -> Any:
    """cvt.{rn,rz}.{f16,bf16}.f32. `zero`: rounded towards zero."""
    value = f_value(bits, 32)
    if sat:
        value = clamp(value)
    if relu:
        value = np.where(np.isnan(value), value, np.maximum(value, np.float32(0)))
    if satfinite:
        top = np.float32(65504.0) if kind == "f16" else np.array([0x7F7F0000], np.uint32).view(F32)[0]
        value = np.where(np.isnan(value), value, np.clip(value, -top, top))
    value = value.astype(np.float32, copy=False)
    out = narrow(value, kind)
    if zero:
        out = half_towards_zero(out, widen(out, kind), value)
    return int(out[0]) if out.size == 1 else out


def cvt_wide(bits: Any, kind: str) -> Any:
    """cvt.f32.{f16,bf16}: exact. A NaN of bf16 keeps its bits, one of f16 does not."""
    if kind == "bf16":
        return bits.astype(np.uint32) << np.uint32(16) if bits.__class__ is ND else bits << 16
    return f_bits(widen(bits, kind), 32)


def cvt_float(bits: Any, source: int, target: int, mode: str = "rn") -> Any:
    """cvt between f32 and f64. A NaN keeps its sign and as many bits as there is room for, and becomes quiet."""
    value = f_value(bits, source)
    with np.errstate(all="ignore"):
        out = to_f32(value, mode) if target == 32 else value.astype(np.float64)
    raw = np.array(np.ascontiguousarray(out).view(_BITS[target]))
    nan = np.isnan(value)
    if nan.any():
        given = value.view(_BITS[source]).astype(np.uint64)[nan]
        if target == 32:
            sign, rest, quiet = given >> np.uint64(32) & np.uint64(1 << 31), given >> np.uint64(29), 0x7FC00000
            raw[nan] = (sign | rest & np.uint64(0x3FFFFF) | np.uint64(quiet)).astype(np.uint32)
        else:
            sign, rest = given >> np.uint64(31) << np.uint64(63), (given & np.uint64(0x7FFFFF)) << np.uint64(29)
            raw[nan] = sign | rest | np.uint64(0x7FF8 << 48)
    return int(raw[0]) if raw.size == 1 else raw


def cvt_from_int(value: Any, width: int, is_signed: bool, target: str, mode: str = "rn") -> Any:
    """cvt from an integer to f16, bf16, f32 or f64, to nearest even; to f32 also by another mode."""

    def one(x: int) -> int:
        if is_signed and x >> (width - 1):
            x -= 1 << width
        if target == "f64":
            return int(np.float64(x).view(np.uint64))
        # Exact in float64 up to 53 bits; above that, a sticky bit keeps the single rounding right.
        if abs(x) >= 1 << 53:
            shift = abs(x).bit_length() - 53
            sticky = int(abs(x) & ((1 << shift) - 1) != 0)
            magnitude = ((abs(x) >> shift) | sticky) << shift
            x = -magnitude if x < 0 else magnitude
        number = np.array([x], np.float64)
        if target == "f32":
            return int(to_f32(number, mode).view(np.uint32)[0])
        return int(narrow(number, target)[0])

    if value.__class__ is not ND:
        return one(value)
    if width <= 32:
        numbers = (value.view(f"i{width // 8}") if is_signed else value).astype(np.float64)
        if target == "f64":
            return numbers.view(np.uint64)
        return to_f32(numbers, mode).view(np.uint32) if target == "f32" else narrow(numbers, target)
    dtype = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[target]
    return np.array([one(x) for x in value.tolist()], dtype)


def cvt_to_int(bits: Any, source: str, rounding: str, target: int, is_signed: bool, ftz: bool = False) -> Any:
    """cvt.r*i from f16, bf16, f32, f64 to an integer: clamped to the range, NaN to 0 (PTX ISA, "cvt")."""
    value = widen(bits, source) if source in ("f16", "bf16") else f_value(bits, 64 if source == "f64" else 32)
    if ftz:
        value = flush(value)
    with np.errstate(all="ignore"):
        whole = _ROUND[rounding](value.astype(np.float64))
    low, high = (-(1 << (target - 1)), (1 << (target - 1)) - 1) if is_signed else (0, (1 << target) - 1)

    def one(x: float) -> int:
        if x != x:
            # A NaN gives 0, except that 64-bit results (and f64 sources) give the top bit alone.
            return 1 << (target - 1) if source == "f64" or target == 64 else 0
        if x in (float("inf"), float("-inf")):
            return (high if x > 0 else low) & ((1 << target) - 1)
        return max(low, min(high, int(x))) & ((1 << target) - 1)

    out = [one(x) for x in whole.tolist()]
    if len(out) == 1:
        return out[0]
    return np.array(out, {8: np.uint16, 16: np.uint16, 32: np.uint32, 64: np.uint64}[target])


_ROUND: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def f_round(bits: Any, width: int, rounding: str, ftz: bool = False, sat: bool = False) -> Any:
    """cvt.r*i.f32.f32 and f64: to an integral value; without a rounding, the value itself, flushed or clamped."""
    value = f_value(bits, width)
    with np.errstate(all="ignore"):
        if ftz:
            value = flush(value)
        if rounding:
            value = _ROUND[rounding](value)
        return f_bits(clamp(value) if sat else value, width)
