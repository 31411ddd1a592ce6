# SPDX-License-Identifier: Apache-2.0
"""Atomics: read, combine and write (PTX ISA, "atom", "red")."""

from __future__ import annotations

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form
from tmagen.emu.isa.memory import SHARED, SPACES, address, in_window, place_of
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Addr, Instruction, Vec

_COMBINE = {
    "add": "lambda x, y: x + y", "and": "lambda x, y: x & y", "or": "lambda x, y: x | y", "xor": "lambda x, y: x ^ y",
    "exch": "lambda x, y: y", "cas": "lambda x, y, z: z if x == y else x",
    "inc": "lambda x, y: 0 if x >= y else x + 1", "dec": "lambda x, y: y if x == 0 or x > y else x - 1",
}  # fmt: skip
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def combining(ins: Instruction, name: str, kind: str, noftz: bool) -> str:
    """An expression for the function of the old value and the operands."""
    if noftz != (kind in _HALVES and name == "add"):
        raise Unknown(ins.opcode)
    if name == "add" and kind == "f32":
        return "ADD_F32"
    if name == "add" and kind == "f64":
        return "add_f64"
    if name == "add" and kind in _HALVES:
        scalar = kind.removesuffix("x2")
        call = f"h_arith('add', {scalar!r}, False, False, "
        return f"lambda x, y: {call}x, y)" if scalar == kind else f"lambda x, y: packed(lambda *o: {call}*o), x, y)"
    if kind[0] == "f" or kind in ("bf16", "bf16x2", "b128"):
        raise Unknown(ins.opcode)
    width = WIDTH.get(kind, 0)
    if width not in (32, 64) and (name, kind) != ("cas", "b16"):
        raise Unknown(ins.opcode)
    if name in ("min", "max"):
        return f"lambda x, y: minmax(x, y, {width}, {kind[0] == 's'}, {name == 'max'})"
    return _COMBINE[name]


def _texts(cx: Emitter, ins: Instruction, form: Form) -> list[str]:
    """A call for each element that the instruction combines."""
    name = form.one_of((*_COMBINE, "min", "max"))
    count = _VECTORS.get(form.one_of(tuple(_VECTORS), ""), 1)
    noftz = form.take("noftz")
    space = form.one_of(("global", *SHARED), "generic")
    while form.take("relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"):
        pass
    kind = form.last()
    form.done()
    at = next(i for i, operand in enumerate(ins.operands) if isinstance(operand, Addr))
    values = ins.operands[at + 1 :]
    if len(values) != (2 if name == "cas" else 1):
        raise Unknown(f"{ins.opcode} with {len(values)} values")
    combine = combining(ins, name, kind, noftz)
    width = WIDTH[kind]
    if count > 1 and (at or name != "add" or kind not in ("f32", *_HALVES) or space != "global"):
        raise Unknown(ins.opcode)
    space = SPACES.get(space, "generic")
    text = (in_window if space == "shared" else address)(cx, ins.operands[at])
    space, place = place_of(cx, ins, space, text)
    if count == 1:
        texts = "".join(f"{cx.src(v, width)}, " for v in values)
        return [f"atomic(F, C, {space!r}, {place}, {width // 8}, {combine}, ({texts}))"]
    (vector,) = values
    if not isinstance(vector, Vec) or len(vector.items) != count or width * count > 128:
        raise Unknown(ins.opcode)
    nbytes = width // 8
    return [f"check_aligned(F, {place}, {nbytes * count}, 'red')"] + [
        f"atomic(F, C, 'global', {place} + {i * nbytes}, {nbytes}, {combine}, ({cx.src(item, width)},))"
        for i, item in enumerate(vector.items)
    ]


@instruction("atom", pure=False)
def atom(cx: Emitter, ins: Instruction) -> None:
    """Atomic read-modify-write with the old value as result; lanes in order."""
    (text,) = _texts(cx, ins, Form(ins, "atom"))
    cx.line(f"{cx.dst(ins.operands[0])} = {text}")
    cx.ret(f"look(F, C, {cx.next_block})")


@instruction("red", pure=False, dests=0)
def red(cx: Emitter, ins: Instruction) -> None:
    """Atomic without a result, of one element or of each of a vector."""
    for text in _texts(cx, ins, Form(ins, "red")):
        cx.line(text)
