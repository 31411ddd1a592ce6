# SPDX-License-Identifier: Apache-2.0
"""Asynchronous warpgroup-level matrix instructions (PTX ISA, "wgmma")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu import compile_wgmma
from tmagen.emu.instr_descriptor import Format
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction, Operand, Vec
from tmagen.emu.smem_descriptor import Major
from tmagen.emu.wgmma import Form as MmaForm
from tmagen.emu.wgmma import registers_of_d

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def _aligned(ins: Instruction, opcode: str) -> None:
    form = Form(ins, opcode)
    if form.rest != ["sync", "aligned"]:
        raise Unknown(ins.opcode)


@instruction("wgmma.fence", pure=False, dests=0, collective=True)
def fence(cx: BlockEmitter, ins: Instruction) -> None:
    """Orders registers and shared memory, which are in order here already."""
    _aligned(ins, "wgmma.fence")
    operands(ins, 0)
    whole_warp(cx)
    cx.event("wgmma_fence")


@instruction("wgmma.commit_group", pure=False, dests=0, collective=True)
def commit(cx: BlockEmitter, ins: Instruction) -> None:
    """The instructions since the last commit become a group."""
    _aligned(ins, "wgmma.commit_group")
    operands(ins, 0)
    whole_warp(cx)
    cx.event("wgmma_commit")
    cx.line("wgmma_commit(F, C)")


@instruction("wgmma.wait_group", pure=False, dests=0, collective=True, waits=True)
def wait(cx: BlockEmitter, ins: Instruction) -> None:
    """Wait until all groups but the newest N are complete; what they wrote may be read then."""
    _aligned(ins, "wgmma.wait_group")
    (operand,) = operands(ins, 1)
    count = cx.literal(operand)
    if count is None or count < 0:
        raise Unknown(f"{ins.opcode} without an immediate count")
    whole_warp(cx)
    cx.event("wgmma_wait", str(count))
    cx.ret(f"wgmma_wait(F, C, {count}, {cx.next_block}, {cx.wait()})")


def _choice(cx: BlockEmitter, ins: Instruction, operand: Operand, allowed: tuple[int, int]) -> int:
    value = cx.literal(operand)
    if value not in allowed:
        raise Unknown(f"operand {operand} of {ins.opcode}: it must be {allowed[0]} or {allowed[1]}")
    return value


def _form(cx: BlockEmitter, ins: Instruction) -> MmaForm:
    """What the text of an instruction fixes. Raises Unknown."""
    types = compile_wgmma.types_of(ins.opcode)
    table = cx.wgmma
    d, a, _, _, *rest = ins.operands
    if not isinstance(d, Vec) or len(d.items) != registers_of_d(types.d, types.n):
        raise Unknown(f"{ins.opcode} with another number of registers for D")
    slots = compile_wgmma.slots_of(d, cx.slots)
    if len(set(slots)) != len(d.items) or any(cx.widths[slot] != 32 for slot in slots):
        raise Unknown(f"{ins.opcode}: D must be different 32-bit registers")
    in_registers = isinstance(a, Vec)
    if isinstance(a, Vec) and (len(a.items) != 4 or any(cx.width_of(item) != 32 for item in a.items)):
        raise Unknown(f"{ins.opcode}: A must be four 32-bit registers")
    integer = types.d is Format.S32
    halves = types.a in (Format.F16, Format.BF16)
    if len(rest) != (0 if integer else 2) + (0 if not halves else 1 if in_registers else 2):
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    signs = [] if integer else [_choice(cx, ins, operand, (1, -1)) for operand in rest[:2]]
    transposed = [Major(_choice(cx, ins, operand, (0, 1))) for operand in rest[2:]]
    a_major, b_major = [Major.K] * (2 - len(transposed)) + transposed
    accumulator = table.accumulator(types.d, slots)
    return MmaForm(
        n=types.n,
        a=types.a,
        b=types.b,
        d=types.d,
        a_major=a_major,
        b_major=b_major,
        negate=signs.count(-1) == 1,
        saturate=types.saturate,
        accumulator=accumulator,
        a_in_registers=in_registers,
        overlaps=table.overlaps[accumulator],
    )


def _together(cx: BlockEmitter, run: list[Instruction]) -> bool:
    """Several instructions at once, as most warps only repeat what the first of their warpgroup did."""
    forms = [_form(cx, ins) for ins in run]
    if cx.listening or any(form.a_in_registers or form.overlaps for form in forms):
        return False
    whole_warp(cx)
    table = cx.wgmma
    table.runs.append(compile_wgmma.Run.of(forms))
    items = [f"{cx.src(a, 64)}, {cx.src(b, 64)}, {cx.pred(scale)}" for _, a, b, scale, *_ in (i.operands for i in run)]
    cx.line(f"if not wgmma_run(F, C, {len(table.runs) - 1}, ({', '.join(f'({item})' for item in items)})):")
    for ins, form, item in zip(run, forms, items, strict=True):
        cx.current = ins
        table.forms.append(form)
        cx.line(f"    wgmma(F, C, {len(table.forms) - 1}, {item}, None, 0)")
        cx.accumulates(ins.operands[0])
    return True


@instruction("wgmma.mma_async", pure=False, collective=True, batch=_together)
def mma(cx: BlockEmitter, ins: Instruction) -> None:
    """D = A * B + D, asynchronously, by four warps: A from shared memory or registers, B from shared memory."""
    form = _form(cx, ins)
    d, a, b, scale = ins.operands[:4]
    registers, a_set = "None", 0
    if isinstance(a, Vec):
        registers = f"({', '.join(cx.src(item, 32) for item in a.items)})"
        a_set = cx.wgmma.a_set(compile_wgmma.slots_of(a, cx.slots))
    whole_warp(cx)
    left = "0" if form.a_in_registers else cx.src(a, 64)
    cx.event("wgmma", left, cx.src(b, 64))
    cx.wgmma.forms.append(form)
    matrices = f"{len(cx.wgmma.forms) - 1}, {left}, {cx.src(b, 64)}, {cx.pred(scale)}"
    cx.line(f"wgmma(F, C, {matrices}, {registers}, {a_set})")
    cx.accumulates(d)
