# SPDX-License-Identifier: Apache-2.0
"""The completion of `timed`: operations complete when their time has come."""

from __future__ import annotations

from tmagen.emu.state.engine import Deferred, Engine, Operation


def _end(operation: Operation) -> tuple[int, int]:
    return operation.ends, operation.serial


class Timed(Deferred):
    """Operations complete in the order of their ends."""

    def choose(self) -> Operation:
        return min(self.pending, key=_end)

    def foremost(self, engines: list[Engine]) -> Engine:
        return min(engines, key=lambda engine: min(map(_end, engine.pending)))

    def drain_stores(self) -> None:
        for operation in sorted(self.pending, key=_end):
            if operation in self.pending:
                self.complete(operation)
