# SPDX-License-Identifier: Apache-2.0
"""Control flow and what changes nothing here (PTX ISA, "Control Flow Instructions", "Miscellaneous Instructions")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction, Sym

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


@instruction("bra", pure=False, dests=0)
def bra(cx: BlockEmitter, ins: Instruction) -> None:
    """Branch; lanes that disagree become fragments."""
    form = Form(ins, "bra")
    form.take("uni")
    form.done()
    if ins.guard is None:
        cx.ret(str(cx.successor(0)))
    else:
        cx.branch(cx.pred(ins.guard), cx.successor(0), cx.successor(1))


@instruction("brx.idx", pure=False, dests=0)
def brx(cx: BlockEmitter, ins: Instruction) -> None:
    """Branch by index into a list of targets."""
    form = Form(ins, "brx.idx")
    form.take("uni")
    form.done()
    index, _ = operands(ins, 2)
    cx.ret(f"branch_index(F, {cx.src(index, 32)}, ({', '.join(map(str, cx.block.successors))},))")


@instruction("ret", "exit", pure=False, dests=0)
def end(cx: BlockEmitter, ins: Instruction) -> None:
    """The lanes end."""
    form = Form(ins, ins.parts[0])
    form.take("uni")
    form.done()
    cx.ret("exit_lanes(F)")


@instruction("trap", pure=False, dests=0)
def trap(cx: BlockEmitter, ins: Instruction) -> None:
    """A trap is a fault of the kernel."""
    Form(ins, "trap").done()
    cx.ret("trap(F)")


@instruction("call", pure=False, dests=0)
def call(cx: BlockEmitter, ins: Instruction) -> None:
    """A function runs where it is called; printf prints nothing, a failed assert is a fault, recursion not judged."""
    (target,) = ins.operands
    name = target.name if isinstance(target, Sym) else ""
    if name == "__assertfail":
        cx.line("failed_assert()")
    elif name != "vprintf":
        raise Unknown(f"call of {name}")


@instruction("nanosleep", pure=False, dests=0)
def nanosleep(cx: BlockEmitter, ins: Instruction) -> None:
    """Time does not pass."""
    Form(ins, "nanosleep").last()
    operands(ins, 1)


@instruction("griddepcontrol", pure=False, dests=0)
def griddepcontrol(cx: BlockEmitter, ins: Instruction) -> None:
    """No other grid runs; what a grid before this one writes is there from the start."""
    form = Form(ins, "griddepcontrol")
    what = form.one_of(("launch_dependents", "wait"))
    form.done()
    operands(ins, 0)
    if what == "wait" and cx.checked:
        cx.line("grid_wait(F, C)")


@instruction("setmaxnreg", pure=False, dests=0, collective=True, waits=True)
def setmaxnreg(cx: BlockEmitter, ins: Instruction) -> None:
    """Give registers to the CTA's pool, or wait for some of it (PTX ISA, "setmaxnreg")."""
    form = Form(ins, "setmaxnreg")
    grows = form.one_of(("inc", "dec")) == "inc"
    if form.rest != ["sync", "aligned", "u32"]:
        raise Unknown(ins.opcode)
    count = cx.literal(operands(ins, 1)[0])
    if count is None:
        raise Unknown(f"{ins.opcode} without an immediate count")
    whole_warp(cx)
    cx.ret(f"set_registers(F, C, {grows}, {count}, {cx.next_block}, {cx.wait()})")
