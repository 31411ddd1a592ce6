# SPDX-License-Identifier: Apache-2.0
"""Changes of PTX text, each of one instruction that is found by a pattern and a number."""

from __future__ import annotations

import re
from collections.abc import Callable

Edit = Callable[[str], str]


def _matches(lines: list[str], pattern: str) -> list[int]:
    found = [
        i for i, line in enumerate(lines) if re.search(pattern, line) and not line.lstrip().startswith(("//", "."))
    ]
    if not found:
        raise ValueError(f"no instruction matches {pattern!r}")
    return found


def _chosen(lines: list[str], pattern: str, number: int | None) -> list[int]:
    found = _matches(lines, pattern)
    return found if number is None else [found[number]]


def drop(pattern: str, number: int | None = None) -> Edit:
    """Leave out all instructions that match, or the one of this number."""
    return replace(pattern, "", number)


def replace(pattern: str, new: str, number: int | None = None) -> Edit:
    """Put `new` in the place of the instruction; `new` may refer to the pattern's groups."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        for i in _chosen(lines, pattern, number):
            match = re.search(pattern, lines[i])
            assert match is not None
            lines[i] = match.expand(new)
        return "\n".join(lines)

    return edit


def substitute(pattern: str, new: str, number: int | None = None) -> Edit:
    """Replace the matching part of the instruction alone."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        for i in _chosen(lines, pattern, number):
            lines[i] = re.sub(pattern, new, lines[i], count=1)
        return "\n".join(lines)

    return edit


def move(pattern: str, number: int, before: str, other: int) -> Edit:
    """Take the instruction out and put it before another, each with the inline assembly that it is of."""
    return _move(pattern, number, before, other, after=False)


def delay(pattern: str, number: int, after: str, other: int) -> Edit:
    """The same, and put it after another."""
    return _move(pattern, number, after, other, after=True)


def _move(pattern: str, number: int, where: str, other: int, *, after: bool) -> Edit:
    def edit(text: str) -> str:
        lines = text.split("\n")
        first, last = _scope(lines, _matches(lines, pattern)[number])
        target, end = _scope(lines, _matches(lines, where)[other])
        target = end + 1 if after else target
        moved = lines[first : last + 1]
        rest = lines[:first] + lines[last + 1 :]
        at = target if target < first else target - len(moved)
        return "\n".join(rest[:at] + moved + rest[at:])

    return edit


def _scope(lines: list[str], at: int) -> tuple[int, int]:
    """The first and last line of the inline assembly around a line; the line alone where there is none."""
    first = at
    while first and "inline asm" not in lines[first]:
        first -= 1
    if "begin inline asm" not in lines[first]:
        return at, at
    last = at
    while "end inline asm" not in lines[last]:
        last += 1
    return first, last


def add(text_of: str, before: str, number: int) -> Edit:
    """Put new text before an instruction."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        lines.insert(_matches(lines, before)[number], text_of)
        return "\n".join(lines)

    return edit


def pass_wait(number: int) -> Edit:
    """A try_wait that is always true."""
    return replace(r"mbarrier\.try_wait\.\S+ (%?\w+), .*", r"setp.eq.u32 \1, 0, 0;", number)


def both(*edits: Edit) -> Edit:
    """One after another."""

    def edit(text: str) -> str:
        for each in edits:
            text = each(text)
        return text

    return edit


def pass_wait_on(register: str) -> Edit:
    """Every try_wait on the barrier whose address the register holds is always true."""
    return replace(rf"mbarrier\.try_wait\.\S+ (%?\w+), \[{register}\], .*", r"setp.eq.u32 \1, 0, 0;")


def unchanged(text: str) -> str:
    """No change of the kernel: the launch is what is broken."""
    return text
