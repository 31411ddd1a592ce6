# SPDX-License-Identifier: Apache-2.0
"""Bringing like instructions of a block together, so that one operation can do many of them.

Compilers interleave the conversions, addresses and stores of an epilogue, and matrix instructions with the arithmetic
on their descriptors. What only computes registers moves before the shared stores or matrix instructions ahead of it,
and a conversion up to the one before, where no register stands in the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.emu.compile_blocks import registers_of, split_operands
from tmagen.emu.compile_wgmma import MMA
from tmagen.emu.isa import registry
from tmagen.emu.module import Instruction, Not

_GATHERED = ("st.shared.", "st.shared::cta.", MMA)
_REACH = 256  # instructions that a conversion may pass


@dataclass(frozen=True, eq=False)
class _Item:
    instruction: Instruction
    pure: bool
    gathered: bool
    batched: bool
    reads: frozenset[str]
    writes: frozenset[str]

    def passes(self, other: _Item) -> bool:
        """Whether this one may run before `other`, which stands before it."""
        return not (self.writes & other.reads or self.writes & other.writes or self.reads & other.writes)


def _item(instruction: Instruction) -> _Item:
    spec = registry.find(instruction.opcode)
    results, sources = split_operands(instruction, spec)
    reads = {name for operand in sources for name in registers_of(operand)}
    guard = instruction.guard
    if guard is not None:
        reads.add(guard.reg.name if isinstance(guard, Not) else guard.name)
    pure = spec is not None and spec.pure and guard is None
    return _Item(
        instruction,
        pure,
        instruction.opcode.startswith(_GATHERED) and guard is None,
        pure and spec is not None and spec.batch is not None,
        frozenset(reads),
        frozenset(name for operand in results for name in registers_of(operand)),
    )


def ordered(body: list[Instruction]) -> list[Instruction]:
    """The instructions of a block in an order with the same meaning. Only pure ones move, and only upwards."""
    if not any(instruction.opcode.startswith(_GATHERED) for instruction in body):
        return body
    # A collective stays first: it may send its lanes away to come again, and nothing may have run by then.
    spec = registry.find(body[0].opcode)
    fixed = 1 if spec is not None and spec.collective else 0
    out: list[_Item] = []
    tail = 0  # where the gathered instructions at the end of `out` begin; its length where it does not end with one
    reads: set[str] = set()  # of the tail
    writes: set[str] = set()
    for item in map(_item, body[fixed:]):
        if item.gathered:
            if tail < len(out) and out[-1].instruction.opcode != item.instruction.opcode:
                tail, reads, writes = len(out), set(), set()
            out.append(item)
            reads |= item.reads
            writes |= item.writes
            continue
        if not item.pure or item.writes & reads or item.writes & writes or item.reads & writes:
            out.append(item)
            tail, reads, writes = len(out), set(), set()
            continue
        out.insert(_up(out, item, tail) if item.batched else tail, item)
        tail += 1
    return [*body[:fixed], *(item.instruction for item in out)]


def _up(out: list[_Item], item: _Item, start: int) -> int:
    """Where a batched instruction goes: after the one of its opcode before it, or to `start`."""
    for at in range(start - 1, max(-1, start - _REACH), -1):
        other = out[at]
        if other.instruction.opcode == item.instruction.opcode and other.batched:
            return at + 1 if item.passes(other) else start
        if not other.pure or not item.passes(other):
            return start
    return start
