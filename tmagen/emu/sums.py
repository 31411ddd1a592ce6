# SPDX-License-Identifier: Apache-2.0
"""How the tensor cores of an H200 sum products, to the last bit.

The PTX ISA leaves precision and order open ("wgmma.mma_async", "mma": accumulation). An H200 does this: products are
exact; those of a block and the old D are aligned to the largest exponent among them and cut off some bits below it,
toward zero; what is left is summed exactly, and the sum is cut off to float32. Blocks are summed one after another. The
exponent of a product is the sum of its operands' exponents, also where its value has one more, and subnormal operands
have the smallest exponent of their type. Nothing is flushed to zero, every NaN is 0x7FFFFFFF, and a float16 D is
rounded to the nearest.

wgmma sums 32 products of fp8 at once, with 13 bits of fraction. mma.sync of fp8 is instructions of float16 on that
machine: two sums of 16, one after another, to which the old D is added by itself.

`tests/gpu/conformance` holds this against the hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.instr_descriptor import Format

Matrix = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Adder:
    """One addition: how many products at a time, how many bits are kept below the largest exponent of what is added,
    and how many below that of the sum.
    """

    block: int
    bits: int
    fraction: int


_ADDERS = {
    Format.F16: Adder(16, 25, 23), Format.BF16: Adder(16, 25, 23), Format.TF32: Adder(8, 25, 23),
    Format.E4M3: Adder(32, 13, 13), Format.E5M2: Adder(32, 13, 13),
}  # fmt: skip
# Exponents of the smallest normal number; subnormal numbers are taken to have it too.
_LEAST_EXPONENT = {
    Format.F16: -14, Format.BF16: -126, Format.TF32: -126, Format.E4M3: -6, Format.E5M2: -14,
}  # fmt: skip
_NAN = np.uint32(0x7FFFFFFF)
_NOWHERE = -(1 << 20)


def wgmma(a: Matrix, b: Matrix, old: Matrix | None, a_format: Format, b_format: Format, d_format: Format) -> Matrix:
    """D of one wgmma.mma_async; float32, also where it is rounded to float16."""
    return _add_products(a, b, old, a_format, b_format, _ADDERS[a_format], d_format is Format.F16)


@np.errstate(over="ignore", invalid="ignore")
def mma_sync(a: Matrix, b: Matrix, old: Matrix, a_format: Format, b_format: Format, d_format: Format) -> Matrix:
    """D of one mma.sync; float32, also where it is rounded to float16."""
    if a_format.nbytes > 1:
        return wgmma(a, b, old, a_format, b_format, d_format)
    total = None
    for part in _PARTS_OF_FP8:
        total = wgmma(a[:, part], b[:, part], total, Format.F16, Format.F16, d_format)
    result: Matrix = total + old
    result.view(np.uint32)[np.isnan(result)] = _NAN
    return _to_half(result) if d_format is Format.F16 else result


# Elements of K by the register halves that hold them.
_PARTS_OF_FP8 = [np.flatnonzero(np.arange(32) % 4 // 2 == half) for half in (0, 1)]


def _to_half(values: Matrix) -> npt.NDArray[np.float32]:
    """Rounded to the nearest float16, from float64 too in one step."""
    result: npt.NDArray[np.float32] = values.astype(np.float16).astype(np.float32)
    return result


@np.errstate(over="ignore", invalid="ignore")
def _add_products(
    a: Matrix, b: Matrix, old: Matrix | None, a_format: Format, b_format: Format, adder: Adder, is_half: bool
) -> npt.NDArray[np.float32]:
    """A [M, K] times B [N, K] transposed, plus the old D [M, N] where there is one; all in float32.

    A float16 D is rounded from all bits of the sum, once.
    """
    rows, k = a.shape
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    a_exponents, b_exponents = _exponents(a64, a_format), _exponents(b64, b_format)
    total = np.zeros((rows, b.shape[0]), np.float32) if old is None else old.astype(np.float32)
    for first in range(0, k, adder.block):
        part = slice(first, first + adder.block)
        products = a64[:, None, part] * b64[None, :, part]
        exponents = a_exponents[:, None, part] + b_exponents[None, :, part]
        total = _add(products, exponents, total, adder, is_half)
    return total


def _add(products: Matrix, exponents: Matrix, old: Matrix, adder: Adder, is_half: bool) -> npt.NDArray[np.float32]:
    c = old.astype(np.float64)
    c_exponents = np.where(c == 0, _NOWHERE, np.maximum(np.frexp(c)[1] - 1, -126))
    exponents = np.where(products == 0, _NOWHERE, exponents)
    largest = np.maximum(exponents.max(-1), c_exponents)
    # In units of the last bit that is kept, all of these are integers below 2^53, and so is their sum.
    shift = np.where(largest == _NOWHERE, 0, adder.bits - largest).astype(np.int32)
    kept = np.trunc(np.ldexp(products, shift[..., None])).sum(-1) + np.trunc(np.ldexp(c, shift))
    result = _to_half(np.ldexp(kept, -shift)) if is_half else _cut(kept, -shift, adder.fraction)
    special = ~(np.isfinite(products).all(-1) & np.isfinite(c))
    if special.any():
        plain = products.sum(-1) + c
        result[special] = plain[special]
        result.view(np.uint32)[special & np.isnan(plain)] = _NAN
    return result


def _exponents(values: Matrix, fmt: Format) -> Matrix:
    found: Matrix = np.maximum(np.frexp(values)[1] - 1, _LEAST_EXPONENT[fmt])
    return found


def _cut(units: Matrix, exponent: Matrix, fraction: int) -> npt.NDArray[np.float32]:
    """units * 2^exponent with so many bits of fraction, cut off toward zero; infinite past float32."""
    last = np.maximum(np.frexp(units)[1] + exponent - 1 - fraction, -149)  # exponent of the last bit of the result
    drop = np.maximum(last - exponent, 0).astype(np.int32)
    whole = np.ldexp(np.trunc(np.ldexp(units, -drop)), drop + exponent)
    result: npt.NDArray[np.float32] = whole.astype(np.float32)
    return result
