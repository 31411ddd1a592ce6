# SPDX-License-Identifier: Apache-2.0
"""When asynchronous operations take effect.

PTX leaves open when a copy, an MMA or a commit completes; only waits bound it. An engine is one choice that a correct
kernel has to survive: `Engine` completes at issue, `Deferred` when nobody can run any more, first in first out,
`NewestFirst` likewise but tensor work first and then the newest copy, `Random` at random moments in random order. An
operation's reads and writes happen at its completion. Tensor operations of one thread complete in the order of issue
(PTX ISA, "tcgen05 memory consistency": pipelined instructions). Other engines, and what else a run may choose, are in
`tmagen/emu/policy`.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from typing import Any

from tmagen.emu.errors import EmulatorError
from tmagen.emu.state.fragments import CONSUMER, MIDDLE, PRODUCER, Fragment, Warp

COPY, STORE, TENSOR, ASYNC = "copy", "store", "tensor", "async"


_serials = itertools.count()


class Operation:
    """One outstanding operation. `line` is the line of generated code that issued it, for reports; `is_read` says that
    its source is not needed any more, which is true of whatever is `done`. In an observed run `seen` is what the
    observer keeps of it, and in a timed one `ends` the cycle at which it completes.
    """

    __slots__ = ("done", "ends", "is_read", "kind", "line", "owner", "run", "seen", "serial")

    def __init__(self, kind: str, owner: tuple[int, int], run: Callable[[], None], line: int) -> None:
        self.kind = kind
        self.owner = owner
        self.run = run
        self.line = line
        self.done = False
        self.is_read = False
        self.ends = 0
        self.seen: Any = None
        self.serial = next(_serials)


class Engine:
    """The eager engine: everything happens at issue."""

    pending: list[Operation]

    def __init__(self, cta: Any) -> None:
        self.cta = cta
        self.pending = []

    def issue(self, fragment: Fragment, lane: int, kind: str, run: Callable[[], None]) -> Operation | None:
        """Start an operation of a lane. None: it is complete already."""
        observer = self.cta.observer
        if observer is None:
            run()
        else:
            observer.at_once(self.cta, fragment, lane, kind, run)
        return None

    def step(self) -> bool:
        """Nobody can run: complete something. False where nothing is outstanding."""
        return False

    def foremost(self, engines: list[Engine]) -> Engine:
        """Of the engines of a cluster that have something outstanding, the one to complete it."""
        return min(engines, key=lambda engine: engine.pending[0].serial)

    def tick(self) -> None:
        """A warp is about to run."""

    def drain_stores(self) -> None:
        """The CTA has ended: its stores to global memory land."""


def _note_role(warp: Warp, kind: str) -> None:
    if kind == COPY:
        warp.role = PRODUCER
    elif kind == TENSOR and warp.role == CONSUMER:
        warp.role = MIDDLE


class Prompt(Engine):
    """As the eager engine, for schedules that ask what the warps do."""

    def issue(self, fragment: Fragment, lane: int, kind: str, run: Callable[[], None]) -> Operation | None:
        _note_role(fragment.warp, kind)
        return super().issue(fragment, lane, kind, run)


class Deferred(Engine):
    """Engines that complete later. `choose` is the policy."""

    def issue(self, fragment: Fragment, lane: int, kind: str, run: Callable[[], None]) -> Operation | None:
        warp = fragment.warp
        _note_role(warp, kind)
        operation = Operation(kind, (warp.index, lane), run, sys._getframe(2 + self.cta.frames).f_lineno)
        self.starts(operation)
        self.pending.append(operation)
        observer = self.cta.observer
        if observer is not None:
            observer.issued(self.cta, fragment, lane, operation)
        return operation

    def starts(self, operation: Operation) -> None:
        """An operation is being issued."""

    def step(self) -> bool:
        if not self.pending:
            return False
        self.advance(self.choose())
        return True

    def advance(self, operation: Operation) -> None:
        """Take an operation one step further, by default to its end."""
        self.complete(operation)

    def complete(self, operation: Operation) -> None:
        """Take an operation to its end."""
        self.pending.remove(operation)
        operation.done = operation.is_read = True
        self.do(operation, operation.run)
        if operation.kind in (STORE, ASYNC):
            self.cta.store_done()

    def do(self, operation: Operation, part: Callable[[], None]) -> None:
        """Carry out a part of an operation. What is wrong with it is told of the instruction that issued it."""
        observer = self.cta.observer
        if observer is not None:
            observer.completes(self.cta, operation)
        try:
            part()
        except EmulatorError as error:
            self.cta.blame(error, operation.line)
            raise

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

    def tick(self) -> None:
        while self.pending and self.random.random() < 0.25:
            self.advance(self.choose())
