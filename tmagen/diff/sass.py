# SPDX-License-Identifier: Apache-2.0
"""Machine code, counted: in all, and in the main loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

MMA = ("UTCHMMA", "UTCQMMA", "UTCIMMA", "HGMMA", "HMMA")
WAIT = "SYNCS.PHASECHK"
PADDING = ("NOP",)

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its offset, its opcode with modifiers, and where it branches to, if it does."""

    offset: int
    opcode: str
    target: int | None


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The instructions of one kernel, padding at its end left out."""

    instructions: tuple[Instruction, ...]

    def count(self, opcode: str, within: tuple[int, int] | None = None) -> int:
        """Instructions whose opcode is `opcode`, or begins with it and a dot."""
        return sum(_is(instruction, opcode) for instruction in self.range(within))

    def mmas(self, within: tuple[int, int] | None = None) -> int:
        """MMA instructions."""
        return sum(self.count(opcode, within) for opcode in MMA)

    def range(self, within: tuple[int, int] | None) -> tuple[Instruction, ...]:
        """Those from one offset to another, both included; all without."""
        if within is None:
            return self.instructions
        return tuple(i for i in self.instructions if within[0] <= i.offset <= within[1])

    def main_loop(self) -> tuple[int, int] | None:
        """The shortest backward branch around an MMA and a wait for a barrier; None where there is no such loop."""
        loops = [
            (i.target, i.offset)
            for i in self.instructions
            if i.target is not None and i.target < i.offset and not i.opcode.endswith(".ANY")
        ]
        full = [loop for loop in loops if self.mmas(loop) and self.count(WAIT, loop)]
        return min(full, key=lambda loop: loop[1] - loop[0], default=None)


def machine_code(sass: str) -> MachineCode:
    """Reads what cuobjdump or nvdisasm print of one kernel."""
    found = []
    for offset, opcode, operands in _LINE.findall(sass):
        target = re.search(r"(?:^|\s|`\(.*\)\s*)0x([0-9a-f]+)$", operands) if opcode.startswith("BRA") else None
        found.append(Instruction(int(offset, 16), opcode, None if target is None else int(target[1], 16)))
    while found and (found[-1].opcode in PADDING or found[-1].target == found[-1].offset):
        found.pop()
    return MachineCode(tuple(found))


def _is(instruction: Instruction, opcode: str) -> bool:
    return instruction.opcode == opcode or instruction.opcode.startswith(f"{opcode}.")
