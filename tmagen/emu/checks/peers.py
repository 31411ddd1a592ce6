# SPDX-License-Identifier: Apache-2.0
"""What the CTAs of a cluster do to each other's memory: after the other has started, and before it ends.

Shared memory of a CTA is there from its start to its end (PTX ISA, "Cluster of Cooperative Thread Arrays"). Whether a
peer still ran is a matter of timing; whether something orders the access before its end is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tmagen.emu.checks.clocks import Lanes
from tmagen.emu.checks.rows import TENSOR
from tmagen.emu.checks.sites import Site
from tmagen.emu.state.fragments import Fragment

if TYPE_CHECKING:
    from tmagen.emu.checks.watch import Watch


class Visit(NamedTuple):
    """The last thing that some threads of another CTA did to a CTA's memory. `work` is what has ended with it, where it
    is asynchronous: (component, clock).
    """

    clock: int
    work: tuple[int, int]
    what: str
    site: Site
    who: str


def visit(
    watch: Watch, frag: Fragment, agent: Lanes, what: str, *, work: tuple[int, int] = (-1, 0), starts: bool = False
) -> None:
    """Threads of another CTA touch the memory of `watch`'s. `starts`: nothing else says that it has started."""
    mine: Watch = frag.warp.cta.watch
    site = mine.site_of(frag)
    who = f"{mine.cta.title} warp {frag.warp.index}"
    watch.visits[agent.component, work[0]] = Visit(agent.known[agent.component], work, what, site, who)
    if starts and not any(_knows(watch, agent, component, 1) for component in watch.starts):
        mine.lint(
            "CB-06", "E",
            f"the {what} reaches shared memory of {watch.cta.title}, and nothing orders it after that CTA's start",
            frag,
            site=site,
        )  # fmt: skip


def leaves(watch: Watch, frag: Fragment, what: str, receiver: Watch, work: tuple[int, int]) -> None:
    """A copy out of the memory of `watch`'s CTA into that of another. It reads until `work` has ended, which its own
    CTA is never told: the mbarrier is the receiver's.
    """
    if receiver is not watch:
        who = f"{watch.cta.title} warp {frag.warp.index}"
        watch.leaving[work[0]] = receiver, Visit(work[1], work, what, watch.site_of(frag), who)


def _knows(watch: Watch, group: Lanes, component: int, clock: int) -> bool:
    """Whether lanes come after something, be it by a relaxed barrier."""
    known = group.known
    if known[component] >= clock or known[TENSOR * watch.clocks.capacity + component] >= clock:
        return True
    if watch.clocks.partings.knows(group.vector, component, clock):
        return True
    return group.inits is not None and bool(group.inits[component] >= clock)


def ends(watch: Watch) -> None:
    """The cluster has ended: some thread of the CTA must have come after each visit, and each copy out of it."""
    groups = [group for warp in watch.warps for group in warp.groups]
    for (component, _), seen in watch.visits.items():
        work, done = seen.work
        if any(
            _knows(watch, group, component, seen.clock) or (work >= 0 and _knows(watch, group, work, done))
            for group in groups
        ):
            continue
        watch.lint(
            "CB-06", "E",
            f"the {seen.what} of {seen.who} reaches shared memory of {watch.cta.title}, and nothing orders the end of "
            "that CTA after it",
            site=seen.site,
        )  # fmt: skip
    for component, (receiver, seen) in watch.leaving.items():
        theirs = [group for warp in receiver.warps for group in warp.groups]
        # Where the receiver has not waited either, MB-09 says so.
        known, told = (any(_knows(watch, g, component, seen.clock) for g in some) for some in (groups, theirs))
        if told and not known:
            watch.lint(
                "CB-06", "E",
                f"the {seen.what} of {seen.who} reads shared memory of its own CTA, and nothing orders the end of that "
                "CTA after it: it completes on a barrier of another",
                site=seen.site,
            )  # fmt: skip


def check_pairs(watch: Watch) -> None:
    """The CTAs of a pair allocate and free the same columns in the same order."""
    rank = watch.cta.rank
    if rank % 2 or rank + 1 >= watch.cta.cluster.size:
        return
    other: Watch = watch.cta.cluster.ctas[rank + 1].watch
    for number in range(max(len(watch.pair_log), len(other.pair_log))):
        mine = watch.pair_log[number] if number < len(watch.pair_log) else None
        theirs = other.pair_log[number] if number < len(other.pair_log) else None
        if mine is None or theirs is None or mine[:2] != theirs[:2]:
            said = mine or theirs
            assert said is not None
            watch.lint(
                "TA-11", "E",
                f"CTA rank {rank} executes {_logged(mine)} where rank {rank + 1} of its pair executes "
                f"{_logged(theirs)}: with cta_group::2 one warp of each does the same",
                site=said[2],
            )  # fmt: skip
            return


def _logged(entry: tuple[str, int, Site] | None) -> str:
    return "nothing more" if entry is None else f"{entry[0]} of {entry[1]} columns"
