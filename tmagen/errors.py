# SPDX-License-Identifier: Apache-2.0
"""What can go wrong because of a user's input, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


def printable(text: str) -> str:
    """``text`` for a terminal: what is no printable character, line breaks and tabs apart, becomes an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong: what, the figures behind it, and what to try instead.

    ``str()`` is the text that a user sees::

        error: pipeline.depth = 7 needs 263,168 bytes of shared memory; sm_100a allows 232,448 per block
          7 stages of A 128x64 f16 (16,384) + B 128x64 f16 (16,384) = 229,376; epilogue buffer 32,768; barriers 1,024
          try: --pipe-depth 6
    """

    message: str
    detail: tuple[str, ...] = ()
    hint: str | None = None

    def __str__(self) -> str:
        lines = [f"error: {self.message}", *(f"  {line}" for line in self.detail)]
        if self.hint is not None:
            lines.append(f"  try: {self.hint}")
        return printable("\n".join(lines))


class TmagenError(Exception):
    """Anything that a user can cause. The command line prints :meth:`report` and ends with :attr:`exit_code`."""

    exit_code: ClassVar[int] = 2

    def report(self) -> str:
        """The text for stderr, ``error:`` included."""
        return str(Diagnostic(str(self)))


class SpecError(TmagenError):
    """A specification that cannot be read or may not exist, with every diagnostic and not the first alone."""

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("a SpecError says at least one thing")
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return "\n".join(diagnostic.message for diagnostic in self.diagnostics)

    def report(self) -> str:
        return "\n".join(str(diagnostic) for diagnostic in self.diagnostics)
