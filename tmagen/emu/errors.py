# SPDX-License-Identifier: Apache-2.0
"""What can end an emulated run early.

State and datapath code raises these with a message alone; the machine knows which instruction ran and fills in the
place (:meth:`EmulatorError.located`) before the error leaves :func:`tmagen.emu.run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tmagen.errors import TmagenError


class EmulatorError(TmagenError):
    """An emulated run that did not reach its end.

    `ptx_line` and `instruction` are the PTX, `source` the (file, line) of the nearest `.loc` at or before it, `where`
    who executed it ("CTA (0, 0, 0) warp 1 lane 0"), and `detail` further lines of the report.
    """

    kind: ClassVar[str] = "emulation stopped"

    def __init__(
        self,
        message: str,
        *,
        ptx_line: int | None = None,
        source: tuple[str, int] | None = None,
        instruction: str | None = None,
        where: str | None = None,
        detail: Sequence[str] = (),
        rule: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.ptx_line = ptx_line
        self.source = source
        self.instruction = instruction
        self.where = where
        self.detail = tuple(detail)
        self.rule = rule  # identifier of the check, where there is one: `tmagen.emu.checks.find`
        self.calls = ""  # behind the source: through which functions the line was reached
        self.findings: tuple[Any, ...] = ()  # of a checked run, up to here
        self.waits: tuple[Any, ...] = ()  # of a deadlock, the instructions that threads wait at

    def located(
        self, ptx_line: int, source: tuple[str, int] | None, instruction: str, where: str | None, calls: str = ""
    ) -> EmulatorError:
        """This error with its place filled in, where it had none."""
        if self.ptx_line is None:
            self.ptx_line, self.source, self.instruction, self.where = ptx_line, source, instruction, where
            self.calls = calls
        return self

    def report(self) -> str:
        rule = "" if self.rule is None else f" [{self.rule}]"
        lines = [f"error: {self.kind}: {self.message}{rule}"]
        if self.instruction is not None:
            lines.append(f"  instruction: {self.instruction}")
        place = []
        if self.ptx_line is not None:
            place.append(f"PTX line {self.ptx_line}")
        if self.source is not None:
            place.append(f"{self.source[0]}:{self.source[1]}{self.calls}")
        if self.where is not None:
            place.append(self.where)
        if place:
            lines.append("  at " + ", ".join(place))
        lines.extend(f"  {line}" for line in self.detail)
        return "\n".join(lines)

    def __str__(self) -> str:
        place = "" if self.ptx_line is None else f" (PTX line {self.ptx_line})"
        return "\n".join([self.message + place, *self.detail])

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of a forked worker travel to the parent by pickle, which would otherwise call the constructor with
        # `args` alone.
        return (type(self), (self.message,), self.__dict__)


class ParseError(EmulatorError):
    """Text that is not PTX as the parser knows it: what was expected, and where."""

    kind: ClassVar[str] = "PTX syntax"
    exit_code: ClassVar[int] = 2


class NotJudged(EmulatorError):
    """An instruction, qualifier or launch feature that the emulator does not model. It never guesses, never skips."""

    kind: ClassVar[str] = "not judged"
    exit_code: ClassVar[int] = 2


class Fault(EmulatorError):
    """The kernel broke a rule of the machine: a bad access, a misused barrier, a leak, a bad descriptor."""

    kind: ClassVar[str] = "fault"
    exit_code: ClassVar[int] = 1


class Deadlock(EmulatorError):
    """Nobody can run and no asynchronous operation is outstanding. `detail` has a line or more for each who waits."""

    kind: ClassVar[str] = "deadlock"
    exit_code: ClassVar[int] = 1


class Endless(EmulatorError):
    """The kernel never ends though somebody can run at all times. `detail` has who loops where."""

    kind: ClassVar[str] = "never ends"
    exit_code: ClassVar[int] = 1
