# SPDX-License-Identifier: Apache-2.0
"""What a register holds, and the operations that need more than one Python expression for it.

A value is a Python int (bool for predicates) where it is the same in all active lanes, else an array of 32 lanes
(uint16, uint32, uint64 or bool); lanes that are not active hold anything. Integers are the register's bits, unsigned.
Most operators of the two agree, so the text generated for an instruction serves both; the functions here are for the
rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Value = Any  # int | bool | Array: the generated code does not tell them apart

ND = np.ndarray
M8, M16, M32, M64 = 0xFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
UNSIGNED: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED: dict[int, Any] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
U16, U32, U64 = np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64)


def lanes_of(value: Value, dtype: Any) -> Array:
    """`value` as an array of 32 lanes."""
    if value.__class__ is ND:
        return value
    return np.full(32, value, dtype)


def where16(p: Array, a: Value, b: Value) -> Array:
    out = np.full(32, b, np.uint16) if b.__class__ is not ND else b.copy()
    np.copyto(out, a, where=p, casting="unsafe")
    return out


def where32(p: Array, a: Value, b: Value) -> Array:
    if a.__class__ is ND and b.__class__ is ND:
        both: Array = np.where(p, a, b)
        return both
    out = np.full(32, b, np.uint32) if b.__class__ is not ND else b.copy()
    np.copyto(out, np.uint32(a) if a.__class__ is int else a, where=p)
    return out


def where64(p: Array, a: Value, b: Value) -> Array:
    if a.__class__ is ND and b.__class__ is ND:
        both: Array = np.where(p, a, b)
        return both
    out = np.full(32, b, np.uint64) if b.__class__ is not ND else b.copy()
    np.copyto(out, np.uint64(a) if a.__class__ is int else a, where=p)
    return out


def where1(p: Array, a: Value, b: Value) -> Array:
    return np.asarray(np.where(p, a, b), bool)


# --- width and sign ---------------------------------------------------------------------------------------------------


def signed(value: Value, width: int) -> Value:
    """The two's complement value: a negative int, or an array of the signed type."""
    if value.__class__ is ND:
        return value.view(SIGNED[width])
    half = 1 << (width - 1)
    return (value ^ half) - half


def resize(value: Value, width: int) -> Value:
    """Zero-extend or truncate to `width` bits."""
    if value.__class__ is ND:
        return value.astype(UNSIGNED[width], copy=False)
    return value & ((1 << width) - 1)


def extend(value: Value, source: int, target: int) -> Value:
    """Take the low `source` bits as a signed number and give them `target` bits. Works for narrowing too."""
    if value.__class__ is ND:
        narrow = value.astype(UNSIGNED[source], copy=False).view(SIGNED[source])
        return narrow.astype(SIGNED[target], copy=False).view(UNSIGNED[target])
    half = 1 << (source - 1)
    return (((value & ((1 << source) - 1)) ^ half) - half) & ((1 << target) - 1)


def pack(width: int, *items: Value) -> Value:
    """Concatenate equal-width items, first in the low bits; the result has `width` bits."""
    step = width // len(items)
    out: Value = 0
    for i, item in enumerate(items):
        if item.__class__ is ND:
            item = item.astype(UNSIGNED[width])
        out = out | (item << (i * step))
    return out


def unpack(value: Value, width: int, count: int) -> tuple[Value, ...]:
    """Split `width` bits into `count` items, low bits first."""
    step = width // count
    if value.__class__ is ND:
        parts = value.view(UNSIGNED[step]).reshape(32, count)
        return tuple(np.ascontiguousarray(parts[:, i]) for i in range(count))
    mask = (1 << step) - 1
    return tuple((value >> (i * step)) & mask for i in range(count))


# --- multiplication, division, shifts ---------------------------------------------------------------------------------


def mul_wide(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    """Full product of two `width`-bit numbers (16 or 32)."""
    double = 2 * width
    if is_signed:
        a, b = signed(a, width), signed(b, width)
        if a.__class__ is ND:
            a = a.astype(SIGNED[double])
        if b.__class__ is ND:
            b = b.astype(SIGNED[double])
        out = a * b
        return out.view(UNSIGNED[double]) if out.__class__ is ND else out & ((1 << double) - 1)
    if a.__class__ is ND:
        a = a.astype(UNSIGNED[double])
    if b.__class__ is ND:
        b = b.astype(UNSIGNED[double])
    return a * b


def mul_hi(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    """Upper half of the product."""
    if width == 64:
        return _each(lambda x, y: (_full(x, y, 64, is_signed) >> 64) & M64, np.uint64, a, b)
    out = mul_wide(a, b, width, is_signed)
    return (out >> width).astype(UNSIGNED[width]) if out.__class__ is ND else out >> width


def _full(x: int, y: int, width: int, is_signed: bool) -> int:
    return int(signed(x, width)) * int(signed(y, width)) if is_signed else x * y


def _each(function: Callable[..., int], dtype: Any, *values: Value) -> Value:
    """`function` lane by lane, for operations that NumPy has not."""
    if all(v.__class__ is not ND for v in values):
        return function(*values)
    columns = [v.tolist() if v.__class__ is ND else [v] * 32 for v in values]
    return np.array([function(*row) for row in zip(*columns, strict=True)], dtype)


def divide(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    """Quotient, truncated towards zero. Division by zero gives all ones, which the PTX ISA leaves open."""
    mask = (1 << width) - 1

    def one(x: int, y: int) -> int:
        if is_signed:
            x, y = int(signed(x, width)), int(signed(y, width))
        if y == 0:
            return mask
        quotient = abs(x) // abs(y)
        return (quotient if (x < 0) == (y < 0) else -quotient) & mask

    if not is_signed and a.__class__ is ND and b.__class__ is int and b:
        return a // np.array(b, a.dtype)
    return _each(one, UNSIGNED[width], a, b)


def remainder(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    """Remainder with the sign of the dividend. By zero: all ones, as on an H200; the PTX ISA leaves it open."""
    mask = (1 << width) - 1

    def one(x: int, y: int) -> int:
        if is_signed:
            x, y = int(signed(x, width)), int(signed(y, width))
        if y == 0:
            return mask
        rest = abs(x) % abs(y)
        return (-rest if x < 0 else rest) & mask

    if not is_signed and a.__class__ is ND and b.__class__ is int and b:
        return a % np.array(b, a.dtype)
    return _each(one, UNSIGNED[width], a, b)


def shl(a: Value, n: Value, width: int) -> Value:
    """Shift left; amounts of `width` and above give 0 (PTX ISA, "shl")."""
    if n.__class__ is not ND:
        if n >= width:
            return 0
        out = a << n
        return out if out.__class__ is ND else out & ((1 << width) - 1)
    a = lanes_of(a, UNSIGNED[width])
    clamped = np.minimum(n, width - 1).astype(a.dtype)
    return np.where(n >= width, a.dtype.type(0), a << clamped)


def shr(a: Value, n: Value, width: int, is_signed: bool) -> Value:
    """Shift right; amounts of `width` and above fill with the sign or zero (PTX ISA, "shr")."""
    if is_signed:
        clamped = np.minimum(n, width - 1) if n.__class__ is ND else min(n, width - 1)
        if a.__class__ is not ND and clamped.__class__ is not ND:
            return (int(signed(a, width)) >> clamped) & ((1 << width) - 1)
        s = signed(lanes_of(a, UNSIGNED[width]), width)
        return (s >> (clamped.astype(s.dtype) if clamped.__class__ is ND else clamped)).view(UNSIGNED[width])
    if n.__class__ is not ND:
        return a >> n if n < width else 0
    a = lanes_of(a, UNSIGNED[width])
    return np.where(n >= width, a.dtype.type(0), a >> np.minimum(n, width - 1).astype(a.dtype))


def minmax(a: Value, b: Value, width: int, is_signed: bool, largest: bool) -> Value:
    """min or max of integers."""
    if is_signed:
        a, b = signed(a, width), signed(b, width)
    if a.__class__ is not ND and b.__class__ is not ND:
        return (max(a, b) if largest else min(a, b)) & ((1 << width) - 1)
    out = np.maximum(a, b) if largest else np.minimum(a, b)
    return out.view(UNSIGNED[width])


# --- bits -------------------------------------------------------------------------------------------------------------


def popc(a: Value, width: int) -> Value:
    return _each(lambda x: int(x).bit_count(), np.uint32, a)


def clz(a: Value, width: int) -> Value:
    return _each(lambda x: width - int(x).bit_length(), np.uint32, a)


def brev(a: Value, width: int) -> Value:
    return _each(lambda x: int(f"{x:0{width}b}"[::-1], 2), UNSIGNED[width], a)


def bfind(a: Value, width: int, is_signed: bool, shiftamt: bool) -> Value:
    def one(x: int) -> int:
        if is_signed and x >> (width - 1):
            x ^= (1 << width) - 1
        found = int(x).bit_length() - 1
        if found < 0:
            return M32
        return width - 1 - found if shiftamt else found

    return _each(one, np.uint32, a)


def fns(mask: Value, base: Value, offset: Value) -> Value:
    """Place of the bit of `mask` that is the `offset`th set one from `base` on, or before it; all ones where there is
    none. An offset of 0 asks for `base` itself (PTX ISA, "fns").
    """

    def one(bits: int, start: int, count: int) -> int:
        count = int(signed(count, 32))
        way = range(start, 32) if count > 0 else range(start, -1, -1)
        found = [at for at in way if bits >> at & 1] if start < 32 else []
        if not count:
            return start if found and found[0] == start else M32
        return found[abs(count) - 1] if len(found) >= abs(count) else M32

    return _each(one, np.uint32, mask, base, offset)


def bfe(a: Value, pos: Value, length: Value, width: int, is_signed: bool) -> Value:
    """Bit field extract (PTX ISA, "bfe"): past the end come sign bits or zeros; pos and length are 8 bits wide."""

    def one(x: int, p: int, n: int) -> int:
        p, n = p & 0xFF, n & 0xFF
        if not is_signed:
            return (x >> p) & ((1 << n) - 1)
        if n == 0:
            return 0
        x = int(signed(x, width)) >> p
        n = min(n, width)
        sign = (int(x) >> min(n - 1, width - 1)) & 1
        field = x & ((1 << n) - 1)
        return (field - (sign << n)) & ((1 << width) - 1)

    return _each(one, UNSIGNED[width], a, pos, length)


def bfi(a: Value, b: Value, pos: Value, length: Value, width: int) -> Value:
    """Bit field insert: the low `length` bits of `a` into `b` at `pos`."""
    mask = (1 << width) - 1

    def one(x: int, y: int, p: int, n: int) -> int:
        p, n = p & 0xFF, n & 0xFF
        field = (((1 << n) - 1) << p) & mask
        return (y & ~field) | ((x << p) & field)

    return _each(one, UNSIGNED[width], a, b, pos, length)


_PRMT: dict[str, Callable[[int, int], int]] = {
    "f4e": lambda i, n: n + i,
    "b4e": lambda i, n: n - i,
    "rc8": lambda i, n: n,
    "ecl": lambda i, n: max(i, n),
    "ecr": lambda i, n: min(i, n),
    "rc16": lambda i, n: (n & 1) * 2 + (i & 1),
}
"""Which byte of b:a goes to place i for a selector whose low two bits are n (PTX ISA, "prmt")."""


def prmt_mode(a: Value, b: Value, selector: Value, mode: str) -> Value:
    """Byte permute in one of the special modes."""
    place = _PRMT[mode]

    def one(x: int, y: int, s: int) -> int:
        both = x | y << 32
        return sum((both >> 8 * (place(i, s & 3) & 7) & 0xFF) << 8 * i for i in range(4))

    return _each(one, np.uint32, a, b, selector)


def carried(a: Value, b: Value, carry: Value, width: int, minus: bool) -> tuple[Value, Value]:
    """a + b + carry, or a - b - carry, and the carry or borrow that comes of it."""
    if a.__class__ is not ND and b.__class__ is not ND and carry.__class__ is not ND:
        total = a - b - carry if minus else a + b + carry
        mask = (1 << width) - 1
        return total & mask, not 0 <= total <= mask
    dtype = UNSIGNED[width]
    x, y, c = lanes_of(a, dtype), lanes_of(b, dtype), lanes_of(carry, bool).astype(dtype)
    if minus:
        first = x - y
        return first - c, (x < y) | (first < c)
    first = x + y
    total = first + c
    return total, (first < x) | (total < first)


def add_sat(a: Value, b: Value, sign: int) -> Value:
    """a + sign * b of signed 32-bit numbers, clamped to their range (.sat)."""

    def one(x: int, y: int) -> int:
        total = int(signed(x, 32)) + sign * int(signed(y, 32))
        return max(-(1 << 31), min((1 << 31) - 1, total)) & M32

    return _each(one, np.uint32, a, b)


def mul24(a: Value, b: Value, is_signed: bool, high: bool) -> Value:
    """Bits 0 to 31 or 16 to 47 of the product of the low 24 bits."""

    def low24(x: int) -> int:
        x &= 0xFFFFFF
        return x - (1 << 24) if is_signed and x >> 23 else x

    return _each(lambda x, y: (low24(x) * low24(y) >> (16 if high else 0)) & M32, np.uint32, a, b)


def dot(a: Value, b: Value, c: Value, a_signed: bool, b_signed: bool, half: str) -> Value:
    """dp4a, or with `half` dp2a of the low or high bytes of `b`."""
    width, start = (16, 16 if half == "hi" else 0) if half else (8, 0)

    def part(x: int, at: int, bits: int, is_signed: bool) -> int:
        x = x >> at & ((1 << bits) - 1)
        return x - (1 << bits) if is_signed and x >> (bits - 1) else x

    def one(x: int, y: int, z: int) -> int:
        pairs = ((part(x, i * width, width, a_signed), part(y, start + 8 * i, 8, b_signed)) for i in range(32 // width))
        return (z + sum(p * q for p, q in pairs)) & M32

    return _each(one, np.uint32, a, b, c)


def prmt(a: Value, b: Value, selector: Value) -> Value:
    """Byte permute in the default mode (PTX ISA, "prmt")."""

    def one(x: int, y: int, s: int) -> int:
        both = x | y << 32
        out = 0
        for i in range(4):
            code = (s >> (4 * i)) & 0xF
            byte = (both >> (8 * (code & 7))) & 0xFF
            if code & 8:
                byte = 0xFF if byte & 0x80 else 0
            out |= byte << (8 * i)
        return out

    return _each(one, np.uint32, a, b, selector)


def lop3(a: Value, b: Value, c: Value, table: int) -> Value:
    """Any bitwise function of three, by its truth table with a = 0xF0, b = 0xCC, c = 0xAA."""
    out: Value = 0
    for i in range(8):
        if table >> i & 1:
            term = a if i & 4 else a ^ M32
            term = term & (b if i & 2 else b ^ M32)
            term = term & (c if i & 1 else c ^ M32)
            out = out | term
    return out


def funnel(lo: Value, hi: Value, n: Value, right: bool, wrap: bool) -> Value:
    """shf.l / shf.r of hi:lo."""

    def one(x: int, y: int, s: int) -> int:
        s = s & 31 if wrap else min(s, 32)
        both = x | y << 32
        return (both >> s) & M32 if right else (both << s >> 32) & M32

    return _each(one, np.uint32, lo, hi, n)


def saturate(value: Value, width: int, is_signed: bool, low: int, high: int, room: int) -> Value:
    """Clamp an integer of `width` bits to [low, high] and give it `room` bits (cvt.sat)."""
    return _each(
        lambda x: (
            max(low, min(high, int(signed(x, width)) if is_signed else x & ((1 << width) - 1))) & ((1 << room) - 1)
        ),
        UNSIGNED[room],
        value,
    )
