# SPDX-License-Identifier: Apache-2.0
"""mma.sync: a warp's small products in registers (PTX ISA, "Matrix Fragments for mma"), and wide loads and stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu import sums
from tmagen.emu import wgmma as datapath
from tmagen.emu.errors import Fault
from tmagen.emu.instr_descriptor import Format
from tmagen.emu.isa import access
from tmagen.emu.isa.values import M32, ND
from tmagen.emu.state.fragments import Fragment

_WIDE_BYTES = 32


@np.errstate(over="ignore", invalid="ignore")
def mma_sync(
    frag: Fragment,
    cta: Any,
    formats: tuple[str, str, str],
    saturate: bool,
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    c: tuple[Any, ...],
) -> list[Any]:
    """D = A * B + C of 16 x 8 elements with rows of 32 bytes of A; the registers of D."""
    if frag.mask != M32:
        raise Fault("mma.sync in a warp with threads that have exited or never were")
    d_format, a_format, b_format = (Format[name] for name in formats)
    left, right = datapath.a_from_registers(a_format, a), datapath.b_from_registers(b_format, b)
    start = datapath.d_from_registers(d_format, c)
    if cta.launch.hardware_sums and d_format is not Format.S32:
        old = np.full((16, 8), start, np.float32) if isinstance(start, float) else start
        total = sums.mma_sync(left, right, old, a_format, b_format, d_format)
        return list(datapath.d_to_registers(d_format, total))
    total = left @ right.T + start
    if d_format is Format.S32:
        return list(datapath.d_to_registers(d_format, datapath.to_s32(total, saturate)))
    return list(datapath.d_to_registers(d_format, total.astype(np.float32)))


def _check_wide(frag: Fragment, address: Any, what: str) -> None:
    places = address[frag.lanes.where] if address.__class__ is ND else address
    if np.bitwise_or.reduce(np.atleast_1d(places)) & (_WIDE_BYTES - 1):
        raise Fault(f"global {what} of 32 bytes that is not aligned to its size")


def ld_global_wide(frag: Fragment, cta: Any, address: Any, nbytes: int, count: int) -> tuple[Any, ...]:
    """32 bytes of each lane."""
    _check_wide(frag, address, "load")
    half = count // 2
    first = access.ld_global_vector(frag, cta, address, nbytes, half)
    return (*first, *access.ld_global_vector(frag, cta, address + _WIDE_BYTES // 2, nbytes, half))


def st_global_wide(frag: Fragment, cta: Any, address: Any, nbytes: int, values: tuple[Any, ...]) -> None:
    """32 bytes of each lane."""
    _check_wide(frag, address, "store")
    half = len(values) // 2
    access.st_global_vector(frag, cta, address, nbytes, values[:half])
    access.st_global_vector(frag, cta, address + _WIDE_BYTES // 2, nbytes, values[half:])
