# SPDX-License-Identifier: Apache-2.0
"""atom and red.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.gpu.conformance.question import Question, data, out
from tests.gpu.conformance.topics.reduce import (
    _64_OTHER,
    _BF16,
    _BF16_OTHER,
    _F16,
    _F16_OTHER,
    _F32,
    _F32_OTHER,
    _F64,
    _F64_OTHER,
    _OTHER,
    _32,
    _64,
)

_TYPES = {"u2": ("u16", "h"), "u4": ("u32", "r"), "u8": ("u64", "l")}


def atomic(
    id: str,
    asks: str,
    form: str,
    dtype: str,
    into: Sequence[int],
    what: Sequence[int],
    space: str = "global",
    ptx: str = "atom: operations and types",
    third: str = "",
) -> Question:
    """`into` becomes `into op what`, element by element; `out` is the memory afterwards, `old` what atom returned."""
    name, code = _TYPES[dtype]
    count = len(into)
    spot, kind = ("place + t", "l") if space == "global" else ("smem(copy + t)", "r")
    source = f"""
extern "C" __global__ void question({name}* place, const {name}* in, {name}* old) {{
  __shared__ {name} copy[{count}];
  u32 t = threadIdx.x;
  if (t < {count}) {{
    copy[t] = place[t];
    {name} got, with = in[t];
    asm volatile("atom.{space}.{form} %0, [%1], %2{", %2" if third else ""};"
                 : "={code}"(got) : "{kind}"({spot}), "{code}"(with) : "memory");
    old[t] = got;
    {"" if space == "global" else "place[t] = copy[t];"}
  }}
}}
"""
    buffers = out(count, dtype, fill=tuple(into)), data(count, dtype, fill=tuple(what)), out(count, dtype, "old")
    return Question(id, asks, ptx, source, buffers)


def pairs(values: Sequence[int]) -> tuple[int, ...]:
    """16-bit values two to a word."""
    return tuple(low | high << 16 for low, high in zip(values, (*values[1:], values[0]), strict=True))


FLUSH = "atom.add.f32: global memory flushes subnormals, shared memory does not"
NOFTZ = "atom: .noftz preserves subnormals"

QUESTIONS = (
    atomic(
        "atom-add-u32-shared",
        "Does atom.shared.add wrap, and return the old value?",
        "add.u32",
        "u4",
        _32,
        _OTHER,
        "shared",
    ),
    atomic("atom-add-u64", "Does atom.add.u64 carry and wrap?", "add.u64", "u8", _64, _64_OTHER),
    atomic("atom-inc", "When does atom.inc wrap?", "inc.u32", "u4", (0, 5, 7, 8, 0xFFFFFFFF, 3), (7, 7, 7, 7, 7, 0)),
    atomic(
        "atom-dec-shared",
        "When does atom.dec wrap?",
        "dec.u32",
        "u4",
        (0, 5, 7, 8, 0xFFFFFFFF, 3),
        (7, 7, 7, 7, 7, 0),
        "shared",
    ),
    atomic("atom-min-s32", "Does atom.min.s32 compare as signed?", "min.s32", "u4", _32, _OTHER),
    atomic("atom-max-u64-shared", "Does atom.max.u64 compare as unsigned?", "max.u64", "u8", _64, _64_OTHER, "shared"),
    atomic("atom-min-s64", "Does atom.min.s64 compare as signed?", "min.s64", "u8", _64, _64_OTHER),
    atomic("atom-xor-b64", "Does atom.xor take b64?", "xor.b64", "u8", _64, _64_OTHER),
    atomic(
        "atom-exch-b64-shared",
        "Does atom.exch swap 64 bits in shared memory?",
        "exch.b64",
        "u8",
        _64,
        _64_OTHER,
        "shared",
    ),
    atomic(
        "atom-cas-b16",
        "Does atom.cas.b16 leave the other half-word alone?",
        "cas.b16",
        "u2",
        (1, 2, 3, 4, 5),
        (1, 9, 3, 9, 5),
        third="same",
    ),
    atomic(
        "atom-add-f32",
        "How does atom.add.f32 on global memory round, and does it flush subnormals?",
        "add.f32",
        "u4",
        _F32,
        _F32_OTHER,
        ptx=FLUSH,
    ),
    atomic(
        "atom-add-f32-shared",
        "How does atom.add.f32 on shared memory round, and does it flush subnormals?",
        "add.f32",
        "u4",
        _F32,
        _F32_OTHER,
        "shared",
        FLUSH,
    ),
    atomic(
        "atom-add-f64", "How does atom.add.f64 round, and does it keep subnormals?", "add.f64", "u8", _F64, _F64_OTHER
    ),
    atomic("atom-add-f16", "How does atom.add.noftz.f16 round?", "add.noftz.f16", "u2", _F16, _F16_OTHER, ptx=NOFTZ),
    atomic(
        "atom-add-bf16", "How does atom.add.noftz.bf16 round?", "add.noftz.bf16", "u2", _BF16, _BF16_OTHER, ptx=NOFTZ
    ),
    atomic(
        "atom-add-f16x2",
        "How does atom.add.noftz.f16x2 round each half?",
        "add.noftz.f16x2",
        "u4",
        pairs(_F16),
        pairs(_F16_OTHER),
        ptx=NOFTZ,
    ),
    atomic(
        "atom-add-bf16x2-shared",
        "How does atom.add.noftz.bf16x2 round each half in shared memory?",
        "add.noftz.bf16x2",
        "u4",
        pairs(_BF16),
        pairs(_BF16_OTHER),
        "shared",
        NOFTZ,
    ),
    Question(
        "atom-add-one-address",
        "Do 1024 threads of 8 CTAs that add to one word each get another old value?",
        "atom: atomic with respect to other threads",
        """
extern "C" __global__ void question(u32* out) { out[1 + atomicAdd(out, 1u)] = 1; }
""",
        (out(8193, fill=(0,)),),
        grid=(8, 1, 1),
        block=(1024, 1, 1),
        policies=("eager",),
    ),
    Question(
        "red-v4-f32",
        "Does red.v4.f32 add four floats, and flush subnormals?",
        "red: .vec_32_bit of .f32 for .global",
        """
extern "C" __global__ void question(u32* out, const float* in) {
  u32 t = threadIdx.x;
  if (t < 4)
    asm volatile("red.global.v4.f32.add [%0], {%1, %2, %3, %4};"
                 ::"l"(out + 4 * t), "f"(in[4 * t]), "f"(in[4 * t + 1]), "f"(in[4 * t + 2]), "f"(in[4 * t + 3])
                 : "memory");
}
""",
        (out(16, fill=_F32), data(16, "u4", fill=_F32_OTHER)),
    ),
)
