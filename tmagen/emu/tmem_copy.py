# SPDX-License-Identifier: Apache-2.0
"""tcgen05.cp: rows of shared memory to lanes of tensor memory (PTX ISA, "tcgen05.cp").

A row is 16 or 32 bytes, found through an SMEM descriptor as a K-major operand of so many bytes; it fills 4 or 8 columns
of one lane, or of several with a multicast qualifier.
"""

from __future__ import annotations

import numpy as np

from tmagen.emu.errors import Fault
from tmagen.emu.memory import Bytes
from tmagen.emu.smem_descriptor import UNIT, Major, locate
from tmagen.emu.tmem import Tmem

# Shape with multicast -> (rows, bytes of a row, first lanes of the copies of each part of the rows).
SHAPES: dict[str, tuple[int, int, tuple[tuple[int, ...], ...]]] = {
    "128x256b": (128, 32, ((0,), (32,), (64,), (96,))),
    "128x128b": (128, 16, ((0,), (32,), (64,), (96,))),
    "64x128b.warpx2::02_13": (64, 16, ((0, 64), (32, 96))),
    "64x128b.warpx2::01_23": (64, 16, ((0, 32), (64, 96))),
    "32x128b.warpx4": (32, 16, ((0, 32, 64, 96),)),
    "4x256b": (4, 32, ((0,), (32,), (64,), (96,))),
}


def execute(shape: str, address: int, descriptor: int, smem: Bytes, tmem: Tmem) -> None:
    """Copy now. Raises Fault for a bad descriptor, for bytes outside shared memory and for columns that are not
    allocated.
    """
    rows, nbytes, places = SHAPES[shape]
    lane, column = address >> 16, address & 0xFFFF
    if lane:
        raise Fault(f"tcgen05.cp to lane {lane}: the lane must be 0")
    tmem.check_columns(column, nbytes // 4, "tcgen05.cp")
    operand = locate(descriptor, rows, nbytes, 1, Major.K)
    if operand.end > smem.size:
        raise Fault(
            f"SMEM descriptor {descriptor:#018x}: the source reaches byte {operand.end - 1:,} of shared memory; the "
            f"CTA has {smem.size:,}",
            rule="DS-04",
        )
    units = smem[operand.base :].view(np.complex128)[: (operand.end - operand.base + UNIT - 1) // UNIT]
    words = np.ascontiguousarray(units[operand.units].reshape(rows, -1)).view(np.uint32)
    height = rows // len(places)
    for part, lanes in enumerate(places):
        block = words[height * part : height * (part + 1)].T
        for first in lanes:
            tmem.words[column : column + nbytes // 4, first : first + height] = block
