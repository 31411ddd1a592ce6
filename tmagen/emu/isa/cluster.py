# SPDX-License-Identifier: Apache-2.0
"""The barrier of a cluster, and stores and reductions that an mbarrier is told of (PTX ISA, "barrier.cluster",
"st.async", "red.async")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.compile_emit import WIDTH
from tmagen.emu.isa.atomics import combining
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction, Vec

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter


@instruction("barrier.cluster.arrive", pure=False, dests=0, collective=True)
def arrive(cx: BlockEmitter, ins: Instruction) -> None:
    """Arrive at the barrier of all threads of the cluster, and go on."""
    form = Form(ins, "barrier.cluster.arrive")
    order = form.one_of(("release", "relaxed"), "release")
    if form.take("aligned"):
        whole_warp(cx)
    form.done()
    operands(ins, 0)
    cx.event("cluster_arrive", repr(order))
    cx.line("cluster_arrive(F, C)")


@instruction("barrier.cluster.wait", pure=False, dests=0, collective=True, waits=True)
def wait(cx: BlockEmitter, ins: Instruction) -> None:
    """Wait until all threads of the cluster have arrived."""
    form = Form(ins, "barrier.cluster.wait")
    form.take("acquire")
    if form.take("aligned"):
        whole_warp(cx)
    form.done()
    operands(ins, 0)
    cx.event("cluster_wait")
    cx.ret(f"cluster_wait(F, C, {cx.next_block}, {cx.wait()})")


@instruction("st.async", pure=False, dests=0)
def st_async(cx: BlockEmitter, ins: Instruction) -> None:
    """Store to shared memory of the cluster; an mbarrier of the same CTA is told of the bytes."""
    form = Form(ins, "st.async")
    form.take("weak")
    kind = form.last()
    count = {"v2": 2, "v4": 4, "": 1}[form.one_of(("v2", "v4"), "")]
    if not (form.take("shared::cluster") and form.take("mbarrier::complete_tx::bytes")):
        raise Unknown(ins.opcode)
    form.done()
    if kind not in WIDTH or WIDTH[kind] < 32 or not cx.clustered:
        raise Unknown(ins.opcode)
    a, values, barrier = operands(ins, 3)
    items = values.items if isinstance(values, Vec) else (values,)
    if len(items) != count:
        raise Unknown(f"{ins.opcode} with {len(items)} values")
    texts = "".join(f"{cx.sized(item, WIDTH[kind])}, " for item in items)
    cx.line(f"st_async(F, C, {address(cx, a)}, {WIDTH[kind] // 8}, ({texts}), {address(cx, barrier)})")


_RED_ASYNC = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"), "inc": ("u32",), "dec": ("u32",),
    "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip


@instruction("red.async", pure=False, dests=0)
def red_async(cx: BlockEmitter, ins: Instruction) -> None:
    """Combine with a word of shared memory of the cluster; an mbarrier of the same CTA is told of the bytes."""
    form = Form(ins, "red.async")
    form.take("relaxed")
    form.take("cluster")
    kind = form.last()
    name = form.one_of(tuple(_RED_ASYNC))
    if not (form.take("shared::cluster") and form.take("mbarrier::complete_tx::bytes")):
        raise Unknown(ins.opcode)
    form.done()
    if kind not in _RED_ASYNC[name] or not cx.clustered:
        raise Unknown(ins.opcode)
    a, value, barrier = operands(ins, 3)
    width = WIDTH[kind]
    combine, text = combining(ins, name, kind, False), cx.sized(value, width)
    cx.line(f"red_async(F, C, {address(cx, a)}, {width // 8}, {combine}, {text}, {address(cx, barrier)})")
