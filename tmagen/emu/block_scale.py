# SPDX-License-Identifier: Apache-2.0
"""Factors of blocks along K: tcgen05.mma with .block_scale (PTX ISA, "tcgen05.mma: Block Scaling").

A factor is a byte of tensor memory. Row r of A, or column r of B, has its factors in the word at lane r % 32 and column
r / 32, from the byte on that the instruction descriptor names; each quarter of the lanes holds a copy, and computes its
32 rows of D with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric
from tmagen.emu.errors import Fault
from tmagen.emu.instr_descriptor import InstrDescriptor
from tmagen.emu.tmem import LANES, Tmem

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
QUARTER = 32
"""Lanes that one subpartition of tensor memory holds."""

# (kind, factors of a row): elements of a block, by what the opcode says.
BLOCKS: dict[tuple[str, str], int] = {
    ("mxf8f6f4", ""): 32, ("mxf8f6f4", "scale_vec::1X"): 32, ("mxf8f6f4", "block32"): 32,
    ("mxf4", ""): 32, ("mxf4", "scale_vec::2X"): 32, ("mxf4", "block32"): 32,
    ("mxf4nvf4", "scale_vec::2X"): 32, ("mxf4nvf4", "block32"): 32,
    ("mxf4nvf4", "scale_vec::4X"): 16, ("mxf4nvf4", "block16"): 16,
}  # fmt: skip


class Scales(NamedTuple):
    """Where the factors are in tensor memory, and the elements of a block. Bits 30 and 31 of an address, in which
    libraries carry the byte, do not count.
    """

    a: int
    b: int
    block: int


def columns(rows: int) -> int:
    """Columns of tensor memory that the factors of so many rows take."""
    return -(-rows // QUARTER)


def product(desc: InstrDescriptor, scales: Scales, a: F32, b: F32, tmem: Tmem) -> F32:
    """B * A transposed with every block scaled: [n, m]. Raises Fault for factors outside of what is allocated."""
    if desc.ue4m3 and scales.block != 16:
        raise Fault("tcgen05.mma with factors of type ue4m3 needs blocks of 16 elements", rule="ID-01")
    of_a = _factors(desc, scales.a, desc.a_scale, scales.block, a, tmem, "A")
    of_b = _factors(desc, scales.b, desc.b_scale, scales.block, b, tmem, "B")
    out = np.empty((b.shape[0], a.shape[0]), np.float32)
    for quarter in range(LANES // QUARTER):
        rows = slice(QUARTER * quarter, QUARTER * (quarter + 1))
        out[:, rows] = _scaled(b, of_b[quarter]) @ _scaled(a[rows], of_a[quarter][rows]).T
    return out


def _scaled(matrix: F32, factors: F64) -> F64:
    """Products of elements and factors, in float64: neither rounds nor overflows."""
    blocks = matrix.astype(np.float64).reshape(matrix.shape[0], factors.shape[1], -1) * factors[:, :, None]
    scaled: F64 = blocks.reshape(matrix.shape)
    return scaled


def _factors(
    desc: InstrDescriptor, address: int, first: int, block: int, matrix: F32, tmem: Tmem, what: str
) -> npt.NDArray[Any]:
    """[quarter, row, block] of one operand."""
    rows, k = matrix.shape
    count = k // block
    lane, column = address >> 16 & 0x3FFF, address & 0xFFFF
    if lane:
        raise Fault(f"tcgen05.mma: the factors of {what} at lane {lane} must be at lane 0", rule="ID-02")
    if first + count > 4:
        raise Fault(
            f"tcgen05.mma: {count} factors of {what} from byte {first} on are more than a word holds", rule="ID-01"
        )
    tmem.check_columns(column, columns(rows), f"tcgen05.mma factors of {what}")
    words = np.ascontiguousarray(tmem.words[column : column + columns(rows)])
    # [column, quarter, lane of it, byte] to [quarter, row, byte]
    raw = words.view(np.uint8).reshape(columns(rows), LANES // QUARTER, QUARTER, 4).transpose(1, 0, 2, 3)
    taken = raw.reshape(LANES // QUARTER, -1, 4)[:, :rows, first : first + count]
    if desc.ue4m3:
        return numeric.e4m3_to_f32(taken & np.uint8(0x7F)).astype(np.float64)
    powers = np.ldexp(1.0, taken.astype(np.int32) - 127)
    return np.where(taken == 0xFF, np.nan, powers)
