# SPDX-License-Identifier: Apache-2.0
"""Documents as text, Markdown and HTML."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest

from tmagen.diff.document import Document, Heading, Items, Line, Paragraph, Table
from tmagen.diff.render_html import render_html
from tmagen.diff.render_markdown import render_markdown
from tmagen.diff.render_text import render_text

DOCUMENT = Document(
    "a<b> against [bold]b[/bold]",
    (
        Heading(2, "What & why"),
        Paragraph("x < y | z"),
        Items(("one <script>", "two")),
        Table(("", "left", "right", "why"), (Line("~", ("full[0]", "a|b"), "because"), Line("=", ("same", "")))),
    ),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_takes_nothing_for_markup_and_has_no_colour() -> None:
    text = render_text(DOCUMENT)
    assert "[bold]b[/bold]" in text
    assert "full[0]" in text
    assert "because" in text
    assert "\x1b" not in text


def test_a_terminal_gets_colour(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in render_text(DOCUMENT, Terminal())


def test_no_color_is_heeded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    codes = re.findall(r"\x1b\[([\d;]*)m", render_text(DOCUMENT, Terminal()))
    assert not any(3 <= int(code) // 10 <= 4 for group in codes for code in group.split(";") if code)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("COLUMNS", str(width))
    long = Document(
        "t", (Paragraph("word " * 80), Table(("", "a", "b", "why"), (Line("~", ("x" * 90, "y " * 90), "z " * 99),)))
    )
    for document in (DOCUMENT, long):
        plain = re.sub(r"\x1b\[[\d;]*m", "", render_text(document, Terminal()))
        assert max(map(len, plain.splitlines())) <= width


def test_markdown_keeps_its_tables() -> None:
    text = render_markdown(DOCUMENT)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "|  | left | right | why |"
    assert rows[2] == "| `~` | full[0] | a\\|b | because |"
    assert "\\<script>" in text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_one_escaped_file() -> None:
    text = render_html(DOCUMENT)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in tags.seen and "b" not in tags.seen and "link" not in tags.seen
    assert tags.links == [f"#{name}" for name in tags.ids]  # nothing from outside
    assert "a&lt;b&gt;" in text and "one &lt;script&gt;" in text
