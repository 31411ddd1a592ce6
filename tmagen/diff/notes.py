# SPDX-License-Identifier: Apache-2.0
"""What a difference in a decision or a figure means, by the name of its row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tmagen.diff.facts import Fact, Group

_POLLS = (
    "one thread needs it, to issue what follows; the others meet it at the epilogue's barrier. Where all wait, every "
    "thread polls the barrier through the whole main loop"
)
_RING = "each stage of the ring takes the bytes of its tiles of A and B"
_NOTES: Sequence[tuple[str, str, str]] = (
    ("Launch", "launch bounds", "a least number of CTAs keeps ptxas from spilling registers to make room for more"),
    ("Launch", "dynamic shared memory, bytes", _RING),
    ("Shared memory", "bytes", _RING),
    ("Shared-memory descriptors", "[AB]: stage step, bytes", "with one stage there is no next one"),
    ("Who does what", "(loaded stages|MMAs) are waited for by", _POLLS),
    (
        "Tensor maps",
        "[AB]: maps",
        "loads before the loop and loads in it may be two calls of the script, a map for each",
    ),
    ("Tensor maps", "D: (strides|box|element strides).*", "follows from the rank: a dimension more, or less"),
    (
        "Shared memory",
        ".*(stage|staging|full|mma_done|barrier|TMEM address).*",
        "what comes first is free, as long as swizzled tiles start at a multiple of 1,024 bytes: tiles first, or "
        "barriers first and a gap up to 1,024",
    ),
    ("mbarriers", ".*", _POLLS),
    ("Tensor memory", "CTAs that an SM has columns for", "512 over what one CTA allocates"),
    (
        "Tensor memory",
        "TMEM address read.*",
        "kept in a register after one read, or read again from shared memory before each MMA and tcgen05.ld: a load of "
        "shared memory on the way to every one of them",
    ),
    ("Shared-memory descriptors", "[AB]: start", "where the tile lies, as under shared memory"),
    (
        "Shared-memory descriptors",
        ".*leading byte offset.*",
        "the hardware does not look at it where there is a swizzle",
    ),
    (
        "Tile order",
        "order|a CTA takes|.*tiles of CTA 0.*",
        "which tiles are computed at about the same time, and so which rows of A and B are still in L2",
    ),
    ("Resources", "named barriers.*", "the highest number in use decides: bar.sync 10 alone takes eleven"),
    ("Machine code", "ELECT", "one for each elect.sync, and one in each loop around a single instruction"),
    ("Machine code", "MMA instructions|TMA loads.*|tcgen05.commit.*", "once for each K tile of an unrolled loop"),
    ("Machine code", "TMA stores.*", "a store for each swizzle atom of columns, or one through a map of rank 3"),
    ("Source", "of them comments and blank", "what a reader is told besides the code, and what keeps it apart"),
    (
        "Source",
        ".*functions, types and constants.*",
        "the parts of the kernel under names of their own, and numbers as constants, rather than one function with all "
        "of it",
    ),
    ("Source", ".*directives and static_assert", "what the text checks about itself and about its compiler"),
)


def noted(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups, with a note at each difference that has none of its own and whose meaning is known."""
    return tuple(replace(group, facts=tuple(_noted(group.title, fact) for fact in group.facts)) for group in groups)


def _noted(title: str, fact: Fact) -> Fact:
    if not fact.differs or fact.note:
        return fact
    found = next(
        (note for of, name, note in _NOTES if title.startswith(of) and re.fullmatch(name, fact.name)),
        "",
    )
    return replace(fact, note=found)
