# SPDX-License-Identifier: Apache-2.0
"""Machine code, counted: in all, and in the main loop."""

from __future__ import annotations

import re
from dataclasses import dataclass

MMA = ("UTCHMMA", "UTCQMMA", "UTCIMMA", "HGMMA", "HMMA")
WAIT = "SYNCS.PHASECHK"
PADDING = ("NOP",)

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", re.MULTILINE)
_FUNCTION = re.compile(r"^(?:\s*Function : |//-+ \.text\.)(\S+).*$", re.MULTILINE)
_PREDICATE = re.compile(r"!?U?P(?:\d|T)\b")
_ENDS = ("EXIT", "RET", "BRA", "BRX", "JMP")


Loop = frozenset[int]
"""The offsets of a loop's instructions."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its offset, its opcode with modifiers, and where it branches to, if it does.

    `goes_on` is whether the next one may follow it.
    """

    offset: int
    opcode: str
    target: int | None
    goes_on: bool = True


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The instructions of one kernel, padding at its end left out."""

    instructions: tuple[Instruction, ...]

    def count(self, opcode: str, within: Loop | None = None) -> int:
        """Instructions whose opcode is `opcode`, or begins with it and a dot."""
        return sum(_is(instruction, opcode) for instruction in self.range(within))

    def mmas(self, within: Loop | None = None) -> int:
        """MMA instructions."""
        return sum(self.count(opcode, within) for opcode in MMA)

    def range(self, within: Loop | None) -> tuple[Instruction, ...]:
        """Those of a loop; all without."""
        return tuple(i for i in self.instructions if within is None or i.offset in within)

    def main_loop(self) -> Loop | None:
        """The shortest loop with an MMA and a wait for a barrier in it; None where there is no such loop.

        Waits that are repeated out of line, behind the kernel's end, belong to the loop that they come from.
        """
        full = [loop for loop in self.loops() if self.mmas(loop) and self.count(WAIT, loop)]
        return min(full, key=len, default=None)

    def loops(self) -> tuple[Loop, ...]:
        """The natural loops: a branch back to what dominates it, and all that leads there without leaving."""
        starts = self._block_starts()
        successors = self._successors(starts)
        predecessors: list[list[int]] = [[] for _ in starts]
        for block, following in enumerate(successors):
            for other in following:
                predecessors[other].append(block)
        dominators = _dominators(predecessors)
        found: dict[int, set[int]] = {}
        for block, following in enumerate(successors):
            for head in following:
                # A branch to itself with nothing but one instruction around it is ptxas's loop over lanes.
                if dominators[block] >> head & 1 and not self._over_lanes(starts, block):
                    found.setdefault(head, {head}).update(_leading_to(block, head, predecessors))
        return tuple(
            frozenset(i.offset for block in blocks for i in self._block(starts, block)) for blocks in found.values()
        )

    def _block_starts(self) -> list[int]:
        """Positions at which a basic block begins."""
        position = {i.offset: number for number, i in enumerate(self.instructions)}
        starts = {0}
        for number, instruction in enumerate(self.instructions):
            if instruction.target is not None and instruction.target in position:
                starts.add(position[instruction.target])
            if instruction.target is not None or not instruction.goes_on:
                starts.add(number + 1)
        return sorted(start for start in starts if start < len(self.instructions))

    def _block(self, starts: list[int], block: int) -> tuple[Instruction, ...]:
        end = starts[block + 1] if block + 1 < len(starts) else len(self.instructions)
        return self.instructions[starts[block] : end]

    def _successors(self, starts: list[int]) -> list[list[int]]:
        number = {self.instructions[start].offset: block for block, start in enumerate(starts)}
        found = []
        for block in range(len(starts)):
            last = self._block(starts, block)[-1]
            after = [block + 1] if last.goes_on and block + 1 < len(starts) else []
            found.append([*after, *([number[last.target]] if last.target in number else [])])
        return found

    def _over_lanes(self, starts: list[int], block: int) -> bool:
        return self._block(starts, block)[-1].opcode.endswith(".ANY")


def _dominators(predecessors: list[list[int]]) -> list[int]:
    """For each block the set of those that every way to it passes, as bits. Block 0 is the entry."""
    everything = (1 << len(predecessors)) - 1
    found = [1, *[everything] * (len(predecessors) - 1)]
    changed = True
    while changed:
        changed = False
        for block in range(1, len(predecessors)):
            common = everything if predecessors[block] else 0
            for before in predecessors[block]:
                common &= found[before]
            common |= 1 << block
            if common != found[block]:
                found[block], changed = common, True
    return found


def _leading_to(block: int, head: int, predecessors: list[list[int]]) -> set[int]:
    """The blocks from which `block` is reached without passing `head`."""
    found, waiting = set[int](), [block]
    while waiting:
        here = waiting.pop()
        if here != head and here not in found:
            found.add(here)
            waiting += predecessors[here]
    return found


def machine_code(sass: str, kernel: str = "") -> MachineCode:
    """Reads what cuobjdump or nvdisasm print of a kernel; `kernel` is its symbol, for a cubin with several."""
    parts = _FUNCTION.split(sass)
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    sass = named.get(kernel, sass)
    found = []
    for offset, guard, opcode, operands in _LINE.findall(sass):
        target = re.search(r"(?:^|\s|`\(.*\)\s*)0x([0-9a-f]+)$", operands) if opcode.startswith("BRA") else None
        certain = opcode.split(".")[0] in _ENDS and not guard and not _PREDICATE.match(operands)
        found.append(
            Instruction(int(offset, 16), opcode, None if target is None else int(target[1], 16), goes_on=not certain)
        )
    while found and (found[-1].opcode in PADDING or found[-1].target == found[-1].offset):
        found.pop()
    return MachineCode(tuple(found))


def _is(instruction: Instruction, opcode: str) -> bool:
    return instruction.opcode == opcode or instruction.opcode.startswith(f"{opcode}.")
