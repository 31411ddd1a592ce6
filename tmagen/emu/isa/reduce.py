# SPDX-License-Identifier: Apache-2.0
"""Bulk reductions into global or shared memory (PTX ISA, "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu import reduce
from tmagen.emu.isa.bulk import RANKS, tensor_operand
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


def _form(ins: Instruction, opcode: str) -> tuple[Form, str, bool]:
    """(the rest, operation, whether a cache policy is there) of a reduction into global memory."""
    form = Form(ins, opcode)
    name = form.one_of(tuple(reduce.ALLOWED))
    if not (form.take("global") and form.take("shared::cta") and form.take("bulk_group")):
        raise Unknown(ins.opcode)
    return form, name, form.take("L2::cache_hint")


@instruction("cp.reduce.async.bulk.tensor", pure=False, dests=0)
def tensor(cx: BlockEmitter, ins: Instruction) -> None:
    """Reduce a box of shared memory into a tensor."""
    form, name, policy = _form(ins, "cp.reduce.async.bulk.tensor")
    rank = RANKS[form.one_of(tuple(RANKS))]
    form.take("tile")
    form.done()
    values = operands(ins, 2 + policy)
    tmap, coords = tensor_operand(cx, values[0], rank)
    place = address(cx, values[1])
    cx.event("tma_reduce", place, tmap, coords)
    cx.line(f"tma_reduce(F, C, {place}, {tmap}, {coords}, {name!r})")


@instruction("cp.reduce.async.bulk", pure=False, dests=0)
def plain(cx: BlockEmitter, ins: Instruction) -> None:
    """Reduce contiguous bytes of shared memory into global memory, or into shared memory of another CTA."""
    if "shared::cluster" in ins.parts:
        _into_cluster(cx, ins)
        return
    form, name, policy = _form(ins, "cp.reduce.async.bulk")
    kind = form.last()
    if kind not in reduce.ALLOWED[name] or form.take("noftz") != (kind in ("f16", "bf16") and name == "add"):
        raise Unknown(ins.opcode)
    form.done()
    values = operands(ins, 3 + policy)
    target, place, size = address(cx, values[0]), address(cx, values[1]), cx.src(values[2], 32)
    cx.event("bulk_reduce", target, place, size)
    cx.line(f"bulk_reduce(F, C, {target}, {place}, {size}, {name!r}, {kind!r})")


def _into_cluster(cx: BlockEmitter, ins: Instruction) -> None:
    form = Form(ins, "cp.reduce.async.bulk")
    name, kind = form.one_of(tuple(reduce.ALLOWED_ON_SHARED)), form.last()
    known = [form.take(part) for part in ("shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes")]
    if not all(known) or kind not in reduce.ALLOWED_ON_SHARED[name]:
        raise Unknown(ins.opcode)
    form.done()
    if not cx.clustered:
        cx.line("copy_without_cluster()")
        return
    target, place, size, barrier = operands(ins, 4)
    texts = f"{address(cx, target)}, {address(cx, place)}, {cx.src(size, 32)}, {address(cx, barrier)}"
    cx.line(f"cluster_bulk_reduce(F, C, {texts}, {name!r}, {kind!r})")
