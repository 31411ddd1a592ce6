# SPDX-License-Identifier: Apache-2.0
"""Making tensor maps on the device (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy",
"fence.proxy.tensormap").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.memory import address, here
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.warp import whole_warp
from tmagen.emu.module import Instruction
from tmagen.emu.tensormap import NBYTES

if TYPE_CHECKING:
    from tmagen.emu.compile_text import BlockEmitter

_PLAIN = {
    "global_address": 64, "rank": 32, "elemtype": 32, "interleave_layout": 32, "swizzle_mode": 32,
    "swizzle_atomicity": 32, "fill_mode": 32,
}  # fmt: skip
_NUMBERED = {"box_dim": 32, "global_dim": 32, "global_stride": 64, "element_stride": 32}
_FIELDS = {**_PLAIN, **_NUMBERED}
_SCOPES = ("cta", "cluster", "gpu", "sys")


@instruction("tensormap.replace", pure=False, dests=0)
def replace(cx: BlockEmitter, ins: Instruction) -> None:
    """Put one field into a tensor map in shared or global memory."""
    form = Form(ins, "tensormap.replace")
    if not form.take("tile"):
        raise Unknown(ins.opcode)
    kind = form.last()
    field = form.one_of(tuple(_FIELDS))
    space = form.one_of(("shared::cta", "global"), "generic")
    if not form.take("b1024") or kind != f"b{_FIELDS[field]}":
        raise Unknown(ins.opcode)
    form.done()
    values = operands(ins, 3 if field in _NUMBERED else 2)
    ordinal = cx.literal(values[1]) if field in _NUMBERED else 0
    if ordinal is None:
        raise Unknown(f"{ins.opcode} without an immediate ordinal")
    place = address(cx, values[0])
    if space == "shared::cta":
        space, place = "shared", here(cx, place, False)
    value = cx.sized(values[-1], _FIELDS[field])
    cx.event("map_replace", repr(space), place)
    cx.line(f"map_replace(F, C, {space!r}, {place}, {field!r}, {ordinal}, {value})")


@instruction("tensormap.cp_fenceproxy", pure=False, dests=0, collective=True)
def copy(cx: BlockEmitter, ins: Instruction) -> None:
    """Copy a tensor map from shared to global memory, and release it."""
    form = Form(ins, "tensormap.cp_fenceproxy")
    for part in ("global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"):
        if not form.take(part):
            raise Unknown(ins.opcode)
    form.one_of(_SCOPES)
    form.done()
    target, source, size = operands(ins, 3)
    if cx.literal(size) != NBYTES:
        raise Unknown(f"{ins.opcode} of another size than {NBYTES}")
    place, start = address(cx, target), here(cx, address(cx, source), False)
    whole_warp(cx)
    cx.event("map_copy", place, start)
    cx.line(f"map_copy(F, C, {place}, {start})")


@instruction("fence.proxy.tensormap::generic", pure=False, dests=0)
def fence(cx: BlockEmitter, ins: Instruction) -> None:
    """Order a map's bytes before the copies that use it; in order here already."""
    form = Form(ins, "fence.proxy.tensormap::generic")
    way = form.one_of(("acquire", "release"))
    form.one_of(_SCOPES)
    form.done()
    if way == "release":
        operands(ins, 0)
        cx.event("fence", repr(ins.opcode))
        return
    a, size = operands(ins, 2)
    if cx.literal(size) != NBYTES:
        raise Unknown(f"{ins.opcode} of another size than {NBYTES}")
    place = address(cx, a)
    cx.event("map_acquire", place)
    cx.line(f"map_acquire(F, C, {place})")
