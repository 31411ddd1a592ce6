# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic on bit patterns: ints where uniform, arrays where not. Results that are NaN are the
canonical NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.isa.rounding import clamp, flush, flush_exact, to_f32
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


def f_arith(name: str, width: int, ftz: bool, sat: bool, *operands: Any, mode: str = "rn") -> Any:
    """add, sub, mul, fma, div, rcp, sqrt, rsqrt, ex2, lg2 of f32 or f64, rounded to nearest even; add, sub, mul and fma
    of f32 also by another mode.
    """
    with np.errstate(all="ignore"):
        values = [f_value(o, width) for o in operands]
        if ftz:
            values = [flush(v) for v in values]
        if width == 32 and (mode != "rn" or (ftz and name in ("mul", "fma"))):
            out = _exact_f32(name, values, ftz, mode)
        else:
            out = _ARITH[name](width, *values)
            if ftz:
                out = flush(out)
        if sat:
            out = clamp(out)
        return f_bits(out, width)


def _exact_f32(name: str, values: list[Array], ftz: bool, mode: str) -> Array:
    """add, sub, mul, fma of f32 by way of a float64 that is exact or rounded to odd."""
    one = np.ones(1, np.float32)
    if name == "mul":
        exact = values[0].astype(np.float64) * values[1].astype(np.float64)
    else:
        a, b, c = values if name == "fma" else (values[0], one, values[1] if name == "add" else -values[1])
        exact = _fma_odd(a, b, c)
        if mode == "rm":
            # A sum that is exactly 0 is -0 where the terms' signs differ.
            differ = np.signbit(a) ^ np.signbit(b) ^ np.signbit(c)
            exact = np.where((exact == 0) & differ, -0.0, exact)
    out = to_f32(exact, mode)
    return flush_exact(out, exact, mode) if ftz else out


def _fma(width: int, a: Array, b: Array, c: Array) -> Array:
    if width == 32:
        return to_f32(_fma_odd(a, b, c))
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
    "sin": lambda w, a: np.sin(a.astype(np.float64)).astype(_FLOAT[w]),
    "cos": lambda w, a: np.cos(a.astype(np.float64)).astype(_FLOAT[w]),
    "tanh": lambda w, a: np.tanh(a.astype(np.float64)).astype(_FLOAT[w]),
}


def f_minmax(largest: bool, width: int, nan: bool, a: Any, b: Any, ftz: bool = False) -> Any:
    """min / max: a NaN operand gives the other one, or with .NaN a NaN; -0 is below +0 (PTX ISA, "min", "max")."""
    x, y = np.broadcast_arrays(f_value(a, width), f_value(b, width))
    if ftz:
        x, y = flush(x), flush(y)
    sign = np.signbit(x)
    take_x = np.where(x == y, ~sign if largest else sign, x > y if largest else x < y)
    out = np.where(take_x, x, y)
    if nan:
        out = np.where(np.isnan(x) | np.isnan(y), _FLOAT[width]("nan"), out)
    else:
        out = np.where(np.isnan(x), y, np.where(np.isnan(y), x, out))
    return f_bits(out, width)


def crossed(bits: Any, sign: Any) -> Any:
    """.xorsign: `bits`, never negative, with another sign; a NaN stays the canonical one."""
    if bits.__class__ is not ND and sign.__class__ is not ND:
        return bits if bits > 0x7F800000 else bits | sign
    return np.where(np.asarray(bits) > 0x7F800000, bits, np.bitwise_or(bits, sign)).astype(np.uint32)


def f_compare(name: str, width: int, ftz: bool, a: Any, b: Any) -> Any:
    """setp on f32, f64: ordered comparisons are false with NaN, the `u` forms true (PTX ISA, "Floating Point
    Comparisons").
    """
    x, y = f_value(a, width), f_value(b, width)
    if ftz:
        x, y = flush(x), flush(y)
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


def f_test(name: str, width: int, a: Any) -> Any:
    """testp. Zero counts as normal (PTX ISA, "testp")."""
    x = f_value(a, width)
    tiny = np.finfo(x.dtype).tiny
    out = {
        "finite": np.isfinite(x),
        "infinite": np.isinf(x),
        "number": ~np.isnan(x),
        "notanumber": np.isnan(x),
        "normal": np.isfinite(x) & ((np.abs(x) >= tiny) | (x == 0)),
        "subnormal": (x != 0) & (np.abs(x) < tiny),
    }[name]
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
            with np.errstate(over="ignore"):
                out = value.astype(np.float16).view(np.uint16)
            nan = np.isnan(value)
            if nan.any():
                out[nan] = NAN16
            return out
        value = _odd_f32(value)
    return (numeric.f32_to_f16 if kind == "f16" else numeric.f32_to_bf16)(value)


def h_compare(name: str, kind: str, a: Any, b: Any) -> Any:
    return _truth(name, widen(a, kind), widen(b, kind))


def h_arith(name: str, kind: str, relu: bool, sat: bool, *operands: Any, nan: bool = False) -> Any:
    """add, sub, mul, fma, min, max, neg, abs of f16 or bf16."""
    with np.errstate(all="ignore"):
        values = [widen(o, kind) for o in operands]
        if name == "fma":
            out = _fma_odd(*values)
        elif name in ("min", "max"):
            raw = f_minmax(name == "max", 32, nan, *(f_bits(v, 32) for v in values))
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
            out = clamp(out)
        bits = narrow(out, kind)
    return int(bits[0]) if bits.size == 1 else bits


def flush_bits(bits: Any) -> Any:
    """Bits of f32, a subnormal number's as those of the zero of its sign (.ftz)."""
    return f_bits_kept(bits, flush(f_value(bits, 32)))


def f_bits_kept(bits: Any, value: Array) -> Any:
    """The bits of `value`, which is what `bits` say or a zero: a NaN keeps its own."""
    out = np.where(np.isnan(value), f_value(bits, 32).view(np.uint32), value.view(np.uint32))
    return int(out[0]) if out.size == 1 else out


def packed_words(function: Callable[..., Any], *operands: Any) -> Any:
    """Apply a 32-bit function to both halves of 64-bit values."""
    low = function(*(_word(o, 0) for o in operands))
    high = function(*(_word(o, 32) for o in operands))
    if low.__class__ is ND or high.__class__ is ND:
        lo, hi = np.asarray(low, np.uint64), np.asarray(high, np.uint64)
        return np.broadcast_to(lo | hi << np.uint64(32), (32,)).copy()
    return low | high << 32


def _word(value: Any, shift: int) -> Any:
    if value.__class__ is ND:
        return (value >> np.uint64(shift)).astype(np.uint32)
    return value >> shift & 0xFFFFFFFF


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
