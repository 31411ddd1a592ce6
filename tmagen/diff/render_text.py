# SPDX-License-Identifier: Apache-2.0
"""A document on a terminal."""

from __future__ import annotations

import io
import shutil
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tmagen.diff.document import Document, Heading, Items, Line, Paragraph, Table

PIPED_WIDTH = 160
STYLES = {"=": "dim", "~": "yellow", "<": "green", ">": "red", "^": "cyan", "": ""}


def render_text(document: Document, stream: TextIO | None = None) -> str:
    """The text; in colours, and as wide as the terminal, where `stream` is one."""
    terminal = stream is not None and stream.isatty()
    width = max(80, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns) if terminal else PIPED_WIDTH
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, color_system="auto" if terminal else None, highlight=False
    )
    console.print(Text(document.title, style="bold"))
    for part in document.parts:
        if isinstance(part, Heading):
            console.print()
            console.print(Text(part.text, style="bold underline" if part.level == 2 else "bold"))
        elif isinstance(part, Paragraph):
            console.print(Text(part.text))
        elif isinstance(part, Items):
            for text in part.texts:
                console.print(Padding(Text(f"- {text}"), (0, 0, 0, 2)))
        else:
            console.print(_table(part))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> RichTable:
    heads = [head for head in table.heads if head != "why"]
    found = RichTable(box=None, show_header=any(heads), pad_edge=False, padding=(0, 2, 0, 0), header_style="italic")
    marked = any(line.mark for line in table.lines)
    widest = 64 if len(heads) > 3 else None  # a fact's name, and what is said of it
    for position, head in enumerate(heads):
        limit = widest if marked and "why" in table.heads and position == 1 else None
        found.add_column(Text(head), overflow="fold", no_wrap=marked and position == 0, max_width=limit)
    for line in table.lines:
        found.add_row(*_cells(line, marked, len(heads)))
        if line.note:
            blank = [Text("")] * (len(heads) - 1)
            spot = 1 if marked else 0
            blank.insert(spot, Text(f"  {line.note}", style="italic dim"))
            found.add_row(*blank[: len(heads)])
    return found


def _cells(line: Line, marked: bool, count: int) -> list[Text]:
    style = STYLES.get(line.mark, "")
    cells = [line.mark, *line.cells] if marked else list(line.cells)
    return [Text(cell, style=style) for cell in [*cells, *[""] * count][:count]]
