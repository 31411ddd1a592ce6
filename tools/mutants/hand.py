# SPDX-License-Identifier: Apache-2.0
"""Kernels in hand-written PTX, one for each way of working together that the emitted ones do not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import Allocation, GlobalMemory, Launch, TensorMap
from tmagen.emu.tensormap import DataType, SwizzleMode
from tools.mutants.base import Base, Prepared

FOLDER = Path(__file__).with_name("kernels")
_TYPES = {"float16": DataType.FLOAT16, "uint8": DataType.UINT8}
Array = npt.NDArray[Any]


class Hand(Base):
    """Each of the `settings` puts the operands of a case into a room and returns the launches."""

    def __init__(self, name: str, about: str, settings: tuple[Callable[[Room], tuple[Launch, ...]], ...]) -> None:
        self.name = name
        self.about = f"`{name}.ptx`: {about}"
        self.file = FOLDER / f"{name}.ptx"
        self.settings = settings
        self.cases = len(settings)

    def text(self, case: int) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    def prepare(self, case: int, seed: int) -> Prepared:
        room = Room(seed)
        launches = self.settings[case](room)
        return Prepared(room.memory, launches, room.wrong)


class Room:
    """Global memory: operands, which must stay as they are, and outputs with what they must become."""

    def __init__(self, seed: int) -> None:
        self.memory = GlobalMemory()
        self.rng = np.random.default_rng(seed)
        self._expected: list[tuple[Allocation, Array]] = []

    def integers(self, *shape: int, largest: int = 5) -> Array:
        """Small random integers."""
        return self.rng.integers(-largest, largest + 1, shape)

    def operand(self, values: Array) -> Allocation:
        """An array that the kernel reads."""
        return self._place(values, values)

    def result(self, values: Array) -> Allocation:
        """Room for what the kernel has to write; NaN patterns at first."""
        return self._place(np.full(values.nbytes, 0xFF, np.uint8), values)

    def scratch(self, nbytes: int) -> Allocation:
        """Zeros that the kernel may use as it likes."""
        return self.memory.allocate(nbytes)

    def _place(self, values: Array, expected: Array) -> Allocation:
        raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        allocation = self.memory.allocate(raw.size)
        allocation.data[:] = raw
        self._expected.append((allocation, np.ascontiguousarray(expected).reshape(-1).view(np.uint8)))
        return allocation

    def wrong(self) -> bool:
        """Whether some array is not what it must be."""
        return not all(np.array_equal(allocation.data, expected) for allocation, expected in self._expected)


def params(*values: TensorMap | Allocation | int) -> bytes:
    """A parameter block: tensor maps, addresses, then 32-bit numbers."""
    out = b""
    for value in values:
        if isinstance(value, TensorMap):
            out += b"\0" * (-len(out) % 64) + value.encode()
        elif isinstance(value, Allocation):
            out += b"\0" * (-len(out) % 8) + value.address.to_bytes(8, "little")
        else:
            out += value.to_bytes(4, "little")
    return out


def rows(
    place: Allocation, dtype: str, shape: tuple[int, int], box: tuple[int, int], swizzle: SwizzleMode = SwizzleMode.B128
) -> TensorMap:
    """The map of a row-major matrix of (rows, columns) in boxes of (rows, columns)."""
    nbytes = np.dtype(dtype).itemsize
    return TensorMap(
        _TYPES[dtype], 2, place.address, shape[::-1], (shape[1] * nbytes,), box[::-1], (1, 1), swizzle=swizzle
    )
