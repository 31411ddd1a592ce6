# SPDX-License-Identifier: Apache-2.0
"""Two kernels' steps side by side: sections paired by name, their events aligned, what repeats told once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum

from tmagen.diff.event import Event
from tmagen.diff.sections import K_TILE, TEARDOWN, Section


class Mark(Enum):
    """How a step of one side stands to the other's."""

    SAME = "="
    CHANGED = "~"
    LEFT = "<"
    RIGHT = ">"
    MOVED = "^"  # on both sides, at another place


@dataclass(frozen=True, slots=True)
class Row:
    """A step. A moved one has both sides, where the left has it; `reason` is why it differs, if that is known."""

    mark: Mark
    left: Event | None
    right: Event | None

    @property
    def kind(self) -> tuple[object, ...]:
        """The row but for what varies from one K tile or output tile to the next."""
        left, right = (None if event is None else event.kind for event in (self.left, self.right))
        return self.mark is Mark.MOVED, left, right


@dataclass(frozen=True, slots=True)
class Block:
    """Sections that are the same on each side but for what varies. Rows are those of K tile `shown`."""

    name: str
    tiles: tuple[int, int]  # the first and the last output tile, -1: none
    k: tuple[int, int]  # the first and the last K tile, -1: none
    rows: tuple[Row, ...]
    varying: tuple[tuple[str, str, str], ...] = ()  # what varies: its values left, and right, over the sections
    shown: int = -1  # the one of the K tiles in which most differs
    alone: Mark | None = None  # whole output tiles that one side alone has; rows are those unlike its first tile's

    @property
    def differs(self) -> bool:
        return self.alone is not None or any(row.mark is not Mark.SAME for row in self.rows)


def align(left: Sequence[Section], right: Sequence[Section]) -> tuple[Block, ...]:
    """The sections of both sides, paired by name and number, in order; repetitions folded."""
    mine = {section.key: section for section in left}
    theirs = {section.key: section for section in right}
    matcher = SequenceMatcher(None, list(mine), list(theirs), autojunk=False)
    keys: list[tuple[str, int, int]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        keys += list(mine)[a:b] if tag == "equal" else [*list(mine)[a:b], *list(theirs)[c:d]]
    keys = list(dict.fromkeys(keys))
    pairs = [(mine.get(key), theirs.get(key)) for key in keys]
    paired, alone = _split([_Pair(key, *pair) for key, pair in zip(keys, pairs, strict=True)])
    blocks = _fold_tiles(_fold_k(paired))
    end = next((at for at, block in enumerate(blocks) if block.name == TEARDOWN), len(blocks))
    return (*blocks[:end], *alone, *blocks[end:])


class _Pair:
    """One section of each side, or of one alone."""

    def __init__(self, key: tuple[str, int, int], left: Section | None, right: Section | None) -> None:
        self.name, self.tile, self.k = key
        self.left, self.right = left, right
        self.rows = align_events(left.events if left else (), right.events if right else ())
        self.kind = (self.name, tuple(row.kind for row in self.rows))
        self.mark = Mark.RIGHT if left is None else Mark.LEFT if right is None else Mark.SAME


def align_events(left: Sequence[Event], right: Sequence[Event]) -> tuple[Row, ...]:
    """The events of one section, aligned by what they are; then those on one side are sought on the other."""
    matcher = SequenceMatcher(
        None, [_place(event) for event in left], [_place(event) for event in right], autojunk=False
    )
    rows: list[Row] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            rows += [_pair(mine, theirs) for mine, theirs in zip(left[a:b], right[c:d], strict=True)]
        else:
            rows += [Row(Mark.LEFT, event, None) for event in left[a:b]]
            rows += [Row(Mark.RIGHT, None, event) for event in right[c:d]]
    return tuple(_moved(rows))


def _place(event: Event) -> tuple[str, str, str]:
    """What aligns: the step, and of loads and of arrivals before or after them the stage too."""
    stage = dict(event.varying).get("stage", "") if event.op in ("expect", "TMA load") else ""
    return *event.key, stage


def _pair(left: Event, right: Event) -> Row:
    same = left.kind == right.kind and left.varying == right.varying
    return Row(Mark.SAME if same else Mark.CHANGED, left, right)


def _moved(rows: list[Row]) -> list[Row]:
    """Joins a step of the left with the same one elsewhere on the right."""
    found = list(rows)
    for row in rows:
        if row.mark is not Mark.LEFT or row.left is None:
            continue
        candidates = [other for other in found if other.mark is Mark.RIGHT and _key(other.right) == row.left.key]
        if candidates:
            mine = _place(row.left)
            other = next((o for o in candidates if o.right is not None and _place(o.right) == mine), candidates[0])
            assert other.right is not None
            moved = _steps_between(found, row, other) > 0
            found[found.index(row)] = Row(Mark.MOVED, row.left, other.right) if moved else _pair(row.left, other.right)
            found.remove(other)
    return found


def _key(event: Event | None) -> tuple[str, str] | None:
    return None if event is None else event.key


def _steps_between(rows: list[Row], one: Row, other: Row) -> int:
    at, to = sorted((rows.index(one), rows.index(other)))
    return sum(row.mark is not Mark.RIGHT and row.mark is not Mark.LEFT for row in rows[at:to])


def _split(pairs: list[_Pair]) -> tuple[list[_Pair], list[Block]]:
    """Output tiles that one side alone has, and that are like the first that it has, apart from the rest."""
    blocks: list[Block] = []
    for mark in (Mark.LEFT, Mark.RIGHT):
        mine = [(pair, pair.left if mark is Mark.LEFT else pair.right) for pair in pairs]
        usual = {section.kind: section.kind for pair, section in mine if section is not None and pair.tile == 0}
        tiles = sorted({pair.tile for pair in pairs if pair.tile > 0})
        lonely = [
            tile
            for tile in tiles
            if all(pair.mark is mark for pair in pairs if pair.tile == tile)
            and all(section.kind in usual for pair, section in mine if section is not None and pair.tile == tile)
        ]
        if lonely:
            pairs = [pair for pair in pairs if pair.tile not in lonely]
            blocks.append(Block("tile", (lonely[0], lonely[-1]), (-1, -1), (), alone=mark))
    return pairs, blocks


# --- repetition -------------------------------------------------------------------------------------------------------


def _fold_k(pairs: list[_Pair]) -> list[list[_Pair]]:
    """K tiles that follow each other and do the same, as one group."""
    groups: list[list[_Pair]] = []
    for pair in pairs:
        last = groups[-1][-1] if groups else None
        if last is not None and pair.name == K_TILE and last.tile == pair.tile and last.kind == pair.kind:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _fold_tiles(groups: list[list[_Pair]]) -> list[Block]:
    """Output tiles that do what the first one did are told with it."""
    shown: dict[tuple[object, ...], int] = {}
    blocks: list[Block] = []
    members: list[list[_Pair]] = []
    for group in groups:
        first = group[0]
        key = (first.kind, first.k, len(group))
        if first.tile > 0 and key in shown:
            at = shown[key]
            members[at] += group
            continue
        shown[key] = len(members)
        members.append(list(group))
    for group in members:
        blocks.append(_block(group))
    return blocks


def _block(group: list[_Pair]) -> Block:
    tiles = [pair.tile for pair in group]
    ks = [pair.k for pair in group]
    shown = max(group, key=lambda pair: (sum(row.mark is not Mark.SAME for row in pair.rows), -pair.tile, -pair.k))
    return Block(
        name=group[0].name,
        tiles=(min(tiles), max(tiles)),
        k=(min(ks), max(ks)),
        rows=shown.rows,
        varying=_varying(group) if len(group) > 1 else (),
        shown=shown.k,
    )


def _varying(group: list[_Pair]) -> tuple[tuple[str, str, str], ...]:
    """The parities and stages of the waits in each section of a group, in order, by output tile."""
    sides = ([pair.left for pair in group], [pair.right for pair in group])
    names = dict.fromkeys(name for side in sides for section in side if section for name, _ in _values(section))
    return tuple((name, *(_sequence(name, side) for side in sides)) for name in names)  # type: ignore[misc]


def _sequence(name: str, sections: Sequence[Section | None]) -> str:
    by_tile: dict[int, list[str]] = {}
    for section in sections:
        if section is not None:
            values = [value for key, value in _values(section) if key == name]
            by_tile.setdefault(section.tile, []).extend(values[:1])
    texts = [" ".join(values) for values in by_tile.values()]
    return texts[0] if len(set(texts)) == 1 else " | ".join(texts)


def _values(section: Section) -> list[tuple[str, str]]:
    return [pair for event in section.events if event.op == "wait" for pair in event.varying]
