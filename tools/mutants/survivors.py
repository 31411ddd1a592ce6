# SPDX-License-Identifier: Apache-2.0
"""Why a change of a synchronisation instruction breaks nothing, for each that survives."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.mutants.sites import Change


@dataclass(frozen=True)
class Survivor:
    """Changes that break nothing: `bases` and `changes` are patterns of whole names and titles; `where` and `what` say
    the same to a reader.
    """

    where: str
    bases: str
    what: str
    changes: str
    reason: str


_ALL = ".*"
_OURS = r"step.*|roles|pair|multicast|takeover|groups|chained|scaled"
_ONE_CTA = r"step.*|roles|takeover|groups|chained|dependent|scaled|TVM.*"

SURVIVORS = (
    Survivor(
        "all", _ALL, "a `tcgen05.fence` is left out", r"leave out: tcgen05\.fence::\w+ #\d+",
        "no instruction comes of it; TC-08 tells with `--strict` of the one before `tcgen05.ld` and `st`",
    ),
    Survivor(
        "those of one CTA", _ONE_CTA, "`fence.mbarrier_init` is left out, or stands before an init",
        r"(leave out: fence\.mbarrier_init\S* #0|earlier: fence\.mbarrier_init\S* #0 than mbarrier\.init\S*)",
        "a barrier of the CTA follows, which is enough for its own threads",
    ),
    Survivor(
        "all", _ALL, "`tcgen05.relinquish_alloc_permit` is left out, or comes later",
        r"(leave out|later): tcgen05\.relinquish_alloc_permit\S* #0.*",
        "nobody has to give the permit back; who does lets other CTAs of the SM allocate",
    ),
    Survivor(
        "all", _ALL, "bytes are expected after they were asked for",
        r"(later: mbarrier\.arrive\.expect_tx\S* #\d+ than (cp\.async\.bulk|clusterlaunchcontrol)\S*"
        r"|earlier: (cp\.async\.bulk|clusterlaunchcontrol)\S* #\d+ than mbarrier\.arrive\.expect_tx\S*)",
        "a count of bytes may be negative for a while: the phase still waits for the arrival",
    ),
    Survivor(
        "all", _ALL, "a proxy fence by all threads stands after their barrier",
        r"(later: fence\.proxy\.async\S* #\d+ than bar\.(warp\.)?sync\S*"
        r"|earlier: bar\.(warp\.)?sync #\d+ than fence\.proxy\.async\S*)",
        "a fence of the thread that issues covers what the barrier has ordered before it",
    ),
    Survivor(
        "all", _ALL, "`bar.warp.sync` and a barrier of the CTA or the cluster change places",
        r"(later: bar\.warp\.sync #\d+ than bar(rier)?\S*|earlier: bar(rier)?\S* #\d+ than bar\.warp\.sync)",
        "either orders the lanes before the other is reached",
    ),
    Survivor(
        "ours", _OURS, "a `bar.warp.sync` is left out, or changes places with `tcgen05.alloc` or `dealloc`",
        r"(leave out: bar\.warp\.sync #\d+|later: bar\.warp\.sync #\d+ than tcgen05\.(de)?alloc\S*"
        r"|earlier: tcgen05\.alloc\S* #\d+ than bar\.warp\.sync)",
        "a barrier of the CTA or the cluster, or a `.sync.aligned` instruction, stands beside it: the lanes come "
        "together there",
    ),
    Survivor(
        "roles, pair, takeover", "roles|pair|takeover", "the elected lane arrives before `bar.warp.sync`",
        r"(later: bar\.warp\.sync #1 than mbarrier\.arrive\S*|earlier: mbarrier\.arrive\S* #0 than bar\.warp\.sync)",
        "a limit of the checks: what lanes have done together counts as done by each of them (docs/checks.md)",
    ),
    Survivor(
        "roles", "roles", "`tcgen05.wait::ld` and `bar.warp.sync` change places",
        r"(later: tcgen05\.wait::ld\S* #0 than bar\.warp\.sync|earlier: bar\.warp\.sync #1 than tcgen05\.wait::ld\S*)",
        "both stand between the loads and the arrive, and the wait brings the lanes together too",
    ),
    Survivor(
        "step 4, step 5", "step [45]", "all lanes wait for the last bulk group, where the elected one had to",
        r"leave out: elect\.sync #3",
        "the others have no groups and wait for nothing",
    ),
    Survivor(
        "step 6", "step 6.*", "all lanes wait for bulk groups, where the elected one had to",
        r"leave out: elect\.sync #[2-5]",
        "the others have no groups and wait for nothing",
    ),
    Survivor(
        "step 6, sm_90a", "step 6, sm_90a", "the barrier after `wgmma.wait_group` is left out, or stands before it",
        r"(leave out: bar\.sync #1|later: wgmma\.wait_group\S* #0 than bar\.sync)",
        "a wgmma is one operation of four warps, and the warp that refills waits for it",
    ),
    Survivor(
        "pair", "pair", "a barrier of the CTA stands between arrive and wait of the cluster's barrier",
        r"(later: bar\.sync #0 than barrier\.cluster\S*|earlier: barrier\.cluster\.arrive\S* #0 than bar\.sync)",
        "the arrive hands on the thread's own init alone, and both barriers are passed before anything is used",
    ),
    Survivor(
        "pair, multicast", "pair|multicast", "the cluster's wait comes after what touches nothing of the peer",
        r"later: barrier\.cluster\.wait\S* #0 than (ld\.shared\.u32|elect\.sync)",
        "the own tensor memory's address is ordered by the barrier of the CTA; an election touches no memory",
    ),
    Survivor(
        "multicast", "multicast", "`setmaxnreg.inc` is left out",
        r"leave out: setmaxnreg\.inc\S* #0",
        "a warp may have fewer registers than there are; whether they are enough ptxas knows",
    ),
    Survivor(
        "multicast", "multicast", "the arrives on the own and the peer's barrier change places",
        r"later: mbarrier\.arrive\.shared\S* #[01] than mbarrier\.arrive\.release\.cluster\S*",
        "they are of different CTAs, and neither waits",
    ),
    Survivor(
        "multicast", "multicast", "C is handed back a store later",
        r"later: mbarrier\.arrive\.shared\S* #2 than st\.global\S*",
        "the store is of global memory, which nobody reads; the loads of C stand before both",
    ),
    Survivor(
        "groups", "groups", "`bar.warp.sync` before the stores of the first map, or beside the copy of a map",
        r"(earlier: bar\.warp\.sync #0 than st\.shared\.u32|later: bar\.warp\.sync #2 than tensormap\.cp_fenceproxy\S*"
        r"|earlier: tensormap\.cp_fenceproxy\S* #0 than bar\.warp\.sync)",
        "a barrier of the CTA follows; `tensormap.cp_fenceproxy` is `.sync.aligned`: the lanes come together there",
    ),
    Survivor(
        "chained", "chained", "the barrier after the copies of E is left out",
        r"leave out: bar\.sync #1",
        "the next barrier stands before the product that reads E",
    ),
    Survivor(
        "chained", "chained", "the first commit stands before `tcgen05.cp`",
        r"earlier: tcgen05\.commit\S* #0 than tcgen05\.cp\S*",
        "the product that reads S comes after the copy down the same pipeline, and has a commit of its own",
    ),
    Survivor(
        "chained", "chained", "the first `tcgen05.wait::ld` is left out, or stands elsewhere",
        r"(leave out: tcgen05\.wait::ld\S* #0|later: tcgen05\.wait::ld\S* #0 than tcgen05\.st\S*"
        r"|earlier: tcgen05\.wait::ld\S* #0 than tcgen05\.ld\S*)",
        "registers are used only when they are there, and the second wait covers the first loads before the next tile",
    ),
    Survivor(
        "chained", "chained", "stores to global memory move past a wait or a barrier",
        r"(later: tcgen05\.wait::ld\S* #1 than st\.global\S*|earlier: bar\.sync #3 than st\.global\S*)",
        "nobody reads them, and the columns are given back after both",
    ),
    Survivor(
        "split", "split", "the proxy fence stands before a store to global memory",
        r"earlier: fence\.proxy\.async\S* #0 than st\.global\.u32",
        "it is of shared memory",
    ),
    Survivor(
        "split", "split", "the fence after the count stands after the store of the count to shared memory",
        r"later: fence\.acq_rel\.gpu #1 than st\.shared\.u32",
        "the barrier that hands on what the fence acquired follows both",
    ),
    Survivor(
        "scaled", "scaled", "a store to global memory moves past `tcgen05.wait::ld` or the barrier after it",
        r"(later: tcgen05\.wait::ld\S* #0 than st\.global\S*|earlier: bar\.sync #1 than st\.global\S*)",
        "nobody reads what is stored; a register's use waits for its load, and the columns are given back after both",
    ),
    Survivor(
        "relay", "relay", "`fence.mbarrier_init` is left out",
        r"leave out: fence\.mbarrier_init\S* #0",
        "the arrive at the cluster's barrier that follows is a release; the fence is for `.relaxed` ones (MB-42)",
    ),
    Survivor(
        "relay", "relay", "a cluster's barrier and an access to global memory change places",
        r"(later: barrier\.cluster\.wait\S* #0 than ld\.global\.u32"
        r"|earlier: barrier\.cluster\.arrive\S* #1 than st\.global\.u32)",
        "nobody writes the input, and nobody reads the output; the barriers are about shared memory",
    ),
    Survivor(
        "dependent", "dependent", "`griddepcontrol.launch_dependents` is left out, or stands elsewhere",
        r"(leave out: griddepcontrol\.launch_dependents #0"
        r"|later: griddepcontrol\.launch_dependents #0 than ld\.global\S*"
        r"|later: griddepcontrol\.wait #1 than griddepcontrol\.launch_dependents"
        r"|earlier: griddepcontrol\.launch_dependents #0 than griddepcontrol\.wait)",
        "it says when the next grid may start, and orders no memory: that grid's own wait is for the end of this one",
    ),
    Survivor(
        "dependent", "dependent", "`griddepcontrol.wait` and the count of bytes change places",
        r"(later: mbarrier\.arrive\.expect_tx\S* #0 than griddepcontrol\.wait"
        r"|earlier: griddepcontrol\.wait #0 than mbarrier\.arrive\.expect_tx\S*)",
        "the mbarrier is the CTA's own; the wait stands before the copy in both orders",
    ),
)  # fmt: skip


def reason(base: str, change: Change) -> str | None:
    """Why this change breaks nothing; None where nobody has said."""
    for each in SURVIVORS:
        if re.fullmatch(each.bases, base) and re.fullmatch(each.changes, change.title):
            return each.reason
    return None
