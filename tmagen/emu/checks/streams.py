# SPDX-License-Identifier: Apache-2.0
"""Asynchronous operations that end in the order in which their thread issues them."""

from __future__ import annotations

from typing import Any

from tmagen.emu.checks.shadow import Access, Footprint


class Stream:
    """Asynchronous operations of one thread that end in order: `count` were issued, `committed` are the counts at the
    ends of groups that are not waited for.
    """

    __slots__ = (
        "accumulator", "address", "collected", "committed", "complete", "count", "last", "read", "shape", "version",
    )  # fmt: skip

    def __init__(self, read: int, complete: int) -> None:
        self.read = read  # component: sources have been read
        self.complete = complete  # component: everything is done
        self.count = 0
        self.committed: list[int] = []
        # The last MMA's D, its access, and the version of tensor memory then.
        self.accumulator: Footprint | None = None
        self.last: Access | None = None
        self.shape: tuple[str, int, int] | None = None  # of the last MMA, and where its D is
        self.address = -1
        self.version = -1
        self.collected: Any = None  # the A in the collector buffer
