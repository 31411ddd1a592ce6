# SPDX-License-Identifier: Apache-2.0
"""The 64-bit shared-memory matrix descriptor of wgmma (PTX ISA, "Matrix-descriptor Format" of wgmma).

Its fields are those of tcgen05, but the swizzle code has two bits of its own and there is no version. The canonical
layouts are the same.
"""

from __future__ import annotations

from functools import lru_cache

from tmagen.emu.errors import Fault
from tmagen.emu.smem_descriptor import Major, Operand, SmemDescriptor, locate_decoded
from tmagen.emu.swizzle import Swizzle

_SWIZZLES = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32)


def decode(bits: int) -> SmemDescriptor:
    """The fields of a descriptor. Raises Fault, with the field's name, where reserved bits are set."""
    for low, high in ((14, 15), (30, 31), (46, 48), (52, 61)):
        if field := bits >> low & ((1 << high - low + 1) - 1):
            raise Fault(f"SMEM descriptor {bits:#018x}: reserved bits {low}-{high} are {field:#x}, not 0", rule="DS-01")
    return SmemDescriptor(
        start=(bits & 0x3FFF) << 4,
        leading=(bits >> 16 & 0x3FFF) << 4,
        stride=(bits >> 32 & 0x3FFF) << 4,
        base_offset=bits >> 49 & 0b111,
        swizzle=_SWIZZLES[bits >> 62],
    )


@lru_cache(maxsize=4096)
def locate(bits: int, rows: int, k: int, element_bytes: int, major: Major) -> Operand:
    """The 16-byte units of a `rows` x `k` operand. Raises Fault for a bad descriptor or an address past 256 KiB."""
    return locate_decoded(decode(bits), bits, rows, k, element_bytes, major)
