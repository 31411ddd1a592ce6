# SPDX-License-Identifier: Apache-2.0
"""Matrices in global memory, each between guard bands, with every byte that is not its own poisoned."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tmagen.ir import DType
from tmagen.verify.elements import Matrix, bits_dtype, poison, value_dtype

Bytes = npt.NDArray[np.uint8]

_GUARD_BYTES = 4096  # before and after each matrix
_SPARSE_BYTES = 1 << 29  # a matrix that spans more, mostly padding, is poisoned around its rows only
_WINDOW_BYTES = 512  # on either side of such a row
_POISON = 0xFF

# Bases are multiples of 16 bytes and of no more: a kernel may not rely on what cudaMalloc happens to give.
_SKEWS = (16, 48, 80)


class Place(Protocol):
    """A piece of global memory."""

    @property
    def address(self) -> int: ...

    @property
    def data(self) -> Bytes:
        """Its bytes, zero at first; a page that nobody touches need not exist."""


class Memory(Protocol):
    """Where matrices are allocated: emulated global memory, or a GPU's with a mirror on the host."""

    def allocate(self, nbytes: int, *, align: int = 256) -> Place: ...


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A row-major matrix of `rows` x `columns` elements, `ld` elements from row to row, in an allocation of its own."""

    name: str
    element: DType
    rows: int
    columns: int
    ld: int
    address: int  # of element (0, 0)
    data: Bytes  # the whole allocation
    offset: int  # of element (0, 0) in `data`

    @property
    def row_bytes(self) -> int:
        return self.columns * self.element.bytes

    @property
    def pitch(self) -> int:
        """From row to row, bytes."""
        return self.ld * self.element.bytes

    @property
    def span(self) -> int:
        """From the first element to the end of the last, bytes."""
        return (self.rows - 1) * self.pitch + self.row_bytes

    @property
    def sparse(self) -> bool:
        return _is_sparse(self.span, self.rows, self.row_bytes)

    def bits(self) -> Matrix:
        """The matrix in place, as unsigned integers."""
        own = self.data[self.offset : self.offset + self.span].view(bits_dtype(self.element))
        return np.lib.stride_tricks.as_strided(own, (self.rows, self.columns), (self.pitch, self.element.bytes))

    def values(self) -> Matrix:
        """The matrix in place, as numbers."""
        own = self.data[self.offset : self.offset + self.span].view(value_dtype(self.element))
        return np.lib.stride_tricks.as_strided(own, (self.rows, self.columns), (self.pitch, self.element.bytes))

    def fill_poison(self) -> None:
        """Makes every byte of the matrix and around it the poison."""
        if not self.sparse:
            self.data[:] = _POISON
            return
        for start, stop in self._windows():
            self.data[start:stop] = _POISON

    def write(self, values: Matrix) -> None:
        """Puts `values` into the matrix, poison around it."""
        self.fill_poison()
        self.values()[:] = values

    def unwritten(self) -> int:
        """How many elements still hold the poison."""
        return int(np.count_nonzero(self.bits() == poison(self.element)))

    def stray_writes(self) -> tuple[str, ...]:
        """Where something outside the matrix was written, in words: guard bands, then the padding of rows."""
        found = [
            line
            for what, area in (("before", self.data[: self.offset]), ("after", self.data[self.offset + self.span :]))
            if (line := self._stray_in_guard(what, area)) is not None
        ]
        padding = self.pitch - self.row_bytes
        if self.rows > 1 and padding > 0:
            found.extend(self._stray_in_padding(padding))
        if self.sparse:
            found.extend(self._stray_pages())
        return tuple(found)

    def _stray_in_guard(self, what: str, area: Bytes) -> str | None:
        checked = area[-_WINDOW_BYTES:] if self.sparse and what == "before" else area
        checked = checked[:_WINDOW_BYTES] if self.sparse else checked
        touched = np.flatnonzero(checked != _POISON)
        if touched.size == 0:
            return None
        distance = checked.size - int(touched[-1]) if what == "before" else int(touched[0]) + 1
        return f"{_bytes(touched.size)} written {what} {self.name}, the nearest {_bytes(distance)} away from it"

    def _stray_in_padding(self, padding: int) -> Iterator[str]:
        width = min(padding, _WINDOW_BYTES) if self.sparse else padding
        starts = [self.row_bytes] if width == padding else [self.row_bytes, self.pitch - width]
        for start in starts:
            first = self.data[self.offset + start :]
            area = np.lib.stride_tricks.as_strided(first, (self.rows - 1, width), (self.pitch, 1))
            touched = np.argwhere(area != _POISON)
            if len(touched):
                row, column = map(int, touched[0])
                place = (start + column) // self.element.bytes
                yield (
                    f"{_bytes(len(touched))} written in the padding of {self.name}'s rows: the first at row {row}, "
                    f"column {place} of {self.columns} (leading dimension {self.ld})"
                )

    def _stray_pages(self) -> Iterator[str]:
        """Far from every row: pages that exist though nobody had a reason to touch them, and that hold something."""
        page = mmap.PAGESIZE
        resident = _resident_pages(self.data)
        for start, stop in self._windows():
            resident[start // page : -(-stop // page)] = False
        for index in np.flatnonzero(resident):
            touched = np.flatnonzero(self.data[index * page : (index + 1) * page])
            if touched.size:
                row, column = divmod(int(index) * page + int(touched[0]) - self.offset, self.pitch)
                place = f"row {row}, byte {column:,} of a row of {self.row_bytes:,}"
                yield f"{self.name} written far outside its rows: at {place}"
                return

    def _windows(self) -> Iterator[tuple[int, int]]:
        for row in range(self.rows):
            start = self.offset + row * self.pitch
            yield max(0, start - _WINDOW_BYTES), min(self.data.size, start + self.row_bytes + _WINDOW_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class Buffers:
    """A, B and D of one problem. A and B are None where K is 0: their addresses are null then."""

    a: Buffer | None
    b: Buffer | None
    d: Buffer


def allocate(
    memory: Memory, name: str, element: DType, rows: int, columns: int, ld: int, *, skewed: bool = True
) -> Buffer:
    """A matrix with guard bands on either side. Nothing is written to it yet.

    Its base is a multiple of 16 bytes only; not `skewed`, of 4096 bytes, as the base of an allocation of its own is.
    """
    skew = _SKEWS["ABD".index(name)] if skewed else 0
    span = ((rows - 1) * ld + columns) * element.bytes
    allocation = memory.allocate(_GUARD_BYTES + skew + _round_up(span, 16) + _GUARD_BYTES, align=_GUARD_BYTES)
    offset = _GUARD_BYTES + skew
    return Buffer(name, element, rows, columns, ld, allocation.address + offset, allocation.data, offset)


def resident_bytes(rows: int, columns: int, ld: int, element: DType) -> int:
    """What a matrix will occupy: its span, or the pages around its rows where these are far apart."""
    row_bytes = columns * element.bytes
    span = (rows - 1) * ld * element.bytes + row_bytes
    if not _is_sparse(span, rows, row_bytes):
        return span + 2 * _GUARD_BYTES
    windows = rows * (_round_up(row_bytes + 2 * _WINDOW_BYTES, mmap.PAGESIZE) + mmap.PAGESIZE)
    return windows + 2 * (span // mmap.PAGESIZE)  # and a note for each page


def _is_sparse(span: int, rows: int, row_bytes: int) -> bool:
    return span > _SPARSE_BYTES and span > 4 * rows * (row_bytes + 2 * _WINDOW_BYTES)


def _resident_pages(data: Bytes) -> npt.NDArray[np.bool_]:
    """Which pages of a mapping have been touched (mincore of Linux)."""
    state = np.zeros(-(-data.size // mmap.PAGESIZE), np.uint8)
    mincore: Callable[..., int] = ctypes.CDLL(None, use_errno=True).mincore
    where, length, vector = (
        ctypes.c_void_p(data.ctypes.data),
        ctypes.c_size_t(data.size),
        ctypes.c_void_p(state.ctypes.data),
    )
    if mincore(where, length, vector) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    resident: npt.NDArray[np.bool_] = (state & 1) != 0
    return resident


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count:,} bytes"


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
