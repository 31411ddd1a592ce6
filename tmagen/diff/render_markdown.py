# SPDX-License-Identifier: Apache-2.0
"""A document as Markdown."""

from __future__ import annotations

import re

from tmagen.diff.document import Document, Heading, Items, Paragraph, Part, Table


def render_markdown(document: Document) -> str:
    """GitHub's Markdown, with tables."""
    parts = "\n\n".join(_part(part) for part in document.parts)
    return f"# {_text(document.title)}\n\n{parts}\n"


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {_text(part.text)}"
    if isinstance(part, Paragraph):
        return _text(part.text)
    if isinstance(part, Items):
        return "\n".join(f"- {_text(text)}" for text in part.texts)
    return _table(part)


def _table(table: Table) -> str:
    noted = "why" in table.heads
    rows = ["| " + " | ".join(_cell(head) for head in table.heads) + " |", "|" + "---|" * len(table.heads)]
    marked = any(line.mark for line in table.lines)
    for line in table.lines:
        cells = [*([f"`{line.mark}`" if line.mark else ""] if marked else []), *map(_cell, line.cells)]
        rows.append("| " + " | ".join([*cells, *([_cell(line.note)] if noted else [])]) + " |")
    return "\n".join(rows)


def _text(text: str) -> str:
    """What GitHub's Markdown would take for markup, escaped; underscores inside words and lone brackets are none."""
    return re.sub(r"([\\`*<]|\b_\b|\](?=\())", r"\\\1", text)


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|").replace("\n", " ")
