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
_ONE_CTA = r"step.*|roles|takeover|groups|chained|dependent|TVM.*"

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
)  # fmt: skip


def reason(base: str, change: Change) -> str | None:
    """Why this change breaks nothing; None where nobody has said."""
    for each in SURVIVORS:
        if re.fullmatch(each.bases, base) and re.fullmatch(each.changes, change.title):
            return each.reason
    return None
