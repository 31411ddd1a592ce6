# SPDX-License-Identifier: Apache-2.0
"""What is found wrong, by whatever looks: one type, one place where it is collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from tmagen.emu import EmulatorError


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"  # undefined behaviour or a wrong result: the check fails
    WARNING = "warning"  # the text of a rule is broken, and no harm is known; fails a strict check
    REVIEW = "review"  # right or wrong by what one run cannot show
    NOT_JUDGED = "not judged"  # something that is not modelled: nothing is claimed about the kernel


@dataclass(frozen=True, slots=True)
class Before:
    """An instruction that a finding is about beside its own: the access that a race is with, where it came first, or
    one that threads wait at. `ptx_line` and `source` are as in :class:`Finding`."""

    instruction: str
    ptx_line: int
    source: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where.

    `rule` is the identifier of :data:`tmagen.check.rules.RULES`. `ptx_line` counts from 1, `source` is the (file, line)
    of the nearest `.loc`, `where` says who did it ("CTA (0, 0, 0) warp 1 lane 0"), `key` names a place in the launch
    file, and `count` is how often the same was found.
    """

    rule: str
    severity: Severity
    message: str
    detail: tuple[str, ...] = ()
    ptx_line: int | None = None
    source: tuple[str, int] | None = None
    instruction: str | None = None
    where: str | None = None
    key: str | None = None
    count: int = 1
    calls: str = ""  # behind the source: through which functions the line was reached
    before: Before | None = None
    also: tuple[int, ...] = ()  # further PTX lines of the same source line, as of a loop that is unrolled
    waits: tuple[Before, ...] = ()  # of a deadlock, where threads wait

    def lines(self) -> tuple[str, ...]:
        """The finding for people."""
        lines = [f"{self.severity.value}: {self.message} [{self.rule}]"]
        if self.instruction is not None:
            lines.append(f"  instruction: {self.instruction}")
        place = [] if self.source is None else [f"{self.source[0]}:{self.source[1]}{self.calls}"]
        place += [] if self.ptx_line is None else [f"PTX line {self.ptx_line}"]
        place += [] if self.where is None else [self.where]
        if place:
            lines.append("  at " + ", ".join(place))
        lines += [f"  {line}" for line in self.detail]
        if self.also:
            shown = ", ".join(map(str, self.also[:_SHOWN_LINES]))
            more = f" and {len(self.also) - _SHOWN_LINES} more" if len(self.also) > _SHOWN_LINES else ""
            lines.append(f"  the same of PTX line{'s' if len(self.also) > 1 else ''} {shown}{more}")
        if self.count > 1:
            lines.append(f"  {self.count:,} times")
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        source = None if self.source is None else {"file": self.source[0], "line": self.source[1]}
        return {
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "detail": list(self.detail),
            "ptx_line": self.ptx_line,
            "source": source,
            "calls": self.calls.strip() or None,
            "instruction": self.instruction,
            "where": self.where,
            "key": self.key,
            "count": self.count,
            "also_ptx_lines": list(self.also),
        }


class Spot(Protocol):
    """An instruction that a checker of the emulator names."""

    @property
    def instruction(self) -> str: ...
    @property
    def ptx_line(self) -> int: ...
    @property
    def source(self) -> tuple[str, int] | None: ...


class Found(Protocol):
    """What the emulator's checks hand over: they know nothing of this package. `level` is E, W or R."""

    @property
    def rule(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def detail(self) -> tuple[str, ...]: ...
    @property
    def ptx_line(self) -> int | None: ...
    @property
    def source(self) -> tuple[str, int] | None: ...
    @property
    def instruction(self) -> str | None: ...
    @property
    def where(self) -> str | None: ...
    @property
    def count(self) -> int: ...
    @property
    def calls(self) -> str: ...
    @property
    def other(self) -> Spot | None: ...


def _before(spot: Spot) -> Before:
    return Before(spot.instruction, spot.ptx_line, spot.source)


_LEVELS = {"E": Severity.ERROR, "W": Severity.WARNING, "R": Severity.REVIEW}


_SHOWN_LINES = 8
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def _key(finding: Finding) -> tuple[Any, ...]:
    """What is one finding: a line of the source and what is wrong there, whoever did it and at which address. Loops are
    unrolled and functions inlined, so one mistake is in many lines of PTX. Without a source, one line of PTX.
    """
    if finding.source is None:
        where: tuple[Any, ...] = (finding.ptx_line, finding.instruction, finding.message)
    else:
        before = finding.before
        other = None if before is None else (before.source or before.ptx_line, before.instruction.split()[:1])
        where = (
            finding.source, finding.calls, (finding.instruction or "").split()[:1], other,
            _NUMBER.sub("#", finding.message),
        )  # fmt: skip
    return (finding.rule, finding.severity, finding.key, repr(where))


class Findings:
    """Collects findings of one run. What is wrong at one line of the source is one finding that counts."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Finding] = {}
        self.ended_early = False  # a launch did not reach its end
        self._hints: dict[tuple[str, str, str], str] = {}

    def add(self, finding: Finding) -> None:
        key = _key(finding)
        known = self._found.get(key)
        if known is None:
            self._found[key] = finding
            return
        also, at = known.also, finding.ptx_line
        if at is not None and at != known.ptx_line and at not in also:
            also = (*also, at)
        self._found[key] = replace(known, count=known.count + finding.count, also=also)

    def take(self, found: Iterable[Found]) -> None:
        """Adds what a checker of the emulator found."""
        for one in found:
            self.add(
                Finding(
                    one.rule,
                    _LEVELS[one.level],
                    one.message,
                    one.detail,
                    one.ptx_line,
                    one.source,
                    one.instruction,
                    one.where,
                    count=one.count,
                    calls=one.calls,
                    before=None if one.other is None else _before(one.other),
                )
            )

    @property
    def hints(self) -> tuple[str, ...]:
        """What may be why a result is wrong, each once for a line of the source."""
        return tuple(self._hints.values())

    def take_hints(self, found: Iterable[Found]) -> None:
        """Adds what is told beside a wrong result alone."""
        for one in found:
            place = f"PTX line {one.ptx_line}" if one.source is None else f"{one.source[0]}:{one.source[1]}{one.calls}"
            key = (one.rule, _NUMBER.sub("#", one.message), place)
            self._hints.setdefault(key, f"perhaps {one.rule}: {one.message}, at {place}")

    def take_error(self, error: EmulatorError, detail: tuple[str, ...] = ()) -> None:
        """Adds what ended a run, with further lines about it."""
        self.ended_early = True
        self.take(error.findings)
        severity = Severity.ERROR if error.exit_code == 1 else Severity.NOT_JUDGED
        self.add(
            Finding(
                error.rule or error.kind.replace(" ", "-"),
                severity,
                error.message,
                (*detail, *error.detail),
                error.ptx_line,
                error.source,
                error.instruction,
                error.where,
                calls=error.calls,
                waits=tuple(Before(i.text, i.line, i.source.place if i.source else None) for i in error.waits),
            )
        )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)
