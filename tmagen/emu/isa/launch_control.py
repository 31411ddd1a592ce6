# SPDX-License-Identifier: Apache-2.0
"""Taking over clusters that have not been launched (PTX ISA, "clusterlaunchcontrol")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Vec

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


@instruction("clusterlaunchcontrol.try_cancel", pure=False, dests=0)
def try_cancel(cx: BlockEmitter, ins: Instruction) -> None:
    """Ask for a cluster that has not been launched; whether one is given depends on the execution policy."""
    form = Form(ins, "clusterlaunchcontrol.try_cancel")
    if not (form.take("async") and form.take("mbarrier::complete_tx::bytes") and form.last() == "b128"):
        raise Unknown(ins.opcode)
    form.take("shared::cta")
    multicast = form.take("multicast::cluster::all")
    form.done()
    a, barrier = operands(ins, 2)
    place, where = address(cx, a), address(cx, barrier)
    if "shared::cta" not in ins.parts:
        place, where = f"shared_address({place})", f"shared_address({where})"
    cx.event("try_cancel", place, where)
    cx.line(f"try_cancel(F, C, {place}, {where}, {multicast})")


@instruction("clusterlaunchcontrol.query_cancel.is_canceled", pure=False)
def is_canceled(cx: BlockEmitter, ins: Instruction) -> None:
    """Whether a cluster was given."""
    form = Form(ins, "clusterlaunchcontrol.query_cancel.is_canceled")
    if form.rest != ["pred", "b128"]:
        raise Unknown(ins.opcode)
    d, response = operands(ins, 2)
    text = cx.src(response, 128)
    cx.line(f"{cx.dst(d)} = is_canceled(F, C, {text})")


@instruction(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    *(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}" for axis in "xyz"),
    pure=False,
)
def get_first_ctaid(cx: BlockEmitter, ins: Instruction) -> None:
    """The place in the grid of the first CTA of the cluster that was given."""
    d, response = operands(ins, 2)
    text = cx.src(response, 128)
    axis = ins.parts[2].partition("::")[2]
    if axis:
        if ins.parts[3:] != ("b32", "b128"):
            raise Unknown(ins.opcode)
        cx.line(f"{cx.dst(d)} = first_ctaid(F, C, {text})[{'xyz'.index(axis)}]")
        return
    if ins.parts[3:] != ("v4", "b32", "b128") or not isinstance(d, Vec) or len(d.items) != 4:
        raise Unknown(ins.opcode)
    names = [cx.dst(item) for item in d.items]
    cx.line(f"{', '.join(names[:3])} = first_ctaid(F, C, {text})")
    cx.line(f"{names[3]} = 0")
