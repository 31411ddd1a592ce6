# SPDX-License-Identifier: Apache-2.0
"""Swizzle patterns against the tables that the PTX ISA prints for them."""

from __future__ import annotations

import numpy as np
import pytest

from tmagen.emu.swizzle import Swizzle, box_units

# PTX ISA, "Swizzling modes": for each 128-byte line, which 16-byte chunk of the source lies at each position.
TABLES = {
    Swizzle.NONE: [[0, 1, 2, 3, 4, 5, 6, 7]],
    Swizzle.B32: [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]],
    Swizzle.B64: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
    ],
    Swizzle.B128: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [1, 0, 3, 2, 5, 4, 7, 6],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [3, 2, 1, 0, 7, 6, 5, 4],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [5, 4, 7, 6, 1, 0, 3, 2],
        [6, 7, 4, 5, 2, 3, 0, 1],
        [7, 6, 5, 4, 3, 2, 1, 0],
    ],
    Swizzle.B128_ATOM_32B: [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [2, 3, 0, 1, 6, 7, 4, 5],
        [4, 5, 6, 7, 0, 1, 2, 3],
        [6, 7, 4, 5, 2, 3, 0, 1],
    ],
    Swizzle.B128_ATOM_64B: [[0, 1, 2, 3, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3]],
}
TABLES[Swizzle.B128_ATOM_32B_FLIP_8B] = TABLES[Swizzle.B128_ATOM_32B]


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_chunks_follow_the_table(swizzle):
    table = TABLES[swizzle]
    for line in range(24):
        for chunk in range(8):
            source = line * 128 + table[line % len(table)][chunk] * 16
            flip = 8 if swizzle is Swizzle.B128_ATOM_32B_FLIP_8B and line % 2 else 0
            for byte in range(16):
                assert swizzle.address(source + byte) == line * 128 + chunk * 16 + (byte ^ flip)


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_it_is_its_own_inverse_and_the_array_form_agrees(swizzle):
    every = np.arange(4096, dtype=np.intp)
    physical = swizzle.addresses(every)
    assert np.array_equal(swizzle.addresses(physical), every)
    assert physical.tolist() == [swizzle.address(int(a)) for a in every]


@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("phase", [0, 128, 640, 896])
def test_units_of_a_box(swizzle, phase):
    """The pattern depends on the absolute address, so on where in its repeat a box starts."""
    rows, row_bytes = 13, 16 if swizzle is Swizzle.NONE else swizzle.span
    units = box_units(swizzle, phase, rows, row_bytes, row_bytes)
    assert units.shape == (rows, row_bytes // swizzle.unit)
    for row in range(rows):
        for byte in range(row_bytes):
            physical = swizzle.address(3 * 1024 + phase + row * row_bytes + byte) - 3 * 1024
            assert units[row, byte // swizzle.unit] == physical // swizzle.unit
            assert physical % swizzle.unit == byte % swizzle.unit


def test_a_narrow_row_leaves_room():
    units = box_units(Swizzle.B128, 0, 4, 32, 128)
    assert (units * 16).tolist() == [[0, 16], [144, 128], [288, 304], [432, 416]]
