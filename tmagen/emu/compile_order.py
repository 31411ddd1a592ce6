# SPDX-License-Identifier: Apache-2.0
"""Bringing like instructions of a block together, so that one array operation can do many of them.

Compilers interleave the conversions, addresses and stores of an epilogue. What only computes registers moves before the
shared stores ahead of it, and a conversion up to the one before, where no register stands in the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.emu.compile_blocks import registers_of, split_operands
from tmagen.emu.isa import registry
from tmagen.emu.module import Instruction, Not

_STORE = ("st.shared.", "st.shared::cta.")
_REACH = 48  # instructions that a conversion may pass


@dataclass(frozen=True, eq=False)
class _Item:
    instruction: Instruction
    pure: bool
    store: bool
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
        instruction.opcode.startswith(_STORE) and guard is None,
        pure and spec is not None and spec.batch is not None,
        frozenset(reads),
        frozenset(name for operand in results for name in registers_of(operand)),
    )


def ordered(body: list[Instruction]) -> list[Instruction]:
    """The instructions of a block in an order with the same meaning. Only pure ones move, and only upwards."""
    if not any(instruction.opcode.startswith(_STORE) for instruction in body):
        return body
    out: list[_Item] = []
    first_store = 0  # of the stores at the end of `out`; its length where it does not end with one
    stored: set[str] = set()  # what they read
    for item in map(_item, body):
        if item.store:
            out.append(item)
            stored |= item.reads
            continue
        if not item.pure or item.writes & stored:
            out.append(item)
            first_store, stored = len(out), set()
            continue
        place = _up(out, item, first_store) if item.batched else first_store
        out.insert(place, item)
        first_store += 1
    return [item.instruction for item in out]


def _up(out: list[_Item], item: _Item, start: int) -> int:
    """Where a batched instruction goes: after the one of its opcode before it, or to `start`."""
    for at in range(start - 1, max(-1, start - _REACH), -1):
        other = out[at]
        if other.instruction.opcode == item.instruction.opcode and other.batched:
            return at + 1 if item.passes(other) else start
        if not other.pure or not item.passes(other):
            return start
    return start
