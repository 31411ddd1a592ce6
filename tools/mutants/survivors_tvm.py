# SPDX-License-Identifier: Apache-2.0
"""What breaks nothing in TVM's kernels."""

from __future__ import annotations

from tools.mutants.survivor import (
    BAR,
    LOADED,
    PROXY,
    Survivor,
    earlier,
    either,
    later,
    out,
)

OF_TVM = (
    Survivor(
        "TVM", "the proxy fence before the first barrier of the CTA is left out, or stands after it",
        "no thread has written anything yet that an asynchronous unit reads: `fence.mbarrier_init` and the barrier are "
        "for the mbarriers",
        ((r"TVM.*", either(out(PROXY, 0), later(PROXY, BAR, 0), earlier(BAR, PROXY, 0))),),
    ),
    Survivor(
        "TVM", "the barrier after `tcgen05.wait::ld` is left out, or stands elsewhere",
        "each thread stages what it has loaded itself; staging is free from the start, or since the end of the tile "
        "before, and the columns are written again or freed after those of this one",
        ((r"TVM.*", either(later(LOADED, BAR, 0), out(BAR, 1), later(BAR, "st.shared", 1), earlier(BAR, LOADED, 1))),),
    ),
    Survivor(
        "TVM", "one of the barriers after the store is left out, or the two change places",
        "they stand side by side, with nothing between them that they could order: one is enough",
        (
            (r"TVM.*", either(out(BAR, 3, 4), later(BAR, BAR, 3), earlier(BAR, BAR, 4))),
            ("TVM, step 6", out(BAR, 5)),
        ),
    ),
    Survivor(
        "TVM, step 5", "the commit of the third K block stands before its last MMA",
        "there are four K blocks and two stages: nothing fills this one again, and the last commit covers the MMA",
        (("TVM, step 5", earlier("tcgen05.commit", "tcgen05.mma", 2)),),
    ),
)  # fmt: skip
