# SPDX-License-Identifier: Apache-2.0
"""What may be behind two accesses that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.races import COPIES
from tmagen.emu.checks.shadow import Access
from tmagen.emu.report import lanes_text
from tmagen.emu.state.fragments import lane_set

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch


def hints(watch: Watch, first: Access, agent: Lanes) -> tuple[str, ...]:
    """Why `agent` may not be ordered after `first`, each a line that begins with its check."""
    clocks = watch.clocks
    if first.kind in COPIES and 0 < (known := agent.known[first.component]) < first.clock - 1:
        return (
            f"MB-20: the {clocks.names[first.component]} has gone on by {first.clock - known} phases since "
            "the last one that the thread knows of: by parity a wait cannot tell them apart",
        )
    if agent.known[first.component] >= first.clock:
        return ()  # it is ordered after it as well: a fence or the like is what is missing
    if first.cluster in (-1, watch.number) and (lanes := clocks.partings.lanes(agent.vector, first)):
        return _of_lanes(first, lanes)
    for group in agent.warp.groups:
        if group is not agent and group.known[first.component] >= first.clock:
            who = lanes_text(lane_set(group.mask))
            return (
                f"MB-24: {who} of the same warp are ordered after it, but an acquire is of the thread that "
                "executes it: bar.warp.sync hands it on",
            )
    return ()


def _of_lanes(first: Access, known: int) -> tuple[str, ...]:
    """Lanes did something together, and it is ordered after some of them."""
    others = first.who[1] & ~known
    if not others:
        return ()
    return (
        f"MB-31: of warp {first.who[0]} it is ordered after {lanes_text(lane_set(known))} alone: bar.warp.sync "
        f"makes what {lanes_text(lane_set(others))} did known to the lane that arrives or issues",
    )
