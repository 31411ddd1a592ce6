# SPDX-License-Identifier: Apache-2.0
"""Loads, stores, fences and prefetches (PTX ISA, "ld", "st", "prefetch", "fence", "membar")."""

from __future__ import annotations

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form, looks_at_memory, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.values import M32
from tmagen.emu.module import Addr, Imm, Instruction, Operand, Reg, Sink, Sym, Vec

_SEMANTICS = ("weak", "relaxed", "acquire", "release", "volatile", "mmio", "cta", "cluster", "gpu", "sys")
_HINTS = (
    "ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt", "unified",
    "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::64B", "L2::128B", "L2::256B",
)  # fmt: skip
SPACES = {
    "global": "global", "const": "global", "shared": "shared", "shared::cta": "shared", "shared::cluster": "shared",
    "local": "local", "param": "param", "param::entry": "param",
}  # fmt: skip
_POLICY = 0x12F0000000000000  # evict_first, as nvcc writes it
SHARED = ("shared", "shared::cta", "shared::cluster")


def address(cx: Emitter, operand: Operand, width: int = 64) -> str:
    """An expression for `[base + offset]`, in the state space that the instruction names."""
    if not isinstance(operand, Addr) or operand.rest:
        raise Unknown(f"{operand} as an address")
    return base_address(cx, operand, width)


def base_address(cx: Emitter, operand: Addr, width: int = 64) -> str:
    base, offset = operand.base, operand.offset
    if isinstance(base, Sym):
        return cx.address_of(Sym(base.name, base.offset + offset))
    if isinstance(base, Imm):
        return str(base.value + offset)
    text = cx.src(base, width)
    if text.isdigit():
        return str(int(text) + offset)
    if not offset:
        return text
    return f"({text} + {offset})" if offset > 0 else f"({text} - {-offset})"


def in_window(cx: Emitter, operand: Operand) -> str:
    """An address of an instruction that names shared memory. Of a 64-bit register the low half counts, as on hardware:
    what a generic address has there is the place in the shared window (ThunderKittens gives them so).
    """
    text = address(cx, operand)
    base = operand.base if isinstance(operand, Addr) else None
    return f"({text} & {M32})" if isinstance(base, Reg) and cx.width_of(base) == 64 else text


def here(cx: Emitter, text: str, generic: bool) -> str:
    """An address of the CTA's own shared memory, counted from its start, from one in the shared window or a generic
    one.
    """
    text = f"shared_address({text})" if generic else text
    return f"({text} - C.base)" if cx.clustered else text


def shared_operand(cx: Emitter, form: Form, operand: Operand) -> str:
    """The place in the CTA's own shared memory that an operand of `.shared` or of generic addressing names."""
    return here(cx, in_window(cx, operand), False) if form.take(*SHARED) else here(cx, address(cx, operand), True)


def _qualifiers(form: Form) -> tuple[str, int, bool]:
    """(state space, vector length, cache policy operand) of a load or store; the rest must be hints."""
    space = form.one_of(tuple(SPACES), "generic")
    count = {"v2": 2, "v4": 4, "v8": 8, "": 1}[form.one_of(("v2", "v4", "v8"), "")]
    policy = form.take("L2::cache_hint")
    while form.take(*_SEMANTICS, *_HINTS):
        pass
    form.done()
    return SPACES.get(space, "generic"), count, policy


def _vector(ins: Instruction, space: str, nbytes: int) -> str:
    """How functions for so many bytes at once are called; 32 are for global memory alone."""
    if nbytes <= 16:
        return "vector"
    if nbytes > 32 or space != "global":
        raise Unknown(f"{ins.opcode}: {nbytes} bytes in one access")
    return "wide"


def place_of(cx: Emitter, ins: Instruction, space: str, text: str) -> tuple[str, str]:
    """(state space, address in it): shared memory of the CTA itself from its start, that of a cluster with the rank."""
    if space != "shared" or not cx.clustered:
        return space, text
    return ("cluster", text) if "shared::cluster" in ins.parts else (space, here(cx, text, False))


@instruction("ld", "ldu", pure=False)
def ld(cx: Emitter, ins: Instruction) -> None:
    """Load from any state space."""
    form = Form(ins, ins.parts[0])
    kind = form.last()
    space, count, policy = _qualifiers(form)
    if kind not in WIDTH or kind == "pred":
        raise Unknown(ins.opcode)
    d, a = operands(ins, 3 if policy else 2)[:2]
    width = WIDTH[kind]
    nbytes = width // 8
    space, place = place_of(cx, ins, space, (in_window if space == "shared" else address)(cx, a))
    cx.event("load", repr(space), place, str(nbytes * count))
    if kind == "b128":
        if count > 1 or cx.width_of(d) != 128:
            raise Unknown(ins.opcode)
        cx.line(f"{cx.dst(d)} = wide_of_lanes(F, *ld_{space}_vector(F, C, {place}, 8, 2))")
        return
    items = d.items if isinstance(d, Vec) else (d,)
    if len(items) != count:
        raise Unknown(f"{ins.opcode} with {len(items)} results")
    names = []
    after = []
    for item in items:
        room = cx.width_of(item) if not isinstance(item, Sink) else width
        name = cx.dst(item)
        names.append(name)
        if room is None or room < width:
            raise Unknown(f"{ins.opcode} into a register of {room} bits")
        if room > width:
            after.append(
                f"{name} = extend({name}, {width}, {room})" if kind[0] == "s" else f"{name} = resize({name}, {room})"
            )
    if count == 1:
        cx.line(f"{names[0]} = ld_{space}(F, C, {place}, {nbytes})")
    else:
        width_of_all = _vector(ins, space, nbytes * count)
        cx.line(f"{', '.join(names)} = ld_{space}_{width_of_all}(F, C, {place}, {nbytes}, {count})")
    for text in after:
        cx.line(text)
    if looks_at_memory(ins):
        cx.ret(f"look(F, C, {cx.next_block})")


def _shared_stores(cx: Emitter, run: list[Instruction]) -> bool:
    """Stores of one form to shared memory as one array operation, or one by one where that needs a closer look."""
    form = Form(run[0], "st")
    kind = form.last()
    if cx.listening or kind not in ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"):
        return False
    space, count, policy = _qualifiers(form)
    nbytes = WIDTH[kind] // 8
    if space != "shared" or "shared::cluster" in run[0].parts or policy or nbytes * count > 16:
        return False
    if any(len(ins.operands) != 2 for ins in run):
        return False
    places, values = [], []
    for ins in run:
        a, b = ins.operands
        items = b.items if isinstance(b, Vec) else (b,)
        if len(items) != count:
            return False
        places.append(here(cx, address(cx, a), False))
        values.append(f"({''.join(f'{cx.sized(item, WIDTH[kind])}, ' for item in items)})")
    together = f"F, C, {nbytes}, {count}, ({', '.join(places)}), ({', '.join(values)})"
    cx.line(f"if not st_shared_together({together}):")
    for ins, place, value in zip(run, places, values, strict=True):
        cx.current = ins
        cx.line(f"    st_shared_vector(F, C, {place}, {nbytes}, {value})")
    return True


@instruction("st", pure=False, dests=0, batch=_shared_stores)
def st(cx: Emitter, ins: Instruction) -> None:
    """Store to any state space."""
    form = Form(ins, "st")
    kind = form.last()
    space, count, policy = _qualifiers(form)
    if kind not in WIDTH or kind == "pred" or space == "param":
        raise Unknown(ins.opcode)
    a, b = operands(ins, 3 if policy else 2)[:2]
    width = WIDTH[kind]
    nbytes = width // 8
    space, place = place_of(cx, ins, space, (in_window if space == "shared" else address)(cx, a))
    items = b.items if isinstance(b, Vec) else (b,)
    if len(items) != count:
        raise Unknown(ins.opcode)
    values = [cx.sized(item, width) for item in items]
    if kind == "b128":
        if count > 1:
            raise Unknown(ins.opcode)
        nbytes, count, values = 8, 2, [f"({values[0]} & {(1 << 64) - 1})", f"({values[0]} >> 64)"]
    cx.event("store", repr(space), place, str(nbytes * count))
    if count == 1:
        cx.line(f"st_{space}(F, C, {place}, {nbytes}, {values[0]})")
    else:
        width_of_all = _vector(ins, space, nbytes * count)
        cx.line(f"st_{space}_{width_of_all}(F, C, {place}, {nbytes}, ({', '.join(values)}))")


_FENCES = frozenset(
    "fence.proxy.async fence.proxy.async.global fence.proxy.async.shared::cta fence.proxy.async.shared::cluster "
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster "
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster "
    "fence.acquire.sync_restrict::shared::cluster.cluster fence.release.sync_restrict::shared::cta.cluster "
    "fence.proxy.alias fence.mbarrier_init.release.cluster membar.cta membar.gl membar.sys membar.gpu".split()
)


@instruction("fence", "membar", pure=False, dests=0)
def fence(cx: Emitter, ins: Instruction) -> None:
    """Fences order what is in order here already; only the exact forms are accepted."""
    operands(ins, 0)
    name = ins.opcode
    if name not in _FENCES:
        parts = ins.parts[1:]
        semantics, scopes = ("sc", "acq_rel", "acquire", "release"), ("cta", "cluster", "gpu", "sys")
        # `fence.scope` is `fence.acq_rel.scope`.
        ok = ins.parts[0] == "fence" and (
            (len(parts) == 1 and parts[0] in scopes)
            or (len(parts) == 2 and parts[0] in semantics and parts[1] in scopes)
        )
        if not ok:
            raise Unknown(name)
    cx.event("fence", repr(name))


@instruction("createpolicy")
def createpolicy(cx: Emitter, ins: Instruction) -> None:
    """How caches are to keep data: a hint, of which nothing comes here. What is in the register is not defined."""
    form = Form(ins, "createpolicy")
    priorities = tuple(f"L2::evict_{how}" for how in ("last", "normal", "first", "unchanged"))
    if form.last() != "b64" or not form.take("fractional", "range", "cvt"):
        raise Unknown(ins.opcode)
    form.take("global", "L2")
    while form.take(*priorities):
        pass
    form.done()
    d, *_ = operands(ins, 1, 2, 4)
    cx.line(f"{cx.dst(d)} = {_POLICY}")


@instruction("prefetch", "prefetchu", pure=False, dests=0)
def prefetch(cx: Emitter, ins: Instruction) -> None:
    """Prefetches change nothing; the address of a tensor map is checked."""
    form = Form(ins, ins.parts[0])
    (a,) = operands(ins, 1)
    place = address(cx, a)
    if form.take("tensormap"):
        space = form.one_of(("param", "const"), "generic")
        form.done()
        if space == "const":
            raise Unknown(ins.opcode)
        cx.event("map_prefetch", place, repr(space))
        cx.line(f"check_map(F, C, {place}, {space!r})")
        return
    form.one_of(("global", "local"), "generic")
    form.one_of(("L1", "L2", "L2::evict_last", "L2::evict_normal"))
    form.done()
