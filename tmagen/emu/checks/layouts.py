# SPDX-License-Identifier: Apache-2.0
"""What an MMA's operands say of bytes, against how they came there: hints for who finds a wrong result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.checks.finding import HINT, Finding, place_of
from tmagen.emu.checks.shadow import Footprint
from tmagen.emu.report import instruction_place
from tmagen.emu.smem_descriptor import SmemDescriptor
from tmagen.emu.state.fragments import Fragment
from tmagen.emu.swizzle import Swizzle

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch


def compare(watch: Watch, frag: Fragment, what: str, footprint: Footprint, desc: SmemDescriptor) -> None:
    """An operand that is read for the first time by this descriptor: "A" or "B", its bytes and the descriptor's fields.

    What does not fit is told with a wrong result, or with `strict`.
    """
    writes = watch.shared.last_writes(footprint)
    if None in writes:
        _tell(watch, frag, "DS-08", HINT, f"the MMA reads bytes of {what} that nobody has written")
        return
    maps = {id(write.tmap): write for write in writes if write is not None}
    first = next(iter(maps.values()))
    if first.tmap is None or any(write.tmap is None for write in maps.values()):
        return
    level = watch.session.collector.doubt
    patterns: set[Swizzle] = {write.tmap.pattern for write in maps.values()}
    if patterns != {desc.swizzle}:
        wrote = " and ".join(sorted(_name(pattern) for pattern in patterns))
        _tell(
            watch, frag, "DS-10", level,
            f"the descriptor of {what} reads with {_name(desc.swizzle)}, and the tensor map of the TMA load that wrote "
            f"the bytes has {wrote} ({instruction_place(first.site.instruction)})",
        )  # fmt: skip
    elif desc.base_offset and desc.swizzle is not Swizzle.NONE:
        _tell(
            watch, frag, "DS-05", level,
            f"the descriptor of {what} has base offset {desc.base_offset}; what TMA writes is read with 0, aligned or "
            f"not, as both take the swizzle from the address ({instruction_place(first.site.instruction)})",
        )  # fmt: skip


def adds(watch: Watch, frag: Fragment, footprint: Footprint) -> None:
    """An MMA adds to these words of tensor memory."""
    if any(write is None or write.kind == "dealloc" for write in watch.tensor.last_writes(footprint)):
        message = "the MMA adds to words of D that nobody has written since they were allocated"
        _tell(watch, frag, "TM5-01", HINT, message)


def _name(swizzle: Swizzle) -> str:
    return "no swizzle" if swizzle is Swizzle.NONE else f"swizzle {swizzle.name.removeprefix('B')}"


def _tell(watch: Watch, frag: Fragment, rule: str, level: str, message: str) -> None:
    collector, site = watch.session.collector, watch.site_of(frag)
    if collector.seen(rule, level, site, None):
        return
    collector.add(Finding(rule, level, message, place_of(site.instruction, frag.warp.cta.title)), site, None)
