# SPDX-License-Identifier: Apache-2.0
"""The 32-bit instruction descriptor of tcgen05.mma.

PTX ISA, "Instruction descriptor".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.smem_descriptor import Major


class Kind(Enum):
    """The .kind of an instruction."""

    F16 = "f16"
    TF32 = "tf32"
    F8F6F4 = "f8f6f4"
    I8 = "i8"
    MXF8F6F4 = "mxf8f6f4"
    MXF4 = "mxf4"
    MXF4NVF4 = "mxf4nvf4"

    @property
    def scaled(self) -> bool:
        """Whether every block of A and B along K has a factor."""
        return self in (Kind.MXF8F6F4, Kind.MXF4, Kind.MXF4NVF4)


class Format(Enum):
    """What an element is: (name, bits that it takes in shared memory). Elements of 6 and 4 bits lie 16 to 16 bytes, or
    two to a byte.
    """

    F16 = ("f16", 16)
    BF16 = ("bf16", 16)
    TF32 = ("tf32", 32)
    F32 = ("f32", 32)
    E4M3 = ("e4m3", 8)
    E5M2 = ("e5m2", 8)
    E2M3 = ("e2m3", 8)
    E3M2 = ("e3m2", 8)
    E2M1 = ("e2m1", 8)
    E2M1X2 = ("e2m1x2", 8)
    U8 = ("u8", 8)
    S8 = ("s8", 8)
    S32 = ("s32", 32)

    @property
    def nbytes(self) -> int:
        return self.value[1] // 8

    @property
    def in_units(self) -> bool:
        """Whether 16 elements with padding take 16 bytes."""
        return self in (Format.E2M3, Format.E3M2, Format.E2M1)


_INPUTS: dict[Kind, dict[int, Format]] = {
    Kind.F16: {0: Format.F16, 1: Format.BF16},
    Kind.TF32: {2: Format.TF32},
    Kind.F8F6F4: {0: Format.E4M3, 1: Format.E5M2, 3: Format.E2M3, 4: Format.E3M2, 5: Format.E2M1},
    Kind.I8: {0: Format.U8, 1: Format.S8},
    Kind.MXF4: {1: Format.E2M1X2},
    Kind.MXF4NVF4: {1: Format.E2M1X2},
}
_INPUTS[Kind.MXF8F6F4] = _INPUTS[Kind.F8F6F4]
_OUTPUTS: dict[Kind, dict[int, Format]] = {
    Kind.F16: {0: Format.F16, 1: Format.F32},
    Kind.TF32: {1: Format.F32},
    Kind.F8F6F4: {0: Format.F16, 1: Format.F32},
    Kind.I8: {2: Format.S32},
}
# With cta_group::1; integer products come in fewer widths.
_N_ALLOWED = {
    kind: frozenset((8, 16, 24, *range(32, 257, 16)) if kind is Kind.I8 else range(8, 257, 8)) for kind in Kind
}
_N_OF_PAIRS = {kind: frozenset(range(32, 257, 32) if kind is Kind.I8 else range(16, 257, 16)) for kind in Kind}


@dataclass(frozen=True)
class InstrDescriptor:
    """One dense MMA: D (m x n) += A (m x k) * B (n x k) transposed. `k` counts what takes `nbytes` in shared memory.

    With block scaling, `a_scale` and `b_scale` are the bytes of a tensor memory word where the factors start, and
    `ue4m3` says what these are.
    """

    kind: Kind
    m: int
    n: int
    k: int
    a: Format
    b: Format
    d: Format
    a_major: Major
    b_major: Major
    negate_a: bool
    negate_b: bool
    a_scale: int = 0
    b_scale: int = 0
    ue4m3: bool = False
    saturate: bool = False


@lru_cache(maxsize=256)
def decode(kind: str, bits: int, ctas: int = 1) -> InstrDescriptor:
    """The instruction descriptor `bits` of an MMA of `.kind::kind` and .cta_group::`ctas`.

    Raises Fault, with the field's name, for values that the PTX ISA does not define; NotJudged for kinds and sparsity
    that the emulator does not know.
    """
    try:
        known = Kind(kind)
    except ValueError:
        raise NotJudged(f"tcgen05.mma of kind {kind}") from None
    where = f"instruction descriptor {bits:#010x} of kind {kind}"
    if bits >> 2 & 1:
        raise NotJudged(f"{where}: sparse A (bit 2)")
    if known.scaled:
        return _decode_scaled(known, where, bits, ctas)
    if bits & 0b11:
        raise Fault(f"{where}: sparsity selector (bits 0-1) is {bits & 3} while A is dense", rule="ID-01")
    if bits >> 3 & 1 and known is not Kind.I8:
        raise Fault(f"{where}: saturate (bit 3) is for kind i8 alone", rule="ID-01")
    for bit in (6, 23, 29):
        if bits >> bit & 1:
            raise Fault(f"{where}: reserved bit {bit} is 1", rule="ID-01")
    if shift := bits >> 30:
        raise Fault(f"{where}: maximum shift (bits 30-31) is {shift}, which needs .ws", rule="ID-01")
    negate_a, negate_b = bool(bits >> 13 & 1), bool(bits >> 14 & 1)
    if known is Kind.I8 and (negate_a or negate_b):
        raise Fault(f"{where}: negate (bits 13-14) is not for integers", rule="ID-01")
    m, n = (bits >> 24 & 0x1F) << 4, (bits >> 17 & 0x3F) << 3
    least, most = (64, 128) if ctas == 1 else (128, 256)
    if m not in (least, most):
        raise Fault(f"{where}: M (bits 24-28) is {m}; cta_group::{ctas} allows {least} and {most}", rule="ID-02")
    if n not in (_N_ALLOWED[known] if ctas == 1 else _N_OF_PAIRS[known]):
        raise Fault(f"{where}: N (bits 17-22) is {n}, which kind {kind} does not allow", rule="ID-02")
    a = _format(where, "A type (bits 7-9)", _INPUTS[known], bits >> 7 & 7)
    b = _format(where, "B type (bits 10-12)", _INPUTS[known], bits >> 10 & 7)
    d = _format(where, "D type (bits 4-5)", _OUTPUTS[known], bits >> 4 & 3)
    if d is Format.F16 and Format.BF16 in (a, b):
        raise Fault(f"{where}: D type f16 does not go with bf16 inputs", rule="ID-04")
    k = 32 // a.nbytes
    majors = Major(bits >> 15 & 1), Major(bits >> 16 & 1)
    return InstrDescriptor(known, m, n, k, a, b, d, *majors, negate_a, negate_b, saturate=bool(bits >> 3 & 1))


def _decode_scaled(kind: Kind, where: str, bits: int, ctas: int) -> InstrDescriptor:
    """The layout of the kinds with block scaling."""
    reserved = [0, 1, 3, 6, 24, 25, 26, *((31,) if kind is Kind.MXF8F6F4 else (12,))]
    for bit in reserved:
        if bits >> bit & 1:
            raise Fault(f"{where}: reserved bit {bit} is 1", rule="ID-01")
    if bits >> 31:
        raise Fault(f"{where}: K (bit 31) is 96, which sm_100a does not have", rule="ID-02")
    m, n = (bits >> 27 & 3) << 7, (bits >> 17 & 0x3F) << 3
    allowed = (128,) if ctas == 1 else (128, 256)
    if m not in allowed:
        legal = " and ".join(map(str, allowed))
        raise Fault(f"{where}: M (bits 27-28) is {m}; cta_group::{ctas} allows {legal}", rule="ID-02")
    if n not in (range(8, 257, 8) if ctas == 1 else range(16, 257, 16)):
        raise Fault(f"{where}: N (bits 17-22) is {n}, which kind {kind.value} does not allow", rule="ID-02")
    a = _format(where, "A type (bits 7-9)", _INPUTS[kind], bits >> 7 & 7)
    b = _format(where, "B type (bits 10-12)", _INPUTS[kind], bits >> 10 & 7)
    a_major, b_major = Major(bits >> 15 & 1), Major(bits >> 16 & 1)
    a_scale, b_scale = bits >> 29 & 3, bits >> 4 & 3
    if kind is not Kind.MXF8F6F4:
        if Major.MN in (a_major, b_major):
            raise Fault(f"{where}: transposition (bits 15-16) is not for packed 4-bit elements", rule="ID-01")
        if a_scale % 2 or b_scale % 2:
            raise Fault(f"{where}: scale factor ids (bits 29-30, 4-5) are 0 or 2", rule="ID-01")
    ue4m3 = not bits >> 23 & 1
    if ue4m3 and kind is not Kind.MXF4NVF4:
        raise Fault(f"{where}: scale type (bit 23) ue4m3 is for kind mxf4nvf4 alone", rule="ID-01")
    negate_a, negate_b = bool(bits >> 13 & 1), bool(bits >> 14 & 1)
    return InstrDescriptor(
        kind, m, n, 32, a, b, Format.F32, a_major, b_major, negate_a, negate_b, a_scale, b_scale, ue4m3
    )


def _format(where: str, field: str, table: dict[int, Format], code: int) -> Format:
    if code not in table:
        raise Fault(f"{where}: {field} is {code}, which the kind does not define", rule="ID-01")
    return table[code]
