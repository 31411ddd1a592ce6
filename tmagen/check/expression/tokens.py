# SPDX-License-Identifier: Apache-2.0
"""Expression text as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tmagen.errors import Diagnostic, TmagenError

MAX_CHARACTERS = 4096
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.(?!T\b)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>==|~=|\.T\b|[-+*/@()\[\],:]))",
    re.ASCII,
)


class ExpressionError(TmagenError):
    """Text that is no expectation, or one that does not fit the buffers. `column` counts from 0."""

    def __init__(self, message: str, text: str, column: int) -> None:
        super().__init__(message)
        self.message, self.text, self.column = message, text, column

    def diagnostic(self, prefix: str = "") -> Diagnostic:
        """The message, with the text and a mark under the place."""
        # A window around the place, so that a long text stays readable.
        start = max(0, self.column - 60)
        window = self.text[start : start + 100].replace("\n", " ").replace("\t", " ")
        mark = f"{' ' * (self.column - start)}^"
        return Diagnostic(f"{prefix}{self.message} (column {self.column + 1})", detail=(window, mark))

    def report(self) -> str:
        return str(self.diagnostic())


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is "number", "name", "mark" or "end"."""

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return f"'{self.text}'" if self.kind != "end" else "the end"


def tokens_of(text: str) -> list[Token]:
    """The tokens, with one of kind "end" last. Raises ExpressionError for a character that begins none."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"an expectation has at most {MAX_CHARACTERS:,} characters", text, 0)
    found: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise ExpressionError(f"expected a name, a number or an operator, not {text[at]!r}", text, at)
        kind = match.lastgroup or ""
        found.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, Token("end", "", len(text))]
