# SPDX-License-Identifier: Apache-2.0
"""Values that PTX leaves open and that a kernel may not count on: the elected lane, where tensor memory begins, which
clusters can be taken over.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tmagen.emu.tmem import COLUMNS

# --- elect.sync: (membermask, seed) -> lane. Deterministic, and otherwise left open (PTX ISA, "elect.sync"). ----------

Leader = Callable[[int, int], int]


def lowest(mask: int, seed: int) -> int:
    """As an H200 does, and as CUTLASS asserts."""
    return (mask & -mask).bit_length() - 1


def highest(mask: int, seed: int) -> int:
    return mask.bit_length() - 1


def another(mask: int, seed: int) -> int:
    """Any but the lowest, where there are several; the same one throughout a run."""
    first = lowest(mask, seed)
    others = [lane for lane in range(first + 1, 32) if mask >> lane & 1]
    return random.Random(f"{seed} {mask} leader").choice(others) if others else first


# --- tcgen05.alloc: (seed, cluster) -> where columns begin that a CTA's first allocation can have, by their number. ---
# Another CTA of the SM may have come first. The CTAs of a cluster agree, since pairs allocate as one.

TensorMemory = Callable[[int, int], Callable[[int], int] | None]


def from_the_first(seed: int, cluster: int) -> None:
    """Nobody has come first."""


def after_another(seed: int, cluster: int) -> Callable[[int], int]:
    return lambda columns: columns


def at_the_end(seed: int, cluster: int) -> Callable[[int], int]:
    return lambda columns: COLUMNS - columns


def anywhere(seed: int, cluster: int) -> Callable[[int], int]:
    """At any multiple of the number of columns but 0."""
    generator = random.Random(f"{seed} {cluster} tensor memory")
    return lambda columns: columns * generator.randrange(1, COLUMNS // columns)


# --- clusterlaunchcontrol.try_cancel: (draw, how often one has asked, clusters left) -> which of them, or None. -------
# A request may fail at any time, and nothing says which cluster is given (PTX ISA, "clusterlaunchcontrol.try_cancel").

Clusters = Callable[[random.Random, int, int], int | None]


def all_given(draw: random.Random, asked: int, left: int) -> int | None:
    """The next one, as long as there are any."""
    return 0


def none_given(draw: random.Random, asked: int, left: int) -> int | None:
    return None


def every_other(draw: random.Random, asked: int, left: int) -> int | None:
    return 0 if asked % 2 else None


def at_random(draw: random.Random, asked: int, left: int) -> int | None:
    """Refused one time in four; else any of those that are left."""
    return None if draw.random() < 0.25 else draw.randrange(left)
