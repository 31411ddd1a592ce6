# SPDX-License-Identifier: Apache-2.0
"""Element types of buffers and scalars: how NumPy holds them, and how a number becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu.tensormap import DataType

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Element:
    """One type. `rtol` and `atol` are what `~=` allows where an expectation does not say."""

    name: str
    dtype: np.dtype[Any]
    map_type: DataType | None  # what a tensor map calls it; None where it has no word for it
    is_float: bool
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def bytes(self) -> int:
        return self.dtype.itemsize

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """The unsigned integer of the same size."""
        return np.dtype(f"u{self.bytes}")

    @property
    def poison(self) -> int:
        """All ones: a NaN in each floating-point type, and what memory holds that nobody has written."""
        return (1 << 8 * self.bytes) - 1

    @property
    def limits(self) -> tuple[int, int]:
        """Least and largest value of an integer type."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)


def _integer(name: str, kind: str, map_type: DataType | None) -> Element:
    return Element(name, np.dtype(kind), map_type, is_float=False)


def _floating(name: str, kind: Any, map_type: DataType | None, rtol: float, atol: float) -> Element:
    return Element(name, np.dtype(kind), map_type, is_float=True, rtol=rtol, atol=atol)


# Tolerances: about twice the distance of neighbours, relative, for results that were rounded once; a sum of K products
# in f32 needs more where it cancels, and an expectation then says how much.
_ALL = (
    _floating("f16", np.float16, DataType.FLOAT16, 2e-3, 1e-4),
    _floating("bf16", ml_dtypes.bfloat16, DataType.BFLOAT16, 1.6e-2, 1e-4),
    _floating("f32", np.float32, DataType.FLOAT32, 1e-5, 1e-5),
    _floating("tf32", np.float32, DataType.TFLOAT32, 2e-3, 1e-4),
    _floating("f64", np.float64, DataType.FLOAT64, 1e-12, 1e-12),
    _floating("e4m3", ml_dtypes.float8_e4m3fn, DataType.UINT8, 0.13, 1e-2),
    _floating("e5m2", ml_dtypes.float8_e5m2, DataType.UINT8, 0.26, 1e-2),
    _floating("e8m0", ml_dtypes.float8_e8m0fnu, DataType.UINT8, 0.0, 0.0),
    _integer("s8", "i1", DataType.UINT8),
    _integer("u8", "u1", DataType.UINT8),
    _integer("s16", "i2", DataType.UINT16),
    _integer("u16", "u2", DataType.UINT16),
    _integer("s32", "i4", DataType.INT32),
    _integer("u32", "u4", DataType.UINT32),
    _integer("s64", "i8", DataType.INT64),
    _integer("u64", "u8", DataType.UINT64),
)
ELEMENTS = {element.name: element for element in _ALL}

_NUMPYS_OWN = ("f16", "f32", "f64")
_TF32_DROPPED_BITS = 13  # of f32's 23 (PTX ISA, alternate floating-point data formats)
# PTX converts to them with .satfinite alone: what is larger becomes this (PTX ISA, cvt).
_LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}


def widened(values: Array, element: Element) -> Array:
    """`values` in the type that expressions compute in: f64, or s64 for integers (u64 beyond 2^63 wraps)."""
    return values.astype(np.float64 if element.is_float else np.int64)


def narrowed(values: Array, element: Element) -> Array:
    """f64 or s64 values rounded once, to nearest even, to `element`; integers keep their low bits, as in PTX."""
    if not element.is_float:
        if values.dtype.kind == "f":
            values = np.rint(values)
            low, high = element.limits
            inside = np.isfinite(values) & (values >= low) & (values <= high)
            whole = np.where(inside, values, 0).astype(np.int64 if low < 0 or element.bytes < 8 else np.uint64)
            whole = np.where(values > high, high, np.where(values < low, low, whole))
            return whole.astype(element.dtype)
        return values.astype(element.dtype)
    wide = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if element.name == "tf32":
            return _to_tf32(_round_to_odd(wide))
        if element.name in _NUMPYS_OWN:  # one rounding
            return wide.astype(element.dtype)
        single = _round_to_odd(wide)
        if element.name in _LARGEST:
            largest = np.float32(_LARGEST[element.name])
            single = np.where(np.isnan(single), single, np.clip(single, -largest, largest)).astype(np.float32)
        return single.astype(element.dtype)


def _round_to_odd(wide: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """f64 cut to f32 with the last bit set where anything was cut off: what a second rounding needs to be right."""
    single = wide.astype(np.float32)
    back = single.astype(np.float64)
    inexact = np.isfinite(wide) & (back != wide)
    bits = single.view(np.uint32).copy()
    too_large = inexact & (np.abs(back) > np.abs(wide))  # infinity included
    bits[too_large] -= np.uint32(1)  # the next towards zero
    bits[inexact] |= np.uint32(1)
    return bits.view(np.float32)


def _to_tf32(single: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """f32 rounded to 10 bits of fraction, to nearest even."""
    bits = single.view(np.uint32).astype(np.uint64)
    half, last = 1 << (_TF32_DROPPED_BITS - 1), (bits >> np.uint64(_TF32_DROPPED_BITS)) & np.uint64(1)
    rounded = (bits + np.uint64(half - 1) + last) & np.uint64(0xFFFFFFFF ^ ((1 << _TF32_DROPPED_BITS) - 1))
    kept = np.where(np.isfinite(single), rounded, bits).astype(np.uint32)
    result: npt.NDArray[np.float32] = kept.view(np.float32)
    return result
