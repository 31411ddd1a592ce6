# SPDX-License-Identifier: Apache-2.0
"""The flags of a trace, the same for `verify` and `check`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tmagen.cli_output import check_can_write, say, write_text
from tmagen.errors import SpecError
from tmagen.flag_text import FlagReader, UnreadableError

if TYPE_CHECKING:
    from tmagen.emu import Tracing

F = TypeVar("F", bound=Callable[..., Any])
MAX_CTA = (1 << 31) - 1
_MOST_CTAS = 1024


def trace_options(function: F) -> F:
    """Adds --trace and --trace-ctas; the command receives `trace` and `trace_ctas`."""
    options = [
        click.option(
            "--trace",
            metavar="FILE",
            help="Write a trace for ui.perfetto.dev or chrome://tracing: of the first case to fail, else of the first.",
        ),
        click.option(
            "--trace-ctas",
            metavar="LIST",
            help="With --trace: which CTAs, by their place in the grid, x fastest, such as 0,5-7; the one in which a "
            "run breaks off is always there. A cluster keeps 200,000 slices.  [default: 0-3]",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def tracing_of(reader: FlagReader, trace: str | None, ctas: str | None) -> Tracing | None:
    """What the flags ask for; what is wrong with them goes to the reader."""
    from tmagen.emu import Tracing
    from tmagen.errors import Diagnostic

    chosen = reader.read("trace-ctas", ctas, _cta_list)
    if trace is None:
        if ctas is not None:
            reader.diagnostics.append(Diagnostic("--trace-ctas is for --trace, which is not given"))
        return None
    if trace == "-":
        reader.diagnostics.append(Diagnostic("--trace takes a file: stdout has the report", hint="--trace trace.json"))
        return None
    try:
        check_can_write(trace)
    except SpecError as error:
        reader.diagnostics.extend(error.diagnostics)
    return Tracing() if chosen is None else Tracing(chosen)


@contextmanager
def traced(tracing: Tracing | None, path: str | None, *, quiet: bool) -> Iterator[None]:
    """Writes the trace when the runs are over, however they end."""
    try:
        yield
    finally:
        text = None if tracing is None else tracing.text()
        if tracing is not None and path is not None and text is not None:
            write_text(path, text)
            if not quiet:
                say(f"trace of {tracing.label}: {path} (open it at ui.perfetto.dev)")


def _cta_list(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise UnreadableError("it takes numbers and ranges such as 0,5-7")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last > MAX_CTA or last - first >= _MOST_CTAS:
            raise UnreadableError(f"a range goes up, to {MAX_CTA:,} at most, over {_MOST_CTAS:,} CTAs at most")
        found.update(range(first, last + 1))
    return frozenset(found)
