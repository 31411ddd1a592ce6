# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: what cuTensorMapEncodeTiled is given, the rules that it keeps, and the 128 bytes that a kernel gets.

The hardware's 128-byte format is not public. A map here is plain little-endian fields; whoever launches a kernel on the
emulator writes them:

    0 u32 magic "TMAP"   4 u8 version (1)   5 u8 data type   6 u8 rank   7 u8 interleave   8 u64 global address
    16 u64[5] dims (elements, innermost first)   56 u64[4] strides (bytes) of dims 1..4   88 u16[5] box   98 u8[5]
    element strides 103 u8 swizzle   104 u8 L2 promotion   105 u8 out-of-bounds fill   106 22 zero bytes

Codes are those of the CUDA driver's enums.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from math import prod

from tmagen.emu.errors import Fault
from tmagen.emu.swizzle import Index, Swizzle

NBYTES = 128
ALIGNMENT = 64
MAGIC = 0x50414D54
VERSION = 1
_FORMAT = struct.Struct("<IBBBBQ5Q4Q5H5BBBB22s")


class DataType(IntEnum):
    """CUtensorMapDataType."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    U4_ALIGN8B = 13
    U4_ALIGN16B = 14
    U6_ALIGN16B = 15

    @property
    def bits(self) -> int:
        """Bits of one element in global memory."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        return self in _NAN


_BITS = dict(zip(DataType, (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6), strict=True))
# The value of the driver's "special NaN" is not documented; an H200 writes this.
_NAN = {
    DataType.FLOAT16: 0x7FF7,
    DataType.BFLOAT16: 0x7FF7,
    DataType.FLOAT32: 0x7FF77FF7,
    DataType.FLOAT32_FTZ: 0x7FF77FF7,
    DataType.TFLOAT32: 0x7FF77FF7,
    DataType.TFLOAT32_FTZ: 0x7FF77FF7,
    DataType.FLOAT64: 0x7FF77FF77FF77FF7,
}


class Interleave(IntEnum):
    """CUtensorMapInterleave."""

    NONE = 0
    B16 = 1
    B32 = 2


class SwizzleMode(IntEnum):
    """CUtensorMapSwizzle."""

    NONE = 0
    B32 = 1
    B64 = 2
    B128 = 3
    B128_ATOM_32B = 4
    B128_ATOM_32B_FLIP_8B = 5
    B128_ATOM_64B = 6

    @property
    def pattern(self) -> Swizzle:
        return Swizzle[self.name]


class L2Promotion(IntEnum):
    """CUtensorMapL2promotion: a hint."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class OobFill(IntEnum):
    """CUtensorMapFloatOOBfill: what out-of-bounds elements of a load become."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


@dataclass(frozen=True)
class TensorMap:
    """A tiled tensor map. Dimension 0 is the innermost; `strides`, in bytes, are those of dimensions 1 and up."""

    data_type: DataType
    rank: int
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: Interleave = Interleave.NONE
    swizzle: SwizzleMode = SwizzleMode.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.NONE

    @property
    def element_bytes(self) -> int:
        """Bytes of one element. Only for types of whole bytes."""
        return self.data_type.bits // 8

    @cached_property
    def of_bytes(self) -> TensorMap:
        """The same tensor of 4-bit elements as one of bytes, two elements each. Of U4_ALIGN8B alone."""
        dims, box = ((extents[0] // 2, *extents[1:]) for extents in (self.dims, self.box))
        return replace(self, data_type=DataType.UINT8, dims=dims, box=box)

    @cached_property
    def pattern(self) -> Swizzle:
        """How rows of a box are swizzled in shared memory."""
        return self.swizzle.pattern

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements that one box takes of each dimension: ceil(box / element stride), dimension 0 without its stride."""
        steps = (1, *self.element_strides[1:]) if self.interleave is Interleave.NONE else self.element_strides
        return tuple(-(-box // step) for box, step in zip(self.box, steps, strict=True))

    @cached_property
    def rows(self) -> int:
        """Rows of a box in shared memory: all dimensions but the innermost, stacked."""
        return prod(self.counts[1:])

    @cached_property
    def row_bytes(self) -> int:
        """Payload bytes of a row."""
        return self.counts[0] * self.data_type.bits // 8

    @cached_property
    def pitch(self) -> int:
        """Bytes from one row to the next in shared memory: a swizzle's span, which a narrow row does not fill."""
        return self.row_bytes if self.swizzle is SwizzleMode.NONE else self.pattern.span

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that a load completes on its mbarrier: with out-of-bounds elements, without padding of narrow rows."""
        return self.rows * self.row_bytes

    @cached_property
    def footprint(self) -> int:
        """Bytes of shared memory from a box's first to past its last."""
        return self.rows * self.pitch

    @cached_property
    def fill(self) -> int:
        """The bit pattern of an out-of-bounds element."""
        return _NAN[self.data_type] if self.oob_fill is OobFill.NAN_REQUEST_ZERO_FMA else 0

    @cached_property
    def units(self) -> dict[int, Index]:
        """Where a box's units lie in shared memory, by the start's address modulo 1024, as `box_units` has found."""
        return {}

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """`validate()`, computed once."""
        return self.validate()

    def validate(self) -> tuple[str, ...]:
        """One message for every rule that the map breaks (CUDA driver API, cuTensorMapEncodeTiled)."""
        if not 1 <= self.rank <= 5:
            return (f"rank {self.rank} is not 1 to 5",)
        lengths = {"dims": self.rank, "strides": self.rank - 1, "box": self.rank, "element_strides": self.rank}
        wrong = tuple(
            f"{name} has {len(getattr(self, name))} entries; rank {self.rank} needs {n}"
            for name, n in lengths.items()
            if len(getattr(self, name)) != n
        )
        if wrong:
            return wrong
        return (*self._address_rules(), *self._dim_rules(), *self._box_rules(), *self._mode_rules())

    def _address_rules(self) -> list[str]:
        packed16 = self.data_type in (DataType.U4_ALIGN16B, DataType.U6_ALIGN16B)
        align = 32 if self.interleave is Interleave.B32 or packed16 else 16
        found = []
        if self.address % align:
            found.append(f"global address {self.address:#x} is not a multiple of {align}")
        if not 0 <= self.address < 1 << 64:
            found.append(f"global address {self.address:#x} is not a 64-bit address")
        for i, stride in enumerate(self.strides, 1):
            if stride % align:
                found.append(f"stride {stride:,} of dimension {i} is not a multiple of {align} bytes")
            if not 0 <= stride < 1 << 40:
                found.append(f"stride {stride:,} of dimension {i} is not below 2^40 bytes")
        return found

    def _dim_rules(self) -> list[str]:
        found = [
            f"dimension {i} of {n:,} elements is not 1 to 2^32"
            for i, n in enumerate(self.dims)
            if not 1 <= n <= 1 << 32
        ]
        if self.data_type is DataType.U4_ALIGN8B and self.dims[0] % 2:
            found.append(f"dimension 0 of {self.dims[0]:,} 4-bit elements is odd")
        if self.data_type in (DataType.U4_ALIGN16B, DataType.U6_ALIGN16B) and self.dims[0] % 128:
            found.append(
                f"dimension 0 of {self.dims[0]:,} elements is not a multiple of 128, which {self.data_type.name} needs"
            )
        return found

    def _box_rules(self) -> list[str]:
        found = [
            f"box extent {n:,} of dimension {i} is not 1 to 256" for i, n in enumerate(self.box) if not 1 <= n <= 256
        ]
        steps = self.element_strides
        found += [f"element stride {n} of dimension {i} is not 1 to 8" for i, n in enumerate(steps) if not 1 <= n <= 8]
        inner_bits = self.box[0] * self.data_type.bits
        if self.data_type in (DataType.U4_ALIGN16B, DataType.U6_ALIGN16B):
            if self.box[0] != 128:
                found.append(f"box extent {self.box[0]} of dimension 0 is not 128, which {self.data_type.name} needs")
        elif self.interleave is Interleave.NONE:
            if inner_bits % 128:
                found.append(f"box row of {inner_bits // 8} bytes is not a multiple of 16 bytes")
            if self.swizzle is not SwizzleMode.NONE and inner_bits // 8 > self.pattern.span:
                limit = f"the {self.pattern.span} bytes of swizzle {self.swizzle.name}"
                found.append(f"box row of {inner_bits // 8} bytes is wider than {limit}")
        return found

    def _mode_rules(self) -> list[str]:
        found = []
        if self.interleave is not Interleave.NONE and self.rank < 3:
            found.append(f"interleave needs rank 3 or more, not {self.rank}")
        if self.interleave is Interleave.B32 and self.swizzle is not SwizzleMode.B32:
            found.append(f"interleave B32 needs swizzle B32, not {self.swizzle.name}")
        if self.data_type is DataType.U6_ALIGN16B and self.interleave is not Interleave.NONE:
            found.append("U6_ALIGN16B allows no interleave")
        allowed = {
            DataType.U4_ALIGN16B: (SwizzleMode.NONE, SwizzleMode.B128, SwizzleMode.B128_ATOM_32B),
            DataType.U6_ALIGN16B: (
                SwizzleMode.NONE,
                SwizzleMode.B128,
                SwizzleMode.B128_ATOM_32B,
                SwizzleMode.B128_ATOM_64B,
            ),
        }.get(self.data_type)
        if allowed and self.swizzle not in allowed:
            found.append(f"{self.data_type.name} allows no swizzle {self.swizzle.name}")
        if self.oob_fill is OobFill.NAN_REQUEST_ZERO_FMA and not self.data_type.is_float:
            found.append(f"NaN fill needs a floating-point type, not {self.data_type.name}")
        return found

    def encode(self) -> bytes:
        """The 128 bytes. Raises ValueError where a field does not fit."""
        if not 1 <= self.rank <= 5:
            raise ValueError(f"rank {self.rank} is not 1 to 5")
        pad = (0,) * (5 - self.rank)
        arrays = (*self.dims, *pad, *self.strides, *pad, *self.box, *pad, *self.element_strides, *pad)
        head = (MAGIC, VERSION, self.data_type, self.rank, self.interleave, self.address)
        try:
            return _FORMAT.pack(*head, *arrays, self.swizzle, self.l2_promotion, self.oob_fill, bytes(22))
        except struct.error as error:
            raise ValueError(f"tensor map does not fit its format: {error}") from error

    @classmethod
    def decode(cls, raw: bytes) -> TensorMap:
        """The map in 128 bytes. Raises Fault where they are none: a wrong magic, version, code, rank or padding."""
        if len(raw) != NBYTES:
            raise Fault(f"a tensor map has {NBYTES} bytes, not {len(raw)}")
        magic, version, dtype, rank, interleave, address, *rest = _FORMAT.unpack(raw)
        dims, strides, box, steps = rest[0:5], rest[5:9], rest[9:14], rest[14:19]
        swizzle, l2, fill, padding = rest[19:]
        if magic != MAGIC:
            raise Fault(f"no tensor map here: it starts with {magic:#010x}, not {MAGIC:#010x}")
        if version != VERSION:
            raise Fault(f"tensor map of version {version}, not {VERSION}")
        if not 1 <= rank <= 5:
            raise Fault(f"tensor map of rank {rank}, not 1 to 5")
        if any(padding):  # fields of dimensions that there are not may hold anything: tensormap.replace lowers ranks
            raise Fault("tensor map with bytes that are not zero where the format has none")
        try:
            return cls(
                data_type=DataType(dtype),
                rank=rank,
                address=address,
                dims=tuple(dims[:rank]),
                strides=tuple(strides[: rank - 1]),
                box=tuple(box[:rank]),
                element_strides=tuple(steps[:rank]),
                interleave=Interleave(interleave),
                swizzle=SwizzleMode(swizzle),
                l2_promotion=L2Promotion(l2),
                oob_fill=OobFill(fill),
            )
        except ValueError as error:
            raise Fault(f"tensor map with an unknown code: {error}") from error
