# SPDX-License-Identifier: Apache-2.0
"""Which of many runs a trace is of: the first that fails, else the first."""

from __future__ import annotations

from collections.abc import Collection

from tmagen.emu.launch import Dim3
from tmagen.emu.observe import chrome
from tmagen.emu.observe.trace import FIRST_CTAS, Trace
from tmagen.errors import Diagnostic, SpecError


class Tracing:
    """Traces cases, each of one launch or more, and keeps one trace.

    Of a case that fails it is that of its last launch, in which it broke off; of another that of the first. `ctas` are
    by their place in the grid; those that are asked for must be in the first launch, which is usually the one traced.
    """

    def __init__(self, ctas: Collection[int] | None = None) -> None:
        self.ctas: Collection[int] = FIRST_CTAS if ctas is None else ctas
        self._asked = ctas is not None
        self._grid: Dim3 | None = None  # of the first launch of all
        self.label = ""
        self._kept: Trace | None = None
        self._failed = False
        self._case = ""
        self._first: Trace | None = None
        self._last: Trace | None = None

    def begin(self, label: str) -> None:
        """A case begins."""
        self._case, self._first, self._last = label, None, None

    def require(self, grid: Dim3) -> None:
        """A launch of `grid` is next. Raises SpecError where it is the first, and lacks CTAs that are asked for."""
        if self._grid is not None:
            return
        self._grid = grid
        count = grid[0] * grid[1] * grid[2]
        missing = [cta for cta in self.ctas if cta >= count]
        if self._asked and missing:
            raise SpecError(Diagnostic(f"there is no CTA {min(missing):,}: the grid has {count:,}, counted from 0"))

    def trace(self) -> Trace:
        """For the case's next launch."""
        self._last = Trace(ctas=self.ctas)
        if self._first is None:
            self._first = self._last
        return self._last

    def end(self, *, failed: bool) -> None:
        """The case has its verdict."""
        if self._first is not None and (self._kept is None or (failed and not self._failed)):
            self._kept, self.label, self._failed = self._last if failed else self._first, self._case, failed
        self._first = self._last = None

    @property
    def kept(self) -> Trace | None:
        """What was kept or, where a case was cut short, its trace; None where nothing ran."""
        if self._last is not None and self._last.records and not self._failed:
            self.end(failed=True)
        return self._kept if self._kept is not None and self._kept.records else None

    def text(self) -> str | None:
        """The file of it; None where nothing ran."""
        kept = self.kept
        return None if kept is None else chrome.text(kept, case=self.label)
