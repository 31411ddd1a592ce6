# SPDX-License-Identifier: Apache-2.0
"""Telling a waiting person how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tmagen.emu import table_for

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from tmagen.verify.report import CaseReport, Report

_QUIET_SECONDS = 2.0  # what ends sooner needs no bar


class Progress(Protocol):
    """What verify reports while it runs."""

    def built(self, report: Report) -> None:
        """The kernel is compiled; `report` has no cases yet."""

    def case_starts(self, label: str) -> None:
        """A case begins."""

    def step(self, done: int, total: int) -> None:
        """`done` of `total` CTAs of it have run."""

    def case_ends(self, case: CaseReport) -> None:
        """The case has its verdict."""

    def close(self) -> None:
        """Nothing follows."""


class NoProgress:
    """For scripts."""

    def built(self, report: Report) -> None:
        pass

    def case_starts(self, label: str) -> None:
        pass

    def step(self, done: int, total: int) -> None:
        pass

    def case_ends(self, case: CaseReport) -> None:
        pass

    def close(self) -> None:
        pass


class TerminalProgress:
    """A bar on stderr, once a case takes longer than two seconds and stderr is a terminal."""

    def __init__(self) -> None:
        self._label = ""
        self._started = 0.0
        self._bar: Bar | None = None
        self._shown = sys.stderr.isatty()

    def built(self, report: Report) -> None:
        pass

    def case_starts(self, label: str) -> None:
        self._label = label
        self._started = time.monotonic()

    def step(self, done: int, total: int) -> None:
        if not self._shown or time.monotonic() - self._started < _QUIET_SECONDS:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def case_ends(self, case: CaseReport) -> None:
        self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class StreamedText:
    """The report's text, written line by line as cases end, and a progress bar of what runs."""

    def __init__(self, write: Callable[[str], None], bar: Progress) -> None:
        from tmagen.verify.digest import Digest

        self._write = write
        self._bar = bar
        self._digest = Digest()
        self._target = ""
        self._timed = False

    def built(self, report: Report) -> None:
        self._target = report.target
        self._lines(report.heading())

    def case_starts(self, label: str) -> None:
        self._bar.case_starts(label)

    def step(self, done: int, total: int) -> None:
        self._bar.step(done, total)

    def case_ends(self, case: CaseReport) -> None:
        self._bar.case_ends(case)
        self._timed |= case.completion == "timed"
        self._lines(self._digest.add(case))

    def close(self) -> None:
        self._bar.close()

    def finish(self, report: Report) -> None:
        """Writes what comes after the last case."""
        model = table_for(self._target).text() if self._timed else ()
        self._lines((*self._digest.rest(), *model, report.summary()))

    def _lines(self, lines: tuple[str, ...]) -> None:
        for line in lines:
            self._write(line)
