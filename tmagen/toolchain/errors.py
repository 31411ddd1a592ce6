# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with compilers, told with the compiler's own words."""

from __future__ import annotations

import re

from tmagen.errors import Diagnostic, TmagenError

_SHOWN_LINES = 40


class ToolchainError(TmagenError):
    """A compiler or disassembler is missing or unfit."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic

    def report(self) -> str:
        return str(self.diagnostic)


class CompileError(ToolchainError):
    """A compiler rejected its input; :attr:`output` is all that it said."""

    def __init__(self, message: str, output: str, hint: str | None = None) -> None:
        super().__init__(Diagnostic(message, detail=trim_output(output), hint=hint))
        self.output = output


def trim_output(output: str, shown: int = _SHOWN_LINES) -> tuple[str, ...]:
    """The lines of a compiler's output that tell why it failed: warnings go first where there are more than `shown`.

    Returns the lines in their order, with one line in place of those left out.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    if len(lines) <= shown:
        return tuple(lines)
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b|\bfatal\b|undefined reference", line)), 0)
    kept = lines[first : first + shown]
    before = [f"({first} lines before this)"] if first else []
    left = len(lines) - first - len(kept)
    return (*before, *kept, *([f"({left} more lines)"] if left else []))
