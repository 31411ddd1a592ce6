# SPDX-License-Identifier: Apache-2.0
"""Conversions of fp8 and tf32 bit patterns, which no other arithmetic has (PTX ISA, "cvt"). Ints where uniform."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.isa.values import ND

_FP8: dict[str, tuple[Any, float]] = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 448.0),
    "e5m2": (ml_dtypes.float8_e5m2, 57344.0),
}
_NAN8, _NAN32 = 0x7F, 0x7FFFFFFF
_WIDEN = {"e4m3": numeric.e4m3_to_f32, "e5m2": numeric.e5m2_to_f32}
_LARGEST_TF32 = 0x7F7FE000


def _array(value: Any, dtype: Any) -> npt.NDArray[Any]:
    return value.astype(dtype, copy=False) if value.__class__ is ND else np.array([value], dtype)


def _bits(value: npt.NDArray[Any], *sources: Any) -> Any:
    """An int where all sources were ints."""
    return value if any(source.__class__ is ND for source in sources) else value.item(0)


@np.errstate(over="ignore", invalid="ignore")
def _to_fp8(values: npt.NDArray[np.float32], kind: str, relu: bool) -> npt.NDArray[np.uint16]:
    """Nearest even, values beyond the largest finite one become that one (.satfinite); NaN is canonical."""
    dtype, largest = _FP8[kind]
    if relu:
        values = np.where(values <= 0, np.float32(0), values)  # -0 too
    bits: npt.NDArray[np.uint8] = np.clip(values, -largest, largest).astype(dtype).view(np.uint8)
    return np.where(np.isnan(values), np.uint8(_NAN8), bits).astype(np.uint16)


def f32_to_fp8x2(high: Any, low: Any, kind: str, relu: bool) -> Any:
    """Two float32 to two fp8, `high` in the upper byte."""
    h, l_ = (_array(value, np.uint32).view(np.float32) for value in (high, low))
    return _bits(_to_fp8(h, kind, relu) << np.uint16(8) | _to_fp8(l_, kind, relu), high, low)


def f16x2_to_fp8x2(pair: Any, kind: str, relu: bool) -> Any:
    """Two float16 to two fp8."""
    words = _array(pair, np.uint32)
    high = numeric.f16_to_f32((words >> np.uint32(16)).astype(np.uint16))
    low = numeric.f16_to_f32((words & np.uint32(0xFFFF)).astype(np.uint16))
    return _bits(_to_fp8(high, kind, relu) << np.uint16(8) | _to_fp8(low, kind, relu), pair)


def fp8x2_to_f16x2(pair: Any, kind: str, relu: bool) -> Any:
    """Two fp8 to two float16, which hold them exactly."""
    words = _array(pair, np.uint16)
    halves = []
    for part in (words & np.uint16(0xFF), words >> np.uint16(8)):
        values = _WIDEN[kind](part.astype(np.uint8))
        if relu:
            values = np.where(values < 0, np.float32(0), values)
        halves.append(numeric.f32_to_f16(values).astype(np.uint32))
    return _bits(halves[0] | halves[1] << np.uint32(16), pair)


def f32_to_tf32(value: Any, rounding: str, relu: bool, satfinite: bool) -> Any:
    """A float32 with 10 bits of fraction: to nearest with ties away (rna) or to even (rn), or towards zero (rz)."""
    bits = _array(value, np.uint32)
    sign, magnitude = bits & np.uint32(1 << 31), bits & np.uint32(_NAN32)
    if rounding == "rna":
        magnitude = magnitude + np.uint32(0x1000)
    elif rounding == "rn":
        magnitude = magnitude + np.uint32(0xFFF) + (magnitude >> np.uint32(13) & np.uint32(1))
    rounded = magnitude & np.uint32(numeric.TF32_MASK)
    if satfinite:
        rounded = np.minimum(rounded, np.uint32(_LARGEST_TF32))
    out = sign | rounded
    if relu:
        out = np.where(sign != 0, np.uint32(0), out)
    # A NaN is cut like any other number where ties go away, so that one of low bits alone becomes infinity (H200).
    nan = bits & np.uint32(_NAN32) > np.uint32(0x7F800000)
    kept = bits & np.uint32(numeric.TF32_MASK) if rounding == "rna" else np.uint32(_NAN32)
    return _bits(np.where(nan, kept, out), value)
