# SPDX-License-Identifier: Apache-2.0
"""A document as one HTML file that needs nothing else: no server, no script, no font."""

from __future__ import annotations

import re
from html import escape

from tmagen.diff.document import Document, Heading, Items, Line, Paragraph, Part, Table

CLASSES = {"=": "same", "~": "changed", "<": "left", ">": "right", "^": "moved", "": "plain"}

STYLE = """\
:root { color-scheme: light dark; --line: #8884; --dim: #777; }
:root { --changed: #a60; --left: #170; --right: #b20; --moved: #06a; }
@media (prefers-color-scheme: dark) {
  :root { --dim: #999; --changed: #fb4; --left: #7d6; --right: #f87; --moved: #6cf; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 96rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
nav a { margin-right: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
td { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
td.mark { font-weight: bold; }
td.note { font-family: system-ui, sans-serif; color: var(--dim); }
table.columns { table-layout: fixed; min-width: 48rem; }
table.columns th:first-child { width: 1.2rem; }
table.columns th:last-child { width: 28%; }
table.facts th:nth-child(2) { width: 20%; }
tr.same td { color: var(--dim); }
tr.changed td.mark { color: var(--changed); }
tr.left td { color: var(--left); }
tr.right td { color: var(--right); }
tr.moved td { color: var(--moved); }
tr td.note { color: var(--dim); }
"""


def render_html(document: Document) -> str:
    """The file."""
    sections = [part.text for part in document.parts if isinstance(part, Heading) and part.level == 2]
    links = " ".join(f'<a href="#{_anchor(text)}">{escape(text)}</a>' for text in sections)
    body = "\n".join(_part(part) for part in document.parts)
    title = escape(document.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<nav>{links}</nav>\n"
        f"{body}\n</body>\n</html>\n"
    )


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        anchor = f' id="{_anchor(part.text)}"' if part.level == 2 else ""
        return f"<h{part.level}{anchor}>{escape(part.text)}</h{part.level}>"
    if isinstance(part, Paragraph):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Items):
        return "<ul>\n" + "\n".join(f"<li>{escape(text)}</li>" for text in part.texts) + "\n</ul>"
    return _table(part)


def _table(table: Table) -> str:
    noted = "why" in table.heads
    marked = any(line.mark for line in table.lines)
    heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
    rows = "\n".join(_row(line, marked, noted) for line in table.lines)
    kind = f' class="columns{" facts" if len(table.heads) > 4 else ""}"' if noted else ""
    return (
        f'<div class="wide"><table{kind}>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'
    )


def _row(line: Line, marked: bool, noted: bool) -> str:
    mark = f'<td class="mark">{escape(line.mark)}</td>' if marked else ""
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in line.cells)
    note = f'<td class="note">{escape(line.note)}</td>' if noted else ""
    return f'<tr class="{CLASSES.get(line.mark, "plain")}">{mark}{cells}{note}</tr>'


def _anchor(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")
