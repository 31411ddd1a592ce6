# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic on bit patterns: ints where uniform, arrays where not. Results that are NaN are the
canonical NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.isa.values import ND

Array = npt.NDArray[Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
NAN32, NAN64, NAN16 = 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x7FFF
_FLOAT: dict[int, Any] = {32: np.float32, 64: np.float64}
_BITS: dict[int, Any] = {32: np.uint32, 64: np.uint64}


def f_value(bits: Any, width: int) -> Array:
    """Bit patterns as numbers: an array of 32, or of 1 for an int."""
    if bits.__class__ is ND:
        return bits.view(_FLOAT[width])
    return np.array([bits], _BITS[width]).view(_FLOAT[width])


def f_bits(value: Array, width: int) -> Any:
    """Numbers as bit patterns, NaN made canonical; an array of 1 becomes an int."""
    out = np.ascontiguousarray(value, _FLOAT[width]).view(_BITS[width])
    nan = np.isnan(value)
    if nan.any():
        out = out.copy()
        out[nan] = NAN32 if width == 32 else NAN64
    return int(out[0]) if out.size == 1 else out


def _flush(value: Array) -> Array:
    """Subnormals to zero of the same sign (.ftz)."""
    small = np.abs(value) < np.finfo(value.dtype).tiny
    return np.where(small, np.copysign(np.zeros(1, value.dtype), value), value) if small.any() else value


def f_arith(name: str, width: int, ftz: bool, sat: bool, *operands: Any) -> Any:
    """add, sub, mul, fma, div, rcp, sqrt, rsqrt, ex2, lg2 of f32 or f64, rounded to nearest even."""
    with np.errstate(all="ignore"):
        values = [f_value(o, width) for o in operands]
        if ftz:
            values = [_flush(v) for v in values]
        out = _ARITH[name](width, *values)
        if ftz:
            out = _flush(out)
        if sat:
            out = np.where(np.isnan(out), out.dtype.type(0), np.clip(out, 0, 1)).astype(out.dtype)
        return f_bits(out, width)


def _fma(width: int, a: Array, b: Array, c: Array) -> Array:
    if width == 32:
        return _to_f32(_fma_odd(a, b, c))
    from fractions import Fraction

    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    out = np.empty(shape, np.float64)
    for i, (x, y, z) in enumerate(zip(*(np.broadcast_to(v, shape).tolist() for v in (a, b, c)), strict=True)):
        plain = x * y + z
        try:
            exact = Fraction(x) * Fraction(y) + Fraction(z)
            out[i] = float(exact) if exact else plain
        except (OverflowError, ValueError):
            out[i] = plain
    return out


def _fma_odd(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of 24-bit numbers, in float64 rounded to odd: rounding that again gives the right result."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.copy().view(np.int64)
    adjust = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    if adjust.any():
        away = (error > 0) == (total > 0)
        bits = np.where(adjust, np.where(away, bits | 1, bits - 1), bits)
    return bits.view(np.float64)


def _to_f32(value: Array) -> Array:
    return value.astype(np.float32)


def _odd_f32(value: Array) -> Array:
    """float64 to float32, rounded to odd."""
    out = value.astype(np.float32)
    back = out.astype(np.float64)
    bits = out.view(np.int32)
    adjust = (back != value) & np.isfinite(out) & (bits & 1 == 0)
    bits = np.where(adjust, np.where(np.abs(back) < np.abs(value), bits | 1, bits - 1), bits)
    # An overflow rounds to the largest finite number, which is odd.
    over = np.isinf(out) & np.isfinite(value)
    bits = np.where(over, np.where(value < 0, np.int32(-8388609), np.int32(0x7F7FFFFF)), bits)
    return bits.astype(np.int32).view(np.float32)


_ARITH: dict[str, Callable[..., Array]] = {
    "add": lambda w, a, b: a + b,
    "sub": lambda w, a, b: a - b,
    "mul": lambda w, a, b: a * b,
    "fma": _fma,
    "div": lambda w, a, b: a / b,
    "rcp": lambda w, a: _FLOAT[w](1) / a,
    "sqrt": lambda w, a: np.sqrt(a),
    "rsqrt": lambda w, a: (1 / np.sqrt(a.astype(np.float64))).astype(_FLOAT[w]),
    "ex2": lambda w, a: np.exp2(a.astype(np.float64)).astype(_FLOAT[w]),
    "lg2": lambda w, a: np.log2(a.astype(np.float64)).astype(_FLOAT[w]),
}


def f_minmax(largest: bool, width: int, nan: bool, a: Any, b: Any) -> Any:
    """min / max: a NaN operand gives the other one, or with .NaN a NaN; -0 is below +0 (PTX ISA, "min", "max")."""
    x, y = np.broadcast_arrays(f_value(a, width), f_value(b, width))
    sign = np.signbit(x)
    take_x = np.where(x == y, ~sign if largest else sign, x > y if largest else x < y)
    out = np.where(take_x, x, y)
    if nan:
        out = np.where(np.isnan(x) | np.isnan(y), _FLOAT[width]("nan"), out)
    else:
        out = np.where(np.isnan(x), y, np.where(np.isnan(y), x, out))
    return f_bits(out, width)


def f_compare(name: str, width: int, ftz: bool, a: Any, b: Any) -> Any:
    """setp on f32, f64: ordered comparisons are false with NaN, the `u` forms true (PTX ISA, "Floating Point
    Comparisons").
    """
    x, y = f_value(a, width), f_value(b, width)
    if ftz:
        x, y = _flush(x), _flush(y)
    return _truth(name, x, y)


def _truth(name: str, x: Array, y: Array) -> Any:
    nan = np.isnan(x) | np.isnan(y)
    if name == "num":
        out = ~nan
    elif name == "nan":
        out = nan
    else:
        plain = name[:-1] if name.endswith("u") and len(name) == 3 else name
        out = _COMPARE[plain](x, y)
        out = out | nan if plain != name else out & ~nan
    return bool(out[0]) if out.size == 1 else out


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
}  # fmt: skip


# --- 16 bits ----------------------------------------------------------------------------------------------------------


def widen(bits: Any, kind: str) -> Array:
    """f16 or bf16 bit patterns as float32 numbers; an array of 1 for an int."""
    raw = bits if bits.__class__ is ND else np.array([bits], np.uint16)
    return (numeric.f16_to_f32 if kind == "f16" else numeric.bf16_to_f32)(raw.astype(np.uint16, copy=False))


def narrow(value: Array, kind: str) -> Array:
    """float32 or float64 numbers as f16 or bf16 bit patterns, rounded once to nearest even."""
    if value.dtype == F64:
        if kind == "f16":
            out = value.astype(np.float16).view(np.uint16)
            nan = np.isnan(value)
            if nan.any():
                out[nan] = NAN16
            return out
        value = _odd_f32(value)
    return (numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16)(value)


def h_compare(name: str, kind: str, a: Any, b: Any) -> Any:
    return _truth(name, widen(a, kind), widen(b, kind))


def h_arith(name: str, kind: str, relu: bool, sat: bool, *operands: Any) -> Any:
    """add, sub, mul, fma, min, max, neg, abs of f16 or bf16."""
    with np.errstate(all="ignore"):
        values = [widen(o, kind) for o in operands]
        if name == "fma":
            out = _fma_odd(*values)
        elif name in ("min", "max"):
            raw = f_minmax(name == "max", 32, False, *(f_bits(v, 32) for v in values))
            out = f_value(raw, 32)
        else:
            # Two 11-bit numbers: 24 bits are enough for a second rounding to do no harm. 8-bit ones need their sum
            # exact.
            wide = [v.astype(np.float64) for v in values]
            out = _ARITH[name](64, *wide)
            if name in ("add", "sub"):
                a, b = wide[0], wide[1] if name == "add" else -wide[1]
                out = _fma_odd(a.astype(np.float32), np.ones(1, np.float32), b.astype(np.float32))
        if relu:
            out = np.where(np.isnan(out), out, np.maximum(out, 0))
        if sat:
            out = np.where(np.isnan(out), 0, np.clip(out, 0, 1))
        bits = narrow(out, kind)
    return int(bits[0]) if bits.size == 1 else bits


def packed(function: Callable[..., Any], *operands: Any) -> Any:
    """Apply a 16-bit function to both halves of 32-bit values."""
    low = function(*(_half(o, 0) for o in operands))
    high = function(*(_half(o, 16) for o in operands))
    return pair(low, high)


def _half(value: Any, shift: int) -> Any:
    if value.__class__ is ND:
        return (value >> np.uint32(shift)).astype(np.uint16)
    return (value >> shift) & 0xFFFF


def pair(low: Any, high: Any) -> Any:
    """Two 16-bit values as one of 32 bits."""
    if low.__class__ is ND or high.__class__ is ND:
        lo = low.astype(np.uint32) if low.__class__ is ND else np.uint32(low)
        hi = high.astype(np.uint32) if high.__class__ is ND else np.uint32(high)
        return lo | (hi << np.uint32(16))
    return low | high << 16


# --- conversions ------------------------------------------------------------------------------------------------------

_SMALL: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def cvt_pair(high: Any, low: Any, kind: str, relu: bool, satfinite: bool) -> Any:
    """cvt.rn.{f16x2,bf16x2}.f32 d, a, b: a becomes the upper half."""
    if high.__class__ is ND and low.__class__ is ND and not (relu or satfinite):
        out = np.empty((32, 2), np.uint16)
        convert = numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16
        out[:, 0] = convert(low.view(F32))
        out[:, 1] = convert(high.view(F32))
        return out.view(np.uint32)[:, 0]
    return pair(cvt_half(low, kind, relu, satfinite), cvt_half(high, kind, relu, satfinite))


def cvt_pairs(kind: str, sources: tuple[Any, ...]) -> list[Any]:
    """Several `cvt_pair`s: `sources` holds the lower and the upper half of each result in turn."""
    if any(source.__class__ is not ND for source in sources):
        return [cvt_pair(sources[i + 1], sources[i], kind, False, False) for i in range(0, len(sources), 2)]
    rows = np.array(sources, np.uint32)
    halves = (numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16)(rows.view(F32))
    out = np.empty((len(sources) // 2, 32, 2), np.uint16)
    out[:, :, 0], out[:, :, 1] = halves[0::2], halves[1::2]
    return list(out.view(np.uint32)[:, :, 0])


def cvt_half(bits: Any, kind: str, relu: bool, satfinite: bool) -> Any:
    """cvt.rn.{f16,bf16}.f32."""
    value = f_value(bits, 32)
    if relu:
        value = np.where(np.isnan(value), value, np.maximum(value, np.float32(0)))
    if satfinite:
        top = np.float32(65504.0) if kind == "f16" else np.array([0x7F7F0000], np.uint32).view(F32)[0]
        value = np.where(np.isnan(value), value, np.clip(value, -top, top))
    out = narrow(value.astype(np.float32, copy=False), kind)
    return int(out[0]) if out.size == 1 else out


def cvt_wide(bits: Any, kind: str) -> Any:
    """cvt.f32.{f16,bf16}: exact."""
    return f_bits(widen(bits, kind), 32)


def cvt_float(bits: Any, source: int, target: int) -> Any:
    """cvt between f32 and f64, to nearest even."""
    with np.errstate(all="ignore"):
        return f_bits(f_value(bits, source).astype(_FLOAT[target]), target)


def cvt_from_int(value: Any, width: int, is_signed: bool, target: str) -> Any:
    """cvt.rn from an integer to f16, bf16, f32 or f64."""

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
            return int(number.astype(np.float32).view(np.uint32)[0])
        return int(narrow(number, target)[0])

    if value.__class__ is not ND:
        return one(value)
    if width <= 32:
        numbers = (value.view(f"i{width // 8}") if is_signed else value).astype(np.float64)
        if target == "f64":
            return numbers.view(np.uint64)
        return numbers.astype(np.float32).view(np.uint32) if target == "f32" else narrow(numbers, target)
    dtype = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[target]
    return np.array([one(x) for x in value.tolist()], dtype)


def cvt_to_int(bits: Any, source: str, rounding: str, target: int, is_signed: bool) -> Any:
    """cvt.r*i from f16, bf16, f32, f64 to an integer: clamped to the range, NaN to 0 (PTX ISA, "cvt")."""
    value = widen(bits, source) if source in ("f16", "bf16") else f_value(bits, 64 if source == "f64" else 32)
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


def f_round(bits: Any, width: int, rounding: str) -> Any:
    """cvt.r*i.f32.f32 and f64: to an integral value."""
    with np.errstate(all="ignore"):
        return f_bits(_ROUND[rounding](f_value(bits, width)), width)
