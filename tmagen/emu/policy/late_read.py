# SPDX-License-Identifier: Apache-2.0
"""Loads write as early as they may, and everything else reads as late as it may."""

from __future__ import annotations

from functools import partial

from tmagen.emu.state.engine import COPY, STORE, TENSOR, Deferred, Engine, Operation
from tmagen.emu.state.transfer import Load, Store

_LAST = {COPY: 0, TENSOR: 1, STORE: 2}


class LateRead(Deferred):
    """The bytes of a load are there when it is issued; its mbarrier learns of them late. MMAs and stores read their
    operands when nobody can run any more, after every mbarrier that has something to learn, stores last of all; a store
    writes only when its source has been read, and somebody waits for more than that, or the CTA ends.
    """

    def starts(self, operation: Operation) -> None:
        run = operation.run
        if isinstance(run, Load):
            operation.run = partial(run.tell, run.move())

    def foremost(self, engines: list[Engine]) -> Engine:
        return min(engines, key=lambda engine: _order(engine.choose()))  # type: ignore[attr-defined]

    def choose(self) -> Operation:
        return min(self.pending, key=_order)

    def advance(self, operation: Operation) -> None:
        run = operation.run
        if not isinstance(run, Store):
            self.complete(operation)
            return
        self.do(operation, run.read)
        operation.run = run.land
        operation.is_read = True
        self.cta.store_done()


def _order(operation: Operation) -> tuple[int, bool, int]:
    return _LAST.get(operation.kind, 1), operation.is_read, operation.serial
