# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from tmagen.emu import GlobalMemory
from tmagen.ir import DType
from tmagen.verify.buffers import Buffer, allocate


@pytest.fixture
def memory() -> GlobalMemory:
    return GlobalMemory()


def poisoned(memory: GlobalMemory, ld: int = 24, rows: int = 5) -> Buffer:
    buffer = allocate(memory, "D", DType.F16, rows, 20, ld)
    buffer.fill_poison()
    return buffer


@pytest.mark.parametrize("name", ["A", "B", "D"])
def test_base_is_aligned_to_16_bytes_and_no_more(memory: GlobalMemory, name: str) -> None:
    buffer = allocate(memory, name, DType.F16, 3, 8, 8)
    assert buffer.address % 16 == 0
    assert buffer.address % 32 == 16


def test_matrix_is_where_its_address_says(memory: GlobalMemory) -> None:
    buffer = poisoned(memory)
    buffer.values()[:] = np.arange(100).reshape(5, 20)
    row = memory.view(buffer.address + 3 * 24 * 2, 40).view(np.float16)
    assert row.tolist() == list(range(60, 80))
    assert buffer.stray_writes() == ()


def test_everything_around_is_poison(memory: GlobalMemory) -> None:
    buffer = allocate(memory, "A", DType.F16, 5, 20, 24)
    buffer.write(np.zeros((5, 20), np.float16))
    around = np.array(buffer.data)
    for row in range(5):
        start = buffer.offset + row * 48
        around[start : start + 40] = 0xFF
    assert (around == 0xFF).all()
    assert np.isnan(memory.view(buffer.address - 2, 2).view(np.float16)).all()


def test_unwritten_elements_are_counted(memory: GlobalMemory) -> None:
    buffer = poisoned(memory)
    assert buffer.unwritten() == 100
    buffer.values()[:, 3:] = 0
    assert buffer.unwritten() == 15


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (-2, "1 byte written before D, the nearest 2 bytes away"),
        (-4000, "before D"),
        (4 * 48 + 40, "1 byte written after D, the nearest 1 byte away"),
        (4 * 48 + 40 + 3000, "after D"),
        (40, "the first at row 0, column 20 of 20 (leading dimension 24)"),
        (3 * 48 + 47, "the first at row 3, column 23 of 20"),
    ],
)
def test_stray_writes_are_found(memory: GlobalMemory, offset: int, told: str) -> None:
    buffer = poisoned(memory)
    buffer.values()[:] = 1
    buffer.data[buffer.offset + offset] = 0
    (line,) = buffer.stray_writes()
    assert told in line


def test_padding_after_the_last_row_is_guarded_too(memory: GlobalMemory) -> None:
    buffer = poisoned(memory)
    buffer.data[buffer.offset + 4 * 48 + 44] = 0
    assert buffer.stray_writes() == ("1 byte written after D, the nearest 5 bytes away from it",)


# ---- Far apart rows: 2^31 elements and more, of which few pages exist.

LD = 1 << 24


def test_sparse_matrix_costs_its_rows_only(memory: GlobalMemory) -> None:
    buffer = poisoned(memory, ld=LD, rows=200)
    assert buffer.sparse
    assert buffer.span > 2 * (1 << 31)
    assert buffer.unwritten() == 200 * 20
    buffer.values()[:] = 3
    assert buffer.stray_writes() == ()
    assert memory.view(buffer.address + 199 * LD * 2, 2).view(np.float16)[0] == 3


@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (-100, "before D"),
        (199 * LD * 2 + 40 + 100, "after D"),
        (7 * LD * 2 + 40, "the first at row 7, column 20 of 20"),
        (8 * LD * 2 - 1, f"the first at row 7, column {LD - 1} of 20"),
        (7 * LD * 2 + 12_345_678, "written far outside its rows: at row 7, byte 12,345,678 of a row of 40"),
    ],
)
def test_stray_writes_of_a_sparse_matrix(memory: GlobalMemory, offset: int, told: str) -> None:
    buffer = poisoned(memory, ld=LD, rows=200)
    buffer.values()[:] = 3
    buffer.data[buffer.offset + offset] = 1
    (line,) = buffer.stray_writes()
    assert told in line
