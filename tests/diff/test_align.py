# SPDX-License-Identifier: Apache-2.0
"""Steps side by side, on made-up steps."""

from __future__ import annotations

from collections.abc import Sequence

from tmagen.diff.align import Block, Mark, align, align_events
from tmagen.diff.event import Event
from tmagen.diff.reasons import reason
from tmagen.diff.sections import EPILOGUE, FILL, K_TILE, SETUP, TEARDOWN, Section, sections_of


def event(op: str, about: str = "", *, who: str = "all", line: int = 1, fact: str = "", **varying: object) -> Event:
    facts = (("fact", fact),) if fact else ()
    changing = tuple((name.replace("_", " "), str(value)) for name, value in varying.items())
    return Event(op, about, facts, changing, who, f"{op} {about}", line)


def marks(left: Sequence[Event], right: Sequence[Event]) -> str:
    return "".join(row.mark.value for row in align_events(left, right))


A, B, C = event("a"), event("b"), event("c")


def test_equal_steps_are_the_same_wherever_they_stand_in_the_ptx() -> None:
    assert marks([A, B], [event("a", line=7), event("b", line=9)]) == "=="


def test_a_step_that_is_done_otherwise_is_changed() -> None:
    assert marks([A], [event("a", who="one")]) == "~"
    assert marks([event("a", fact="1")], [event("a", fact="2")]) == "~"
    assert marks([event("a", parity=0)], [event("a", parity=1)]) == "~"


def test_steps_of_one_side_and_steps_elsewhere() -> None:
    assert marks([A, B], [B]) == "<="
    assert marks([B], [B, C]) == "=>"
    assert marks([A, B, C], [B, C, A]) == "^=="


def test_arrivals_align_by_stage() -> None:
    left = [event("expect", "full", stage=0), event("x"), event("expect", "full", stage=1), event("y")]
    right = [event("x"), event("expect", "full", stage=0), event("y"), event("expect", "full", stage=1)]
    rows = align_events(left, right)
    pairs = [(row.left, row.right) for row in rows if row.mark is Mark.MOVED]
    assert all(mine is not None and theirs is not None and mine.varying == theirs.varying for mine, theirs in pairs)


def gemm(tiles: int, k_tiles: int, depth: int, *, extra: Sequence[Event] = ()) -> tuple[Section, ...]:
    """The steps of a small kernel: `extra` is in each epilogue."""
    steps = [event("alloc")]
    done = 0
    for _ in range(tiles):
        steps += [event("expect", "full", stage=s) for s in range(min(depth, k_tiles))]
        for k in range(k_tiles):
            stage = k % depth
            steps.append(event("wait", "full", stage=stage, full_parity=done // depth % 2))
            steps += [event("MMA", stage=stage), event("commit", "mma_done"), event("wait", "mma_done")]
            if k + depth < k_tiles:
                steps.append(event("expect", "full", stage=stage))
            done += 1
        steps += [event("TMEM load"), *extra, event("TMA store", "D"), event("commit_group")]
    return sections_of([*steps, event("wait_group"), event("dealloc")])


def names(blocks: Sequence[Block]) -> list[tuple[object, ...]]:
    return [(block.name, block.tiles, block.k) for block in blocks]


def test_a_cta_is_cut_into_its_phases() -> None:
    found = [(section.name, section.tile, section.k) for section in gemm(tiles=2, k_tiles=2, depth=1)]
    tile = lambda t: [(FILL, t, -1), (K_TILE, t, 0), (K_TILE, t, 1), (EPILOGUE, t, -1)]  # noqa: E731
    assert found == [(SETUP, -1, -1), *tile(0), *tile(1), (TEARDOWN, -1, -1)]


def test_what_ends_the_cta_is_no_part_of_its_last_epilogue() -> None:
    *_, epilogue, end = gemm(tiles=2, k_tiles=1, depth=1)
    assert [e.op for e in epilogue.events] == ["TMEM load", "TMA store", "commit_group"]
    assert [e.op for e in end.events] == ["wait_group", "dealloc"]


def test_k_tiles_and_output_tiles_that_repeat_are_told_once() -> None:
    both = gemm(tiles=3, k_tiles=5, depth=2)
    blocks = align(both, both)
    assert names(blocks) == [
        (SETUP, (-1, -1), (-1, -1)),
        (FILL, (0, 2), (-1, -1)),
        (K_TILE, (0, 2), (0, 2)),
        (K_TILE, (0, 2), (3, 4)),
        (EPILOGUE, (0, 2), (-1, -1)),
        (TEARDOWN, (-1, -1), (-1, -1)),
    ]
    assert not any(block.differs for block in blocks)
    varying = {name: left for name, left, _ in blocks[2].varying}
    # Five K tiles leave a ring of two in the middle: where the next tile begins, parities go on.
    assert varying["full parity"] == "0 0 1 | 0 1 1 | 1 1 0"


def test_rings_of_other_depths_fold_too_and_show_where_they_differ() -> None:
    blocks = align(gemm(1, 6, 1), gemm(1, 6, 2))
    (block,) = [block for block in blocks if block.name == K_TILE and block.k == (0, 3)]
    assert block.shown == 1
    assert [row.mark.value for row in block.rows] == ["~", "~", "=", "=", "~"]
    assert "another" in str(reason(block.rows[1], block))


def test_tiles_that_one_side_alone_has_are_one_block() -> None:
    blocks = align(gemm(1, 4, 2), gemm(4, 4, 2))
    (alone,) = [block for block in blocks if block.alone is not None]
    assert (alone.alone, alone.tiles, alone.rows) == (Mark.RIGHT, (1, 3), ())
    assert blocks[-1].name == TEARDOWN


def test_a_tile_unlike_the_first_is_told() -> None:
    usual, odd = gemm(2, 2, 2), gemm(2, 2, 2, extra=[event("store", "shared")])
    mixed = (*usual[:5], *odd[5:])
    blocks = align(mixed, mixed)
    assert [block.tiles for block in blocks if block.name == EPILOGUE] == [(0, 0), (1, 1)]
