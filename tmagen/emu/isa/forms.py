# SPDX-License-Identifier: Apache-2.0
"""Checking the form of an opcode: what its qualifiers may be."""

from __future__ import annotations

from collections.abc import Iterable

from tmagen.emu.isa.registry import Unknown
from tmagen.emu.module import Instruction, Operand


class Form:
    """The qualifiers of one instruction, taken one by one; what nobody takes is not understood."""

    def __init__(self, ins: Instruction, opcode: str) -> None:
        self.opcode = ins.opcode
        self.rest = [part for part in ins.opcode[len(opcode) :].split(".") if part]

    def take(self, *names: str) -> bool:
        """Whether one of `names` is there; it is taken."""
        for name in names:
            if name in self.rest:
                self.rest.remove(name)
                return True
        return False

    def one_of(self, names: Iterable[str], default: str | None = None) -> str:
        """The qualifier that is one of `names`. Raises Unknown where there is none and no default."""
        for part in self.rest:
            if part in names:
                self.rest.remove(part)
                return part
        if default is None:
            raise Unknown(f"{self.opcode}: expected one of {', '.join(sorted(names))}")
        return default

    def last(self) -> str:
        """The last qualifier, usually the type."""
        if not self.rest:
            raise Unknown(f"{self.opcode}: a type is missing")
        return self.rest.pop()

    def done(self) -> None:
        """Raises Unknown where a qualifier is left."""
        if self.rest:
            raise Unknown(f"qualifier .{self.rest[0]} in {self.opcode}")


def operands(ins: Instruction, *counts: int) -> tuple[Operand, ...]:
    """The operands; raises Unknown where there are none of the expected counts of them."""
    if len(ins.operands) not in counts:
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    return ins.operands


def looks_at_memory(instruction: Instruction) -> bool:
    """A strong load or an atomic, which may be a look at a flag that another thread sets: the others get their turn."""
    parts = instruction.parts
    return parts[0] == "atom" or (parts[0] == "ld" and not {"volatile", "relaxed", "acquire"}.isdisjoint(parts))
