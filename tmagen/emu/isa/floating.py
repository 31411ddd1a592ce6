# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic of f16, bf16, f32 and f64, and of packed pairs (PTX ISA, "Floating Point Instructions",
"Half Precision ...", "Mixed Precision ...").
"""

from __future__ import annotations

from collections.abc import Sequence

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.rounding import MODES
from tmagen.emu.module import Instruction, Operand

_HALVES = ("f16", "bf16", "f16x2", "bf16x2")
_MAGNITUDE = (1 << 31) - 1
TYPES = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f32x2", "f64")


def arith(cx: Emitter, ins: Instruction, name: str) -> None:
    """add, sub, mul, fma, div of any floating-point type, rounded to nearest even; of f32 also by another mode. Where
    div is approximate, the result is the nearest number.
    """
    form = Form(ins, ins.parts[0])
    kind = form.last()
    ftz, sat, relu = form.take("ftz"), form.take("sat"), form.take("relu")
    if name == "div" and kind == "f32" and not form.take("full"):
        form.take("approx")
    mode = form.one_of(MODES, "rn")
    form.done()
    if mode != "rn" and (kind not in ("f32", "f32x2") or name == "div"):
        raise Unknown(ins.opcode)
    dest, *sources = operands(ins, 4 if name == "fma" else 3)
    if kind == "f32x2":
        if relu or sat or name == "div":
            raise Unknown(ins.opcode)
        texts = ", ".join(cx.src(s, 64) for s in sources)
        one = f"lambda *o: f_arith({name!r}, 32, {ftz}, False, *o, mode={mode!r})"
        cx.line(f"{cx.dst(dest)} = packed_words({one}, {texts})")
        return
    if kind in ("f32", "f64"):
        if relu:
            raise Unknown(ins.opcode)
        width = WIDTH[kind]
        texts = ", ".join(cx.src(s, width) for s in sources)
        by = "" if mode == "rn" else f", mode={mode!r}"
        cx.line(f"{cx.dst(dest)} = f_arith({name!r}, {width}, {ftz}, {sat}, {texts}{by})")
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
    nan: bool = False,
) -> None:
    """A 16-bit operation on one value or on both halves of a packed one."""
    scalar = kind.removesuffix("x2")
    width = 32 if kind.endswith("x2") else 16
    texts = ", ".join(cx.src(s, width) for s in sources)
    call = f"h_arith({name!r}, {scalar!r}, {relu}, {sat}, "
    target = cx.dst(dest)
    more = ", nan=True" if nan else ""
    if width == 16:
        cx.line(f"{target} = {call}{texts}{more})")
    else:
        cx.line(f"{target} = packed(lambda *o: {call}*o{more}), {texts})")


@instruction("fma")
def fma(cx: Emitter, ins: Instruction) -> None:
    """d = a * b + c, rounded once."""
    arith(cx, ins, "fma")


def min_max(cx: Emitter, ins: Instruction) -> None:
    """min and max of floating-point numbers."""
    form = Form(ins, ins.parts[0])
    kind = form.last()
    nan, ftz = form.take("NaN"), form.take("ftz")
    crossed = form.take("xorsign") and form.take("abs")
    if (ftz or crossed) and kind != "f32":
        raise Unknown(ins.opcode)
    form.done()
    largest = ins.parts[0] == "max"
    if kind == "f32x2":
        raise Unknown(ins.opcode)
    if kind == "f32" and len(ins.operands) == 4 and not crossed:
        d, *sources = operands(ins, 4)
        x, y, z = (cx.src(s, 32) for s in sources)
        first = f"f_minmax({largest}, 32, {nan}, {x}, {y}, {ftz})"
        cx.line(f"{cx.dst(d)} = f_minmax({largest}, 32, {nan}, {first}, {z}, {ftz})")
        return
    d, a, b = operands(ins, 3)
    if kind in ("f32", "f64"):
        width = WIDTH[kind]
        left, right = cx.src(a, width), cx.src(b, width)
        if crossed:
            # The magnitudes' minimum or maximum, with the product's sign.
            sign = cx.temporary()
            cx.line(f"{sign} = ({left} ^ {right}) & {1 << 31}")
            left, right = f"{left} & {_MAGNITUDE}", f"{right} & {_MAGNITUDE}"
        result = f"f_minmax({largest}, {width}, {nan}, {left}, {right}{', True' if ftz else ''})"
        cx.line(f"{cx.dst(d)} = " + (f"crossed({result}, {sign})" if crossed else result))
    else:
        half(cx, kind, d, [a, b], ins.parts[0], nan=nan)


def sign(cx: Emitter, ins: Instruction, name: str) -> None:
    """neg and abs: the sign bits."""
    form = Form(ins, name)
    kind = form.last()
    ftz = form.take("ftz")
    if kind == "f32x2" or (ftz and kind != "f32"):
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
    source = f"flush_bits({cx.src(a, width)})" if ftz else cx.src(a, width)
    if name == "neg":
        cx.line(f"{cx.dst(d)} = {source} ^ {bits}")
    else:
        cx.line(f"{cx.dst(d)} = {source} & {bits ^ ((1 << width) - 1)}")


@instruction("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def unary(cx: Emitter, ins: Instruction) -> None:
    """Reciprocal, roots and the like: the .rn results are exact to the last bit, .approx ones the nearest number."""
    name = ins.parts[0]
    form = Form(ins, name)
    kind = form.last()
    ftz = form.take("ftz")
    rounding = form.one_of(("rn", "approx"))
    form.done()
    if rounding == "rn" and name not in ("rcp", "sqrt"):
        raise Unknown(ins.opcode)
    d, a = operands(ins, 2)
    if kind in _HALVES and name in ("ex2", "tanh"):
        half(cx, kind, d, [a], name)
        return
    if kind not in ("f32", "f64") or (kind == "f64" and name in ("ex2", "lg2", "sin", "cos", "tanh")):
        raise Unknown(ins.opcode)
    source = cx.src(a, WIDTH[kind])
    cx.line(f"{cx.dst(d)} = f_arith({ins.parts[0]!r}, {WIDTH[kind]}, {ftz}, False, {source})")


@instruction("copysign")
def copysign(cx: Emitter, ins: Instruction) -> None:
    """d = b with the sign of a."""
    form = Form(ins, "copysign")
    kind = form.last()
    form.done()
    if kind not in ("f32", "f64"):
        raise Unknown(ins.opcode)
    width = WIDTH[kind]
    d, a, b = operands(ins, 3)
    left, right = cx.src(a, width), cx.src(b, width)
    top = 1 << (width - 1)
    cx.line(f"{cx.dst(d)} = {left} & {top} | {right} & {top - 1}")
