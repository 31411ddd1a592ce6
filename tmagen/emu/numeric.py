# SPDX-License-Identifier: Apache-2.0
"""Number formats of the tensor path: half, bfloat16, tf32 and fp8 as bit patterns, and their float32 values.

Array functions take and return NumPy arrays; the `*_scalar` functions take and return Python ints (bit patterns).
Widening is exact. Narrowing rounds to nearest, ties to even, and turns every NaN into the canonical pattern (PTX ISA,
`cvt`).
"""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

F16_NAN = 0x7FFF
BF16_NAN = 0x7FFF
F32_NAN = 0x7FFFFFFF
TF32_MASK = 0xFFFFE000
"""tf32 is the upper 19 bits of a float32, and the tensor core ignores the rest (PTX ISA, alternate formats)."""


def _table(dtype: Any, unsigned: type[np.unsignedinteger[Any]], count: int) -> F32:
    with np.errstate(invalid="ignore"):
        table: F32 = np.arange(count, dtype=unsigned).view(dtype).astype(np.float32)
    table.setflags(write=False)
    return table


# A table look-up is the fastest exact widening in NumPy: shifts and a multiply need a separate pass for infinities and
# NaN.
_F16_TABLE = _table(np.float16, np.uint16, 1 << 16)
_E4M3_TABLE = _table(ml_dtypes.float8_e4m3fn, np.uint8, 1 << 8)
_E5M2_TABLE = _table(ml_dtypes.float8_e5m2, np.uint8, 1 << 8)
_E3M2_TABLE = _table(ml_dtypes.float6_e3m2fn, np.uint8, 1 << 6)
_E2M3_TABLE = _table(ml_dtypes.float6_e2m3fn, np.uint8, 1 << 6)
_E2M1_TABLE = _table(ml_dtypes.float4_e2m1fn, np.uint8, 1 << 4)


def f16_to_f32(bits: U16) -> F32:
    """float32 values of float16 bit patterns, in the shape of `bits`."""
    return _F16_TABLE.take(bits)


def bf16_to_f32(bits: U16) -> F32:
    """float32 values of bfloat16 bit patterns, in the shape of `bits`."""
    values: F32 = bits.view(ml_dtypes.bfloat16).astype(np.float32)
    return values


def e4m3_to_f32(bits: U8) -> F32:
    """float32 values of fp8 e4m3 (finite, NaN at 0x7F and 0xFF) bit patterns."""
    return _E4M3_TABLE.take(bits)


def e5m2_to_f32(bits: U8) -> F32:
    """float32 values of fp8 e5m2 bit patterns."""
    return _E5M2_TABLE.take(bits)


def e2m1x2_to_f32(packed: U8) -> F32:
    """float32 values of fp4 e2m1, two in a byte with the first in its low bits: twice as many in the last axis."""
    bits = np.stack((packed & 0xF, packed >> 4), -1)
    return _E2M1_TABLE.take(bits).reshape(*packed.shape[:-1], -1)


def units_to_f32(units: U8, name: str) -> F32:
    """float32 values of 16 elements in every 16 bytes of the last axis: those of 6 bits (e2m3, e3m2) fill the first 12
    bytes, those of 4 bits (e2m1) the first 8, and the rest is padding.
    """
    groups = units.reshape(*units.shape[:-1], -1, 16)
    if name == "e2m1":
        return e2m1x2_to_f32(groups[..., :8]).reshape(units.shape)
    triples = groups[..., :12].reshape(*groups.shape[:-1], 4, 3).astype(np.uint32)
    words = triples[..., 0] | triples[..., 1] << 8 | triples[..., 2] << 16
    bits = words[..., None] >> np.arange(0, 24, 6, dtype=np.uint32) & 0x3F
    return (_E2M3_TABLE if name == "e2m3" else _E3M2_TABLE).take(bits).reshape(units.shape)


def tf32_truncate(bits: U32) -> F32:
    """float32 values that the tensor core sees of 32-bit operands in kind::tf32."""
    return np.bitwise_and(bits, np.uint32(TF32_MASK)).view(np.float32)


def tf32_round(bits: U32) -> U32:
    """float32 bit patterns rounded to tf32, nearest even, subnormals too; every NaN becomes 0x7FFFE000."""
    wide = bits.astype(np.uint64)
    half_less_one = np.uint64(0xFFF) + (wide >> np.uint64(13) & np.uint64(1))
    rounded = (wide + half_less_one).astype(np.uint32) & np.uint32(TF32_MASK)
    return np.where(bits & np.uint32(0x7FFFFFFF) > 0x7F800000, np.uint32(F32_NAN & TF32_MASK), rounded)


@np.errstate(over="ignore", invalid="ignore")
def f32_to_f16(values: F32) -> U16:
    """float16 bit patterns of `values`, nearest even; overflow gives infinity, NaN gives 0x7FFF."""
    bits = values.astype(np.float16).view(np.uint16)
    nan = values != values
    if np.count_nonzero(nan):
        bits[nan] = F16_NAN
    return bits


@np.errstate(over="ignore", invalid="ignore")
def f32_to_bf16(values: F32) -> U16:
    """bfloat16 bit patterns of `values`, nearest even; overflow gives infinity, NaN gives 0x7FFF."""
    bits = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    nan = values != values
    if np.count_nonzero(nan):
        bits[nan] = BF16_NAN
    return bits


def f32_pair_to_f16x2(low: F32, high: F32) -> U32:
    """Words of two float16 each, `low` in bits 0 to 15; `low` and `high` are one-dimensional and of one length."""
    return f32_to_f16(_interleave(low, high)).view(np.uint32)


def f32_pair_to_bf16x2(low: F32, high: F32) -> U32:
    """Words of two bfloat16 each, `low` in bits 0 to 15; `low` and `high` are one-dimensional and of one length."""
    return f32_to_bf16(_interleave(low, high)).view(np.uint32)


def _interleave(low: F32, high: F32) -> F32:
    both = np.empty(2 * low.size, np.float32)
    both[0::2] = low
    both[1::2] = high
    return both


def f32_to_f16_scalar(bits: int) -> int:
    """float16 bit pattern of one float32 bit pattern, nearest even."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return F16_NAN
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    if magnitude >= 0x47800000:  # 2^16 and above, infinity included
        return sign | 0x7C00
    if magnitude < 0x38800000:  # below the smallest normal, 2^-14: a multiple of 2^-24
        return sign | round(bits_to_float(magnitude) * 16777216.0)
    # A carry out of the significand moves into the exponent, and from the largest exponent into infinity: both are
    # right.
    return sign | ((magnitude - 0x38000000 + 0x0FFF + ((magnitude >> 13) & 1)) >> 13)


def f32_to_bf16_scalar(bits: int) -> int:
    """bfloat16 bit pattern of one float32 bit pattern, nearest even."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return BF16_NAN
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def f16_to_f32_scalar(bits: int) -> int:
    """float32 bit pattern of one float16 bit pattern."""
    return (
        float_to_bits(float(_F16_TABLE[bits]))
        if bits & 0x7FFF <= 0x7C00
        else (bits & 0x8000) << 16 | 0x7F800000 | (bits & 0x3FF) << 13
    )


def bf16_to_f32_scalar(bits: int) -> int:
    """float32 bit pattern of one bfloat16 bit pattern."""
    return bits << 16


def bits_to_float(bits: int) -> float:
    """The value of a float32 bit pattern as a Python float (exact)."""
    value: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return value


def float_to_bits(value: float) -> int:
    """The float32 bit pattern nearest to `value` (ties to even); overflow gives infinity, NaN gives 0x7FFFFFFF."""
    if value != value:
        return F32_NAN
    try:
        bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000
    return bits
