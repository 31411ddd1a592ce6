# SPDX-License-Identifier: Apache-2.0
"""One step of a CTA, and the words that a step and several as one share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tmagen.diff.layout import Box


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a CTA. Events of two kernels are the same where all but `text` and `line` are.

    `op` and `about` say what it is, and align the two sides; `facts` are how it is done. `varying` is what changes from
    one K tile or output tile to the next, and from one launch to another: it is compared, but does not make a K tile
    another kind of K tile.
    """

    op: str
    about: str
    facts: tuple[tuple[str, str], ...]
    varying: tuple[tuple[str, str], ...]
    who: str
    text: str
    line: int  # of the PTX
    count: int = 1

    @property
    def key(self) -> tuple[str, str]:
        return self.op, self.about

    @property
    def kind(self) -> tuple[object, ...]:
        """The event but for what varies."""
        return self.op, self.about, self.facts, self.who, self.count


def prefetch_text(operands: Sequence[str]) -> str:
    """A prefetch of the tensor maps of so many operands."""
    plural = "s" if len(operands) > 1 else ""
    return f"prefetch the tensor map{plural} of {', '.join(operands)}"


def area(box: Box) -> str:
    """What a box holds, as a slice of its operand."""
    return f"{box.operand}[{box.row}:{box.row + box.rows}, {box.column}:{box.column + box.columns}]"
