# SPDX-License-Identifier: Apache-2.0
"""cvt and its packed forms (PTX ISA, "cvt")."""

from __future__ import annotations

from tmagen.emu.compile_emit import WIDTH, Emitter
from tmagen.emu.isa.forms import Form, operands
from tmagen.emu.isa.registry import Unknown, instruction
from tmagen.emu.isa.rounding import MODES
from tmagen.emu.module import Instruction

_INT = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_HALF = ("f16", "bf16")
_FP8 = ("e4m3x2", "e5m2x2")
_TO_INT = ("rni", "rzi", "rmi", "rpi")


def _packed_run(cx: Emitter, run: list[Instruction]) -> bool:
    """cvt.rn.{f16x2,bf16x2}.f32 of many registers as one array operation: an epilogue is little else."""
    kind = {"cvt.rn.f16x2.f32": "f16", "cvt.rn.bf16x2.f32": "bf16"}.get(run[0].opcode)
    if kind is None or any(len(ins.operands) != 3 for ins in run):
        return False
    sources = "".join(f"{cx.src(ins.operands[2], 32)}, {cx.src(ins.operands[1], 32)}, " for ins in run)
    cx.line(f"{', '.join(cx.dst(ins.operands[0]) for ins in run)} = cvt_pairs({kind!r}, ({sources}))")
    return True


@instruction("cvt", batch=_packed_run)
def cvt(cx: Emitter, ins: Instruction) -> None:
    """Conversion between integers and floating-point types."""
    form = Form(ins, "cvt")
    source = form.last()
    target = form.last()
    if target in ("f16x2", "bf16x2") and source not in _FP8:
        _packed(cx, ins, form, target[:-2], source)
        return
    if target in _FP8 or source in _FP8 or target == "tf32":
        _narrow(cx, ins, form, target, source)
        return
    d, a = operands(ins, 2)
    if source in _INT and target in _INT:
        _int_to_int(cx, ins, form, target, source)
    elif source in _INT and target in ("f16", "bf16", "f32", "f64"):
        mode = form.one_of(MODES if target == "f32" else ("rn",))
        form.done()
        text = cx.sized(a, WIDTH[source])
        cx.line(f"{cx.dst(d)} = cvt_from_int({text}, {WIDTH[source]}, {source[0] == 's'}, {target!r}, {mode!r})")
    elif target in _INT and source in (*_HALF, "f32", "f64"):
        rounding = form.one_of(_TO_INT)
        form.take("sat")  # an integer result is clamped in any case
        ftz = form.take("ftz")
        if ftz and source != "f32":
            raise Unknown(ins.opcode)
        form.done()
        text = cx.sized(a, WIDTH[source])
        width = cx.width_of(d) or WIDTH[target]
        result = f"cvt_to_int({text}, {source!r}, {rounding!r}, {WIDTH[target]}, {target[0] == 's'}, {ftz})"
        if width != WIDTH[target]:
            result = f"extend({result}, {WIDTH[target]}, {width})" if target[0] == "s" else f"resize({result}, {width})"
        cx.line(f"{cx.dst(d)} = {result}")
    elif source in _HALF and target == "f32":
        form.done()
        text = cx.sized(a, 16)
        cx.line(f"{cx.dst(d)} = cvt_wide({text}, {source!r})")
    elif source == "f32" and target in _HALF:
        zero = form.one_of(("rn", "rz")) == "rz"
        relu, satfinite, sat = form.take("relu"), form.take("satfinite"), form.take("sat")
        form.done()
        text = cx.sized(a, 32)
        cx.line(f"{cx.dst(d)} = cvt_half({text}, {target!r}, {relu}, {satfinite}, {zero}, {sat})")
    elif source in _HALF and target in _HALF and source != target:
        form.take("rn")
        form.done()
        text = cx.sized(a, 16)
        cx.line(f"{cx.dst(d)} = cvt_half(cvt_wide({text}, {source!r}), {target!r}, False, False)")
    elif {source, target} == {"f32", "f64"}:
        mode = form.one_of(MODES) if target == "f32" else "rn"
        form.done()
        text = cx.sized(a, WIDTH[source])
        cx.line(f"{cx.dst(d)} = cvt_float({text}, {WIDTH[source]}, {WIDTH[target]}, {mode!r})")
    elif source == target and source in ("f32", "f64"):
        ftz, sat = form.take("ftz"), form.take("sat")
        rounding = form.one_of(_TO_INT, "")
        form.done()
        if ftz and source == "f64":
            raise Unknown(ins.opcode)
        text = cx.sized(a, WIDTH[source])
        cx.line(f"{cx.dst(d)} = f_round({text}, {WIDTH[source]}, {rounding!r}, {ftz}, {sat})")
    else:
        raise Unknown(ins.opcode)


def _narrow(cx: Emitter, ins: Instruction, form: Form, target: str, source: str) -> None:
    """To and from pairs of fp8, and to tf32."""
    rounding = form.one_of(("rn", "rna", "rz"))
    relu, satfinite = form.take("relu"), form.take("satfinite")
    form.done()
    if target == "tf32":
        if source != "f32":
            raise Unknown(ins.opcode)
        d, a = operands(ins, 2)
        text = cx.sized(a, 32)
        cx.line(f"{cx.dst(d)} = f32_to_tf32({text}, {rounding!r}, {relu}, {satfinite})")
        return
    if rounding != "rn" or satfinite != (target in _FP8):
        raise Unknown(ins.opcode)
    if source == "f32":
        d, a, b = operands(ins, 3)
        high, low = cx.src(a, 32), cx.src(b, 32)
        cx.line(f"{cx.dst(d)} = f32_to_fp8x2({high}, {low}, {target[:4]!r}, {relu})")
    elif source == "f16x2":
        d, a = operands(ins, 2)
        text = cx.sized(a, 32)
        cx.line(f"{cx.dst(d)} = f16x2_to_fp8x2({text}, {target[:4]!r}, {relu})")
    elif target == "f16x2":
        d, a = operands(ins, 2)
        text = cx.sized(a, 16)
        cx.line(f"{cx.dst(d)} = fp8x2_to_f16x2({text}, {source[:4]!r}, {relu})")
    else:
        raise Unknown(ins.opcode)


def _packed(cx: Emitter, ins: Instruction, form: Form, kind: str, source: str) -> None:
    """cvt.{rn,rz}.f16x2.f32 d, a, b: a goes to the upper half."""
    if source != "f32":
        raise Unknown(ins.opcode)
    zero = form.one_of(("rn", "rz")) == "rz"
    relu, satfinite = form.take("relu"), form.take("satfinite")
    form.done()
    d, a, b = operands(ins, 3)
    high, low = cx.src(a, 32), cx.src(b, 32)
    cx.line(f"{cx.dst(d)} = cvt_pair({high}, {low}, {kind!r}, {relu}, {satfinite}, {zero})")


def _int_to_int(cx: Emitter, ins: Instruction, form: Form, target: str, source: str) -> None:
    saturate = form.take("sat")
    form.done()
    d, a = operands(ins, 2)
    have, want = WIDTH[source], WIDTH[target]
    text = cx.src(a, have)
    held = cx.width_of(a) or have
    room = cx.width_of(d) or want
    if held < have or room < want:
        raise Unknown(f"{ins.opcode} with registers of {held} and {room} bits")
    if saturate:
        low, high = (-(1 << (want - 1)), (1 << (want - 1)) - 1) if target[0] == "s" else (0, (1 << want) - 1)
        cx.line(f"{cx.dst(d)} = saturate({text}, {have}, {source[0] == 's'}, {low}, {high}, {room})")
    elif want <= have:
        # Narrowing keeps the low bits; the register's rest gets the sign or zeros of the target type.
        if room == want:
            cx.line(f"{cx.dst(d)} = " + (text if held == want else f"resize({text}, {want})"))
        elif target[0] == "s":
            cx.line(f"{cx.dst(d)} = extend({text}, {want}, {room})")
        else:
            cx.line(f"{cx.dst(d)} = resize(resize({text}, {want}), {room})")
    elif source[0] == "s":
        # Extend by the source's sign to the target's width; a wider register goes on by the target's sign.
        if target[0] == "s" or room == want:
            cx.line(f"{cx.dst(d)} = extend({text}, {have}, {room})")
        else:
            cx.line(f"{cx.dst(d)} = resize(extend({text}, {have}, {want}), {room})")
    else:
        inner = text if held == have else f"resize({text}, {have})"
        cx.line(f"{cx.dst(d)} = " + (inner if text.isdigit() else f"resize({inner}, {room})"))
