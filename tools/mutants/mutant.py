# SPDX-License-Identifier: Apache-2.0
"""One row of the table: a change of a kernel, and what must tell of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tools.mutants.edits import Edit
from tools.mutants.outcome import Outcome

WRONG = "wrong values"
DEADLOCK = "deadlock"
ENDLESS = "never ends"


@dataclass(frozen=True)
class Mutant:
    """A changed kernel. One of `rules` must fire; without rules, the run must end as `ends` says.

    `kind` is a number of `KINDS`. `weak`: rules of severity W or R are enough, as the registry says for this case.
    `equivalent` says why a change breaks nothing: no rule of severity E may fire then, under any completion.
    """

    kind: int
    name: str
    base: str
    edit: Edit
    rules: tuple[str, ...] = ()
    ends: str = ""
    weak: bool = False
    equivalent: str = ""

    @property
    def expected(self) -> str:
        """What must tell of it, in a few words."""
        return ", ".join(self.rules) or self.ends or f"equivalent: {self.equivalent}"


def caught(mutant: Mutant, outcome: Outcome) -> bool:
    """Whether one outcome is what the row asks for."""
    if mutant.equivalent:
        return outcome.clean
    if mutant.rules:
        fired = outcome.errors | outcome.others if mutant.weak else outcome.errors
        return bool(fired & set(mutant.rules))
    if mutant.ends == WRONG:
        return outcome.wrong and not outcome.ended
    return outcome.ended.startswith(mutant.ends)


Row = tuple[int, str, Edit, tuple[str, ...] | str]


def table(base: str, rows: Iterable[Row]) -> tuple[Mutant, ...]:
    """Mutants of one base: (kind, name, edit, rules or how the run ends)."""
    return tuple(
        Mutant(kind, name, base, edit, ends=expected)
        if isinstance(expected, str)
        else Mutant(kind, name, base, edit, expected)
        for kind, name, edit, expected in rows
    )
