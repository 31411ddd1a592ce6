# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma of one CTA: D (TMEM) = A (SMEM or TMEM) * B (SMEM) transposed, plus D.

Operands are gathered through their descriptors as the hardware reads them; products are summed in float32. Consecutive
instructions on one accumulator are summed by one matrix product over all of their K ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tmagen.emu import block_scale, numeric
from tmagen.emu.block_scale import Scales
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.instr_descriptor import Format, InstrDescriptor, decode
from tmagen.emu.memory import Bytes
from tmagen.emu.smem_descriptor import UNIT, Major, locate
from tmagen.emu.swizzle import Index
from tmagen.emu.tmem import LANES, Tmem

F32 = npt.NDArray[np.float32]
_UNIT_DTYPE = np.dtype(np.complex128)  # 16 opaque bytes; NumPy gathers it fastest


class Mma(NamedTuple):
    """One tcgen05.mma.cta_group::1 instruction as issued.

    `a` is an SMEM descriptor, or a TMEM address where `a_in_tmem`; `b` is an SMEM descriptor; `d` a TMEM address.
    `scale_d` is the exponent of scale-input-d: the old D is multiplied by 2^-scale_d. `disable_lanes` holds the four
    words of disable-output-lane; `scales` where the factors of .block_scale are.
    """

    kind: str
    d: int
    a: int
    b: int
    idesc: int
    accumulate: bool
    a_in_tmem: bool = False
    scale_d: int = 0
    disable_lanes: tuple[int, int, int, int] | None = None
    scales: Scales | None = None


@np.errstate(over="ignore", invalid="ignore")
def execute(op: Mma, smem: Bytes, tmem: Tmem) -> None:
    """Execute one instruction.

    Raises Fault for bad descriptors and for bytes or columns that are not the CTA's, NotJudged for what is not known.
    """
    _run((op,), smem, tmem)


@np.errstate(over="ignore", invalid="ignore")
def execute_chain(ops: Sequence[Mma], smem: Bytes, tmem: Tmem) -> None:
    """Execute instructions in order, those that only add to the accumulator of the one before together with it."""
    start = 0
    for i in range(1, len(ops) + 1):
        if i == len(ops) or not continues(ops[i - 1], ops[i]):
            _run(tuple(ops[start:i]), smem, tmem)
            start = i


def continues(first: Mma, second: Mma) -> bool:
    """Whether `second` adds to the D of `first`, so that one sum over both K ranges is the same."""
    return (
        second.accumulate
        and second.d == first.d
        and second.idesc == first.idesc
        and second.kind == first.kind
        and not second.scale_d
        and second.disable_lanes == first.disable_lanes
        and second.scales is None
        and not (second.kind == "i8" and second.idesc >> 3 & 1)  # each sum is saturated
        # A read from TMEM must be seen as the instruction before left it.
        and not second.a_in_tmem
        and not first.a_in_tmem
    )


def _run(ops: tuple[Mma, ...], smem: Bytes, tmem: Tmem) -> None:
    op = ops[0]
    desc = decode(op.kind, op.idesc)
    column = _check(op, desc, tmem)
    if op.a_in_tmem:
        a = from_tmem(op, desc, tmem)
    else:
        a = gather(tuple(each.a for each in ops), desc.m, desc.k, desc.a, desc.a_major, smem)
    b = gather(tuple(each.b for each in ops), desc.n, desc.k, desc.b, desc.b_major, smem)
    # Everything is transposed, as TMEM is kept column by column: rows of `b` are columns of D.
    if op.scales is not None:
        write(op, desc, tmem, column, block_scale.product(desc, op.scales, a, b, tmem))
        return
    if desc.d is Format.S32:
        write(op, desc, tmem, column, integer_product(b, a))
        return
    if (
        desc.d is Format.F32
        and desc.m == LANES
        and op.disable_lanes is None
        and not op.scale_d
        and desc.negate_a == desc.negate_b
    ):
        target = tmem.floats[column : column + desc.n]
        if op.accumulate:
            target += product_of(b, a)
        else:
            np.matmul(b, a.T, out=target)
        return
    write(op, desc, tmem, column, product_of(b, a))


def product_of(b: F32, a: F32) -> F32:
    product: F32 = np.matmul(b, a.T)
    return product


def integer_product(b: F32, a: F32) -> npt.NDArray[np.float64]:
    """Exact products of 8-bit integers, over any K that shared memory holds."""
    product: npt.NDArray[np.float64] = np.matmul(b.astype(np.float64), a.T.astype(np.float64))
    return product


def write(op: Mma, desc: InstrDescriptor, tmem: Tmem, column: int, product: npt.NDArray[Any]) -> None:
    """Add to the old D where asked, convert, and write the lanes that the shape and the mask leave."""
    lanes = lanes_of_rows(desc.m, op.d >> 16)
    words = tmem.words[column : column + desc.n]
    old = words[:, lanes]
    if desc.d is Format.S32:
        _write_integers(op, desc, words, lanes, product)
        return
    if desc.negate_a != desc.negate_b:
        product = -product
    if op.accumulate:
        value = (
            numeric.f16_to_f32(old.astype(np.uint16))
            if desc.d is Format.F16
            else np.ascontiguousarray(old).view(np.float32)
        )
        product = product + (value * np.float32(2.0**-op.scale_d) if op.scale_d else value)
    if desc.d is Format.F16:
        # A float16 accumulator is the low half of its word. The other half is not defined: NaN shows a reader that
        # takes it.
        new = numeric.f32_to_f16(product).astype(np.uint32) | np.uint32(0xFFFF0000)
    else:
        new = np.ascontiguousarray(product).view(np.uint32)
    words[:, lanes] = new if op.disable_lanes is None else np.where(_disabled(op, lanes), old, new)


def _disabled(op: Mma, lanes: Index) -> npt.NDArray[np.bool_]:
    """Which of the lanes disable-output-lane keeps as they are."""
    bits = np.array(op.disable_lanes, "<u4").view(np.uint8)
    return np.unpackbits(bits, bitorder="little").astype(bool)[lanes]


def _write_integers(
    op: Mma, desc: InstrDescriptor, words: npt.NDArray[np.uint32], lanes: Index, product: npt.NDArray[Any]
) -> None:
    """Sums of kind i8 wrap at 32 bits, or stay at the largest numbers with saturation."""
    old = np.ascontiguousarray(words[:, lanes])
    total = product.astype(np.int64)
    if op.accumulate:
        total = total + old.view(np.int32)
    if desc.saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    new = total.astype(np.int32).view(np.uint32)
    words[:, lanes] = new if op.disable_lanes is None else np.where(_disabled(op, lanes), old, new)


@lru_cache(maxsize=8)
def lanes_of_rows(m: int, lane: int) -> Index:
    """The TMEM lane of each row of D (PTX ISA, "Layout organization" D and F)."""
    row = np.arange(m, dtype=np.intp)
    lanes: Index = row if m == LANES else row % 16 + row // 16 * 32 + lane
    return lanes


def _check(op: Mma, desc: InstrDescriptor, tmem: Tmem) -> int:
    """Check D's address and the modifiers; return D's first column."""
    lane, column = op.d >> 16, op.d & 0xFFFF
    if lane != 0 and not (desc.m == 64 and lane == 16):
        raise Fault(
            f"tcgen05.mma with M = {desc.m}: D at lane {lane} must be at lane {'0 or 16' if desc.m == 64 else '0'}",
            rule="ID-02",
        )
    tmem.check_columns(column, desc.n, "tcgen05.mma D")
    if op.scale_d and (op.kind not in ("f16", "tf32") or not 0 <= op.scale_d <= 15):
        raise Fault(f"tcgen05.mma of kind {op.kind} with scale-input-d {op.scale_d}", rule="TM5-02")
    return column


_Widen = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
_WIDEN: dict[Format, tuple[npt.DTypeLike, _Widen]] = {
    Format.F16: (np.uint16, numeric.f16_to_f32),
    Format.BF16: (np.uint16, numeric.bf16_to_f32),
    Format.TF32: (np.uint32, numeric.tf32_truncate),
    Format.E4M3: (np.uint8, numeric.e4m3_to_f32),
    Format.E5M2: (np.uint8, numeric.e5m2_to_f32),
    Format.E2M1X2: (np.uint8, numeric.e2m1x2_to_f32),
    Format.U8: (np.uint8, lambda values: values.astype(np.float32)),
    Format.S8: (np.int8, lambda values: values.astype(np.float32)),
}


def widening(fmt: Format) -> tuple[npt.DTypeLike, _Widen]:
    if fmt not in _WIDEN:
        raise NotJudged(f"tcgen05.mma of {fmt.value[0]} elements")
    return _WIDEN[fmt]


class _Gather(NamedTuple):
    """The units of several K-adjacent operands, relative to `base`; MN-major ones come as [k, rows]."""

    base: int
    units: Index


@lru_cache(maxsize=4096)
def _plan(descs: tuple[int, ...], rows: int, k: int, nbytes: int, major: Major, smem_bytes: int) -> _Gather:
    operands = [locate(desc, rows, k, nbytes, major) for desc in descs]
    for desc, operand in zip(descs, operands, strict=True):
        if operand.end > smem_bytes:
            where = f"the operand reaches byte {operand.end - 1:,} of shared memory"
            raise Fault(f"SMEM descriptor {desc:#018x}: {where}; the CTA has {smem_bytes:,}", rule="DS-04")
    base = min(operand.base for operand in operands)
    axis = 1 if major is Major.K else 0
    units = np.concatenate([operand.units + (operand.base - base) // UNIT for operand in operands], axis)
    return _Gather(base, np.ascontiguousarray(units))


def gather(descs: tuple[int, ...], rows: int, k: int, fmt: Format, major: Major, smem: Bytes) -> F32:
    """The operand as float32 [rows, len(descs) * k]."""
    plan = _plan(descs, rows, k, fmt.nbytes, major, smem.size)
    taken = smem[plan.base :].view(_UNIT_DTYPE).take(plan.units)
    if fmt.in_units:
        values = numeric.units_to_f32(taken.view(np.uint8), fmt.value[0])
        return values if major is Major.K else np.ascontiguousarray(values[:, :rows].T)
    dtype, widen = widening(fmt)
    elements = taken.view(dtype)
    if major is Major.MN:
        elements = elements[:, :rows].T
    return widen(elements)


def from_tmem(op: Mma, desc: InstrDescriptor, tmem: Tmem) -> F32:
    """A from TMEM: lane = row (as D for M = 64), 2 or 4 elements in a 32-bit column, the first in the low bits."""
    lane, column = op.a >> 16, op.a & 0xFFFF
    if lane != op.d >> 16:
        raise Fault(
            f"tcgen05.mma with A at TMEM lane {lane} and D at lane {op.d >> 16}: they must be the same", rule="ID-02"
        )
    if desc.a_major is not Major.K:
        raise Fault("tcgen05.mma with A in TMEM: the instruction descriptor says MN-major", rule="ID-02")
    columns = desc.k * desc.a.nbytes // 4
    tmem.check_columns(column, columns, "tcgen05.mma A")
    dtype, widen = widening(desc.a)
    words = np.ascontiguousarray(tmem.words[column : column + columns, lanes_of_rows(desc.m, lane)].T)
    return widen(words.view(dtype))
