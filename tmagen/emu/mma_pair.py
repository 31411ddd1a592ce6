# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma.cta_group::2: one product by the tensor cores of two CTAs (PTX ISA, "CTA Pair", "Layout organization").

The same descriptors and addresses hold in both CTAs. Each has half of A's rows and half of B's rows, which are columns
of D. With M = 256 a CTA gets its 128 rows of D in all N columns; with M = 128 its 64 rows, the left half of the columns
in lanes 0 to 63 and the right half in lanes 64 to 127.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tmagen.emu import block_scale, mma
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.instr_descriptor import Format, InstrDescriptor, decode
from tmagen.emu.memory import Bytes
from tmagen.emu.mma import F32, Mma
from tmagen.emu.smem_descriptor import Major
from tmagen.emu.tmem import LANES, Tmem

CTAS = 2


class PairMma(NamedTuple):
    """One instruction as issued: the operands of `Mma`, which are the same in both CTAs."""

    op: Mma


def chains(ops: Sequence[PairMma]) -> list[tuple[int, int]]:
    """Runs of instructions that are one sum over all of their K ranges, as (start, end)."""
    found, start = [], 0
    for i in range(1, len(ops) + 1):
        if i == len(ops) or not mma.continues(ops[i - 1].op, ops[i].op):
            found.append((start, i))
            start = i
    return found


@lru_cache(maxsize=64)
def whole(desc: InstrDescriptor) -> InstrDescriptor:
    """What one CTA's tensor memory gets, as an instruction of 128 lanes."""
    return replace(desc, m=LANES, n=desc.n if desc.m == CTAS * LANES else desc.n // CTAS)


@np.errstate(over="ignore", invalid="ignore")
def execute(ops: Sequence[PairMma], smems: tuple[Bytes, Bytes], tmems: tuple[Tmem, Tmem]) -> None:
    """Execute one chain. Raises Fault for bad descriptors and addresses, NotJudged for what is not known."""
    op = ops[0].op
    desc = decode(op.kind, op.idesc, CTAS)
    part = whole(desc)
    if op.disable_lanes is not None:
        raise NotJudged("disable-output-lane with cta_group::2")
    if op.d >> 16:
        raise Fault(f"tcgen05.mma with cta_group::2: D at lane {op.d >> 16} must be at lane 0")
    column = op.d & 0xFFFF
    for tmem in tmems:
        tmem.check_columns(column, part.n, "tcgen05.mma D")
    if op.scale_d and (op.kind not in ("f16", "tf32") or not 0 <= op.scale_d <= 15):
        raise Fault(f"tcgen05.mma of kind {op.kind} with scale-input-d {op.scale_d}")
    half = desc.n // CTAS
    if desc.b_major is Major.MN and desc.b.nbytes == 1 and half % 16:
        raise Fault(f"tcgen05.mma with cta_group::2: MN-major B of 8-bit elements and N = {desc.n}")
    descs_a, descs_b = tuple(each.op.a for each in ops), tuple(each.op.b for each in ops)
    b = np.concatenate([mma.gather(descs_b, half, desc.k, desc.b, desc.b_major, smem) for smem in smems])
    for smem, tmem in zip(smems, tmems, strict=True):
        mma.write(op, part, tmem, column, _product(op, desc, descs_a, b, smem, tmem))


def _product(op: Mma, desc: InstrDescriptor, descs_a: tuple[Any, ...], b: F32, smem: Bytes, tmem: Tmem) -> Any:
    """One CTA's part of D, by columns and lanes of its tensor memory."""
    rows = desc.m // CTAS
    if op.a_in_tmem:
        a = mma.from_tmem(op, replace(desc, m=LANES), tmem)
    else:
        a = mma.gather(descs_a, rows, desc.k, desc.a, desc.a_major, smem)
    if op.scales is not None:
        if rows != LANES:
            raise NotJudged("tcgen05.mma with .block_scale, cta_group::2 and M = 128")
        return block_scale.product(desc, op.scales, a, b, tmem)
    multiply = mma.integer_product if desc.d is Format.S32 else mma.product_of
    if rows == LANES:
        return multiply(b, a)
    # Each half of the lanes computes half of the columns, with the rows of A that it has when A is in tensor memory.
    left, right = (a[:rows], a[rows:]) if op.a_in_tmem else (a, a)
    half = desc.n // CTAS
    return np.concatenate([multiply(b[:half], left), multiply(b[half:], right)], 1)
