# SPDX-License-Identifier: Apache-2.0
"""Bulk and tensor copies (PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", bulk groups)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address, base_address
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Addr, Instruction, Operand, Vec

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter

RANKS = {"1d": 1, "2d": 2, "3d": 3, "4d": 4, "5d": 5}


def tensor_operand(cx: BlockEmitter, operand: Operand, rank: int) -> tuple[str, str]:
    """(address of the map, tuple of coordinates) of `[map, {c0, c1, ...}]`."""
    if not isinstance(operand, Addr) or len(operand.rest) != 1:
        raise Unknown(f"{operand} as a tensor operand")
    vector = operand.rest[0]
    items = vector.items if isinstance(vector, Vec) else (vector,)
    if len(items) != rank:
        raise Unknown(f"{len(items)} coordinates of a {rank}d copy")
    return base_address(cx, operand), "(" + "".join(f"{cx.src(item, 32)}, " for item in items) + ")"


@instruction("cp.async.bulk.tensor", pure=False, dests=0)
def tensor(cx: BlockEmitter, ins: Instruction) -> None:
    """A box of a tensor to shared memory (mbarrier completion) or back (bulk group)."""
    form = Form(ins, "cp.async.bulk.tensor")
    rank = RANKS[form.one_of(tuple(RANKS))]
    pair = form.one_of(("cta_group::1", "cta_group::2"), "") == "cta_group::2"
    if pair and not cx.clustered:
        raise Unknown(f"{ins.opcode} in a launch without clusters")
    target, source = form.rest[0], form.rest[1]
    del form.rest[:2]
    form.take("tile")
    policy = form.take("L2::cache_hint")
    if target in ("shared::cluster", "shared::cta") and source == "global":
        if not form.take("mbarrier::complete_tx::bytes"):
            raise Unknown(ins.opcode)
        multicast = target == "shared::cluster" and form.take("multicast::cluster")
        form.done()
        values = operands(ins, 3 + multicast + policy)
        place, barrier = address(cx, values[0]), address(cx, values[2])
        tmap, coords = tensor_operand(cx, values[1], rank)
        mask = cx.src(values[3], 16) if multicast else "1"
        cx.event("tma_load", place, tmap, coords, barrier)
        if cx.clustered:
            mask = mask if multicast else "None"
            cx.line(f"cluster_load(F, C, {place}, {tmap}, {coords}, {barrier}, {mask}, {pair})")
            return
        cx.line(f"tma_load(F, C, {place}, {tmap}, {coords}, {barrier}, {mask})")
    elif target == "global" and source == "shared::cta":
        if not form.take("bulk_group"):
            raise Unknown(ins.opcode)
        form.done()
        values = operands(ins, 2 + policy)
        tmap, coords = tensor_operand(cx, values[0], rank)
        place = address(cx, values[1])
        cx.event("tma_store", place, tmap, coords)
        cx.line(f"tma_store(F, C, {place}, {tmap}, {coords})")
    else:
        raise Unknown(ins.opcode)


@instruction("cp.async.bulk", pure=False, dests=0)
def plain(cx: BlockEmitter, ins: Instruction) -> None:
    """Contiguous bytes between global and shared memory."""
    form = Form(ins, "cp.async.bulk")
    if len(form.rest) < 2:
        raise Unknown(ins.opcode)
    target, source = form.rest[0], form.rest[1]
    del form.rest[:2]
    policy = form.take("L2::cache_hint")
    if target in ("shared::cluster", "shared::cta") and source == "global":
        if not form.take("mbarrier::complete_tx::bytes"):
            raise Unknown(ins.opcode)
        multicast = target == "shared::cluster" and form.take("multicast::cluster")
        form.done()
        values = operands(ins, 4 + multicast + policy)
        d, a, barrier = address(cx, values[0]), address(cx, values[1]), address(cx, values[3])
        mask = cx.src(values[4], 16) if multicast else "1"
        cx.event("bulk_load", d, a, cx.src(values[2], 32), barrier)
        if cx.clustered:
            mask = mask if multicast else "None"
            cx.line(f"cluster_bulk_load(F, C, {d}, {a}, {cx.src(values[2], 32)}, {barrier}, {mask}, False)")
            return
        cx.line(f"bulk_load(F, C, {d}, {a}, {cx.src(values[2], 32)}, {barrier}, {mask})")
    elif target == "global" and source == "shared::cta":
        if not form.take("bulk_group"):
            raise Unknown(ins.opcode)
        form.done()
        values = operands(ins, 3 + policy)
        cx.event("bulk_store", address(cx, values[0]), address(cx, values[1]), cx.src(values[2], 32))
        cx.line(f"bulk_store(F, C, {address(cx, values[0])}, {address(cx, values[1])}, {cx.src(values[2], 32)})")
    elif target == "shared::cluster" and source == "shared::cta":
        if not cx.clustered:
            cx.line("copy_without_cluster()")
            return
        if not form.take("mbarrier::complete_tx::bytes"):
            raise Unknown(ins.opcode)
        form.done()
        values = operands(ins, 4 + policy)
        d, a, barrier = address(cx, values[0]), address(cx, values[1]), address(cx, values[3])
        cx.line(f"cluster_bulk_load(F, C, {d}, {a}, {cx.src(values[2], 32)}, {barrier}, None, True)")
    else:
        raise Unknown(ins.opcode)


@instruction("cp.async.bulk.prefetch", pure=False, dests=0)
def prefetch(cx: BlockEmitter, ins: Instruction) -> None:
    """A prefetch into L2 changes nothing; a tensor's map and where the box starts are still checked."""
    form = Form(ins, "cp.async.bulk.prefetch")
    policy = form.take("L2::cache_hint")
    if form.take("tensor"):
        rank = RANKS[form.one_of(tuple(RANKS))]
        if not (form.take("L2") and form.take("global")):
            raise Unknown(ins.opcode)
        form.take("tile")
        form.done()
        tmap, coords = tensor_operand(cx, operands(ins, 1 + policy)[0], rank)
        cx.event("tma_prefetch", tmap, coords)
        cx.line(f"prefetch_box(F, C, {tmap}, {coords})")
        return
    if not (form.take("L2") and form.take("global")):
        raise Unknown(ins.opcode)
    form.done()
    operands(ins, 2 + policy)


@instruction("cp.async.bulk.commit_group", pure=False, dests=0)
def commit_group(cx: BlockEmitter, ins: Instruction) -> None:
    """The thread's uncommitted bulk stores become a group."""
    Form(ins, "cp.async.bulk.commit_group").done()
    operands(ins, 0)
    cx.event("bulk_commit")
    cx.line("bulk_commit(F)")


@instruction("cp.async.bulk.wait_group", pure=False, dests=0, waits=True)
def wait_group(cx: BlockEmitter, ins: Instruction) -> None:
    """Wait until at most N of the thread's newest groups are outstanding; .read: until their sources are read."""
    form = Form(ins, "cp.async.bulk.wait_group")
    read = form.take("read")
    form.done()
    count = cx.literal(operands(ins, 1)[0])
    if count is None or count < 0:
        raise Unknown(f"{ins.opcode} without a literal count")
    cx.event("bulk_wait", str(count), str(read))
    cx.ret(f"bulk_wait(F, C, {count}, {read}, {cx.next_block}, {cx.wait()})")
