# SPDX-License-Identifier: Apache-2.0
"""Integer matrices in the emulator's memory, guarded on both sides, and the one right result."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import Allocation, GlobalMemory

GUARD = 4096
_PATTERN = 0xA5

# Type name -> (NumPy's, largest integer of an input).
TYPES: dict[str, tuple[Any, int]] = {
    "fp16": (np.float16, 6),
    "bf16": (ml_dtypes.bfloat16, 6),
    "fp32": (np.float32, 6),
    "fp8e4nv": (ml_dtypes.float8_e4m3fn, 4),
    "fp8e5": (ml_dtypes.float8_e5m2, 3),
    "i8": (np.int8, 6),
}


class Problem:
    """Operands of D = A * B with B as N x K rows, or K x N where `kn`. All sums are exact in float32, in any order."""

    def __init__(self, types: tuple[str, str, str], shape: tuple[int, int, int], *, kn: bool = False) -> None:
        m, n, k = shape
        self.memory = GlobalMemory()
        rng = np.random.default_rng(m * 31 + n * 7 + k)
        a = rng.integers(-TYPES[types[0]][1], TYPES[types[0]][1] + 1, (m, k))
        b = rng.integers(-TYPES[types[1]][1], TYPES[types[1]][1] + 1, (n, k))
        self.shape = shape
        self.types = types
        self.matrices = {
            "a": self.place(a.astype(TYPES[types[0]][0])),
            "b": self.place((b.T if kn else b).astype(TYPES[types[1]][0])),
            "d": self.place(np.zeros((m, n), TYPES[types[2]][0]) + np.float32(77)),
        }
        self.want = (a @ b.T).astype(np.float32).astype(TYPES[types[2]][0])
        self.before = {name: allocation.data.copy() for name, allocation in self.matrices.items()}

    def place(self, matrix: npt.NDArray[Any]) -> Allocation:
        """A matrix in memory of its own."""
        allocation = self.memory.allocate(matrix.nbytes + 2 * GUARD, align=4096)
        allocation.data[:] = _PATTERN
        allocation.data[GUARD : GUARD + matrix.nbytes] = np.ascontiguousarray(matrix).reshape(-1).view(np.uint8)
        return allocation

    def address(self, name: str) -> int:
        return self.matrices[name].address + GUARD

    def wrong(self, padding: int = 0) -> str | None:
        """What is wrong after a run, in a few words. `padding`: bytes after D that a tensor store may write."""
        m, n, _ = self.shape
        size = self.want.nbytes
        for name, allocation in self.matrices.items():
            same = allocation.data == self.before[name]
            if name == "d":
                same[GUARD : GUARD + size + padding] = True
            if not same.all():
                return f"{np.count_nonzero(~same)} bytes of {name} or around it changed"
        got = self.matrices["d"].data[GUARD : GUARD + size].view(self.want.dtype).reshape(m, n)
        bad = got.view(f"u{got.itemsize}") != self.want.view(f"u{got.itemsize}")
        if not bad.any():
            return None
        row, col = (int(x) for x in np.argwhere(bad)[0])
        return (
            f"{np.count_nonzero(bad)} of {m * n} elements differ, first at ({row}, {col}): "
            f"{got[row, col]} for {self.want[row, col]}"
        )
