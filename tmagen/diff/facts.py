# SPDX-License-Identifier: Apache-2.0
"""Facts of both sides in rows: one value each, whether they differ, and why where that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing, on each side. `note` says what the difference means; it is empty where the sides agree."""

    name: str
    left: str
    right: str
    note: str = ""

    @property
    def differs(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True)
class Group:
    """Facts about one subject."""

    title: str
    facts: tuple[Fact, ...]


def facts(*rows: tuple[object, ...]) -> tuple[Fact, ...]:
    """Rows of (name, left, right) or (name, left, right, what a difference means)."""
    return tuple(_fact(*row) for row in rows)


def _fact(name: object, left: object, right: object, note: object = "") -> Fact:
    mine, theirs = _text(left), _text(right)
    return Fact(str(name), mine, theirs, str(note) if mine != theirs else "")


def paired(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]], absent: str = "-") -> tuple[Fact, ...]:
    """Rows by name, in the order of the left and then of what the right has besides."""
    mine, theirs = dict(left), dict(right)
    return tuple(
        Fact(name, mine.get(name, absent), theirs.get(name, absent)) for name in dict.fromkeys([*mine, *theirs])
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None else str(value)
