# SPDX-License-Identifier: Apache-2.0
"""What may not be left when a CTA has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmagen.emu.checks import peers
from tmagen.emu.checks.finding import Finding, place_of
from tmagen.emu.checks.places import thread_text
from tmagen.emu.checks.races import NOUNS

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch


def check(watch: Watch) -> None:
    """The CTA has ended."""
    _unobserved_copies(watch)
    if watch.session.memory.before is not None:
        watch.session.memory.before.ends(watch)
    if watch.cta.cluster.size > 1:
        peers.ends(watch)
        peers.check_pairs(watch)
        if watch.cta.rank == 0:
            _unpaired_arrivals(watch)
    for thread, stream in watch.bulk.items():
        warp, lane = divmod(thread, 32)
        done = max((group.known[stream.read] for group in watch.warps[warp].groups), default=0)
        if done < stream.count:
            watch.exit_finding(
                "BG-07", "R",
                f"the CTA exits while {stream.count - done} bulk stores of warp {warp} lane {lane} may still read its "
                "shared memory",
            )  # fmt: skip


def _unobserved_copies(watch: Watch) -> None:
    """Copies to this CTA's memory whose end no thread of it knows of. One that has not completed at all ends the run,
    and is told there.
    """
    collector = watch.session.collector
    for component, (barrier, copy) in watch.landing.items():
        if barrier.phase < copy.clock:
            continue
        seen = max(group.known[component] for warp in watch.warps for group in warp.groups)
        if seen >= copy.clock or collector.seen("MB-09", "E", copy.site, None):
            continue
        last = f"the last phase that one has waited for is {seen - 1}" if seen else "none has waited for any phase"
        message = (
            f"the CTA exits, and no thread of it has waited for the {NOUNS[copy.kind]} into its shared memory: it "
            f"completes on phase {copy.clock - 1} of the {watch.clocks.names[component]}; {last}"
        )
        place = place_of(copy.site.instruction, watch.name(copy))
        collector.add(Finding("MB-09", "E", message, place), copy.site, None)


def _unpaired_arrivals(watch: Watch) -> None:
    """Threads that have arrived at the cluster's barrier and never waited."""
    barrier = watch.cta.cluster.barrier
    for warp, lanes in barrier.owing.items():
        if lanes and warp in barrier.sites:
            watch.lint(
                "CB-01", "E",
                f"{warp.cta.title} {thread_text(warp.index, lanes)} ends and has not waited since this arrive",
                site=barrier.sites[warp],
            )  # fmt: skip
