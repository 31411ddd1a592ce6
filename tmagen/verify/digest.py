# SPDX-License-Identifier: Apache-2.0
"""Cases as text, each fault told once: with all its lines where it comes first, and by number after that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tmagen.ir import Shape
from tmagen.verify.report import CaseReport, Fault

_LIST = re.compile(r"\{[^{}]{80,}\}")
_LIST_START = 3  # items of a list of registers that are shown before its last
_LONGEST = 400
_SHOWN_ENDS = 180  # characters of each end of a longer line


@dataclass
class _Told:
    """A fault that was told, and where it came again."""

    number: int
    first: CaseReport
    others: list[CaseReport] = field(default_factory=list)


class Digest:
    """Takes cases as they end, and gives the lines to print. :meth:`rest` is for the end."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], _Told] = {}
        self._cases: Counter[Shape] = Counter()

    def add(self, case: CaseReport) -> tuple[str, ...]:
        """The case's line, and what is new of what went wrong."""
        self._cases[case.shape] += 1
        numbers: list[int] = []
        lines: list[str] = []
        for fault in case.faults():
            told = self._told.get(fault.key)
            if told is None:
                told = self._told[fault.key] = _Told(len(self._told) + 1, case)
                lines.extend(_numbered(told.number, fault))
            elif all(case is not known for known in (told.first, *told.others[-1:])):
                told.others.append(case)
            numbers.append(told.number)
        marks = "".join(f" [{number}]" for number in dict.fromkeys(numbers))
        return (case.line() + marks, *lines)

    def rest(self) -> tuple[str, ...]:
        """A line for each fault that more than one case had."""
        return tuple(
            f"[{told.number}] the same in {len(told.others)} other case{'s' if len(told.others) > 1 else ''}: "
            + ", ".join(self._names(told))
            for told in self._told.values()
            if told.others
        )

    def _names(self, told: _Told) -> Iterator[str]:
        """Cases by their shapes, with inputs and completions where not all of a shape's cases are meant."""
        shapes: dict[Shape, list[CaseReport]] = {}
        for case in told.others:
            shapes.setdefault(case.shape, []).append(case)
        for shape, cases in shapes.items():
            name = f"{shape.m} x {shape.n} x {shape.k}"
            first = told.first.shape == shape
            if len(cases) == self._cases[shape] - first > 1:
                yield f"{name} ({'the other' if first else 'all'} {len(cases)})"
                continue
            ways: dict[str, list[str]] = {}
            for case in cases:
                ways.setdefault(case.inputs, []).append(case.completion)
            yield f"{name} ({'; '.join(f'{inputs} ' + ', '.join(orders) for inputs, orders in ways.items())})"


def _numbered(number: int, fault: Fault) -> Iterator[str]:
    mark = f"[{number}] "
    for index, line in enumerate(fault.lines):
        yield "    " + (mark if index == 0 else " " * len(mark)) + shortened(line)


def shortened(line: str) -> str:
    """The line, with the middle of long lists of registers, and of what is still too long, left out."""
    line = _LIST.sub(_short_list, line)
    if len(line) <= _LONGEST:
        return line
    return f"{line[:_SHOWN_ENDS]} ... {line[-_SHOWN_ENDS:]}"


def _short_list(match: re.Match[str]) -> str:
    items = [item.strip() for item in match[0][1:-1].split(",")]
    left = len(items) - _LIST_START - 1
    if left < 2:
        return match[0]
    return f"{{{', '.join(items[:_LIST_START])}, ... {left} more ..., {items[-1]}}}"
