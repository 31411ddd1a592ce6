# SPDX-License-Identifier: Apache-2.0
"""Fifth-generation tensor core instructions of one CTA and of CTA pairs (PTX ISA, "tcgen05")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.block_scale import BLOCKS
from tmagen.emu.instr_descriptor import Kind
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import SHARED, address, in_window
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Addr, Instruction, Reg, Vec
from tmagen.emu.tmem_copy import SHAPES as COPIES

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter

SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")


def _aligned(ins: Instruction, form: Form) -> None:
    if not (form.take("sync") and form.take("aligned")):
        raise Unknown(ins.opcode)


def _pair(cx: BlockEmitter, form: Form) -> bool:
    """Whether the instruction is of a CTA pair, which only a cluster has."""
    pair = form.one_of(("cta_group::1", "cta_group::2")) == "cta_group::2"
    if pair and not cx.clustered:
        raise Unknown(f"{form.opcode} in a launch without clusters")
    return pair


@instruction("tcgen05.alloc", pure=False, dests=0, collective=True, waits=True)
def alloc(cx: BlockEmitter, ins: Instruction) -> None:
    """Allocate columns, waiting until they are free; the address goes to shared memory."""
    form = Form(ins, "tcgen05.alloc")
    pair = _pair(cx, form)
    _aligned(ins, form)
    generic = not form.take(*SHARED)
    if form.rest != ["b32"]:
        raise Unknown(ins.opcode)
    a, count = operands(ins, 2)
    place = f"shared_address({address(cx, a)})" if generic else in_window(cx, a)
    whole_warp(cx)
    cx.event("tmem_alloc", place, cx.src(count, 32))
    if pair:
        cx.line("C.pair")
    cx.ret(f"tmem_alloc(F, C, {place}, {cx.src(count, 32)}, {cx.number}, {cx.next_block}, {cx.wait()})")


@instruction("tcgen05.dealloc", pure=False, dests=0, collective=True)
def dealloc(cx: BlockEmitter, ins: Instruction) -> None:
    """Free an allocation."""
    form = Form(ins, "tcgen05.dealloc")
    _pair(cx, form)
    _aligned(ins, form)
    if form.rest != ["b32"]:
        raise Unknown(ins.opcode)
    taddr, count = operands(ins, 2)
    whole_warp(cx)
    cx.event("tmem_dealloc", cx.src(taddr, 32), cx.src(count, 32))
    cx.line(f"tmem_dealloc(F, C, {cx.src(taddr, 32)}, {cx.src(count, 32)})")


@instruction("tcgen05.relinquish_alloc_permit", pure=False, dests=0, collective=True)
def relinquish(cx: BlockEmitter, ins: Instruction) -> None:
    """The CTA allocates no more."""
    form = Form(ins, "tcgen05.relinquish_alloc_permit")
    _pair(cx, form)
    _aligned(ins, form)
    form.done()
    whole_warp(cx)
    cx.event("tmem_relinquish")
    cx.line("C.tmem.relinquish()")


def _transfer(ins: Instruction, opcode: str, halves: str) -> tuple[str, int, bool]:
    """(shape, repetition, 16-bit halves) of tcgen05.ld and st."""
    form = Form(ins, opcode)
    _aligned(ins, form)
    shape = form.one_of(SHAPES)
    number = next((part for part in form.rest if part[0] == "x" and part[1:].isdigit()), "")
    if not number:
        raise Unknown(f"{ins.opcode}: repetition is missing")
    form.rest.remove(number)
    half = form.take(halves)
    if form.rest != ["b32"]:
        raise Unknown(ins.opcode)
    return shape, int(number[1:]), half


_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


def _split_offset(
    cx: BlockEmitter, ins: Instruction, shape: str, number: int, rest: tuple[object, ...], items: int
) -> int:
    if items != number * _REGISTERS[shape]:
        raise Unknown(f"{ins.opcode} with {items} registers")
    if shape != "16x32bx2":
        if rest:
            raise Unknown(ins.opcode)
        return 0
    offset = cx.literal(rest[0]) if len(rest) == 1 else None  # type: ignore[arg-type]
    if offset is None:
        raise Unknown(f"{ins.opcode} without an immediate half-split offset")
    return offset


@instruction("tcgen05.ld", pure=False, collective=True)
def ld(cx: BlockEmitter, ins: Instruction) -> None:
    """Tensor memory to registers. The value is that at issue: PTX keeps true dependences before wait::ld."""
    shape, number, pack = _transfer(ins, "tcgen05.ld", "pack::16b")
    d, a, *rest = ins.operands
    items = d.items if isinstance(d, Vec) else (d,)
    split = _split_offset(cx, ins, shape, number, tuple(rest), len(items))
    place = address(cx, a, 32)
    whole_warp(cx)
    cx.event("tmem_load", place)
    names = ", ".join(cx.dst(item) for item in items)
    cx.line(f"{names}{',' if len(items) == 1 else ''} = tmem_ld(F, C, {shape!r}, {number}, {place}, {pack}, {split})")


@instruction("tcgen05.st", pure=False, dests=0, collective=True)
def st(cx: BlockEmitter, ins: Instruction) -> None:
    """Registers to tensor memory."""
    shape, number, unpack = _transfer(ins, "tcgen05.st", "unpack::16b")
    a, *rest, values = ins.operands
    items = values.items if isinstance(values, Vec) else (values,)
    split = _split_offset(cx, ins, shape, number, tuple(rest), len(items))
    place = address(cx, a, 32)
    whole_warp(cx)
    cx.event("tmem_store", place)
    texts = "".join(f"{cx.src(item, 32)}, " for item in items)
    cx.line(f"tmem_st(F, C, {shape!r}, {number}, {place}, ({texts}), {unpack}, {split})")


@instruction("tcgen05.wait::ld", "tcgen05.wait::st", pure=False, dests=0, collective=True)
def wait(cx: BlockEmitter, ins: Instruction) -> None:
    """Loads and stores complete at issue here."""
    form = Form(ins, ".".join(ins.parts[:2]))
    _aligned(ins, form)
    form.done()
    whole_warp(cx)
    cx.event("tmem_wait", repr(ins.parts[1]))


@instruction("tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", pure=False, dests=0)
def fence(cx: BlockEmitter, ins: Instruction) -> None:
    """Orders what is in order here already."""
    Form(ins, ".".join(ins.parts[:2])).done()
    cx.event("tcgen05_fence", repr(ins.parts[1]))


_KINDS = tuple(f"kind::{kind.value}" for kind in Kind)
_VECTORS = tuple({vector for _, vector in BLOCKS if vector})


def _block(ins: Instruction, form: Form, kind: str) -> int:
    """Elements along K that share a factor; 0 without block scaling."""
    if not Kind(kind).scaled:
        return 0
    vector = form.one_of(_VECTORS, "") if form.take("block_scale") else "?"
    if (kind, vector) not in BLOCKS:
        raise Unknown(ins.opcode)
    return BLOCKS[kind, vector]


@instruction("tcgen05.mma", pure=False, dests=0)
def mma(cx: BlockEmitter, ins: Instruction) -> None:
    """D = A * B + D, asynchronously: A from shared or tensor memory, B from shared memory."""
    form = Form(ins, "tcgen05.mma")
    pair = _pair(cx, form)
    kind = form.one_of(_KINDS).removeprefix("kind::")
    block = _block(ins, form, kind)
    # How A stays in the collector buffer changes no value.
    form.one_of(("collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"), "")
    form.done()
    d, a, b, idesc, *rest = ins.operands
    disable = "None"
    if rest and isinstance(rest[0], Vec):
        if len(rest[0].items) != (8 if pair else 4):
            raise Unknown(f"{ins.opcode} with {len(rest[0].items)} lane mask words")
        disable = "(" + "".join(f"{cx.src(item, 32)}, " for item in rest[0].items) + ")"
        rest = rest[1:]
    scales = ""
    if block and len(rest) == 3:
        scales = f", ({address(cx, rest[0], 32)}, {address(cx, rest[1], 32)}, {block})"
        rest = rest[2:]
    if not 1 <= len(rest) <= 2 or bool(block) != bool(scales) or (block and (len(rest) != 1 or disable != "None")):
        raise Unknown(f"{ins.opcode} with {len(ins.operands)} operands")
    accumulate = cx.pred(rest[0])
    scale = 0
    if len(rest) == 2:
        literal = cx.literal(rest[1])
        if literal is None:
            raise Unknown(f"{ins.opcode} without an immediate scale-input-d")
        scale = literal
    in_tmem = isinstance(a, Addr)
    if not in_tmem and not isinstance(a, Reg):
        raise Unknown(f"{ins.opcode} with {a} as A")
    left = address(cx, a, 32) if in_tmem else cx.src(a, 64)
    cx.event("mma", address(cx, d, 32), left, cx.src(b, 64), cx.src(idesc, 32), accumulate)
    matrices = f"{address(cx, d, 32)}, {left}, {cx.src(b, 64)}, {cx.src(idesc, 32)}"
    name = "mma_of_pair" if pair else "mma"
    cx.line(f"{name}(F, C, {kind!r}, {matrices}, {accumulate}, {in_tmem}, {scale}, {disable}{scales})")


@instruction("tcgen05.cp", pure=False, dests=0)
def cp(cx: BlockEmitter, ins: Instruction) -> None:
    """Shared to tensor memory, asynchronously, in order with the thread's MMAs."""
    form = Form(ins, "tcgen05.cp")
    pair = _pair(cx, form)
    shape = ".".join(form.rest)
    if shape not in COPIES:
        raise Unknown(ins.opcode)
    a, descriptor = operands(ins, 2)
    place, source = address(cx, a, 32), cx.src(descriptor, 64)
    cx.event("tmem_copy", repr(shape), place, source)
    cx.line(f"tmem_cp(F, C, {shape!r}, {place}, {source}, {pair})")


@instruction("tcgen05.commit", pure=False, dests=0)
def commit(cx: BlockEmitter, ins: Instruction) -> None:
    """Arrive on an mbarrier when the thread's earlier MMAs are complete."""
    form = Form(ins, "tcgen05.commit")
    _pair(cx, form)
    if not form.take("mbarrier::arrive::one"):
        raise Unknown(ins.opcode)
    generic = not form.take("shared::cluster")
    multicast = form.take("multicast::cluster")
    if form.rest != ["b64"]:
        raise Unknown(ins.opcode)
    values = operands(ins, 2 if multicast else 1)
    place = address(cx, values[0])
    place = f"shared_address({place}, shared_too=True)" if generic else place
    cx.event("commit", place)
    if cx.clustered:
        cx.line(f"cluster_commit(F, C, {place}, {cx.src(values[1], 16) if multicast else 'None'})")
        return
    cx.line(f"commit(F, C, {place}, {cx.src(values[1], 16) if multicast else '1'})")
