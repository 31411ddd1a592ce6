# SPDX-License-Identifier: Apache-2.0
"""Packs the two descriptors that an MMA instruction takes, field by field.

A :class:`Descriptor` keeps its fields, so that the emitted source, ``tmagen explain`` and the tests show one thing.
The emulator decodes descriptors with code of its own, written from the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tmagen.ir import DType

SWIZZLE_CODES = {128: 2, 64: 4, 32: 6}
"""Row bytes of a swizzle to its code in bits 61 to 63 (PTX ISA "tcgen05 Shared memory descriptor")."""

WGMMA_SWIZZLE_CODES = {128: 1, 64: 2, 32: 3}
"""The same in bits 62 to 63 (PTX ISA "Matrix Descriptor Format" of wgmma)."""

OPERAND_CODES = {DType.F16: 0, DType.BF16: 1}
"""Element type of A or B to its code under kind::f16 (PTX ISA "tcgen05 Instruction descriptor")."""

ACCUMULATOR_CODES = {DType.F32: 1}
"""Element type of the accumulator to its code under kind::f16 (same table)."""

ROWS_PER_CORE_MATRIX = 8
"""Rows that a swizzle pattern spans: the stride byte offset steps over this many (PTX ISA "Strides")."""


@dataclass(frozen=True, slots=True)
class Field:
    """One bit field of a descriptor."""

    name: str  # as the PTX ISA calls it
    constant: str  # its name in the emitted source
    shift: int  # lowest bit
    bits: int  # width
    value: int
    meaning: str  # what the value says

    def __post_init__(self) -> None:
        assert 0 <= self.value < 1 << self.bits, f"{self.name} = {self.value} does not fit in {self.bits} bits"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor as its fields. Bits that no field covers are zero."""

    fields: tuple[Field, ...]
    bits: int  # width of the whole: 64 or 32

    @property
    def value(self) -> int:
        """All fields in place."""
        packed = 0
        for field in self.fields:
            packed |= field.value << field.shift
        return packed


def smem_descriptor(swizzle_bytes: int) -> Descriptor:
    """The SMEM descriptor of a K-major, swizzled operand tile for tcgen05.mma, its start address left 0."""
    return Descriptor(
        fields=(
            *_offsets(swizzle_bytes),
            Field("fixed constant", "kDescriptorVersion", 46, 3, 1, "the constant 0b001"),
            _swizzle(swizzle_bytes, 61, 3, SWIZZLE_CODES),
        ),
        bits=64,
    )


def wgmma_smem_descriptor(swizzle_bytes: int) -> Descriptor:
    """The same for wgmma: no version field, and the swizzle code one bit higher."""
    return Descriptor(
        fields=(*_offsets(swizzle_bytes), _swizzle(swizzle_bytes, 62, 2, WGMMA_SWIZZLE_CODES)),
        bits=64,
    )


def _offsets(swizzle_bytes: int) -> tuple[Field, Field]:
    """Rows of ``swizzle_bytes`` follow each other densely, so eight of them are the stride byte offset.

    The leading byte offset is not used by these layouts (PTX ISA "Leading dimension byte offset": assumed to be 1).
    """
    stride_bytes = ROWS_PER_CORE_MATRIX * swizzle_bytes
    return (
        Field("leading dimension byte offset", "kDescriptorLeadingOffset", 16, 14, 1, "unused when swizzled"),
        Field(
            "stride dimension byte offset",
            "kDescriptorStrideOffset",
            32,
            14,
            stride_bytes >> 4,
            f"{stride_bytes:,} bytes every 8 rows",
        ),
    )


def _swizzle(swizzle_bytes: int, shift: int, bits: int, codes: Mapping[int, int]) -> Field:
    return Field(
        "swizzle mode", "kDescriptorSwizzle", shift, bits, codes[swizzle_bytes], f"{swizzle_bytes}-byte swizzle"
    )


def instr_descriptor(a: DType, b: DType, acc: DType, m: int, n: int) -> Descriptor:
    """The instruction descriptor of a dense, K-major MMA of kind::f16 with an ``m`` x ``n`` tile."""
    return Descriptor(
        fields=(
            Field("D format", "kInstrAccumulator", 4, 2, ACCUMULATOR_CODES[acc], f"D is {acc.value}"),
            Field("A format", "kInstrA", 7, 3, OPERAND_CODES[a], f"A is {a.value}"),
            Field("B format", "kInstrB", 10, 3, OPERAND_CODES[b], f"B is {b.value}"),
            Field("A major", "kInstrMajorA", 15, 1, 0, "A is K-major"),
            Field("B major", "kInstrMajorB", 16, 1, 0, "B is K-major"),
            Field("N >> 3", "kInstrN", 17, 6, n >> 3, f"N = {n}"),
            Field("M >> 4", "kInstrM", 24, 5, m >> 4, f"M = {m}"),
        ),
        bits=32,
    )
