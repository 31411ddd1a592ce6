# SPDX-License-Identifier: Apache-2.0
"""What came of one run of a kernel, whole or broken."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tmagen.emu.checks import Finding

_GUARD = re.compile(r"^@!?\S+\s+")


@dataclass(frozen=True)
class Outcome:
    """One run: what the checks found, how it ended, whether its results are right."""

    findings: tuple[Finding, ...]
    ended: str  # "", "deadlock", or kind and message of what ended the run
    rule: str | None  # of a fault
    wrong: bool

    @property
    def errors(self) -> set[str]:
        """Rules of severity E that fired."""
        fired = {finding.rule for finding in self.findings if finding.level == "E"}
        return fired | {self.rule} if self.rule else fired

    @property
    def others(self) -> set[str]:
        """Rules of severity W and R that fired."""
        return {finding.rule for finding in self.findings if finding.level != "E"}

    @property
    def places(self) -> set[tuple[str, str]]:
        """The same, each with the opcode that it is told of."""
        told = ((finding.rule, finding.place.instruction) for finding in self.findings if finding.level != "E")
        return {(rule, _GUARD.sub("", text).partition(" ")[0]) for rule, text in told}

    @property
    def clean(self) -> bool:
        """Nothing of severity E, the end reached, the results right."""
        return not self.errors and not self.ended and not self.wrong

    def told(self) -> str:
        """What fired, and how the run ended."""
        parts = sorted(self.errors) + [f"({rule})" for rule in sorted(self.others - self.errors)]
        if self.ended and self.rule is None:
            parts.append(self.ended[:60])
        elif self.wrong and not self.ended:
            parts.append("wrong values")
        return " ".join(parts) or "nothing"
