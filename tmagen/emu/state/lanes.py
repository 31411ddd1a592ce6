# SPDX-License-Identifier: Apache-2.0
"""Instructions across the lanes of a warp: shuffles, votes, matches, reductions, elections, lane masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.isa.floats import f_minmax
from tmagen.emu.isa.values import M32, ND, lanes_of, signed
from tmagen.emu.state.convergence import own, pick, uniform
from tmagen.emu.state.fragments import Fragment


def shuffle(frag: Fragment, mode: str, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """shfl.sync: (value, whether the source lane was in range)."""
    if mode == "idx" and b.__class__ is int and c.__class__ is int and not c & 0x1F00:
        reaches = (b & 31) <= (c & 31)
        if a.__class__ is not ND or reaches:
            return (a.item(b & 31) if a.__class__ is ND else a), reaches
    lane = np.arange(32)
    by = lanes_of(b, np.uint32).astype(np.int64) & 31
    clamp = lanes_of(c, np.uint32).astype(np.int64)
    segment, limit = (clamp >> 8) & 31, clamp & 31
    inside: Any
    highest = (lane & segment) | (limit & ~segment)
    if mode == "up":
        source = lane - by
        inside = source >= highest
    elif mode == "down":
        source = lane + by
        inside = source <= highest
    elif mode == "bfly":
        source = lane ^ by
        inside = source <= highest
    else:
        source = (lane & segment) | (by & ~segment)
        inside = source <= highest
    source = np.where(inside, source, lane)
    value = a[source] if a.__class__ is ND else a
    if frag.lanes.count == 1:
        first = frag.lanes.first
        return pick(value, first), bool(inside[first])
    return value, inside


def _bits(frag: Fragment, p: Any) -> int:
    if p.__class__ is ND:
        return int.from_bytes(np.packbits(p, bitorder="little").tobytes(), "little") & frag.mask
    return frag.mask if p else 0


def vote(frag: Fragment, mode: str, p: Any) -> Any:
    yes = _bits(frag, p)
    if mode == "ballot":
        return yes
    if mode == "any":
        return yes != 0
    if mode == "all":
        return yes == frag.mask
    return yes in (0, frag.mask)


def match(frag: Fragment, mode: str, value: Any) -> tuple[Any, Any]:
    items = {lane: pick(value, lane) for lane in frag.lanes.lanes}
    groups: dict[int, int] = {}
    for lane, item in items.items():
        groups[item] = groups.get(item, 0) | 1 << lane
    if mode == "all":
        same = len(groups) == 1
        return (frag.mask if same else 0), same
    if len(groups) == 1:
        return frag.mask, True
    out = np.zeros(32, np.uint32)
    for lane, item in items.items():
        out[lane] = groups[item]
    return out, True


def redux(frag: Fragment, name: str, is_signed: bool, value: Any) -> int:
    items = [pick(value, lane) for lane in frag.lanes.lanes]
    if name in ("min", "max"):
        pick_one = min if name == "min" else max
        return int(pick_one(items, key=lambda x: signed(x, 32) if is_signed else x))
    total = items[0]
    for item in items[1:]:
        total = {"add": total + item, "and": total & item, "or": total | item, "xor": total ^ item}[name]
    return int(total) & M32


def redux_f32(frag: Fragment, largest: bool, nan: bool, value: Any) -> int:
    """The minimum or maximum of the lanes as f_minmax has it for two."""
    first, *rest = [int(pick(value, lane)) for lane in frag.lanes.lanes]
    # With itself too: one lane's NaN comes out canonical.
    for item in (first, *rest):
        first = f_minmax(largest, 32, nan, first, item)
    return first


def elect(frag: Fragment, members: Any) -> tuple[int, Any]:
    """(leader, whether this lane is the leader)."""
    mask = uniform(frag, members, "membermask") & frag.warp.live
    leader = frag.warp.cta.launch.leader(mask)
    if frag.lanes.count == 1:
        return leader, frag.lanes.first == leader
    return leader, np.arange(32) == leader


def lanemask_eq(frag: Fragment) -> Any:
    lane = own(frag, frag.warp.lane)
    return 1 << lane if lane.__class__ is int else np.uint32(1) << lane


def lanemask_lt(frag: Fragment) -> Any:
    lane = own(frag, frag.warp.lane)
    return (1 << lane) - 1 if lane.__class__ is int else (np.uint32(1) << lane) - np.uint32(1)


def lanemask_le(frag: Fragment) -> Any:
    return lanemask_lt(frag) | lanemask_eq(frag)


def lanemask_gt(frag: Fragment) -> Any:
    return lanemask_le(frag) ^ M32


def lanemask_ge(frag: Fragment) -> Any:
    return lanemask_lt(frag) ^ M32
