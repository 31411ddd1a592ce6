# SPDX-License-Identifier: Apache-2.0
"""What an atomic does, for every state space (PTX ISA, "atom", "red")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.errors import Fault
from tmagen.emu.isa.access import LOADS, STORES, merged, spread, window, windows
from tmagen.emu.isa.floats import f_arith
from tmagen.emu.isa.values import ND, UNSIGNED
from tmagen.emu.state.convergence import pick
from tmagen.emu.state.fragments import Fragment, lane_set

ADD_F32 = object()
"""The sum of f32, which depends on the state space: global memory flushes subnormals, shared memory does not."""


def add_flushed(x: int, y: int) -> Any:
    return f_arith("add", 32, True, False, x, y)


def add_plain(x: int, y: int) -> Any:
    return f_arith("add", 32, False, False, x, y)


def add_f64(x: int, y: int) -> Any:
    """A NaN among the operands stays as it is."""
    for bits in (x, y):
        if bits & (1 << 63) - 1 > 0x7FF << 52:
            return bits | 1 << 51
    return f_arith("add", 64, False, False, x, y)


def check_aligned(frag: Fragment, address: Any, nbytes: int, what: str) -> None:
    """Raises Fault where a vector of so many bytes is not aligned to its size."""
    for lane in frag.lanes.lanes:
        if pick(address, lane) % nbytes:
            raise Fault(
                f"global {what} of {nbytes} bytes at {pick(address, lane):#x}, which is not aligned to its size"
            )


# These take arrays of all lanes too.
_TOGETHER = (add_flushed, add_plain)


def _apart(frag: Fragment, address: Any) -> bool:
    """Whether no two lanes name the same place."""
    if address.__class__ is not ND:
        return False
    active = address if frag.lanes.index is None else address[frag.lanes.index]
    return bool(np.unique(active).size == frag.lanes.count)


def atomic(
    frag: Fragment, cta: Any, space: str, address: Any, nbytes: int, combine: Any, operands: tuple[Any, ...]
) -> Any:
    """Read, combine and write lane by lane, in lane order; the old values."""
    if space == "generic":
        if spread(frag, address):
            parts = (atomic(frag, cta, name, at, nbytes, combine, operands) for name, at in windows(frag, address))
            return merged(frag, parts, nbytes)
        space, address = window(frag, address)
    if combine is ADD_F32:
        combine = add_flushed if space == "global" else add_plain
    load, store = LOADS[space], STORES.get(space)
    if store is None:
        raise Fault("atomic on the parameter space")
    if combine in _TOGETHER and _apart(frag, address):
        before = load(frag, cta, address, nbytes)
        store(frag, cta, address, nbytes, combine(before, *operands))
        return before
    old = np.zeros(32, UNSIGNED[8 * nbytes])
    one = frag.lanes.count == 1
    whole = frag.lanes
    for lane in whole.lanes:
        frag.lanes = lane_set(1 << lane)
        try:
            at = pick(address, lane)
            before = load(frag, cta, at, nbytes)
            store(frag, cta, at, nbytes, combine(before, *(pick(o, lane) for o in operands)))
        finally:
            frag.lanes = whole
        if one:
            return before
        old[lane] = before
    return old
