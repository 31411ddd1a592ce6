# SPDX-License-Identifier: Apache-2.0
"""Barriers of a CTA and of a warp (PTX ISA, "bar, barrier", "bar.warp.sync")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def _numbers(cx: BlockEmitter, ins: Instruction) -> tuple[str, str]:
    if not 1 <= len(ins.operands) <= 2:
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    texts = [cx.src(operand, 32) for operand in ins.operands]
    return texts[0], texts[1] if len(texts) > 1 else "None"


_SYNC = ("bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync")
_ARRIVE = ("bar.arrive", "bar.cta.arrive", "barrier.arrive", "barrier.cta.arrive")


@instruction(*_SYNC, pure=False, dests=0, collective=True, waits=True)
def sync(cx: BlockEmitter, ins: Instruction) -> None:
    """Arrive at a named barrier and wait for the others. The lanes of a warp come together first, or at several."""
    form = Form(ins, next(name for name in _SYNC if ins.opcode == name or ins.opcode.startswith(name + ".")))
    apart = not form.take("aligned") and ins.parts[0] == "barrier"
    form.done()
    index, count = _numbers(cx, ins)
    cx.event("barrier", index, count)
    cx.ret(f"bar_sync(F, C, {index}, {count}, {cx.number}, {cx.next_block}, {cx.wait()}, {apart})")


@instruction(*_ARRIVE, pure=False, dests=0, collective=True)
def arrive(cx: BlockEmitter, ins: Instruction) -> None:
    """Arrive at a named barrier and go on."""
    form = Form(ins, next(name for name in _ARRIVE if ins.opcode == name or ins.opcode.startswith(name + ".")))
    form.take("aligned")
    form.done()
    cx.line(f"if F.mask != F.warp.live: return converge(F, {cx.number})")
    index, count = _numbers(cx, ins)
    if count == "None":
        raise Unknown(f"{ins.opcode} without a thread count")
    cx.event("barrier_arrive", index, count)
    cx.line(f"bar_arrive(F, C, {index}, {count})")


_RED = ("bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red")


@instruction(*_RED, pure=False, collective=True)
def red(cx: BlockEmitter, ins: Instruction) -> None:
    """Meet at a named barrier, and count the threads whose predicate holds: how many, all or any."""
    form = Form(ins, next(name for name in _RED if ins.opcode.startswith(name + ".")))
    form.take("aligned")
    kind = form.last()
    name = form.one_of(("popc", "and", "or"))
    form.done()
    if kind != ("u32" if name == "popc" else "pred"):
        raise Unknown(ins.opcode)
    d, index, *count, holds = operands(ins, 3, 4)
    number, threads = cx.src(index, 32), cx.src(count[0], 32) if count else "None"
    cx.line(f"n = bar_red(F, C, {number}, {threads}, {cx.pred(holds)}, {name!r}, {cx.number}, {cx.wait()})")
    cx.line("if n.__class__ is tuple: return n[0]")
    cx.line(f"{cx.dst(d)} = n")


@instruction("bar.warp.sync", pure=False, dests=0, collective=True)
def warp_sync(cx: BlockEmitter, ins: Instruction) -> None:
    """Wait for the member lanes, at this barrier or at others of the same mask."""
    Form(ins, "bar.warp.sync").done()
    mask = cx.src(ins.operands[0], 32)
    parted = "F.mask != F.warp.live and " if mask == str(0xFFFFFFFF) else ""
    cx.line(f"if {parted}(n := warp_barrier(F, {mask}, {cx.number})): return n")
    cx.event("warp_sync", mask)
