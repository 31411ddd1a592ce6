# SPDX-License-Identifier: Apache-2.0
"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic Instructions")."""

from __future__ import annotations

from tmagen.emu.compile_emit import Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.integer import int_type, wrap
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction

_SYMBOL = {"and": "&", "or": "|", "xor": "^"}


@instruction("and", "or", "xor")
def bitwise(cx: Emitter, ins: Instruction) -> None:
    """d = a op b, of bits or predicates."""
    form = Form(ins, ins.parts[0])
    d, a, b = operands(ins, 3)
    symbol = _SYMBOL[ins.parts[0]]
    if form.rest == ["pred"]:
        left, right = cx.pred(a), cx.pred(b)
        cx.line(f"{cx.dst(d)} = {left} {symbol} {right}")
        return
    width, _ = int_type(form)
    form.done()
    left, right = cx.src(a, width), cx.src(b, width)
    cx.line(f"{cx.dst(d)} = {left} {symbol} {right}")


@instruction("not")
def not_(cx: Emitter, ins: Instruction) -> None:
    """d = ~a."""
    form = Form(ins, "not")
    d, a = operands(ins, 2)
    if form.rest == ["pred"]:
        source = cx.pred(a)
        cx.line(f"{cx.dst(d)} = {source} ^ True")
        return
    width, _ = int_type(form)
    form.done()
    source = cx.src(a, width)
    cx.line(f"{cx.dst(d)} = {source} ^ {(1 << width) - 1}")


@instruction("cnot")
def cnot(cx: Emitter, ins: Instruction) -> None:
    """d = (a == 0)."""
    form = Form(ins, "cnot")
    width, _ = int_type(form)
    form.done()
    d, a = operands(ins, 2)
    test = cx.temporary()
    cx.line(f"{test} = {cx.src(a, width)} == 0")
    cx.line(f"{cx.dst(d)} = int({test}) if {test}.__class__ is not ND else where{width}({test}, 1, 0)")


@instruction("shl")
def shl(cx: Emitter, ins: Instruction) -> None:
    """d = a << b, 0 from `width` on."""
    form = Form(ins, "shl")
    width, _ = int_type(form)
    form.done()
    d, a, b = operands(ins, 3)
    source, amount = cx.src(a, width), cx.literal(b)
    if amount is not None and 0 <= amount < width:
        wrap(cx, cx.dst(d), f"{source} << {amount}", width)
    else:
        shift = cx.src(b, 32)
        cx.line(f"{cx.dst(d)} = shl({source}, {shift}, {width})")


@instruction("shr")
def shr(cx: Emitter, ins: Instruction) -> None:
    """d = a >> b, filling with zeros or the sign."""
    form = Form(ins, "shr")
    width, is_signed = int_type(form)
    form.done()
    d, a, b = operands(ins, 3)
    source, amount = cx.src(a, width), cx.literal(b)
    if amount is not None and 0 <= amount < width and not is_signed:
        cx.line(f"{cx.dst(d)} = {source} >> {amount}")
    else:
        shift = cx.src(b, 32)
        cx.line(f"{cx.dst(d)} = shr({source}, {shift}, {width}, {is_signed})")


@instruction("shf")
def shf(cx: Emitter, ins: Instruction) -> None:
    """Funnel shift of two 32-bit words."""
    form = Form(ins, "shf")
    if form.last() != "b32":
        raise Unknown(ins.opcode)
    direction, mode = form.one_of(("l", "r")), form.one_of(("clamp", "wrap"))
    form.done()
    d, a, b, c = operands(ins, 4)
    low, high, amount = cx.src(a, 32), cx.src(b, 32), cx.src(c, 32)
    cx.line(f"{cx.dst(d)} = funnel({low}, {high}, {amount}, {direction == 'r'}, {mode == 'wrap'})")


@instruction("lop3")
def lop3(cx: Emitter, ins: Instruction) -> None:
    """Any bitwise function of three words."""
    form = Form(ins, "lop3")
    if form.last() != "b32" or form.rest:
        raise Unknown(ins.opcode)
    d, a, b, c, table = operands(ins, 5)
    number = cx.literal(table)
    if number is None:
        raise Unknown("lop3 without an immediate table")
    x, y, z = (cx.src(o, 32) for o in (a, b, c))
    cx.line(f"{cx.dst(d)} = lop3({x}, {y}, {z}, {number})")


@instruction("prmt")
def prmt(cx: Emitter, ins: Instruction) -> None:
    """Byte permute: bytes and signs by a selector, or one of the six special modes."""
    form = Form(ins, "prmt")
    if not form.take("b32"):
        raise Unknown(ins.opcode)
    mode = form.one_of(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"), "")
    form.done()
    d, a, b, c = operands(ins, 4)
    x, y, z = (cx.src(o, 32) for o in (a, b, c))
    cx.line(f"{cx.dst(d)} = " + (f"prmt_mode({x}, {y}, {z}, {mode!r})" if mode else f"prmt({x}, {y}, {z})"))


@instruction("popc", "clz", "brev")
def count(cx: Emitter, ins: Instruction) -> None:
    """Population count, leading zeros, bit reversal."""
    form = Form(ins, ins.parts[0])
    width, _ = int_type(form)
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, width)
    cx.line(f"{cx.dst(d)} = {ins.parts[0]}({source}, {width})")


@instruction("bfind")
def bfind(cx: Emitter, ins: Instruction) -> None:
    """Place of the most significant bit that is not the sign."""
    form = Form(ins, "bfind")
    width, is_signed = int_type(form)
    amount = form.take("shiftamt")
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, width)
    cx.line(f"{cx.dst(d)} = bfind({source}, {width}, {is_signed}, {amount})")


@instruction("fns")
def fns(cx: Emitter, ins: Instruction) -> None:
    """Place of the n-th set bit from a place on."""
    form = Form(ins, "fns")
    if form.rest != ["b32"]:
        raise Unknown(ins.opcode)
    d, mask, base, offset = operands(ins, 4)
    cx.line(f"{cx.dst(d)} = fns({cx.src(mask, 32)}, {cx.src(base, 32)}, {cx.src(offset, 32)})")


@instruction("bfe")
def bfe(cx: Emitter, ins: Instruction) -> None:
    """Bit field extract."""
    form = Form(ins, "bfe")
    width, is_signed = int_type(form)
    form.done()
    d, a, b, c = operands(ins, 4)
    x, pos, length = cx.src(a, width), cx.src(b, 32), cx.src(c, 32)
    cx.line(f"{cx.dst(d)} = bfe({x}, {pos}, {length}, {width}, {is_signed})")


@instruction("bfi")
def bfi(cx: Emitter, ins: Instruction) -> None:
    """Bit field insert."""
    form = Form(ins, "bfi")
    width, _ = int_type(form)
    form.done()
    f, a, b, c, d = operands(ins, 5)
    x, y, pos, length = cx.src(a, width), cx.src(b, width), cx.src(c, 32), cx.src(d, 32)
    cx.line(f"{cx.dst(f)} = bfi({x}, {y}, {pos}, {length}, {width})")
