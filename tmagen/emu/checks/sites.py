# SPDX-License-Identifier: Apache-2.0
"""The instructions that checks know by number, and what the text says about the results of a load."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Any

from tmagen.emu.compile_blocks import registers_of, split_operands
from tmagen.emu.isa import registry
from tmagen.emu.module import Entry, Instruction, Not, Operand, Sym


class Use(Enum):
    """Whether every register that a load fills is a source of some instruction before the thread next releases."""

    BEFORE = "on every way"
    NOT_BEFORE = "on no way"
    MIXED = "on some ways"


# What may let another agent overwrite what the thread has read (PTX ISA, "Memory Consistency Model").
_RELEASES = (
    "mbarrier.arrive", "bar.sync", "bar.arrive", "bar.cta", "bar.warp.sync", "barrier.", "red.", "atom.", "st.release",
    "cp.async.bulk", "cp.reduce.async.bulk", "tcgen05.mma", "tcgen05.commit", "tcgen05.dealloc", "wgmma.mma_async",
)  # fmt: skip
_ENDS = ("ret", "exit", "trap")
_MOST_STEPS = 20_000


class Flow:
    """The instructions of an entry by place, and where each goes on."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._places = {(i.line, i.text): at for at, i in enumerate(entry.body)}

    def place(self, instruction: Instruction) -> int | None:
        return self._places.get((instruction.line, instruction.text))

    def after(self, at: int) -> tuple[int, ...]:
        """The places that may follow; past the end is the end."""
        instruction = self.entry.body[at]
        head = instruction.parts[0]
        if head in _ENDS and instruction.guard is None:
            return ()
        if head == "bra":
            target = self._target(instruction.operands[-1])
            return (target,) if instruction.guard is None else (target, at + 1)
        if head == "brx":
            last = instruction.operands[-1]
            names = self.entry.branch_targets.get(last.name, ()) if isinstance(last, Sym) else ()
            return tuple(self.entry.labels[name] for name in names)
        return (at + 1,)

    def _target(self, operand: Operand) -> int:
        return self.entry.labels[operand.name] if isinstance(operand, Sym) else len(self.entry.body)

    def use_of(self, instruction: Instruction) -> Use:
        """When the results of a load are used. Follows every way through the text."""
        start = self.place(instruction)
        results, _ = split_operands(instruction, registry.find(instruction.opcode))
        names = frozenset(name for operand in results for name in registers_of(operand))
        if start is None or not names:
            return Use.MIXED
        before = otherwise = False
        seen: set[tuple[int, frozenset[str]]] = set()
        work = [(place, names) for place in self.after(start)]
        while work:
            at, left = work.pop()
            if (at, left) in seen:
                continue
            seen.add((at, left))
            if len(seen) > _MOST_STEPS:
                return Use.MIXED
            if at >= len(self.entry.body):
                otherwise = True
                continue
            here = self.entry.body[at]
            read, written = _registers(here)
            left = left - read
            if not left:
                before = True
                continue
            if here.opcode.startswith(_RELEASES) or left & written:
                otherwise = True
                continue
            ways = self.after(at)
            otherwise = otherwise or not ways
            work += [(place, left) for place in ways]
        if before and otherwise:
            return Use.MIXED
        return Use.BEFORE if before else Use.NOT_BEFORE


def _registers(instruction: Instruction) -> tuple[set[str], set[str]]:
    """(read, written)"""
    results, sources = split_operands(instruction, registry.find(instruction.opcode))
    read = {name for operand in sources for name in registers_of(operand)}
    guard = instruction.guard
    if guard is not None:
        read.add(guard.reg.name if isinstance(guard, Not) else guard.name)
    return read, {name for operand in results for name in registers_of(operand)}


class Site:
    """One instruction of the kernel, as the checks see it."""

    def __init__(self, number: int, instruction: Instruction, flow: Flow) -> None:
        self.number = number
        self.instruction = instruction
        self._flow = flow
        parts = set(instruction.parts)
        self.relaxed = "relaxed" in parts
        self.strong = not parts.isdisjoint(("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"))
        self.acquires = not parts.isdisjoint(("acquire", "acq_rel"))
        self.releases = not parts.isdisjoint(("release", "acq_rel"))

    @cached_property
    def use(self) -> Use:
        """When the results of this load are used."""
        return self._flow.use_of(self.instruction)


def sites_of(program: Any) -> tuple[Site, ...]:
    """The sites of a program that was compiled for checks."""
    flow = Flow(program.entry)
    return tuple(Site(number, instruction, flow) for number, instruction in enumerate(program.sites))
