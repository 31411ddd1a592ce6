# SPDX-License-Identifier: Apache-2.0
"""What a check found, and the collector that counts repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tmagen.emu.checks.registry import find
from tmagen.emu.checks.sites import Site
from tmagen.emu.module import Instruction
from tmagen.emu.report import calls_text

HINT = "H"
"""The level of what is said beside a wrong result alone."""

_WORDS = {"E": "error", "W": "warning", "R": "warning", HINT: "hint"}


@dataclass(frozen=True)
class Place:
    """An instruction and who executed it: "CTA (0, 0, 0) warp 1 lane 0". `calls` says through which functions the line
    was reached: " in load, called at line 80".
    """

    instruction: str
    ptx_line: int
    source: tuple[str, int] | None
    where: str
    calls: str = ""

    def text(self) -> str:
        """The place on one line."""
        source = "" if self.source is None else f"{self.source[0]}:{self.source[1]}{self.calls}, "
        return f"{source}PTX line {self.ptx_line}, {self.where}: {self.instruction}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        source = None if self.source is None else {"file": self.source[0], "line": self.source[1]}
        return {"instruction": self.instruction, "ptx_line": self.ptx_line, "source": source, "where": self.where}


@dataclass(frozen=True)
class Finding:
    """One broken rule. `level` is E (undefined behaviour that hardware can show), W (a formal rule that shipping code
    leaves out) or R (right or not by what one run cannot show).

    For a race `other` is the access before it, `memory` the bytes that both touch, `edge` what would have ordered them.
    `count` is how often the same pair of instructions was found.
    """

    rule: str
    level: str
    message: str
    place: Place
    other: Place | None = None
    memory: str | None = None
    edge: str | None = None
    hints: tuple[str, ...] = ()
    count: int = 1

    @property
    def severity(self) -> str:
        """ "error" or "warning"."""
        return _WORDS[self.level]

    @property
    def title(self) -> str:
        """What the rule is about."""
        check = find(self.rule)
        return check.title if check else self.rule

    @property
    def instruction(self) -> str:
        return self.place.instruction

    @property
    def ptx_line(self) -> int:
        return self.place.ptx_line

    @property
    def source(self) -> tuple[str, int] | None:
        return self.place.source

    @property
    def where(self) -> str:
        return self.place.where

    @property
    def calls(self) -> str:
        return self.place.calls

    @property
    def detail(self) -> tuple[str, ...]:
        """The lines under the message."""
        lines = []
        if self.other is not None:
            lines.append(f"before: {self.other.text()}")
        if self.memory is not None:
            lines.append(f"bytes: {self.memory}")
        if self.edge is not None:
            lines.append(f"missing: {self.edge}")
        return (*lines, *self.hints)

    def lines(self) -> tuple[str, ...]:
        """The finding for people."""
        head = f"{self.rule} {self.severity}: {self.message}"
        times = () if self.count == 1 else (f"  {self.count:,} times",)
        return (head, f"  at: {self.place.text()}", *(f"  {line}" for line in self.detail), *times)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "rule": self.rule,
            "level": self.level,
            "title": self.title,
            "message": self.message,
            "place": self.place.to_dict(),
            "before": None if self.other is None else self.other.to_dict(),
            "bytes": self.memory,
            "missing": self.edge,
            "hints": list(self.hints),
            "count": self.count,
        }


def place_of(instruction: Instruction, where: str) -> Place:
    source = instruction.source
    text = _VECTOR.sub(_shortened, instruction.text)
    return Place(text, instruction.line, source.place if source else None, where, calls_text(source) if source else "")


_VECTOR = re.compile(r"\{([^{}]*)\}")
_MOST_ITEMS = 8


def _shortened(match: re.Match[str]) -> str:
    """A vector of registers, without those between its first and its last where there are many."""
    items = [item.strip() for item in match[1].split(",")]
    return match[0] if len(items) <= _MOST_ITEMS else f"{{{items[0]}, ..., {items[-1]}}}"


class Collector:
    """Findings of a run, once per rule and pair of instructions. W and R only where `strict`."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._found: dict[tuple[str, str, int, int], Finding] = {}
        self._counts: dict[tuple[str, str, int, int], int] = {}

    def wants(self, level: str) -> bool:
        return level in ("E", HINT) or self.strict

    @property
    def doubt(self) -> str:
        """The level of what is told beside a wrong result, and wherever rules are strict."""
        return "R" if self.strict else HINT

    def seen(self, rule: str, level: str, site: Site, other: Site | None) -> bool:
        """Count a repetition; False for a finding that is new."""
        key = (rule, level, site.number, -1 if other is None else other.number)
        if key not in self._counts:
            return False
        self._counts[key] += 1
        return True

    def add(self, finding: Finding, site: Site, other: Site | None) -> None:
        key = (finding.rule, finding.level, site.number, -1 if other is None else other.number)
        if self._counts.setdefault(key, 0) == 0:
            self._found[key] = finding
        self._counts[key] += finding.count

    def findings(self) -> tuple[Finding, ...]:
        return tuple(replace(finding, count=self._counts[key]) for key, finding in self._found.items())


def merged(groups: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    """The findings of several processes as those of one."""
    found: dict[tuple[object, ...], Finding] = {}
    for group in groups:
        for one in group:
            other = one.other
            key = (
                one.rule, one.level, one.place.ptx_line, one.place.instruction,
                other and (other.ptx_line, other.instruction),
            )  # fmt: skip
            known = found.get(key)
            found[key] = one if known is None else replace(known, count=known.count + one.count)
    order = {"E": 0, "R": 1, "W": 2, HINT: 3}
    return tuple(sorted(found.values(), key=lambda finding: order[finding.level]))


def hints_apart(findings: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """(what is broken, what is only said beside a wrong result)."""
    every = tuple(findings)
    return tuple(f for f in every if f.level != HINT), tuple(f for f in every if f.level == HINT)
