# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic: add, sub, mul, mad, div, rem, min, max, abs, neg, sad, dot products (PTX ISA, "Integer
Arithmetic Instructions").

Float types of the same opcodes go to `floating`.
"""

from __future__ import annotations

from tmagen.emu.compile_emit import Emitter
from tmagen.emu.isa import floating
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Pair

INTEGERS = {"u16": 16, "s16": 16, "b16": 16, "u32": 32, "s32": 32, "b32": 32, "u64": 64, "s64": 64, "b64": 64}


def int_type(form: Form) -> tuple[int, bool]:
    """(width, signed) of the type that ends an integer opcode."""
    kind = form.last()
    if kind not in INTEGERS:
        raise Unknown(f"type .{kind} in {form.opcode}")
    return INTEGERS[kind], kind.startswith("s")


def wrap(cx: Emitter, target: str, expression: str, width: int) -> None:
    """Assign, modulo 2^width. Arrays wrap by themselves."""
    cx.line(f"{target} = {expression}")
    cx.line(f"if {target}.__class__ is not ND: {target} &= {(1 << width) - 1}")


def _is_float(ins: Instruction) -> bool:
    return ins.parts[-1] in floating.TYPES


@instruction("add")
def add(cx: Emitter, ins: Instruction) -> None:
    """d = a + b, wrapping."""
    _add_sub(cx, ins, "+")


@instruction("sub")
def sub(cx: Emitter, ins: Instruction) -> None:
    """d = a - b, wrapping."""
    _add_sub(cx, ins, "-")


def _add_sub(cx: Emitter, ins: Instruction, sign: str) -> None:
    if _is_float(ins):
        floating.arith(cx, ins, "add" if sign == "+" else "sub")
        return
    if "cc" in ins.parts:
        _with_carry(cx, ins)
        return
    form = Form(ins, ins.parts[0])
    if form.rest in (["u16x2"], ["s16x2"]) and sign == "+":
        d, a, b = operands(ins, 3)
        cx.line(f"{cx.dst(d)} = packed(lambda x, y: x + y & 0xFFFF, {cx.src(a, 32)}, {cx.src(b, 32)})")
        return
    width, is_signed = int_type(form)
    sat = form.take("sat")
    form.done()
    d, a, b = operands(ins, 3)
    left, right = cx.src(a, width), cx.src(b, width)
    if sat:
        if not is_signed or width != 32:
            raise Unknown(ins.opcode)
        cx.line(f"{cx.dst(d)} = add_sat({left}, {right}, {1 if sign == '+' else -1})")
        return
    wrap(cx, cx.dst(d), f"{left} {sign} {right}", width)


@instruction("mul")
def mul(cx: Emitter, ins: Instruction) -> None:
    """d = a * b: low half, high half or all of the product."""
    if _is_float(ins):
        floating.arith(cx, ins, "mul")
        return
    form = Form(ins, "mul")
    width, is_signed = int_type(form)
    part = form.one_of(("lo", "hi", "wide"))
    form.done()
    d, a, b = operands(ins, 3)
    left, right = cx.src(a, width), cx.src(b, width)
    _product(cx, cx.dst(d), left, right, width, is_signed, part)


def _product(cx: Emitter, target: str, left: str, right: str, width: int, is_signed: bool, part: str) -> None:
    if part == "lo":
        wrap(cx, target, f"{left} * {right}", width)
    elif part == "hi":
        cx.line(f"{target} = mul_hi({left}, {right}, {width}, {is_signed})")
    elif width == 64:
        raise Unknown("mul.wide of 64 bits")
    else:
        cx.line(f"{target} = mul_wide({left}, {right}, {width}, {is_signed})")


@instruction("mad")
def mad(cx: Emitter, ins: Instruction) -> None:
    """d = a * b + c with a part of the product."""
    if _is_float(ins):
        floating.arith(cx, ins, "fma")
        return
    if "cc" in ins.parts:
        _with_carry(cx, ins)
        return
    form = Form(ins, "mad")
    width, is_signed = int_type(form)
    part = form.one_of(("lo", "hi", "wide"))
    sat = form.take("sat")
    form.done()
    if sat and (part, width, is_signed) != ("hi", 32, True):
        raise Unknown(ins.opcode)
    d, a, b, c = operands(ins, 4)
    out = width * 2 if part == "wide" else width
    left, right, addend = cx.src(a, width), cx.src(b, width), cx.src(c, out)
    product = cx.temporary()
    _product(cx, product, left, right, width, is_signed, part)
    if sat:
        cx.line(f"{cx.dst(d)} = add_sat({product}, {addend}, 1)")
        return
    wrap(cx, cx.dst(d), f"{product} + {addend}", out)


@instruction("addc", "subc", "madc")
def with_carry(cx: Emitter, ins: Instruction) -> None:
    """add, sub or mad with the carry flag, which .cc of these and of the plain ones sets."""
    _with_carry(cx, ins)


def _with_carry(cx: Emitter, ins: Instruction) -> None:
    name = ins.parts[0]
    form = Form(ins, name)
    sets = form.take("cc")
    width, is_signed = int_type(form)
    part = form.one_of(("lo", "hi")) if name in ("mad", "madc") else ""
    form.done()
    if width < 32:
        raise Unknown(ins.opcode)
    takes = name.endswith("c")
    d, *sources = operands(ins, 3 + bool(part) + takes)
    carry = cx.pred(sources.pop()) if takes else "False"
    texts = [cx.src(source, width) for source in sources]
    if part:
        product = cx.temporary()
        _product(cx, product, texts[0], texts[1], width, is_signed, part)
        texts = [product, texts[2]]
    targets = (cx.dst(d.first), cx.dst(d.second)) if sets and isinstance(d, Pair) else (cx.dst(d), "_")
    cx.line(f"{', '.join(targets)} = carried({texts[0]}, {texts[1]}, {carry}, {width}, {name.startswith('sub')})")


@instruction("mul24", "mad24")
def mul24(cx: Emitter, ins: Instruction) -> None:
    """The low or high 32 of the 48 bits of a product of 24-bit numbers; mad24 adds a third."""
    form = Form(ins, ins.parts[0])
    width, is_signed = int_type(form)
    part = form.one_of(("lo", "hi"))
    sat = form.take("sat")
    form.done()
    if width != 32 or (sat and (ins.parts[0], part, is_signed) != ("mad24", "hi", True)):
        raise Unknown(ins.opcode)
    d, a, b, *c = operands(ins, 4 if ins.parts[0] == "mad24" else 3)
    product = f"mul24({cx.src(a, 32)}, {cx.src(b, 32)}, {is_signed}, {part == 'hi'})"
    if not c:
        cx.line(f"{cx.dst(d)} = {product}")
    elif sat:
        cx.line(f"{cx.dst(d)} = add_sat({product}, {cx.src(c[0], 32)}, 1)")
    else:
        wrap(cx, cx.dst(d), f"{product} + {cx.src(c[0], 32)}", 32)


@instruction("dp4a", "dp2a")
def dot(cx: Emitter, ins: Instruction) -> None:
    """d = c + the dot product of four bytes, or of two half-words with the low or high two bytes."""
    form = Form(ins, ins.parts[0])
    second, first = form.last(), form.last()
    half = form.one_of(("lo", "hi")) if ins.parts[0] == "dp2a" else ""
    form.done()
    if {first, second} - {"u32", "s32"}:
        raise Unknown(ins.opcode)
    d, a, b, c = operands(ins, 4)
    x, y, z = (cx.src(o, 32) for o in (a, b, c))
    cx.line(f"{cx.dst(d)} = dot({x}, {y}, {z}, {first == 's32'}, {second == 's32'}, {half!r})")


@instruction("div")
def div(cx: Emitter, ins: Instruction) -> None:
    """d = a / b, truncated."""
    if _is_float(ins):
        floating.arith(cx, ins, "div")
        return
    _division(cx, ins, "divide")


@instruction("rem")
def rem(cx: Emitter, ins: Instruction) -> None:
    """d = a mod b, with the sign of a."""
    _division(cx, ins, "remainder")


def _division(cx: Emitter, ins: Instruction, function: str) -> None:
    form = Form(ins, ins.parts[0])
    width, is_signed = int_type(form)
    form.done()
    d, a, b = operands(ins, 3)
    left, right = cx.src(a, width), cx.src(b, width)
    cx.line(f"{cx.dst(d)} = {function}({left}, {right}, {width}, {is_signed})")


@instruction("min", "max")
def min_max(cx: Emitter, ins: Instruction) -> None:
    """The smaller or larger of two."""
    if _is_float(ins):
        floating.min_max(cx, ins)
        return
    form = Form(ins, ins.parts[0])
    if form.rest[-1:] in (["u16x2"], ["s16x2"]):
        is_signed, relu = form.last() == "s16x2", form.take("relu")
        form.done()
        if relu and not is_signed:
            raise Unknown(ins.opcode)
        d, a, b = operands(ins, 3)
        each = f"minmax(*o, 16, {is_signed}, {ins.parts[0] == 'max'})"
        each = f"minmax({each}, 0, 16, True, True)" if relu else each
        cx.line(f"{cx.dst(d)} = packed(lambda *o: {each}, {cx.src(a, 32)}, {cx.src(b, 32)})")
        return
    width, is_signed = int_type(form)
    relu = form.take("relu")
    form.done()
    if relu and (not is_signed or width != 32):
        raise Unknown(ins.opcode)
    d, a, b = operands(ins, 3)
    left, right = cx.src(a, width), cx.src(b, width)
    if relu:
        left = f"minmax({left}, {right}, {width}, True, {ins.parts[0] == 'max'})"
        cx.line(f"{cx.dst(d)} = minmax({left}, 0, {width}, True, True)")
        return
    cx.line(f"{cx.dst(d)} = minmax({left}, {right}, {width}, {is_signed}, {ins.parts[0] == 'max'})")


@instruction("neg")
def neg(cx: Emitter, ins: Instruction) -> None:
    """d = -a."""
    if _is_float(ins):
        floating.sign(cx, ins, "neg")
        return
    form = Form(ins, "neg")
    width, _ = int_type(form)
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, width)
    wrap(cx, cx.dst(d), f"0 - {source}", width)


@instruction("abs")
def abs_(cx: Emitter, ins: Instruction) -> None:
    """d = |a|; the most negative number stays as it is."""
    if _is_float(ins):
        floating.sign(cx, ins, "abs")
        return
    form = Form(ins, "abs")
    width, _ = int_type(form)
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, width)
    negated = cx.temporary()
    wrap(cx, negated, f"0 - {source}", width)
    cx.line(f"{cx.dst(d)} = minmax({source}, {negated}, {width}, False, False)")


@instruction("sad")
def sad(cx: Emitter, ins: Instruction) -> None:
    """d = c + |a - b|."""
    form = Form(ins, "sad")
    width, is_signed = int_type(form)
    form.done()
    d, a, b, c = operands(ins, 4)
    left, right, addend = cx.src(a, width), cx.src(b, width), cx.src(c, width)
    spread = cx.temporary()
    wrap(
        cx,
        spread,
        f"minmax({left}, {right}, {width}, {is_signed}, True) - minmax({left}, {right}, {width}, {is_signed}, False)",
        width,
    )
    wrap(cx, cx.dst(d), f"{spread} + {addend}", width)
