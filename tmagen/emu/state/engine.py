# SPDX-License-Identifier: Apache-2.0
"""When asynchronous operations take effect.

PTX leaves open when a copy, an MMA or a commit completes; only waits bound it. Each policy is one choice that a correct
kernel has to survive: `eager` completes at issue, `lazy` when nobody can run any more, first in first out, `newest-
first` likewise but tensor work first and then the newest copy, `random` at random moments in random order. An
operation's reads and writes happen at its completion. Tensor operations of one thread complete in the order of issue
(PTX ISA, "tcgen05 memory consistency": pipelined instructions). What else a kernel may not rely on goes with the
policy: where tensor memory starts and which lane is elected (`Context` in `state/cta.py`).
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from tmagen.emu.errors import EmulatorError
from tmagen.emu.state.convergence import Fragment

COPY, STORE, TENSOR, ASYNC = "copy", "store", "tensor", "async"
POLICIES = ("eager", "lazy", "newest-first", "random")


_serials = itertools.count()


class Operation:
    """One outstanding operation. `line` is the line of generated code that issued it, for reports."""

    __slots__ = ("done", "kind", "line", "owner", "run", "serial")

    def __init__(self, kind: str, owner: tuple[int, int], run: Callable[[], None], line: int) -> None:
        self.kind = kind
        self.owner = owner
        self.run = run
        self.line = line
        self.done = False
        self.serial = next(_serials)


class Engine:
    """The eager engine: everything happens at issue."""

    pending: list[Operation]

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.pending = []

    def issue(self, fragment: Fragment, lane: int, kind: str, run: Callable[[], None]) -> Operation | None:
        """Start an operation of a lane. None: it is complete already."""
        run()
        return None

    def step(self) -> bool:
        """Nobody can run: complete something. False where nothing is outstanding."""
        return False

    def foremost(self, engines: list[Engine]) -> Engine:
        """Of the engines of a cluster that have something outstanding, the one to complete it."""
        return min(engines, key=lambda engine: engine.pending[0].serial)

    def tick(self) -> None:
        """A warp is about to run."""

    def order(self, queue: deque[Any]) -> None:
        """A round begins: put the warps that can run in order."""

    def drain_stores(self) -> None:
        """The CTA has ended: its stores to global memory land."""


class Deferred(Engine):
    """Engines that complete later. `choose` is the policy."""

    def issue(self, fragment: Fragment, lane: int, kind: str, run: Callable[[], None]) -> Operation | None:
        operation = Operation(kind, (fragment.warp.index, lane), run, sys._getframe(2 + self.cta.frames).f_lineno)
        self.pending.append(operation)
        return operation

    def step(self) -> bool:
        if not self.pending:
            return False
        self.complete(self.choose())
        return True

    def complete(self, operation: Operation) -> None:
        self.pending.remove(operation)
        operation.done = True
        try:
            operation.run()
        except EmulatorError as error:
            self.cta.blame(error, operation.line)
            raise
        if operation.kind in (STORE, ASYNC):
            self.cta.store_done()

    def choose(self) -> Operation:
        return self.pending[0]

    def eligible(self) -> list[Operation]:
        """Operations that may complete next: tensor operations only in their thread's order."""
        seen: set[tuple[int, int]] = set()
        found = []
        for operation in self.pending:
            if operation.kind == TENSOR:
                if operation.owner in seen:
                    continue
                seen.add(operation.owner)
            found.append(operation)
        return found

    def drain_stores(self) -> None:
        for operation in [o for o in self.pending if o.kind == STORE]:
            self.complete(operation)


class NewestFirst(Deferred):
    def foremost(self, engines: list[Engine]) -> Engine:
        return max(engines, key=lambda engine: engine.pending[-1].serial)

    def order(self, queue: deque[Any]) -> None:
        queue.reverse()

    def choose(self) -> Operation:
        for operation in self.pending:
            if operation.kind == TENSOR:
                return operation
        return self.pending[-1]


class Random(Deferred):
    def __init__(self, cta: Any) -> None:
        super().__init__(cta)
        self.random = random.Random(f"{cta.launch.seed} {cta.ctaid}")

    def foremost(self, engines: list[Engine]) -> Engine:
        return self.random.choice(engines)

    def choose(self) -> Operation:
        return self.random.choice(self.eligible())

    def order(self, queue: deque[Any]) -> None:
        warps = list(queue)
        self.random.shuffle(warps)
        queue.clear()
        queue.extend(warps)

    def tick(self) -> None:
        while self.pending and self.random.random() < 0.25:
            self.complete(self.choose())


_ENGINES: dict[str, type[Engine]] = {"eager": Engine, "lazy": Deferred, "newest-first": NewestFirst, "random": Random}


def make_engine(policy: str, cta: Any) -> Engine:
    return _ENGINES[policy](cta)
