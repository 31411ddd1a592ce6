# SPDX-License-Identifier: Apache-2.0
"""The 64-bit shared-memory matrix descriptor of tcgen05 and the bytes that it names.

PTX ISA, "Shared memory descriptor" and "Canonical layouts" of tcgen05. An operand is read in units of 16 bytes: along K
for a K-major operand, along M or N for an MN-major one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.swizzle import REPEAT_BYTES, Index, Swizzle

UNIT = 16
_SWIZZLES = {
    0: Swizzle.NONE,
    1: Swizzle.B128_ATOM_32B,
    2: Swizzle.B128,
    4: Swizzle.B64,
    6: Swizzle.B32,
}


class Major(Enum):
    """Which index of an operand runs along consecutive bytes."""

    K = 0
    MN = 1


@dataclass(frozen=True)
class SmemDescriptor:
    """Offsets in bytes. `leading` and `stride` are the descriptor's leading and stride dimension byte offsets."""

    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: Swizzle

    @classmethod
    def decode(cls, bits: int) -> SmemDescriptor:
        """The fields of a descriptor. Raises Fault, with the field's name, for what sm_100 does not allow."""
        if (version := bits >> 46 & 0b111) != 0b001:
            raise Fault(
                f"SMEM descriptor {bits:#018x}: bits 46-48 are {version:#05b}, not the constant 0b001 of tcgen05",
                rule="DS-01",
            )
        if bits >> 52 & 1:
            raise Fault(
                f"SMEM descriptor {bits:#018x}: leading-dimension mode (bit 52) is 1, which sm_100a does not have",
                rule="DS-03",
            )
        for low, high in ((14, 15), (30, 31), (53, 60)):
            if field := bits >> low & ((1 << high - low + 1) - 1):
                raise Fault(
                    f"SMEM descriptor {bits:#018x}: reserved bits {low}-{high} are {field:#x}, not 0", rule="DS-01"
                )
        code = bits >> 61
        if code not in _SWIZZLES:
            raise Fault(
                f"SMEM descriptor {bits:#018x}: swizzle mode (bits 61-63) {code} is not 0, 1, 2, 4 or 6", rule="DS-01"
            )
        return cls(
            start=(bits & 0x3FFF) << 4,
            leading=(bits >> 16 & 0x3FFF) << 4,
            stride=(bits >> 32 & 0x3FFF) << 4,
            base_offset=bits >> 49 & 0b111,
            swizzle=_SWIZZLES[code],
        )


@dataclass(frozen=True)
class Operand:
    """Where the 16-byte units of one instruction's operand lie: units of `base` (a multiple of 1024) in `units`.

    K-major: units [rows, k_bytes / 16], each 16 bytes along K. MN-major: units [k, rows * element_bytes / 16], each 16
    bytes along rows.
    """

    base: int
    units: Index
    first: int
    end: int


@lru_cache(maxsize=4096)
def locate(bits: int, rows: int, k: int, element_bytes: int, major: Major) -> Operand:
    """The units of a `rows` x `k` operand with descriptor `bits`.

    Raises Fault for a bad descriptor (see `decode`) and for an operand that wraps past the 18-bit address range;
    NotJudged for layouts whose meaning is not documented well enough: MN-major with 32-bit elements without 32-byte
    atoms, and 32-byte atoms for others.
    """
    return locate_decoded(SmemDescriptor.decode(bits), bits, rows, k, element_bytes, major)


def locate_decoded(desc: SmemDescriptor, bits: int, rows: int, k: int, element_bytes: int, major: Major) -> Operand:
    """`locate` for the fields `desc` of a descriptor of any generation; `bits` is what errors name."""
    offsets = _k_major(desc, rows, k * element_bytes) if major is Major.K else _mn_major(desc, rows, k, element_bytes)
    logical = desc.start + offsets
    if int(logical.max()) >= 1 << 18:
        raise Fault(
            f"SMEM descriptor {bits:#018x}: the operand reaches past the 256 KiB that a descriptor can address",
            rule="DS-04",
        )
    physical = _swizzled(desc, logical)
    base = desc.start // REPEAT_BYTES * REPEAT_BYTES
    units = (physical - base) // UNIT
    units.setflags(write=False)
    return Operand(base, units, int(physical.min()), int(physical.max()) + UNIT)


def operand_addresses(desc: SmemDescriptor, rows: int, k: int, element_bytes: int, major: Major) -> Index:
    """Byte address of every element, [rows, k]; the element-wise form of `locate`."""
    if major is Major.K:
        unit = _swizzled(desc, desc.start + _k_major(desc, rows, k * element_bytes))
        every = unit[:, :, None] + np.arange(0, UNIT, element_bytes, dtype=np.intp)
        return every.reshape(rows, k)
    unit = _swizzled(desc, desc.start + _mn_major(desc, rows, k, element_bytes))
    every = unit[:, :, None] + np.arange(0, UNIT, element_bytes, dtype=np.intp)
    return every.reshape(k, -1)[:, :rows].T


def _k_major(desc: SmemDescriptor, rows: int, k_bytes: int) -> Index:
    """Rows at the span's pitch, 8 of them every `stride`; without a swizzle, 16 bytes of K every `leading`."""
    if desc.swizzle is Swizzle.B128_ATOM_32B:
        raise NotJudged("K-major SMEM descriptor with 128-byte swizzle of 32-byte atoms")
    row = np.arange(rows, dtype=np.intp)
    column = np.arange(k_bytes // UNIT, dtype=np.intp)
    step = desc.leading if desc.swizzle is Swizzle.NONE else UNIT
    offsets: Index = (row % 8 * desc.swizzle.span + row // 8 * desc.stride)[:, None] + column * step
    return offsets


def _mn_major(desc: SmemDescriptor, rows: int, k: int, element_bytes: int) -> Index:
    """K at the span's pitch, in groups of 8 (4 with 32-byte atoms).

    Groups are `stride` apart and spans of M or N `leading`; without a swizzle the two swap roles.
    """
    atoms32 = desc.swizzle is Swizzle.B128_ATOM_32B
    if (element_bytes == 4) != atoms32:
        raise NotJudged(f"MN-major SMEM descriptor of {element_bytes}-byte elements with swizzle {desc.swizzle.name}")
    depth = np.arange(k, dtype=np.intp)
    unit = np.arange(-(-rows * element_bytes // UNIT), dtype=np.intp)
    if desc.swizzle is Swizzle.NONE:
        along_k, along_mn = depth % 8 * UNIT + depth // 8 * desc.leading, unit * desc.stride
    else:
        group, per_span = 4 if atoms32 else 8, desc.swizzle.span // UNIT
        along_k = depth % group * desc.swizzle.span + depth // group * desc.stride
        along_mn = unit % per_span * UNIT + unit // per_span * desc.leading
    offsets: Index = along_k[:, None] + along_mn
    return offsets


def _swizzled(desc: SmemDescriptor, logical: Index) -> Index:
    """Physical addresses. A base offset, in lines of 128 bytes, is subtracted from what the XOR takes."""
    if desc.swizzle is Swizzle.NONE or not desc.base_offset:
        return desc.swizzle.addresses(logical)
    phased: Index = logical - desc.base_offset * 128
    moved: Index = desc.swizzle.addresses(phased) ^ phased
    return logical ^ moved
