# SPDX-License-Identifier: Apache-2.0
"""What is found wrong, by whatever looks: one type, one place where it is collected."""

from __future__ import annotations

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
    """The access that a race is with, where it came first. `ptx_line` and `source` are as in :class:`Finding`."""

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


class Findings:
    """Collects findings of one run. The same message at the same place is one finding that counts."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Finding] = {}
        self.ended_early = False  # a launch did not reach its end
        self.hints: list[str] = []  # what may be why a result is wrong

    def add(self, finding: Finding) -> None:
        place = (finding.ptx_line, finding.source, finding.instruction)
        key = (finding.rule, finding.severity, *place, finding.key, finding.message)
        known = self._found.get(key)
        count = finding.count
        self._found[key] = finding if known is None else replace(known, count=known.count + count)

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
            )
        )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)
