# SPDX-License-Identifier: Apache-2.0
"""wgmma.mma_async: D (registers) = A (shared memory or registers) * B (shared memory) transposed, plus D.

The accumulator of a warpgroup is one matrix of 64 x N while instructions add to it; the warps' registers are cut from
it when a program looks at them. Consecutive instructions on one accumulator are summed by one matrix product over all
of their K ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu import numeric, sums
from tmagen.emu.errors import Fault
from tmagen.emu.instr_descriptor import Format
from tmagen.emu.memory import Bytes
from tmagen.emu.smem_descriptor import UNIT, Major
from tmagen.emu.swizzle import Index
from tmagen.emu.wgmma_descriptor import locate

M = 64
WARPS = 4
ROWS = M // WARPS
"""Rows of the accumulator in the registers of one warp."""

Matrix = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]
_UNIT_DTYPE = np.dtype(np.complex128)  # 16 opaque bytes; NumPy gathers it fastest


@dataclass(frozen=True, eq=False)
class Form:
    """What the text of one wgmma.mma_async fixes. `accumulator` numbers its set of D registers within the kernel, and
    `overlaps` are the others that share registers with it.

    `checked` are the descriptors (A, B, bytes of shared memory) that were found to be right.
    """

    n: int
    a: Format
    b: Format
    d: Format
    a_major: Major
    b_major: Major
    negate: bool
    saturate: bool
    accumulator: int
    a_in_registers: bool
    overlaps: tuple[int, ...] = ()
    checked: set[tuple[int, int, int]] = field(default_factory=set)

    @cached_property
    def k(self) -> int:
        """Elements of K: 32 bytes of an operand's row (PTX ISA, "Matrix shape" of wgmma)."""
        return 32 // self.a.nbytes

    @cached_property
    def matrix_dtype(self) -> npt.DTypeLike:
        """How the accumulator is kept: float16 ones as float32, rounded after each instruction."""
        return np.int32 if self.d is Format.S32 else np.float32


class Op:
    """One execution by a warpgroup: the descriptors, and what single warps bring along.

    `fragments` are the warps' 16 rows of A where A is in registers. `initial` maps a warp's rank to its rows of D where
    they come from registers that something else wrote since; other rows go on from the matrix. `matrices` are the
    warpgroup's accumulators by number. `line` is the generated code's, for reports.
    """

    __slots__ = ("a", "accumulate", "arrived", "b", "form", "fragments", "initial", "line", "matrices")

    def __init__(self, form: Form, a: int, b: int, accumulate: bool, matrices: dict[int, Matrix], line: int) -> None:
        self.form = form
        self.a = a
        self.b = b
        self.accumulate = accumulate
        self.matrices = matrices
        self.line = line
        self.arrived = 0
        self.fragments: list[Matrix] | None = None
        self.initial: dict[int, Matrix | float] | None = None

    def check(self, smem_bytes: int) -> None:
        """Raises Fault, NotJudged for what is wrong with the descriptors."""
        form = self.form
        if (self.a, self.b, smem_bytes) in form.checked:
            return
        if not form.a_in_registers:
            _plan((self.a,), M, form.k, form.a.nbytes, form.a_major, smem_bytes)
        _plan((self.b,), form.n, form.k, form.b.nbytes, form.b_major, smem_bytes)
        if len(form.checked) < 4096:
            form.checked.add((self.a, self.b, smem_bytes))


@np.errstate(over="ignore", invalid="ignore")
def execute(ops: Sequence[Op], smem: Bytes, *, hardware_sums: bool = False) -> None:
    """Execute instructions that see the same shared memory, in order; those of other accumulators are independent.

    Products are summed in float32, those of several instructions together, or as an H200 does (see `sums.py`).
    """
    chains: dict[tuple[int, int], list[Op]] = {}
    for op in ops:
        chains.setdefault((id(op.matrices), op.form.accumulator), []).append(op)
    gathered: dict[Any, Matrix] = {}
    for chain in chains.values():
        start = 0
        for i in range(1, len(chain) + 1):
            if i == len(chain) or hardware_sums or not _continues(chain[i - 1], chain[i]):
                _run(chain[start:i], smem, gathered, hardware_sums)
                start = i


def _continues(first: Op, second: Op) -> bool:
    """Whether one sum over the K ranges of both is the same."""
    a, b = first.form, second.form
    same = a is b or (a.n, a.a, a.b, a.d, a.a_major, a.b_major, a.negate, a.a_in_registers) == (
        b.n, b.a, b.b, b.d, b.a_major, b.b_major, b.negate, b.a_in_registers
    )  # fmt: skip
    return same and second.accumulate and not second.initial and b.d is not Format.F16 and not b.saturate


def _run(ops: list[Op], smem: Bytes, gathered: dict[Any, Matrix], hardware_sums: bool) -> None:
    op, form = ops[0], ops[0].form
    if form.a_in_registers:
        a = np.concatenate([np.concatenate(each.fragments or ()) for each in ops], 1)
    else:
        a = _gather(tuple(each.a for each in ops), M, form.k, form.a, form.a_major, smem, gathered)
    b = _gather(tuple(each.b for each in ops), form.n, form.k, form.b, form.b_major, smem, gathered)
    matrix = op.matrices.get(form.accumulator)
    if matrix is None or matrix.shape[1] != form.n or matrix.dtype != form.matrix_dtype:
        matrix = op.matrices[form.accumulator] = np.zeros((M, form.n), form.matrix_dtype)
    if op.initial is not None:
        for rank, rows in op.initial.items():
            matrix[ROWS * rank : ROWS * (rank + 1)] = rows
    if hardware_sums and form.d is not Format.S32:
        left = -a if form.negate else a
        matrix[...] = sums.wgmma(left, b, matrix if op.accumulate else None, form.a, form.b, form.d)
        return
    if form.d is Format.F32 and not form.negate:
        if op.accumulate:
            matrix += np.matmul(a, b.T)
        else:
            np.matmul(a, b.T, out=matrix)
        return
    product = np.matmul(a, b.T)
    if form.negate:
        np.negative(product, out=product)
    if op.accumulate:
        product += matrix
    if form.d is Format.S32:
        matrix[...] = to_s32(product, form.saturate)
    elif form.d is Format.F16:
        matrix[...] = numeric.f16_to_f32(numeric.f32_to_f16(product))
    else:
        matrix[...] = product


def to_s32(sums: Matrix, saturate: bool) -> Matrix:
    """Sums of integer products, which are exact in float64, as s32: clamped or wrapped (PTX ISA, ".satfinite")."""
    if saturate:
        return np.clip(sums, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    return sums.astype(np.int64).astype(np.int32)


# --- operands ---------------------------------------------------------------------------------------------------------


def _signed(bits: npt.NDArray[Any]) -> Matrix:
    return bits.view(np.int8).astype(np.float64)


def _unsigned(bits: npt.NDArray[Any]) -> Matrix:
    return bits.astype(np.float64)


_WIDEN: dict[Format, tuple[Any, Callable[[npt.NDArray[Any]], Matrix]]] = {
    Format.F16: (np.uint16, numeric.f16_to_f32),
    Format.BF16: (np.uint16, numeric.bf16_to_f32),
    Format.TF32: (np.uint32, numeric.tf32_truncate),
    Format.E4M3: (np.uint8, numeric.e4m3_to_f32),
    Format.E5M2: (np.uint8, numeric.e5m2_to_f32),
    Format.S8: (np.uint8, _signed),
    Format.U8: (np.uint8, _unsigned),
}
FORMATS = frozenset(_WIDEN)


@lru_cache(maxsize=4096)
def _plan(descs: tuple[int, ...], rows: int, k: int, nbytes: int, major: Major, smem_bytes: int) -> tuple[int, Index]:
    """(base address, units relative to it) of several K-adjacent operands; MN-major ones come as [k, rows]."""
    operands = [locate(desc, rows, k, nbytes, major) for desc in descs]
    for desc, operand in zip(descs, operands, strict=True):
        if operand.end > smem_bytes:
            where = f"the operand reaches byte {operand.end - 1:,} of shared memory"
            raise Fault(f"SMEM descriptor {desc:#018x}: {where}; the CTA has {smem_bytes:,}", rule="DS-04")
    base = min(operand.base for operand in operands)
    axis = 1 if major is Major.K else 0
    units = np.concatenate([operand.units + (operand.base - base) // UNIT for operand in operands], axis)
    return base, np.ascontiguousarray(units)


def _gather(
    descs: tuple[int, ...], rows: int, k: int, fmt: Format, major: Major, smem: Bytes, gathered: dict[Any, Matrix]
) -> Matrix:
    """The operand [rows, len(descs) * k] in the type that products are computed in."""
    key = (descs, rows, fmt, major)
    found = gathered.get(key)
    if found is None:
        dtype, widen = _WIDEN[fmt]
        base, units = _plan(descs, rows, k, fmt.nbytes, major, smem.size)
        elements = smem[base:].view(_UNIT_DTYPE).take(units).view(dtype)
        if major is Major.MN:
            elements = elements[:, :rows].T
        found = gathered[key] = widen(elements)
    return found


# --- registers (PTX ISA, "Register Fragments" of wgmma) ---------------------------------------------------------------


def registers_of_d(fmt: Format, n: int) -> int:
    """How many 32-bit registers of a thread hold its part of D."""
    return n // 4 if fmt is Format.F16 else n // 2


def d_to_registers(fmt: Format, rows: Matrix) -> list[Words]:
    """The registers, 32 lanes each, that hold a warp's 16 rows of D.

    Element i of lane t is at row t / 4 + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * (t % 4) + i % 2.
    """
    elements = rows.reshape(2, 8, -1, 4, 2).transpose(2, 0, 4, 1, 3).reshape(-1, 32)
    if fmt is not Format.F16:
        return list(elements.view(np.uint32))
    halves = numeric.f32_to_f16(elements).astype(np.uint32)
    return list(halves[0::2] | halves[1::2] << np.uint32(16))


def d_from_registers(fmt: Format, values: Sequence[Any]) -> Matrix | float:
    """The inverse; a number where all registers are zero."""
    if not any(value.__class__ is np.ndarray or value for value in values):
        return 0.0
    words = _words(values)
    if fmt is Format.F16:
        elements: Matrix = np.empty((2 * len(values), 32), np.float32)
        elements[0::2] = numeric.f16_to_f32(words.astype(np.uint16))
        elements[1::2] = numeric.f16_to_f32((words >> np.uint32(16)).astype(np.uint16))
    else:
        elements = words.view(np.int32 if fmt is Format.S32 else np.float32)
    return elements.reshape(-1, 2, 2, 8, 4).transpose(1, 3, 0, 4, 2).reshape(ROWS, -1)


def a_from_registers(fmt: Format, values: Sequence[Any]) -> Matrix:
    """A warp's 16 rows of A from its four registers."""
    dtype, widen = _WIDEN[fmt]
    elements = np.ascontiguousarray(_words(values).T).view(dtype)
    out = np.empty((ROWS, 32 // fmt.nbytes), dtype)
    out[_a_fragment(fmt.nbytes)] = elements
    return widen(out)


def b_from_registers(fmt: Format, values: Sequence[Any]) -> Matrix:
    """The 8 rows of B of an mma.sync, which are columns of D, from its two registers."""
    dtype, widen = _WIDEN[fmt]
    elements = np.ascontiguousarray(_words(values).T).view(dtype)
    out = np.empty((8, 32 // fmt.nbytes), dtype)
    per = 4 // fmt.nbytes
    t, i = np.arange(32, dtype=np.intp)[:, None], np.arange(2 * per, dtype=np.intp)[None, :]
    out[t // 4 + 0 * i, per * (t % 4) + i % per + 4 * per * (i // per)] = elements
    return widen(out)


@lru_cache(maxsize=3)
def _a_fragment(nbytes: int) -> tuple[Index, Index]:
    """(row, column) of the elements [32 lanes, 16 / nbytes] of A."""
    t = np.arange(32, dtype=np.intp)[:, None]
    i = np.arange(16 // nbytes, dtype=np.intp)[None, :]
    per = 4 // nbytes  # elements of a register, side by side
    register = i // per
    row = t // 4 + 8 * (register % 2) + 0 * i
    column = per * (t % 4) + i % per + 4 * per * (register // 2)
    return row, column


def _words(values: Sequence[Any]) -> Words:
    words = np.empty((len(values), 32), np.uint32)
    for i, value in enumerate(values):
        words[i] = value
    return words
