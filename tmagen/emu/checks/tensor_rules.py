# SPDX-License-Identifier: Apache-2.0
"""Rules of tcgen05 that no pair of accesses shows: pipelines that are handed over, the collector, lost registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.rows import TENSOR
from tmagen.emu.checks.shadow import Access, Footprint
from tmagen.emu.state.fragments import Fragment, lane_set

if TYPE_CHECKING:
    from tmagen.emu.checks.streams import Stream
    from tmagen.emu.checks.watch import Watch


def told(watch: Watch, frag: Fragment, notes: tuple[tuple[str, str, str], ...]) -> None:
    """Enter what is known of an instruction by its operands."""
    for rule, level, message in notes:
        watch.lint(rule, level, message, frag)


# --- one pipeline, two threads (PTX ISA, "tcgen05 Memory Consistency Model": fences between threads) ------------------


def hands_over(watch: Watch, frag: Fragment) -> None:
    """tcgen05.fence::before_thread_sync: who comes after it, and fences too, goes on where these threads' work is."""
    clocks = watch.clocks
    for agent in watch.agents(frag):
        for lane in lane_set(agent.mask & frag.lanes.mask).lanes:
            stream = watch.tensor_work.get(32 * frag.warp.index + lane)
            if stream is None:
                continue
            handed = clocks.handed.get(stream.complete)
            if handed is None:
                handed = clocks.component(f"{clocks.names[stream.complete]}, handed over")
                clocks.handed[stream.complete] = handed
            agent.learn(handed, stream.count, clocks.capacity)


def handed_over(watch: Watch, first: Access, agent: Lanes) -> bool:
    """Whether work of `agent` follows `first`, of another thread, down the pipeline."""
    handed = watch.clocks.handed.get(first.component)
    if handed is None or not agent.fenced:
        return False
    return bool(agent.known[TENSOR * watch.clocks.capacity + handed] >= first.clock)


def ended(watch: Watch, agent: Lanes, stream: Stream) -> tuple[tuple[int, int], ...]:
    """(component, clock) of what a commit covers: the thread's own work, and what it was handed before that."""
    found = [(stream.complete, stream.count)]
    for complete, handed in watch.clocks.handed.items():
        count = agent.known[TENSOR * watch.clocks.capacity + handed]
        if complete != stream.complete and count and agent.fenced:
            found.append((complete, count))
    return tuple(found)


# --- the rest ---------------------------------------------------------------------------------------------------------


def collects(
    watch: Watch, frag: Fragment, lane: int, how: str, a: tuple[str, int], footprint: Footprint | None, in_tmem: bool
) -> None:
    """collector::a: `use` and `lastuse` take the A that the MMA before them of the thread left there."""
    stream = watch.mma_stream(frag.warp.index, lane)
    memory = watch.tensor if in_tmem else watch.shared
    now: Any = (a, None if footprint is None else frozenset(memory.last_writes(footprint)))
    if how in ("use", "lastuse") and stream.collected != now:
        if stream.collected is None:
            problem = "no MMA of the thread has filled the buffer since it was last given up"
        elif stream.collected[0] != a:
            problem = "the MMA that filled the buffer has another A"
        else:
            problem = "the bytes of A were written again since the buffer was filled"
        watch.lint("TM5-09", "R", f"collector::a::{how}: {problem}", frag)
    stream.collected = now if how in ("fill", "use") else None


def clobbers(watch: Watch, frag: Fragment) -> None:
    """A tcgen05.ld whose registers something else writes before it is over."""
    other = watch.site.clobbered_by
    if other is not None:
        watch.lint(
            "TL-09", "W",
            f"registers of this tcgen05.ld are written again, at PTX line {other.line}, with no tcgen05.wait::ld and "
            "no use between",
            frag,
        )  # fmt: skip
