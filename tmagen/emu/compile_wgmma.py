# SPDX-License-Identifier: Apache-2.0
"""Which registers of an entry belong to wgmma, found before its blocks are written.

Accumulator registers are not locals of the block functions: they stay with their warp (see `state/warpgroup.py`), so
that a loop of instructions on them passes nothing along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tmagen.emu.instr_descriptor import Format
from tmagen.emu.isa.registry import Unknown
from tmagen.emu.module import Entry, Instruction, Reg, Vec
from tmagen.emu.wgmma import Form, registers_of_d

MMA = "wgmma.mma_async"
_SHAPE = re.compile(r"m64n([1-9]\d*)k([1-9]\d*)$")
_FORMATS = {
    "f16": Format.F16, "bf16": Format.BF16, "tf32": Format.TF32, "e4m3": Format.E4M3, "e5m2": Format.E5M2,
    "s8": Format.S8, "u8": Format.U8, "f32": Format.F32, "s32": Format.S32,
}  # fmt: skip
_N = frozenset(range(8, 257, 8))
_N_INTEGER = frozenset((8, 16, 24, *range(32, 257, 16)))
# D and A; B is of A's type, of either fp8 type, or of either integer type (PTX ISA, "wgmma.mma_async").
_TYPES = {
    (Format.F16, Format.F16), (Format.F32, Format.F16), (Format.F32, Format.BF16), (Format.F32, Format.TF32),
    (Format.F16, Format.E4M3), (Format.F32, Format.E4M3), (Format.F16, Format.E5M2), (Format.F32, Format.E5M2),
    (Format.S32, Format.S8), (Format.S32, Format.U8),
}  # fmt: skip
_FAMILIES = ({Format.E4M3, Format.E5M2}, {Format.S8, Format.U8})


@dataclass(frozen=True)
class Types:
    """What the qualifiers of a wgmma.mma_async say."""

    n: int
    d: Format
    a: Format
    b: Format
    saturate: bool


def types_of(opcode: str) -> Types:
    """Raises Unknown for a form that is not known, the sparse ones among them."""
    parts = opcode.split(".")
    saturate = parts[-1] == "satfinite"
    if saturate:
        parts.pop()
    if parts[2:4] != ["sync", "aligned"] or len(parts) != 8 or any(name not in _FORMATS for name in parts[5:]):
        raise Unknown(opcode)
    shape = _SHAPE.match(parts[4])
    d, a, b = (_FORMATS[name] for name in parts[5:])
    related = a is b or any(a in family and b in family for family in _FAMILIES)
    if shape is None or (d, a) not in _TYPES or not related or (saturate and d is not Format.S32):
        raise Unknown(opcode)
    n = int(shape[1])
    if n not in (_N_INTEGER if d is Format.S32 else _N) or int(shape[2]) * a.nbytes != 32:
        raise Unknown(f"shape .{parts[4]} of {opcode}")
    return Types(n, d, a, b, saturate)


@dataclass(frozen=True)
class Run:
    """Several wgmma.mma_async in a row: how many, their accumulators, and where the last one on each is."""

    count: int
    accumulators: frozenset[int]
    last: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, forms: Sequence[Form]) -> Run:
        last = {form.accumulator: i for i, form in enumerate(forms)}
        return cls(len(forms), frozenset(last), tuple(last.items()))


@dataclass
class WgmmaTable:
    """Of one entry. Accumulators and sets of A registers are numbered; the accumulators' registers too, densely.

    `accumulators` are the register numbers of each, `formats` what they hold, `overlaps` the others that share
    registers. `first` are the registers' first values. `touching` maps a slot to the accumulators that it is part of,
    `holding` to the sets of A registers. `forms` are the instructions, in the order in which their text was written,
    and `runs` those that stand together.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    first: list[Any] = field(default_factory=list)
    accumulators: list[tuple[int, ...]] = field(default_factory=list)
    formats: list[Format] = field(default_factory=list)
    overlaps: list[tuple[int, ...]] = field(default_factory=list)
    touching: dict[int, tuple[int, ...]] = field(default_factory=dict)
    holding: dict[int, tuple[int, ...]] = field(default_factory=dict)
    forms: list[Form] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    resident: int = 0  # bit set over slots
    _known: dict[tuple[Format, tuple[int, ...]], int] = field(default_factory=dict)
    _a_sets: dict[tuple[int, ...], int] = field(default_factory=dict)

    def accumulator(self, fmt: Format, slots: tuple[int, ...]) -> int:
        """The number of an accumulator."""
        return self._known[fmt, slots]

    def a_set(self, slots: tuple[int, ...]) -> int:
        """The number of a set of A registers."""
        return self._a_sets[slots]


def build(entry: Entry, slots: dict[str, int], first: Sequence[Any]) -> WgmmaTable:
    """The table of an entry whose registers have these slots and first values."""
    table = WgmmaTable()
    for instruction in entry.body:
        if instruction.opcode.startswith(MMA):
            _enter(table, instruction, slots)
    for fmt, members in table._known:
        table.formats.append(fmt)
        for slot in members:
            if slot not in table.numbers:
                table.numbers[slot] = len(table.first)
                table.first.append(first[slot])
                table.resident |= 1 << slot
        table.accumulators.append(tuple(table.numbers[slot] for slot in members))
    sets = [set(registers) for registers in table.accumulators]
    table.overlaps = [tuple(j for j, other in enumerate(sets) if i != j and one & other) for i, one in enumerate(sets)]
    for slot, number in table.numbers.items():
        table.touching[slot] = tuple(i for i, one in enumerate(sets) if number in one)
    for members, number in table._a_sets.items():
        for slot in members:
            table.holding[slot] = (*table.holding.get(slot, ()), number)
    return table


def _enter(table: WgmmaTable, instruction: Instruction, slots: dict[str, int]) -> None:
    try:
        types = types_of(instruction.opcode)
    except Unknown:
        return  # raised again where the instruction's text is written
    operands = instruction.operands
    if not operands or not isinstance(operands[0], Vec):
        return
    members = slots_of(operands[0], slots)
    if len(members) == registers_of_d(types.d, types.n) == len(set(members)):
        table._known.setdefault((types.d, members), len(table._known))
    if len(operands) > 1 and isinstance(operands[1], Vec):
        table._a_sets.setdefault(slots_of(operands[1], slots), len(table._a_sets))


def slots_of(operand: Vec, slots: dict[str, int]) -> tuple[int, ...]:
    """The slots of the registers in a vector; other items are left out."""
    return tuple(slots[item.name] for item in operand.items if isinstance(item, Reg))
