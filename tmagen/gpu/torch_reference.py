# SPDX-License-Identifier: Apache-2.0
"""The reference computed on the GPU, by torch, from the matrices as they lie there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from tmagen.ir import DType
from tmagen.verify.buffers import Buffer
from tmagen.verify.elements import half_ulp
from tmagen.verify.reference import accumulation_factor

_WORDS = {2: "<i2", 4: "<i4"}  # types that every torch takes from another library
_MAX_ELEMS = 1 << 28  # of D, at a time: f64 intermediates of 2 GiB


@dataclass(frozen=True, slots=True)
class _Borrowed:
    """Device memory in the form in which torch borrows it."""

    __cuda_array_interface__: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TorchVerdict:
    """How D compares with torch's product."""

    wrong: int  # elements
    first: tuple[int, int] | None  # row and column of one that is wrong
    error_ratio: float | None  # of normal inputs: the largest error over its bound


def find_torch() -> Any | None:
    """torch, if it is installed and sees a GPU."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def matrix(torch: Any, buffer: Buffer, ordinal: int) -> Any:
    """A matrix on the device as a torch tensor that shares its memory."""
    pitch, size = buffer.pitch, buffer.element.bytes
    words = borrow(torch, buffer.address, (buffer.rows, buffer.columns), (pitch, size), _WORDS[size], ordinal)
    return words.view(torch_dtype(torch, buffer.element))


def borrow(
    torch: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...], typestr: str, ordinal: int
) -> Any:
    """Device memory as a tensor; nothing is copied."""
    described = {"shape": shape, "strides": strides, "typestr": typestr, "data": (address, False), "version": 2}
    return torch.as_tensor(_Borrowed(described), device=f"cuda:{ordinal}")


def torch_dtype(torch: Any, element: DType) -> Any:
    """torch's type of an element."""
    return {DType.F16: torch.float16, DType.BF16: torch.bfloat16, DType.F32: torch.float32}[element]


def judge(torch: Any, a: Buffer, b: Buffer, d: Buffer, *, exact: bool, ordinal: int) -> TorchVerdict:
    """Compares D on the device with A * B^T in f64: bit by bit for integers, else within the bound of rounding.

    The stream that computed D has to be done.
    """
    of_a, of_b, of_d = (matrix(torch, buffer, ordinal) for buffer in (a, b, d))
    wide_b = of_b.double().T
    wrong, first, ratio = 0, None, 0.0
    rows = max(1, _MAX_ELEMS // max(1, d.columns))
    for start in range(0, d.rows, rows):
        wide_a, got = of_a[start : start + rows].double(), of_d[start : start + rows]
        product = wide_a @ wide_b
        if exact:
            expected = product.float().to(got.dtype)
            bad = _bits(torch, got) != _bits(torch, expected)
            bad &= ~((got == 0) & (expected == 0))
        else:
            slack = accumulation_factor(a.columns) * (wide_a.abs() @ wide_b.abs())
            bound = slack + _half_ulp(torch, d.element, product.abs() + slack)
            error = (got.double() - product).abs()
            bad = ~(error <= bound)  # true for NaN
            ratio = max(ratio, float(torch.where(bad, 0.0, error / bound).max()))
        count = int(bad.sum())
        if count and first is None:
            row, column = bad.nonzero()[0].tolist()
            first = (start + row, column)
        wrong += count
    torch.cuda.synchronize()
    return TorchVerdict(wrong, first, None if exact else ratio)


def _bits(torch: Any, values: Any) -> Any:
    return values.view(torch.int32 if values.element_size() == 4 else torch.int16)


def _half_ulp(torch: Any, element: DType, magnitude: Any) -> Any:
    """As :func:`tmagen.verify.elements.half_ulp`, whose constants it takes from there."""
    least, one = map(float, half_ulp(element, np.array([0.0, 1.0])))  # of the least normal binade, and of [1, 2)
    exponent = torch.frexp(magnitude).exponent - 1
    return torch.clamp(torch.ldexp(torch.full_like(magnitude, one), exponent), min=least)
