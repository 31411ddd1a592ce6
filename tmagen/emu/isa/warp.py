# SPDX-License-Identifier: Apache-2.0
"""Instructions across the lanes of a warp (PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync",
"activemask").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Operand, Pair, Sink

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def members(cx: BlockEmitter, mask: Operand) -> None:
    """Wait at the start of the block until the lanes of `mask` are together."""
    text = cx.src(mask, 32)
    if text == str(0xFFFFFFFF):
        cx.line(f"if F.mask != F.warp.live: return converge(F, {cx.number})")
    else:
        cx.line(f"if n := gather(F, {text}, {cx.number}): return n")


def meeting(cx: BlockEmitter, mask: Operand) -> None:
    """The same for instructions that exchange what the lanes have computed."""
    members(cx, mask)
    cx.meets()


def whole_warp(cx: BlockEmitter) -> None:
    """The same for `.aligned` instructions; those right after another one are together already."""
    if cx.first_in_block:
        cx.line(f"if F.mask != F.warp.live: return converge(F, {cx.number})")


@instruction("shfl.sync", pure=False, collective=True)
def shfl(cx: BlockEmitter, ins: Instruction) -> None:
    """Read a register of another lane."""
    form = Form(ins, "shfl.sync")
    mode = form.one_of(("idx", "up", "down", "bfly"))
    if form.rest != ["b32"]:
        raise Unknown(ins.opcode)
    dest, a, b, c, mask = operands(ins, 5)
    meeting(cx, mask)
    source, lane, clamp = cx.src(a, 32), cx.src(b, 32), cx.src(c, 32)
    first, second = (dest.first, dest.second) if isinstance(dest, Pair) else (dest, Sink())
    names = cx.dst(first), cx.dst(second)
    cx.line(f"{names[0]}, {names[1]} = shuffle(F, {mode!r}, {source}, {lane}, {clamp})")


@instruction("vote.sync", pure=False, collective=True)
def vote(cx: BlockEmitter, ins: Instruction) -> None:
    """any, all, uni and ballot over the member lanes."""
    form = Form(ins, "vote.sync")
    mode = form.one_of(("any", "all", "uni", "ballot"))
    if form.rest != ["b32" if mode == "ballot" else "pred"]:
        raise Unknown(ins.opcode)
    d, a, mask = operands(ins, 3)
    meeting(cx, mask)
    source = cx.pred(a)
    cx.line(f"{cx.dst(d)} = vote(F, {mode!r}, {source})")


@instruction("match.any.sync", "match.all.sync", pure=False, collective=True)
def match(cx: BlockEmitter, ins: Instruction) -> None:
    """Lanes that hold the same value."""
    mode = ins.parts[1]
    form = Form(ins, f"match.{mode}.sync")
    if form.rest not in (["b32"], ["b64"]):
        raise Unknown(ins.opcode)
    width = int(form.rest[0][1:])
    dest, a, mask = operands(ins, 3)
    meeting(cx, mask)
    source = cx.src(a, width)
    if isinstance(dest, Pair):
        names = cx.dst(dest.first), cx.dst(dest.second)
        cx.line(f"{names[0]}, {names[1]} = match(F, {mode!r}, {source})")
    else:
        cx.line(f"{cx.dst(dest)}, _ = match(F, {mode!r}, {source})")


@instruction("redux.sync", pure=False, collective=True)
def redux(cx: BlockEmitter, ins: Instruction) -> None:
    """Reduction over the member lanes."""
    form = Form(ins, "redux.sync")
    kind = form.last()
    name = form.one_of(("add", "min", "max", "and", "or", "xor"))
    absolute, nan = (form.take("abs"), form.take("NaN")) if kind == "f32" else (False, False)
    form.done()
    if kind not in ("u32", "s32", "b32") and (kind != "f32" or name not in ("min", "max")):
        raise Unknown(ins.opcode)
    d, a, mask = operands(ins, 3)
    meeting(cx, mask)
    source = cx.src(a, 32)
    if kind == "f32":
        source = f"{source} & {(1 << 31) - 1}" if absolute else source
        cx.line(f"{cx.dst(d)} = redux_f32(F, {name == 'max'}, {nan}, {source})")
        return
    cx.line(f"{cx.dst(d)} = redux(F, {name!r}, {kind == 's32'}, {source})")


@instruction("activemask", pure=False)
def activemask(cx: BlockEmitter, ins: Instruction) -> None:
    """The lanes that run this together."""
    if ins.opcode != "activemask.b32":
        raise Unknown(ins.opcode)
    (d,) = operands(ins, 1)
    cx.line(f"{cx.dst(d)} = F.mask")


@instruction("elect.sync", pure=False, collective=True)
def elect(cx: BlockEmitter, ins: Instruction) -> None:
    """One member lane is the leader: an H200 takes the lowest, the ISA leaves it open."""
    Form(ins, "elect.sync").done()
    dest, mask = operands(ins, 2)
    members(cx, mask)
    if not isinstance(dest, Pair):
        raise Unknown("elect.sync without a predicate")
    lane, chosen = cx.dst(dest.first), cx.dst(dest.second)
    cx.line(f"{lane}, {chosen} = elect(F, {cx.src(mask, 32)})")
