# SPDX-License-Identifier: Apache-2.0
"""Element types as NumPy sees them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.ir import DType

Matrix = npt.NDArray[Any]

_VALUES: dict[DType, np.dtype[Any]] = {
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.F32: np.dtype(np.float32),
}
_SIGNIFICAND_BITS = {DType.F16: 11, DType.BF16: 8, DType.F32: 24}  # the hidden one included
_LEAST_EXPONENT = {DType.F16: -14, DType.BF16: -126, DType.F32: -126}  # of a normal number


def value_dtype(element: DType) -> np.dtype[Any]:
    """The NumPy type whose values are those of `element`."""
    return _VALUES[element]


def bits_dtype(element: DType) -> np.dtype[Any]:
    """The unsigned integer of the same size."""
    return np.dtype(np.uint32 if element.bytes == 4 else np.uint16)


def poison(element: DType) -> int:
    """The bit pattern of all ones: a NaN in each type, and one that no arithmetic produces."""
    return (1 << 8 * element.bytes) - 1


def half_ulp(element: DType, magnitude: Matrix) -> Matrix:
    """The error of rounding a number of at most `magnitude` to nearest: half the distance of neighbours there."""
    fraction, exponent = np.frexp(magnitude)  # magnitude = fraction * 2^exponent, with 1/2 <= fraction < 1 or 0
    least = _LEAST_EXPONENT[element]
    binade = np.where(fraction == 0, least, np.maximum(exponent - 1, least))
    result: Matrix = np.ldexp(1.0, binade - _SIGNIFICAND_BITS[element])
    return result
