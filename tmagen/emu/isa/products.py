# SPDX-License-Identifier: Apache-2.0
"""Products of one warp in registers (PTX ISA, "mma")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction, Operand, Vec

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter

# Shape -> types of A and B; rows of A are 32 bytes.
_INPUTS = {
    "m16n8k16": ("f16", "bf16"),
    "m16n8k8": ("tf32",),
    "m16n8k32": ("e4m3", "e5m2", "s8", "u8"),
}
_ACCUMULATORS = {"f32": 4, "f16": 2, "s32": 4}


def _items(operand: Operand, count: int) -> tuple[Operand, ...]:
    items = operand.items if isinstance(operand, Vec) else (operand,)
    if len(items) != count:
        raise Unknown(f"mma with {len(items)} registers where {count} are needed")
    return items


@instruction("mma.sync", pure=False, collective=True)
def mma(cx: BlockEmitter, ins: Instruction) -> None:
    """D = A * B + C of 16 x 8 elements, by the lanes of one warp: f16, bf16, tf32, fp8 and 8-bit integers."""
    form = Form(ins, "mma.sync")
    if not form.take("aligned"):
        raise Unknown(ins.opcode)
    shape = form.one_of(tuple(_INPUTS))
    saturate = form.take("satfinite")
    if form.rest[:2] != ["row", "col"] or len(form.rest) != 6:
        raise Unknown(ins.opcode)
    d_type, a_type, b_type, c_type = form.rest[2:]
    kinds = _INPUTS[shape]
    integers = a_type in ("s8", "u8")
    if a_type not in kinds or b_type not in kinds or (b_type in ("s8", "u8")) != integers:
        raise Unknown(ins.opcode)
    allowed = ("s32",) if integers else ("f32", "f16") if a_type in ("f16", "e4m3", "e5m2") else ("f32",)
    if saturate and not integers:
        raise Unknown(ins.opcode)
    if d_type != c_type or d_type not in allowed or (a_type in ("f16", "bf16") and a_type != b_type):
        raise Unknown(ins.opcode)
    d, a, b, c = operands(ins, 4)
    count = _ACCUMULATORS[d_type]
    whole_warp(cx)
    cx.meets()
    texts = []
    for operand, registers in ((a, 4), (b, 2), (c, count)):
        texts.append("(" + "".join(f"{cx.src(item, 32)}, " for item in _items(operand, registers)) + ")")
    names = ", ".join(cx.dst(item) for item in _items(d, count))
    formats = tuple(name.upper() for name in (d_type, a_type, b_type))
    cx.line(f"{names} = mma_sync(F, C, {formats!r}, {saturate}, {', '.join(texts)})")
