# SPDX-License-Identifier: Apache-2.0
"""Orders of tiles, by name."""

from __future__ import annotations

import pytest

from tmagen.diff.tile_order import Tile, TileOrder, first_wave, name_of, share_of


def by_groups(rows: int, columns: int, size: int) -> list[Tile]:
    return [
        (row, column)
        for first in range(0, rows, size)
        for column in range(columns)
        for row in range(first, min(first + size, rows))
    ]


@pytest.mark.parametrize(
    ("sequence", "name"),
    [
        (by_groups(32, 32, 8), "groups of 8 rows"),
        (by_groups(13, 5, 8), "groups of 8 rows"),  # the last group is smaller
        ([(row, column) for column, row in by_groups(32, 32, 4)], "groups of 4 columns"),
        (by_groups(4, 6, 4), "down each column, then the next column"),
        (by_groups(4, 6, 1), "along each row, then the next row"),
        (by_groups(1, 6, 1), "along each row, then the next row"),
        ([(0, 0)], "one tile"),
        ([(0, 0), (1, 1), (1, 0), (0, 1)], "another order"),
        ([(0, 0), (1, 1)], "not every tile once"),
        ([(0, 0), (0, 0)], "not every tile once"),
    ],
)
def test_names(sequence: list[Tile], name: str) -> None:
    assert name_of(sequence).partition(":")[0] == name


def test_one_exchange_is_another_order() -> None:
    sequence = by_groups(32, 32, 8)
    sequence[500], sequence[501] = sequence[501], sequence[500]
    assert name_of(sequence) == "another order"


def test_shares_and_waves() -> None:
    tiles = by_groups(4, 4, 2)
    order = TileOrder({(cta, 0, 0): tuple(tiles[cta::5]) for cta in range(5)})
    assert order.sequence == tuple(tiles)
    assert share_of(order) == "3 or 4 tiles, every 5th of the order"
    assert first_wave(order) == "2 of A and 3 of B"
    assert share_of(TileOrder({(0, 0, 0): ((0, 0),), (1, 0, 0): ((0, 1),)})) == "1 tile"
