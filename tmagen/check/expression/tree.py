# SPDX-License-Identifier: Apache-2.0
"""Expressions as trees. `column` is where in the text a node begins, or its operator stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; an int where the text has neither a point nor an exponent."""

    value: int | float
    column: int


@dataclass(frozen=True, slots=True)
class Name:
    """A buffer."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class Negative:
    """`-x`."""

    operand: Node
    column: int


@dataclass(frozen=True, slots=True)
class Binary:
    """`x + y`, and so on with `-`, `*`, `/` and `@`."""

    operator: str
    left: Node
    right: Node
    column: int


@dataclass(frozen=True, slots=True)
class Call:
    """`relu(x)`."""

    function: str
    arguments: tuple[Node, ...]
    column: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """`x.T`: all dimensions in reverse order."""

    operand: Node
    column: int


@dataclass(frozen=True, slots=True)
class Span:
    """`start:stop:step`."""

    start: int | None
    stop: int | None
    step: int | None

    @property
    def as_slice(self) -> slice:
        return slice(self.start, self.stop, self.step)


@dataclass(frozen=True, slots=True)
class Index:
    """`x[i, a:b]`."""

    operand: Node
    items: tuple[int | Span, ...]
    column: int

    @property
    def key(self) -> tuple[int | slice, ...]:
        return tuple(item if isinstance(item, int) else item.as_slice for item in self.items)


Node = Number | Name | Negative | Binary | Call | Transpose | Index


@dataclass(frozen=True, slots=True)
class Expectation:
    """`left == right`, or `left ~= right` where `exact` is false."""

    text: str
    left: Node
    right: Node
    exact: bool
    column: int  # of the comparison
