# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic of f16, bf16, f16x2, bf16x2, f32 and f64 (PTX ISA, "Floating Point Instructions", "Half
Precision ...").
"""

from __future__ import annotations

from collections.abc import Sequence

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Operand

TYPES = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def arith(cx: Emitter, ins: Instruction, name: str) -> None:
    """add, sub, mul, fma, div of any floating-point type, rounded to nearest even."""
    form = Form(ins, ins.parts[0])
    kind = form.last()
    ftz, sat, relu = form.take("ftz"), form.take("sat"), form.take("relu")
    form.take("rn")
    form.done()
    dest, *sources = operands(ins, 4 if name == "fma" else 3)
    if kind in ("f32", "f64"):
        if relu:
            raise Unknown(ins.opcode)
        width = WIDTH[kind]
        texts = ", ".join(cx.src(s, width) for s in sources)
        cx.line(f"{cx.dst(dest)} = f_arith({name!r}, {width}, {ftz}, {sat}, {texts})")
        return
    if ftz or name == "div":
        raise Unknown(ins.opcode)
    half(cx, kind, dest, sources, name, relu, sat)


def half(
    cx: Emitter,
    kind: str,
    dest: Operand,
    sources: Sequence[Operand],
    name: str,
    relu: bool = False,
    sat: bool = False,
) -> None:
    """A 16-bit operation on one value or on both halves of a packed one."""
    scalar = kind.removesuffix("x2")
    width = 32 if kind.endswith("x2") else 16
    texts = ", ".join(cx.src(s, width) for s in sources)
    call = f"h_arith({name!r}, {scalar!r}, {relu}, {sat}, "
    target = cx.dst(dest)
    if width == 16:
        cx.line(f"{target} = {call}{texts})")
    else:
        cx.line(f"{target} = packed(lambda *o: {call}*o), {texts})")


@instruction("fma")
def fma(cx: Emitter, ins: Instruction) -> None:
    """d = a * b + c, rounded once."""
    arith(cx, ins, "fma")


def min_max(cx: Emitter, ins: Instruction) -> None:
    """min and max of floating-point numbers."""
    form = Form(ins, ins.parts[0])
    kind = form.last()
    nan = form.take("NaN")
    if form.take("ftz") and kind != "f32":
        raise Unknown(ins.opcode)
    form.done()
    d, a, b = operands(ins, 3)
    largest = ins.parts[0] == "max"
    if kind in ("f32", "f64"):
        width = WIDTH[kind]
        left, right = cx.src(a, width), cx.src(b, width)
        cx.line(f"{cx.dst(d)} = f_minmax({largest}, {width}, {nan}, {left}, {right})")
    elif nan:
        raise Unknown(ins.opcode)
    else:
        half(cx, kind, d, [a, b], ins.parts[0])


def sign(cx: Emitter, ins: Instruction, name: str) -> None:
    """neg and abs: the sign bits."""
    form = Form(ins, name)
    kind = form.last()
    if form.take("ftz"):
        raise Unknown(ins.opcode)
    form.done()
    d, a = operands(ins, 2)
    bits, width = {
        "f16": (0x8000, 16),
        "bf16": (0x8000, 16),
        "f16x2": (0x80008000, 32),
        "bf16x2": (0x80008000, 32),
        "f32": (1 << 31, 32),
        "f64": (1 << 63, 64),
    }[kind]
    source = cx.src(a, width)
    if name == "neg":
        cx.line(f"{cx.dst(d)} = {source} ^ {bits}")
    else:
        cx.line(f"{cx.dst(d)} = {source} & {bits ^ ((1 << width) - 1)}")


@instruction("rcp", "sqrt", "rsqrt", "ex2", "lg2")
def unary(cx: Emitter, ins: Instruction) -> None:
    """Reciprocal, roots, powers: the .rn results are exact to the last bit, .approx ones are the nearest number."""
    form = Form(ins, ins.parts[0])
    kind = form.last()
    ftz = form.take("ftz")
    form.one_of(("rn", "approx"))
    form.done()
    if kind not in ("f32", "f64"):
        raise Unknown(ins.opcode)
    d, a = operands(ins, 2)
    source = cx.src(a, WIDTH[kind])
    cx.line(f"{cx.dst(d)} = f_arith({ins.parts[0]!r}, {WIDTH[kind]}, {ftz}, False, {source})")
