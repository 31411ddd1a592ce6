# SPDX-License-Identifier: Apache-2.0
"""Shared-memory swizzles: which byte address holds what, for TMA boxes and MMA operands alike.

A swizzle moves 16-, 32- or 64-byte chunks within a span by XOR of address bits (PTX ISA, "Swizzling modes"). The XOR
takes absolute shared-memory addresses, so the pattern does not restart where a tile does. Each is its own inverse.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.intp]

REPEAT_BYTES = 1024
"""Every pattern repeats after 1024 bytes or a divisor of it."""


class Swizzle(Enum):
    """(target bit, source bit, number of bits, span in bytes, 8-byte flip of odd lines)."""

    NONE = (0, 0, 0, 16, False)
    B32 = (4, 7, 1, 32, False)
    B64 = (4, 7, 2, 64, False)
    B128 = (4, 7, 3, 128, False)
    B128_ATOM_32B = (5, 7, 2, 128, False)
    B128_ATOM_32B_FLIP_8B = (5, 7, 2, 128, True)
    B128_ATOM_64B = (6, 7, 1, 128, False)

    def __init__(self, target: int, source: int, bits: int, span: int, flip: bool) -> None:
        self.target, self.source, self.bits, self.flip = target, source, bits, flip
        self.span = span  # bytes of a row that the pattern permutes; 16 without a swizzle, the width of a core matrix
        self.unit = 8 if flip else 16  # the largest run of bytes, up to 16, that the pattern keeps together

    def address(self, logical: int) -> int:
        """Where the byte goes that would lie at absolute shared-memory address `logical` without a swizzle."""
        physical = logical ^ (((logical >> self.source) & ((1 << self.bits) - 1)) << self.target)
        return physical ^ (((logical >> 7) & 1) << 3) if self.flip else physical

    def addresses(self, logical: Index) -> Index:
        """`address` of every element."""
        physical: Index = logical ^ (((logical >> self.source) & ((1 << self.bits) - 1)) << self.target)
        if self.flip:
            physical ^= ((logical >> 7) & 1) << 3
        return physical


@lru_cache(maxsize=1024)
def box_units(swizzle: Swizzle, phase: int, rows: int, row_bytes: int, pitch: int) -> Index:
    """Where the units of a box lie: array [rows, row_bytes / unit] of indices of `swizzle.unit`-byte units.

    Row r, byte b of the box is at logical address `base + phase + r * pitch + b`; indices count from `base`, which must
    be a multiple of REPEAT_BYTES, as `phase` is the rest of the box's start. All of them are multiples of the unit.
    """
    unit = swizzle.unit
    logical = phase + np.arange(rows, dtype=np.intp)[:, None] * pitch + np.arange(0, row_bytes, unit, dtype=np.intp)
    units: Index = swizzle.addresses(logical) // unit
    units.setflags(write=False)
    return units
