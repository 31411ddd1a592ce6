# SPDX-License-Identifier: Apache-2.0
"""Why a step differs, where the reason is a known one. Each rule looks at one aligned row and what surrounds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmagen.diff.align import Block, Mark, Row
from tmagen.diff.event import Event
from tmagen.diff.layout import DONE, FULL
from tmagen.diff.sections import EPILOGUE, FILL, LOADS, SETUP, TEARDOWN

Rule = Callable[[Row, Block], str | None]
AFTER = "tcgen05.fence::after_thread_sync"
BEFORE = "tcgen05.fence::before_thread_sync"


def reason(row: Row, block: Block) -> str | None:
    """Why the two sides differ in this row; None where they do not, or nothing is known."""
    if row.mark is Mark.SAME:
        return None
    return next((found for rule in _RULES if (found := rule(row, block)) is not None), None)


def _one(row: Row) -> Event:
    event = row.left or row.right
    assert event is not None
    return event


def _facts(event: Event | None) -> dict[str, str]:
    return {} if event is None else dict(event.facts)


def _expect_order(row: Row, _: Block) -> str | None:
    if row.mark is Mark.MOVED and _one(row).op == "expect":
        return (
            "before or after the loads is the same to the barrier: the phase cannot end without this one arrival. "
            "Before them, its byte count never goes below zero"
        )
    return None


def _waits(row: Row, _: Block) -> str | None:
    if row.left is None or row.right is None or _one(row).op != "wait" or row.left.who == row.right.who:
        return None
    if _one(row).about in (FULL, DONE):
        return (
            "one thread needs it, to issue what follows; where all wait, each of them polls the barrier through the "
            "whole main loop"
        )
    return None


def _tcgen05_fences(row: Row, block: Block) -> str | None:
    event = _one(row)
    if row.left is not None and row.right is not None:
        return None
    if event.about == AFTER:
        if block.name == EPILOGUE:
            return (
                "orders the tcgen05.ld after the wait or barrier before it (PTX ISA, tcgen05 memory consistency); "
                "without it nothing in PTX orders the load after the MMAs of another thread"
            )
        return "orders the tcgen05 operations that follow after the wait or barrier before it (PTX ISA, tcgen05 fences)"
    if event.about == BEFORE:
        return "orders the tcgen05 operations before it before the barrier that follows: one half of a pair"
    return None


def _proxy_fence(row: Row, block: Block) -> str | None:
    event = _one(row)
    if event.about.startswith("fence.proxy.async") and block.name == SETUP and (row.left is None or row.right is None):
        return "nothing was written yet that the asynchronous proxy reads: fence.mbarrier_init covers the barriers"
    return None


def _init_fence(row: Row, _: Block) -> str | None:
    event = _one(row)
    if event.about.startswith("fence.mbarrier_init") and row.mark is Mark.CHANGED:
        return "the thread that initialised the barriers is the one that has something to make visible"
    return None


def _prefetch(row: Row, _: Block) -> str | None:
    if _one(row).op != "prefetch":
        return None
    if _one(row).about == "tensor maps":
        return (
            "fetches the 128 bytes of each map into the descriptor cache while the rest is set up; without it the "
            "first copy through a map waits for them"
        )
    return "brings the part into L2 ahead of the copy; it changes no result"


def _columns(row: Row, block: Block) -> str | None:
    """What the number of columns means, and of the allocation how long the permit to allocate is kept after it."""
    event = _one(row)
    if event.op not in ("alloc", "dealloc"):
        return None
    left, right = _facts(row.left).get("columns"), _facts(row.right).get("columns")
    said = []
    if left and right and left != right:
        said.append(f"an SM has 512 columns: with {left} of them {_fit(left)}, with {right} {_fit(right)}")
    if event.op == "alloc" and row.mark is Mark.MOVED:
        said.append(
            "Its place among the fences is free, as long as the barrier that shows the address to the other threads "
            "comes after it" + _kept_permit(block)
        )
    return ". ".join(said) or None


def _fit(columns: str) -> str:
    fits = 512 // int(columns)
    return "no second CTA can allocate before this one frees" if fits == 1 else f"{fits} CTAs fit beside each other"


def _kept_permit(block: Block) -> str:
    """What follows the allocation on one side alone."""
    given = [row for row in block.rows if _one(row).op == "relinquish" and row.mark in (Mark.LEFT, Mark.RIGHT)]
    if len(given) != 1:
        return ""
    side, other = ("left", "right") if given[0].mark is Mark.LEFT else ("right", "left")
    return f". What matters is what follows: the {side} gives the permit to allocate back, the {other} keeps it"


def _permit(row: Row, block: Block) -> str | None:
    if _one(row).op != "relinquish":
        return None
    if block.name == SETUP:
        return (
            "given back at once, so that the next CTA of the SM can allocate while this one works: until a CTA gives "
            "it back, any other that wants columns waits, however many are free"
        )
    return (
        "given back only when the CTA is done: until then every other CTA of its SM waits at tcgen05.alloc, so that "
        "CTAs of an SM run one after the other"
    )


def _group_wait(row: Row, block: Block) -> str | None:
    if _one(row).op != "wait_group":
        return None
    left, right = _facts(row.left).get("waits for"), _facts(row.right).get("waits for")
    if row.mark is Mark.MOVED and block.name == EPILOGUE and left == right:
        return (
            "right after the store, every tile waits for it; before the staging buffer is written again, the store "
            "runs beside the next tile's main loop"
        )
    if (row.left is None or row.right is None) and block.name in (EPILOGUE, TEARDOWN):
        side = left or right
        if side == "writes":
            return "without .read it waits for the writes to global memory too, not only until shared memory is read"
        return (
            "with .read it waits until shared memory has been read; the writes to global memory may still be under way"
        )
    if left != right:
        return "with .read it waits until shared memory has been read, without it until global memory is written"
    return None


def _meetings(row: Row, block: Block) -> str | None:
    event = _one(row)
    if event.op != "meet":
        return None
    if row.mark is Mark.MOVED and block.name == EPILOGUE:
        return (
            "before the tcgen05.ld it lets the others wait for the thread that waited for the MMAs; after it, it keeps "
            "the next MMA off columns that are still read"
        )
    if row.left is None or row.right is None:
        if block.name == EPILOGUE:
            return "all threads wait for the thread that waits for the store, then once more before the next tile"
        if block.name == TEARDOWN:
            return "keeps the columns until every thread is here; an earlier barrier may have done that"
        return None
    if _facts(row.left).get("threads") == _facts(row.right).get("threads"):
        return "another of the 16 named barriers; 0 is __syncthreads()"
    return None


def _tmem_loads(row: Row, block: Block) -> str | None:
    if _one(row).op in ("TMEM load", "TMEM wait", "store") and block.name == EPILOGUE:
        widths = {
            fact
            for r in block.rows
            for event in (r.left, r.right)
            if event and event.op == "TMEM load"
            for name, fact in event.facts
            if name == "shape"
        }
        if len(widths) > 1:
            return "narrower loads, one store box at a time, hold fewer registers at once"
    return None


def _store_boxes(row: Row, _: Block) -> str | None:
    if _one(row).op != "TMA store" or row.left is None or row.right is None:
        return None
    if row.left.count != row.right.count and _facts(row.left) == _facts(row.right):
        return (
            "a store for each swizzle atom of columns, or one through a map of rank 3 that folds them into a "
            "dimension: right only where N is a whole number of atoms, since columns past N land in the next row"
        )
    return None


def _load_boxes(row: Row, _: Block) -> str | None:
    if _one(row).op != "TMA load" or row.left is None or row.right is None:
        return None
    if row.left.count != row.right.count and _facts(row.left) == _facts(row.right):
        return (
            "a load for each swizzle atom of K, or one through a map of rank 3: the bytes and their places are the same"
        )
    return None


def _other_stage(row: Row, block: Block) -> str | None:
    """Nothing but what varies from step to step differs."""
    if row.left is None or row.right is None or row.left.kind != row.right.kind or block.name == EPILOGUE:
        return None
    mine, theirs = dict(row.left.varying), dict(row.right.varying)
    names = [name for name in mine if mine[name] != theirs.get(name)]
    if names and row.mark is Mark.CHANGED:
        return f"a ring of another depth: another {', '.join(names)}"
    return None


def _ahead(row: Row, block: Block) -> str | None:
    """Loads that one side has where the other has none."""
    if _one(row).key not in LOADS or (row.left is not None and row.right is not None):
        return None
    return (
        "a ring of more stages is filled further ahead" if block.name == FILL else "a ring of fewer stages loads later"
    )


def _inits(row: Row, _: Block) -> str | None:
    if _one(row).op == "init" and row.mark is Mark.CHANGED:
        return "a full barrier for each stage of the ring"
    return None


def _elsewhere(row: Row, _: Block) -> str | None:
    return "the same step, at another place among those around it" if row.mark is Mark.MOVED else None


def _who(row: Row, _: Block) -> str | None:
    if row.mark is Mark.CHANGED and row.left is not None and row.right is not None and row.left.who != row.right.who:
        return "other threads do it"
    return None


_RULES: Sequence[Rule] = (
    _expect_order,
    _waits,
    _tcgen05_fences,
    _proxy_fence,
    _init_fence,
    _prefetch,
    _columns,
    _permit,
    _group_wait,
    _meetings,
    _tmem_loads,
    _store_boxes,
    _load_boxes,
    _inits,
    _ahead,
    _other_stage,
    _who,
    _elsewhere,
)
