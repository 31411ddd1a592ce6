# SPDX-License-Identifier: Apache-2.0
"""Which CTA computes which output tiles, in which order, and what that order is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tmagen.diff.layout import Map
from tmagen.diff.record import CtaStores, stores_of
from tmagen.diff.sides import Side
from tmagen.diff.slicing import NotSliced, scheduler_of
from tmagen.emu import Launch
from tmagen.emu.errors import EmulatorError
from tmagen.emu.launch import Dim3

Tile = tuple[int, int]
"""Row and column of an output tile, in tiles."""

MOST_TILES = 1 << 16
"""Output tiles up to which the scheduler is run: more than that takes longer than the rest of a comparison."""
_MOST_GROUPED = 1024  # the largest group that is looked for


@dataclass(frozen=True, slots=True)
class TileOrder:
    """The tiles of each CTA, in its order. `untold` says why there are none."""

    ctas: Mapping[Dim3, tuple[Tile, ...]]
    untold: str = ""

    @property
    def sequence(self) -> tuple[Tile, ...]:
        """All tiles in the order in which they begin if the CTAs start in order and go at one pace."""
        ordered = sorted(self.ctas, key=lambda cta: cta[::-1])
        rounds = max(map(len, self.ctas.values()), default=0)
        return tuple(self.ctas[cta][at] for at in range(rounds) for cta in ordered if at < len(self.ctas[cta]))


def scheduled(side: Side, launch: Launch, maps: Sequence[Map], pitch: int) -> TileOrder:
    """The order that a kernel's own scheduler gives for `launch`, whose pointers need not point anywhere.

    `pitch` is the bytes from row to row of D.
    """
    of_d = [found for found in maps if found.operand == "D"]
    if not of_d:
        return TileOrder({}, "not told: no tensor map is D's")
    if launch.grid[0] * launch.grid[1] * launch.grid[2] > MOST_TILES or _boxes(of_d[0]) > MOST_TILES * 8:
        return TileOrder({}, f"not told: more than {MOST_TILES:,} tiles")
    try:
        stores = stores_of(scheduler_of(side.code.module, side.code.entry), launch)
    except NotSliced as error:
        return TileOrder({}, f"not told: {error}")
    except EmulatorError as error:
        return TileOrder({}, f"not told: {error.message}")
    return order_of(stores, of_d, pitch)


def _boxes(found: Map) -> int:
    count = 1
    for extent, box in zip(found.fields.dims, found.fields.box, strict=True):
        count *= -(-extent // box)
    return count


def order_of(stores: CtaStores, of_d: Sequence[Map], pitch: int) -> TileOrder:
    """The tiles that the boxes stored by each CTA are parts of: a tile is the least row and column between two."""
    by_rank = {len(found.fields.dims): found for found in of_d}
    corners = {}
    for cta, boxes in stores:
        rows: dict[int, int] = {}
        seen: list[Tile] = []
        for coords in boxes:
            found = by_rank.get(len(coords))
            if found is None:
                continue
            box = found.box_at(coords, pitch)
            # Boxes side by side are one tile: its first column is the least that follows a new row or a gap.
            if rows.get(box.row) != box.column:
                seen.append((box.row, box.column))
            rows = {box.row: box.column + box.columns}
        corners[cta] = tuple(seen)
    unit_m = min((row for tiles in corners.values() for row, _ in tiles if row), default=1)
    unit_n = min((column for tiles in corners.values() for _, column in tiles if column), default=1)
    return TileOrder(
        {cta: tuple((row // unit_m, column // unit_n) for row, column in tiles) for cta, tiles in corners.items()}
    )


# --- in words ---------------------------------------------------------------------------------------------------------


def name_of(sequence: Sequence[Tile]) -> str:
    """What an order of tiles is called: by rows, by columns, or in groups of so many of either."""
    rows, columns = (1 + max(tile[axis] for tile in sequence) for axis in (0, 1)) if sequence else (0, 0)
    if rows * columns != len(sequence) or len(set(sequence)) != len(sequence):
        return "not every tile once"
    if len(sequence) == 1:
        return "one tile"
    flipped = [(n, m) for m, n in sequence]
    down = _group(sequence, rows, columns)
    along = _group(flipped, columns, rows)
    if rows > 1 and (down == rows or along == 1):
        return "down each column, then the next column"
    if along == columns or down == 1:
        return "along each row, then the next row"
    if down is not None:
        return f"groups of {down} rows: down the {down} rows of a column, then the next column; then the next group"
    if along is not None:
        return f"groups of {along} columns: along the {along} columns of a row, then the next row; then the next group"
    return "another order"


def _group(sequence: Sequence[Tile], rows: int, columns: int) -> int | None:
    """The size of the groups of rows in which `sequence` goes, column by column in each; None where it does not."""
    size = next((at for at, (_, column) in enumerate(sequence) if column != sequence[0][1]), len(sequence))
    if not 0 < size <= max(rows, _MOST_GROUPED):
        return None
    return size if tuple(_grouped(rows, columns, size)) == tuple(sequence) else None


def _grouped(rows: int, columns: int, size: int) -> Iterator[Tile]:
    for first in range(0, rows, size):
        for column in range(columns):
            for row in range(first, min(first + size, rows)):
                yield row, column


def share_of(order: TileOrder) -> str:
    """How many tiles a CTA takes, and which of the order."""
    counts = sorted({len(tiles) for tiles in order.ctas.values()})
    if counts in ([], [0]):
        return "none"
    least, most = counts[0], counts[-1]
    if most == 1:
        return "1 tile" if least else "at most 1 tile"
    number = f"{least} or {most}" if most == least + 1 else f"{least} to {most}" if least < most else str(most)
    places = {tile: at for at, tile in enumerate(order.sequence)}
    steps = {places[b] - places[a] for tiles in order.ctas.values() for a, b in pairwise(tiles)}
    every = f", every {next(iter(steps))}th of the order" if len(steps) == 1 and _named(order) else ""
    return f"{number} tiles{every}"


def _named(order: TileOrder) -> bool:
    return name_of(order.sequence) not in ("another order", "not every tile once")


def first_wave(order: TileOrder) -> str:
    """What the tiles that the CTAs begin with have in common: so many rows of A and of B are read for all of them."""
    first = [tiles[0] for tiles in order.ctas.values() if tiles]
    rows, columns = ({tile[axis] for tile in first} for axis in (0, 1))
    return f"{len(rows)} of A and {len(columns)} of B"


def tiles_text(tiles: Sequence[Tile]) -> str:
    """A list of tiles."""
    return " ".join(f"({m}, {n})" for m, n in tiles) or "-"
