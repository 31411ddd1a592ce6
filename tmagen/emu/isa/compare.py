# SPDX-License-Identifier: Apache-2.0
"""Comparison and selection: setp, set, selp (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Imm, Instruction, Operand, Pair

_PLAIN = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_FLOAT = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_BOOL = {"and": "&", "or": "|", "xor": "^"}


def comparison(cx: Emitter, form: Form, a: Operand, b: Operand) -> str:
    """An expression for the comparison that a form names, its type the last qualifier."""
    kind = form.last()
    ftz = form.take("ftz")
    if kind in ("f32", "f64"):
        name = form.one_of(_FLOAT)
        width = WIDTH[kind]
        return f"f_compare({name!r}, {width}, {ftz}, {cx.src(a, width)}, {cx.src(b, width)})"
    if kind in ("f16", "bf16"):
        name = form.one_of(_FLOAT)
        return f"h_compare({name!r}, {kind!r}, {cx.src(a, 16)}, {cx.src(b, 16)})"
    if kind not in WIDTH or kind[0] not in "bus" or WIDTH[kind] < 16:
        raise Unknown(f"type .{kind} in {form.opcode}")
    width = WIDTH[kind]
    name = form.one_of(tuple(_PLAIN))
    if kind[0] == "b" and name not in ("eq", "ne"):
        raise Unknown(form.opcode)
    left, right = cx.src(a, width), cx.src(b, width)
    if kind[0] == "s" and name not in ("eq", "ne"):
        # Flipping the sign bit turns signed order into unsigned order, for ints and arrays alike.
        flip = 1 << (width - 1)
        left = f"({left} ^ {flip})"
        right = str((b.value & ((1 << width) - 1)) ^ flip) if isinstance(b, Imm) else f"({right} ^ {flip})"
    return f"({left} {_PLAIN[name]} {right})"


@instruction("setp")
def setp(cx: Emitter, ins: Instruction) -> None:
    """p = (a cmp b) [boolop c]; q = !(a cmp b) [boolop c]."""
    form = Form(ins, "setp")
    combine = next((part for part in form.rest if part in _BOOL), None)
    if form.rest[-1] in ("f16x2", "bf16x2"):
        raise Unknown(ins.opcode)
    if combine:
        form.rest.remove(combine)
        dest, a, b, c = operands(ins, 4)
    else:
        dest, a, b = operands(ins, 3)
    result = comparison(cx, form, a, b)
    form.done()
    tail = f" {_BOOL[combine]} {cx.pred(c)}" if combine else ""
    if isinstance(dest, Pair):
        cx.line(f"c = {result}")
        first = f"c{tail}"
        second = f"(c ^ True){tail}"
        cx.line(f"c, n = {first}, {second}")
        cx.line(f"{cx.dst(dest.first)} = c")
        cx.line(f"{cx.dst(dest.second)} = n")
    else:
        cx.line(f"{cx.dst(dest)} = {result}{tail}")


@instruction("set")
def set_(cx: Emitter, ins: Instruction) -> None:
    """d = all ones (or 1.0) where the comparison holds, else 0."""
    form = Form(ins, "set")
    combine = next((part for part in form.rest if part in _BOOL), None)
    if combine:
        form.rest.remove(combine)
        dest, a, b, c = operands(ins, 4)
    else:
        dest, a, b = operands(ins, 3)
    source = form.last()
    target = form.last()
    form.rest.append(source)
    result = comparison(cx, form, a, b)
    form.done()
    true = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000}.get(target)
    if true is None:
        raise Unknown(ins.opcode)
    tail = f" {_BOOL[combine]} {cx.pred(c)}" if combine else ""
    cx.line(f"c = {result}{tail}")
    cx.line(f"{cx.dst(dest)} = ({true} if c else 0) if c.__class__ is not ND else where32(c, {true}, 0)")


@instruction("selp")
def selp(cx: Emitter, ins: Instruction) -> None:
    """d = p ? a : b."""
    form = Form(ins, "selp")
    kind = form.last()
    form.done()
    width = WIDTH.get(kind, 0)
    if width < 16:
        raise Unknown(ins.opcode)
    d, a, b, p = operands(ins, 4)
    left, right, test = cx.src(a, width), cx.src(b, width), cx.pred(p)
    cx.line(f"c = {test}")
    cx.line(f"{cx.dst(d)} = ({left} if c else {right}) if c.__class__ is not ND else where{width}(c, {left}, {right})")


@instruction("slct")
def slct(cx: Emitter, ins: Instruction) -> None:
    """d = (c >= 0) ? a : b."""
    form = Form(ins, "slct")
    test_kind, kind = form.last(), form.last()
    ftz = form.take("ftz")
    if test_kind not in ("s32", "f32") or WIDTH.get(kind, 0) < 16 or (ftz and test_kind == "s32"):
        raise Unknown(ins.opcode)
    form.done()
    width = WIDTH[kind]
    d, a, b, c = operands(ins, 4)
    left, right, test = cx.src(a, width), cx.src(b, width), cx.src(c, 32)
    if test_kind == "f32":
        cx.line(f"c = f_compare('ge', 32, {ftz}, {test}, 0)")
    else:
        cx.line(f"c = {test} < {1 << 31}")
    cx.line(f"{cx.dst(d)} = ({left} if c else {right}) if c.__class__ is not ND else where{width}(c, {left}, {right})")


@instruction("testp")
def testp(cx: Emitter, ins: Instruction) -> None:
    """p = whether a number is finite, infinite, a number, NaN, normal or subnormal."""
    form = Form(ins, "testp")
    kind = form.last()
    name = form.one_of(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    form.done()
    if kind not in ("f32", "f64"):
        raise Unknown(ins.opcode)
    p, a = operands(ins, 2)
    cx.line(f"{cx.dst(p)} = f_test({name!r}, {WIDTH[kind]}, {cx.src(a, WIDTH[kind])})")
