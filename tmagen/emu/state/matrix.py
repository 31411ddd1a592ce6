# SPDX-License-Identifier: Apache-2.0
"""What block functions call for ldmatrix and stmatrix.

Lanes 8 * i to 8 * i + 7 give the addresses of the rows of matrix i, 16 bytes each. Register i of lane t holds the
elements 2 * (t % 4) and 2 * (t % 4) + 1 of its row t / 4; of its column where transposed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import M32, lanes_of
from tmagen.emu.state.fragments import Fragment

_ROW_BYTES = 16


def ld_matrix(frag: Fragment, cta: Any, address: Any, count: int, transposed: bool) -> list[Any]:
    """The registers of `count` matrices."""
    rows = _rows(frag, cta, address, count, "ldmatrix")
    matrices = cta.arrays[_ROW_BYTES][rows].view(np.uint16).reshape(count, 8, 8)
    if transposed:
        matrices = np.ascontiguousarray(matrices.transpose(0, 2, 1))
    return list(matrices.view(np.uint32).reshape(count, 32))


def st_matrix(frag: Fragment, cta: Any, address: Any, values: tuple[Any, ...], transposed: bool) -> None:
    """Registers to shared memory; the inverse."""
    count = len(values)
    rows = _rows(frag, cta, address, count, "stmatrix")
    if cta.mma_queue:
        cta.flush_mma()
    for at in (rows * _ROW_BYTES).tolist():
        if cta.low_barrier - _ROW_BYTES < at < cta.high_barrier:
            cta.check_overwrite(at, _ROW_BYTES, "stmatrix")
    words = np.empty((count, 32), np.uint32)
    for i, value in enumerate(values):
        words[i] = value
    matrices = words.view(np.uint16).reshape(count, 8, 8)
    if transposed:
        matrices = np.ascontiguousarray(matrices.transpose(0, 2, 1))
    cta.arrays[_ROW_BYTES][rows] = matrices.view(np.complex128).reshape(-1)


def _rows(frag: Fragment, cta: Any, address: Any, count: int, what: str) -> npt.NDArray[Any]:
    """The rows' places, in units of 16 bytes. Raises Fault for a bad address."""
    if frag.mask != M32:
        raise Fault(f"{what} in a warp with threads that have exited or never were")
    places = lanes_of(address, np.uint32)[: 8 * count]
    low, high = int(places.min()), int(places.max())
    if low < cta.first_shared or high > cta.shared_end - _ROW_BYTES:
        cta.bad_shared(low if low < cta.first_shared else high, _ROW_BYTES, what)
    for at in places.tolist():
        if at % _ROW_BYTES:
            cta.bad_shared(at, _ROW_BYTES, what)
    rows: npt.NDArray[Any] = places // np.array(_ROW_BYTES, places.dtype)
    return rows
