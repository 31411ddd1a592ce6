# SPDX-License-Identifier: Apache-2.0
"""Tables as plain text, for a pipe, or as rich ones, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Table = tuple[tuple[str, ...], ...]
"""Rows of cells, the heads first; every row has as many."""


def plain_table(rows: Table, indent: str = "  ") -> str:
    """Aligned columns, a line for each row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def rich_table(rows: Table) -> RichTable:
    """The same for a terminal, folded to its width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    heads, *body = rows
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in body:
        table.add_row(*map(Text, row))
    return table
