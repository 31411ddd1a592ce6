# SPDX-License-Identifier: Apache-2.0
"""Matrices of 8 x 8 halves between shared memory and registers (PTX ISA, "ldmatrix", "stmatrix")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import shared_operand
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction, Operand, Vec

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def _parse(cx: BlockEmitter, ins: Instruction, opcode: str, place: Operand, registers: Operand) -> tuple[str, bool]:
    """(address, transposed). Raises Unknown for other shapes and types, and where registers do not fit the number."""
    form = Form(ins, opcode)
    if not all(map(form.take, ("sync", "aligned", "m8n8", "b16"))):
        raise Unknown(ins.opcode)
    count = int(form.one_of(("x1", "x2", "x4"))[1:])
    transposed = form.take("trans")
    text = shared_operand(cx, form, place)
    form.done()
    items = registers.items if isinstance(registers, Vec) else (registers,)
    if len(items) != count or any(cx.width_of(item) != 32 for item in items):
        raise Unknown(f"{ins.opcode} with other registers than {count} of 32 bits")
    return text, transposed


@instruction("ldmatrix", pure=False, collective=True)
def ldmatrix(cx: BlockEmitter, ins: Instruction) -> None:
    """Load 1, 2 or 4 matrices; lanes give the addresses of rows."""
    d, a = operands(ins, 2)
    place, transposed = _parse(cx, ins, "ldmatrix", a, d)
    whole_warp(cx)
    cx.event("load_matrix", place)
    names = cx.dsts(d)
    cx.line(f"{', '.join(names)}, = ld_matrix(F, C, {place}, {len(names)}, {transposed})")


@instruction("stmatrix", pure=False, dests=0, collective=True)
def stmatrix(cx: BlockEmitter, ins: Instruction) -> None:
    """Store 1, 2 or 4 matrices."""
    a, values = operands(ins, 2)
    place, transposed = _parse(cx, ins, "stmatrix", a, values)
    items = values.items if isinstance(values, Vec) else (values,)
    whole_warp(cx)
    cx.event("store_matrix", place)
    texts = "".join(f"{cx.src(item, 32)}, " for item in items)
    cx.line(f"st_matrix(F, C, {place}, ({texts}), {transposed})")
