# SPDX-License-Identifier: Apache-2.0
"""Moves and addresses: mov, cvta, mapa, isspacep (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from tmagen.emu.compile_emit import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WIDTH, Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.module import Instruction, Operand, Sink, Sym, Vec

WINDOW = {
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "global": 0,
    "const": 0,
}


@instruction("mov")
def mov(cx: Emitter, ins: Instruction) -> None:
    """d = a; packs and unpacks vectors; takes addresses of variables."""
    form = Form(ins, "mov")
    kind = form.last()
    form.done()
    if kind not in WIDTH:
        raise Unknown(ins.opcode)
    d, a = operands(ins, 2)
    if kind == "pred":
        source = cx.pred(a)
        cx.line(f"{cx.dst(d)} = {source}")
        return
    width = WIDTH[kind]
    if isinstance(d, Vec):
        _unpack(cx, d.items, a, width)
    elif isinstance(a, Vec):
        step = width // len(a.items)
        items = [cx.sized(item, step) for item in a.items]
        if width == 128:
            if len(items) != 2:
                raise Unknown(ins.opcode)
            cx.line(f"{cx.dst(d)} = wide({', '.join(items)})")
            return
        if step == 32 and len(items) == 2:
            low, high = items
            cx.line(f"c, n = {low}, {high}")
            cx.line(f"{cx.dst(d)} = c | n << 32 if c.__class__ is int and n.__class__ is int else pack(64, c, n)")
        else:
            cx.line(f"{cx.dst(d)} = pack({width}, {', '.join(items)})")
    else:
        text = cx.sized(a, width)
        target = cx.dst(d)
        cx.line(f"{target} = {text}")
        if text.isdigit():
            cx.constant(d, text)


def _unpack(cx: Emitter, items: tuple[Operand, ...], source: Operand, width: int) -> None:
    step = width // len(items)
    for item in items:
        if not isinstance(item, Sink) and cx.width_of(item) != step:
            raise Unknown(f"unpacking {width} bits into {len(items)} registers of other sizes")
    text = cx.src(source, width)
    names = [cx.dst(item) for item in items]
    cx.line(f"{', '.join(names)} = unpack({text}, {width}, {len(items)})")


@instruction("cvta")
def cvta(cx: Emitter, ins: Instruction) -> None:
    """Address in a state space to generic address, or back with .to."""
    form = Form(ins, "cvta")
    kind = form.last()
    back = form.take("to")
    space = form.one_of(tuple(WINDOW))
    form.done()
    if kind not in ("u64", "u32"):
        raise Unknown(ins.opcode)
    d, a = operands(ins, 2)
    if kind == "u32":
        raise Unknown("a 32-bit generic address")
    window = WINDOW[space]
    source = cx.src(a, 64)
    target = cx.dst(d)
    if not window:
        cx.line(f"{target} = {source}")
    elif isinstance(a, Sym) and not back:
        cx.line(f"{target} = {int(source) + window}" if source.isdigit() else f"{target} = {source} + {window}")
    else:
        # PTX leaves conversions of addresses outside the window open; wrapping keeps to and from inverse.
        cx.line(f"{target} = ({source} {'-' if back else '+'} {window}) & 0xFFFFFFFFFFFFFFFF")


@instruction("isspacep")
def isspacep(cx: Emitter, ins: Instruction) -> None:
    """Whether a generic address is in a state space."""
    form = Form(ins, "isspacep")
    space = form.last()
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, 64)
    if space == "global":
        cx.line(f"{cx.dst(d)} = {source} < {SHARED_WINDOW}")
    elif WINDOW.get(space):
        cx.line(f"{cx.dst(d)} = ({source} >= {WINDOW[space]}) & ({source} < {WINDOW[space] + (1 << 32)})")
    else:
        raise Unknown(ins.opcode)


@instruction("mapa", pure=False)
def mapa(cx: Emitter, ins: Instruction) -> None:
    """Address of a variable in another CTA of the cluster."""
    form = Form(ins, "mapa")
    kind = form.last()
    space = form.one_of(("shared::cluster",), "generic")
    form.done()
    d, a, rank = operands(ins, 3)
    width = WIDTH[kind]
    source, number = cx.src(a, width), cx.src(rank, 32)
    cx.line(f"{cx.dst(d)} = map_cta(F, C, {source}, {number}, {space == 'generic'})")


@instruction("getctarank")
def getctarank(cx: Emitter, ins: Instruction) -> None:
    """The rank of the CTA that an address of shared memory is in."""
    form = Form(ins, "getctarank")
    kind = form.last()
    form.one_of(("shared::cluster",), "generic")
    form.done()
    d, a = operands(ins, 2)
    source = cx.src(a, WIDTH[kind])
    cx.line(f"{cx.dst(d)} = rank_of({source})")
