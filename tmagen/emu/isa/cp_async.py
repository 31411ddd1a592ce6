# SPDX-License-Identifier: Apache-2.0
"""Non-bulk asynchronous copies (PTX ISA, "cp.async", "cp.async.mbarrier.arrive")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address, here, shared_operand
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Reg

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


@instruction("cp.async.ca", "cp.async.cg", pure=False, dests=0)
def copy(cx: BlockEmitter, ins: Instruction) -> None:
    """4, 8 or 16 bytes per lane from global to shared memory; fewer bytes of source are filled up with zeros."""
    form = Form(ins, ".".join(ins.parts[:3]))
    if not form.take("shared", "shared::cta") or not form.take("global"):
        raise Unknown(ins.opcode)
    policy = form.take("L2::cache_hint")
    form.one_of(("L2::64B", "L2::128B", "L2::256B"), "")
    form.done()
    values = operands(ins, 3 + policy, 4 + policy)
    count = cx.literal(values[2])
    if count not in ((16,) if ins.parts[2] == "cg" else (4, 8, 16)):
        raise Unknown(f"{ins.opcode} of {count} bytes")
    size = str(count)
    if len(values) == 4 + policy:
        size = cx.src(values[3], 32)
        if isinstance(values[3], Reg) and cx.width_of(values[3]) == 1:
            size = f"same_size({count}, {count}, {cx.pred(values[3])})"
    place, source = here(cx, address(cx, values[0]), False), address(cx, values[1])
    cx.event("copy", place, source, str(count), size)
    cx.line(f"cp_async(F, C, {place}, {source}, {count}, {size})")


@instruction("cp.async.commit_group", pure=False, dests=0)
def commit_group(cx: BlockEmitter, ins: Instruction) -> None:
    """The thread's uncommitted copies become a group."""
    Form(ins, "cp.async.commit_group").done()
    operands(ins, 0)
    cx.event("copy_commit")
    cx.line("cp_commit(F)")


@instruction("cp.async.wait_group", "cp.async.wait_all", pure=False, dests=0, waits=True)
def wait(cx: BlockEmitter, ins: Instruction) -> None:
    """Wait until at most N of the thread's newest groups are outstanding; wait_all: for all of its copies."""
    every = ins.parts[2] == "wait_all"
    Form(ins, ".".join(ins.parts[:3])).done()
    count = -1 if every else cx.literal(operands(ins, 1)[0])
    if count is None or (count < 0 and not every):
        raise Unknown(f"{ins.opcode} without a literal count")
    cx.event("copy_wait", str(count))
    cx.ret(f"cp_wait(F, C, {count}, {cx.next_block}, {cx.wait()})")


@instruction("cp.async.mbarrier.arrive", pure=False, dests=0)
def arrive(cx: BlockEmitter, ins: Instruction) -> None:
    """Arrive on an mbarrier when the thread's earlier copies are complete; .noinc: the arrival is expected already."""
    form = Form(ins, "cp.async.mbarrier.arrive")
    if form.last() != "b64":
        raise Unknown(ins.opcode)
    counted = form.take("noinc")
    place = shared_operand(cx, form, operands(ins, 1)[0])
    form.done()
    cx.event("copy_arrive", place, str(counted))
    cx.line(f"cp_arrive(F, C, {place}, {counted})")
