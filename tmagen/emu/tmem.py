# SPDX-License-Identifier: Apache-2.0
"""Tensor memory of one CTA: 128 lanes by 512 columns of 32 bits, its allocator, and tcgen05.ld / st.

An address is `lane << 16 | column` (PTX ISA, "Tensor Memory addressing"). Words are kept column by column, so that the
accumulator columns of an MMA are one block of memory and a register of tcgen05.ld 32x32b is a run of 32 words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tmagen.emu.errors import Fault, NotJudged

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]

LANES = 128
LANES_OF_A_PAIR = 128
"""The bit of a lane field that a B200 ignores in tcgen05.ld and st: kernels of pairs set it in the odd CTA, as if
lanes 128 to 255 were its, and read their own lanes (gau-nernst/learn-cuda, 02e_matmul_sm100, validated there). The PTX
ISA has no such lanes."""
COLUMNS = 512
POISON = 0xFF
"""The byte that words hold before anything is written: NaN in every format."""


class Tmem:
    """The tensor memory that one CTA sees, and which of it is allocated."""

    def __init__(self, start: Callable[[int], int] | None = None, fill: int = POISON) -> None:
        """`start(columns)` says where the columns begin that are free at the first allocation: those before belong to
        another CTA of the SM, which ends and gives them back when an allocation needs them. `fill` is a byte that
        stands for what nobody has written.
        """
        self._fill = fill * 0x01010101
        self._start = start
        self._others = 0  # bit i: another CTA has column i
        self.words: U32 = np.full((COLUMNS, LANES), self._fill, np.uint32)
        self.floats: F32 = self.words.view(np.float32)
        self._allocated: dict[int, int] = {}  # first column -> columns
        self._live = 0  # bit i: column i is allocated
        self._relinquished = False

    @property
    def allocations(self) -> dict[int, int]:
        """Columns of every live allocation by its first column."""
        return dict(self._allocated)

    def alloc(self, columns: int) -> int | None:
        """Allocate; returns the address, or None while too few columns are free (the instruction then blocks).

        Raises Fault for a count that is not a power of two of 32 to 512, and after the allocation permit was given back
        (PTX ISA, "tcgen05.alloc").
        """
        _check_columns("alloc", columns)
        if self._relinquished:
            raise Fault("tcgen05.alloc after tcgen05.relinquish_alloc_permit", rule="TA-09")
        if self._start is not None and columns < COLUMNS:
            self._others = (1 << self._start(columns)) - 1
        self._start = None
        first = self._free(columns, self._live | self._others)
        if first is None and self._others:
            self._others = 0
            first = self._free(columns, self._live)
        if first is not None:
            self._live |= ((1 << columns) - 1) << first
            self._allocated[first] = columns
            self.words[first : first + columns] = self._fill
        return first

    @staticmethod
    def _free(columns: int, taken: int) -> int | None:
        """The first of the lowest free columns. Allocations of powers of two are aligned to their size."""
        mask = (1 << columns) - 1
        return next((first for first in range(0, COLUMNS, columns) if not taken >> first & mask), None)

    def dealloc(self, address: int, columns: int) -> None:
        """Free an allocation. Raises Fault unless `address` and `columns` are those of a live one."""
        _check_columns("dealloc", columns)
        if self._allocated.get(address) != columns:
            live = ", ".join(f"{n} columns at {first:#x}" for first, n in sorted(self._allocated.items())) or "nothing"
            raise Fault(f"tcgen05.dealloc of {columns} columns at {address:#x}, but allocated is {live}", rule="TA-06")
        del self._allocated[address]
        self._live &= ~(((1 << columns) - 1) << address)
        self.words[address : address + columns] = self._fill

    @property
    def relinquished(self) -> bool:
        """Whether the permit to allocate was given back."""
        return self._relinquished

    def relinquish(self) -> None:
        """Give the permit to allocate back, for the rest of the CTA's life. Doing so again changes nothing."""
        self._relinquished = True

    def check_exit(self) -> None:
        """Raises Fault for columns that the CTA still holds: the next CTA on the SM would wait for them for ever."""
        if self._allocated:
            leaks = ", ".join(f"{n} columns at {first:#x}" for first, n in sorted(self._allocated.items()))
            raise Fault(f"CTA exits with tensor memory allocated: {leaks}", rule="TA-07")

    def check_columns(self, first: int, count: int, what: str) -> None:
        """Raises Fault unless all of the columns are allocated."""
        mask = ((1 << count) - 1) << first
        if self._live & mask != mask:
            live = ", ".join(f"{n} at {start}" for start, n in sorted(self._allocated.items())) or "none"
            raise Fault(
                f"{what} touches tensor memory columns {first} to {first + count - 1}; allocated columns: {live}",
                rule="TA-14",
            )

    def ld(self, shape: str, num: int, address: int, warp: int, *, pack: bool = False, split: int = 0) -> U32:
        """tcgen05.ld.sync.aligned.`shape`.x`num` by warp `warp` of the CTA: array [registers, 32 lanes].

        `split` is immHalfSplitoff of 16x32bx2, in columns of 32 bits. With `pack` (.pack::16b) a register takes the low
        halves of two adjacent columns. Raises Fault for lanes outside the warp's quadrant and columns that are not
        allocated, NotJudged for an unknown shape.
        """
        lane, column = self._place("tcgen05.ld", shape, num, address, warp, pack, split)
        if shape == "32x32b" and not pack:
            return self.words[column : column + num, lane : lane + 32].copy()
        where = _fragment(shape, num, split)
        if not pack:
            return self.words[where.columns + column, where.lanes + lane]
        pair = where.pairs + column
        low, high = self.words[pair, where.lanes + lane], self.words[pair + 1, where.lanes + lane]
        packed: U32 = (low & np.uint32(0xFFFF)) | (high << np.uint32(16))
        return packed

    def st(
        self, shape: str, num: int, address: int, warp: int, values: U32, *, unpack: bool = False, split: int = 0
    ) -> None:
        """tcgen05.st.sync.aligned.`shape`.x`num` of array [registers, 32 lanes]; raises what `ld` does.

        With `unpack` (.unpack::16b) the halves of a register go to two adjacent columns, zero-extended.
        """
        lane, column = self._place("tcgen05.st", shape, num, address, warp, unpack, split)
        where = _fragment(shape, num, split)
        if not unpack:
            self.words[where.columns + column, where.lanes + lane] = values
            return
        pair = where.pairs + column
        self.words[pair, where.lanes + lane] = values & np.uint32(0xFFFF)
        self.words[pair + 1, where.lanes + lane] = values >> np.uint32(16)

    def cells(
        self, shape: str, num: int, address: int, warp: int, *, halves: bool = False, split: int = 0
    ) -> tuple[Index, Index]:
        """(columns, lanes) of the words that an `ld` or `st` with these operands touches. Raises what it does."""
        lane, column = self._place("tcgen05.ld/st", shape, num, address, warp, halves, split)
        where = _fragment(shape, num, split)
        if not halves:
            return where.columns + column, where.lanes + lane
        pair = where.pairs + column
        return np.concatenate([pair, pair + 1]), np.concatenate([where.lanes + lane] * 2)

    def _place(
        self, what: str, shape: str, num: int, address: int, warp: int, halves: bool, split: int
    ) -> tuple[int, int]:
        """Check an access; return its first physical lane and its first column."""
        where = _fragment(shape, num, split)
        field, column = address >> 16, address & 0xFFFF
        quadrant, within = divmod(field & ~LANES_OF_A_PAIR, 32)
        own = warp % 4
        if quadrant not in (0, own):
            raise Fault(
                f"{what} at lane {field} by warp {warp}, which may access lanes {32 * own} to {32 * own + 31}",
                rule="TL-02",
            )
        if within not in (0, 16) or (within and where.height == 32):
            allowed = "0" if where.height == 32 else "0 or 16"
            raise Fault(
                f"{what}.{shape} at lane {field}: the lane must be {allowed} within its quadrant of 32", rule="TL-02"
            )
        name = f"{what}.{shape}.x{num}"
        width = int(where.pairs.max()) + 2 if halves else where.width
        if halves and width > COLUMNS:
            raise Fault(f"{name} of 16-bit halves spans {width} columns", rule="TA-14")
        for first, count in where.spans:
            self.check_columns(column + first, count * (2 if halves else 1), name)
        return 32 * own + within, column


class _Fragment(NamedTuple):
    """Which word each register of each lane holds, relative to the address. Arrays are [registers, 32 lanes].

    `pairs` is the first column of the two that a register holds with .pack::16b or .unpack::16b. `spans` are (first
    column, columns) of what is touched, where each register holds one column.
    """

    lanes: Index
    columns: Index
    pairs: Index
    height: int
    width: int
    spans: tuple[tuple[int, int], ...]


_MAX_NUM = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}
_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


@lru_cache(maxsize=512)
def _fragment(shape: str, num: int, split: int) -> _Fragment:
    """The matrix fragment of `shape`.x`num` (PTX ISA, "Data movement shape" figures of tcgen05.ld)."""
    if shape not in _MAX_NUM:
        raise NotJudged(f"tcgen05.ld/st of shape {shape}")
    if num < 1 or num & (num - 1) or num > _MAX_NUM[shape]:
        raise NotJudged(f"tcgen05.ld/st of shape {shape} and repetition .x{num}")
    t = np.arange(32, dtype=np.intp)[None, :]
    r = np.arange(num * _REGISTERS[shape], dtype=np.intp)[:, None]
    zero = t * 0 + r * 0
    if shape == "32x32b":
        lanes, columns = t + zero, r + zero
    elif shape == "16x64b":
        lanes, columns = 8 * (t & 1) + (t >> 2) + zero, 2 * r + (t >> 1 & 1)
    elif shape == "16x128b":
        lanes, columns = (t >> 2) + 8 * (r & 1), (t & 3) + 4 * (r >> 1)
    elif shape == "16x256b":
        lanes, columns = (t >> 2) + 8 * (r >> 1 & 1), 2 * (t & 3) + (r & 1) + 8 * (r >> 2)
    else:
        lanes, columns = t % 16 + zero, r + zero
    # The second half of 16x32bx2 is an access of its own, `split` columns on whatever a register holds of it.
    second = t // 16 * split if shape == "16x32bx2" else zero
    columns, pairs = columns + second, 2 * columns + second
    width = int(columns.max()) + 1
    spans = ((0, num), (split, num)) if shape == "16x32bx2" else ((0, width),)
    return _Fragment(lanes, columns, pairs, 32 if shape == "32x32b" else 16, width, spans)


def _check_columns(what: str, columns: int) -> None:
    if columns not in (32, 64, 128, 256, 512):
        raise Fault(
            f"tcgen05.{what} of {columns} columns: the count must be a power of two from 32 to 512", rule="TA-01"
        )
