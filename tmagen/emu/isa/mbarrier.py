# SPDX-License-Identifier: Apache-2.0
"""mbarrier instructions (PTX ISA, "mbarrier")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address, shared_operand
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Addr, Instruction, Operand, Sink

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def _form(ins: Instruction, opcode: str) -> Form:
    form = Form(ins, opcode)
    if form.last() != "b64":
        raise Unknown(ins.opcode)
    return form


def _remote(cx: BlockEmitter, form: Form, operand: Operand) -> str:
    """The address of an mbarrier of any CTA of the cluster."""
    form.take("shared::cluster")
    return address(cx, operand)


@instruction("mbarrier.init", pure=False, dests=0)
def init(cx: BlockEmitter, ins: Instruction) -> None:
    """Make an object that expects `count` arrivals per phase."""
    form = _form(ins, "mbarrier.init")
    a, count = operands(ins, 2)
    place = shared_operand(cx, form, a)
    form.done()
    cx.event("barrier_init", place, cx.src(count, 32))
    cx.line(f"mbar_init(F, C, {place}, {cx.src(count, 32)})")


@instruction("mbarrier.inval", pure=False, dests=0)
def inval(cx: BlockEmitter, ins: Instruction) -> None:
    """The object's bytes are plain memory again."""
    form = _form(ins, "mbarrier.inval")
    place = shared_operand(cx, form, operands(ins, 1)[0])
    form.done()
    cx.line(f"mbar_inval(F, C, {place})")


@instruction("mbarrier.arrive", "mbarrier.arrive_drop", pure=False)
def arrive(cx: BlockEmitter, ins: Instruction) -> None:
    """arrive, arrive_drop, and both with .expect_tx; arrive.noComplete."""
    drop = ins.parts[1] == "arrive_drop"
    form = _form(ins, f"mbarrier.{ins.parts[1]}")
    expects, kept = form.take("expect_tx"), not drop and form.take("noComplete")
    form.one_of(("release", "relaxed"), "release")
    form.one_of(("cta", "cluster"), "cta")
    at = next(i for i, operand in enumerate(ins.operands) if isinstance(operand, Addr))
    values = ins.operands[at + 1 :]
    if at > 1 or len(values) > 1:
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    remote = cx.clustered and "shared::cluster" in form.rest
    operand = ins.operands[at]
    place = _remote(cx, form, operand) if remote else shared_operand(cx, form, operand)
    form.done()
    dest = ins.operands[0] if at else Sink()
    if remote and not isinstance(dest, Sink):
        raise Unknown(f"{ins.opcode} with a result")
    if kept and (remote or expects or not values):
        raise Unknown(ins.opcode)
    if expects:
        if not values:
            raise Unknown(ins.opcode)
        count, expect = "1", cx.src(values[0], 32)
    else:
        count, expect = cx.src(values[0], 32) if values else "1", "None"
    cx.event("barrier_arrive", place, count, expect)
    if remote:
        cx.line(f"remote_{'drop' if drop else 'arrive'}(F, C, {place}, {count}, {expect})")
        return
    if kept:
        cx.line(f"mbar_stays_open(F, C, {place}, {count})")
    call = f"mbar_{'drop' if drop else 'arrive'}(F, C, {place}, {count}, {expect})"
    cx.line(call if isinstance(dest, Sink) else f"{cx.dst(dest)} = {call}")


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx", pure=False, dests=0)
def transaction(cx: BlockEmitter, ins: Instruction) -> None:
    """Expect or complete transaction bytes."""
    form = _form(ins, f"mbarrier.{ins.parts[1]}")
    form.take("relaxed")
    form.one_of(("cta", "cluster"), "cta")
    a, nbytes = operands(ins, 2)
    remote = cx.clustered and "shared::cluster" in form.rest
    place = _remote(cx, form, a) if remote else shared_operand(cx, form, a)
    form.done()
    name = ("remote_" if remote else "mbar_") + ins.parts[1].removesuffix("_tx")
    cx.line(f"{name}(F, C, {place}, {cx.src(nbytes, 32)})")


@instruction("mbarrier.test_wait", "mbarrier.try_wait", pure=False, waits=True)
def wait(cx: BlockEmitter, ins: Instruction) -> None:
    """In a loop that does nothing else: block until the phase completes. Elsewhere: one look."""
    form = _form(ins, f"mbarrier.{ins.parts[1]}")
    parity = form.take("parity")
    form.one_of(("acquire", "relaxed"), "acquire")
    form.one_of(("cta", "cluster"), "cta")
    d, a, state, *hint = ins.operands
    if len(hint) > (ins.parts[1] == "try_wait"):
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    place = shared_operand(cx, form, a)
    form.done()
    phase = cx.src(state, 32 if parity else 64)
    cx.event("barrier_wait", place, phase)
    if cx.block.spins:
        if not (place.isdigit() or place.isidentifier()):
            cx.line(f"a = {place}")
            place = "a"
        cx.line(f"{cx.dst(d)} = True")
        cx.ret(f"mbar_wait(F, C, {place}, {phase}, {parity}, {cx.past_spin()}, {cx.wait()})")
        return
    name = cx.dst(d)
    cx.line(f"n = mbar_test(F, C, {place}, {phase}, {parity})")
    cx.line(f"{name} = n")
    cx.ret(f"poll(F, C, n, {cx.next_block})")


@instruction("mbarrier.pending_count", pure=False)
def pending_count(cx: BlockEmitter, ins: Instruction) -> None:
    """The pending count in a state."""
    form = Form(ins, "mbarrier.pending_count")
    if form.rest != ["b64"]:
        raise Unknown(ins.opcode)
    d, state = operands(ins, 2)
    cx.line(f"{cx.dst(d)} = resize(mbar_pending(F, C, {cx.src(state, 64)}), 32)")
