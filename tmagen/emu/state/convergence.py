# SPDX-License-Identifier: Apache-2.0
"""What block functions call where lanes part, come together or end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tmagen.emu.errors import Fault
from tmagen.emu.isa.values import ND
from tmagen.emu.state.fragments import AGAIN, BLOCK, CONVERGE, GONE, MET, PARTED, SWITCH, WARP_BARRIER, Fragment

_ALL, _NONE = b"\x01" * 32, b"\x00" * 32


def resumed(code: int) -> int | None:
    """The block that the code of `again` names; None for the other codes."""
    return AGAIN - code if code <= AGAIN else None


def again(number: int) -> int:
    """The code for: continue at block `number` when the other warps had their turn."""
    return AGAIN - number


def branch(fragment: Fragment, p: Any, taken: int, other: int) -> int:
    """A conditional branch on an array predicate."""
    raw = p.tobytes()
    if raw == _ALL:
        return taken
    if raw == _NONE:
        return other
    mask = fragment.mask
    yes = int.from_bytes(np.packbits(p, bitorder="little").tobytes(), "little") & mask
    if yes == mask:
        return taken
    if not yes:
        return other
    split(fragment, [(taken, yes), (other, mask & ~yes)] if taken != other else [(taken, mask)])
    return SWITCH


def _size(way: tuple[int, int]) -> int:
    return way[1].bit_count()


def split(fragment: Fragment, ways: Iterable[tuple[int, int]]) -> list[Fragment]:
    """Give each group of lanes (`ways`: block and lanes) its own fragment; the largest keeps this one."""
    order = sorted(ways, key=_size)
    warp = fragment.warp
    parts = [fragment]
    for pc, mask in order[:-1]:
        part = Fragment(warp, mask, fragment.R.copy(), pc)
        part.clock = fragment.clock
        warp.fragments.append(part)
        parts.append(part)
    fragment.pc, mask = order[-1]
    fragment.set_lanes(mask)
    return parts


def branch_index(fragment: Fragment, index: Any, targets: tuple[int, ...]) -> int:
    """brx.idx: a branch to the target that `index` selects. An index past the list is undefined in PTX: a fault."""
    if index.__class__ is not ND:
        if index >= len(targets):
            raise Fault(f"brx.idx with index {index}, but the list has {len(targets)} targets")
        target: int = targets[index]
        return target
    ways: dict[int, int] = {}
    for lane in fragment.lanes.lanes:
        number = branch_index(fragment, index.item(lane), targets)
        ways[number] = ways.get(number, 0) | 1 << lane
    if len(ways) == 1:
        return next(iter(ways))
    split(fragment, ways.items())
    return SWITCH


def converge(fragment: Fragment, pc: int) -> int:
    """The collective at the start of block `pc` needs lanes that are not here yet."""
    fragment.pc = pc
    fragment.state = CONVERGE
    fragment.wait = None
    return BLOCK


def stay_apart(fragment: Fragment, pc: int, kind: str, members: int, *which: Any) -> int:
    """Wait at the barrier at the start of block `pc` for lanes that are at another one of the same kind."""
    fragment.pc = pc
    fragment.state = CONVERGE
    fragment.wait = (kind, members, *which)
    return BLOCK


def warp_barrier(fragment: Fragment, members: Any, pc: int) -> int:
    """bar.warp.sync: 0 to go on, or the code that block `pc` returns (PTX ISA, "bar.warp.sync")."""
    if fragment.wait is MET:
        fragment.wait = None
        return 0
    if _part(fragment, members, pc):
        return SWITCH
    if _together(fragment, members):
        return 0
    return stay_apart(fragment, pc, WARP_BARRIER, uniform(fragment, members, "membermask"))


def whole(fragment: Fragment) -> bool:
    """Whether all live lanes of the warp are in the fragment."""
    return fragment.mask == fragment.warp.live


def gather(fragment: Fragment, members: Any, pc: int) -> int:
    """0 where the live lanes of `members` are all here, else the code that block `pc` returns. Lanes that name other
    masks execute the instruction on their own, as the tiles of a warp do in cooperative groups.
    """
    if _part(fragment, members, pc):
        return SWITCH
    return 0 if _together(fragment, members) else converge(fragment, pc)


def _part(fragment: Fragment, members: Any, pc: int) -> bool:
    """Give the lanes that name one membermask a fragment of their own, where the lanes name several."""
    if fragment.wait is PARTED:
        fragment.wait = None
    if members.__class__ is not ND:
        return False
    masks: dict[int, int] = {}
    for lane in fragment.lanes.lanes:
        named = members.item(lane)
        masks[named] = masks.get(named, 0) | 1 << lane
    if len(masks) == 1:
        return False
    for part in split(fragment, [(pc, lanes) for lanes in masks.values()]):
        part.wait = PARTED
    return True


def _together(fragment: Fragment, members: Any) -> bool:
    """Whether the live lanes of `members` are all here. Raises Fault where an executing lane is not a member."""
    if members.__class__ is ND:
        members = uniform(fragment, members, "membermask")
    if fragment.mask & ~members:
        raise Fault(
            f"lanes {fragment.mask & ~members:#010x} execute a .sync instruction whose membermask {members:#010x} "
            "does not name them",
            rule="NB-11",
        )
    return not (members & fragment.warp.live & ~fragment.mask)


def uniform(fragment: Fragment, value: Any, what: str) -> int:
    """A value that has to be the same in all executing lanes, as an int. Raises Fault where it is not."""
    if value.__class__ is not ND:
        return value  # type: ignore[no-any-return]
    active = value if fragment.lanes.index is None else value[fragment.lanes.index]
    first: int = active.item(0)
    if not (active == first).all():
        raise Fault(f"{what} differs between the lanes of a warp: {sorted(set(active.tolist()))[:4]}...", rule="NB-05")
    return first


def own(fragment: Fragment, value: Any) -> Any:
    """A value of the warp's lanes, as the fragment sees it."""
    return value if fragment.one < 0 or value.__class__ is not ND else value.item(fragment.one)


def pick(value: Any, lane: int) -> Any:
    """The value in one lane."""
    return value.item(lane) if value.__class__ is ND else value


def exit_lanes(fragment: Fragment) -> int:
    """These lanes end."""
    warp = fragment.warp
    warp.live &= ~fragment.mask
    warp.fragments.remove(fragment)
    for other in warp.fragments:
        if other.state == CONVERGE:
            other.wake()
    if not warp.live:
        warp.cta.warp_ended(warp)
    return GONE


def trap(fragment: Fragment) -> int:
    raise Fault("the kernel executed trap")


def failed_assert() -> None:
    raise Fault("an assertion of the kernel failed")
