# SPDX-License-Identifier: Apache-2.0
"""What breaks nothing at any place, and what in kernels that we emit and in others that do as those do."""

from __future__ import annotations

from tools.mutants.survivor import (
    ALL,
    ALLOC,
    BAR,
    CLUSTER_ARRIVE,
    COPY,
    ELECT,
    EXPECT,
    FREE,
    PERMIT,
    PROXY,
    WARP,
    Survivor,
    earlier,
    either,
    later,
    out,
)

EVERYWHERE = (
    Survivor(
        "all", "a `tcgen05.fence` is left out",
        "no instruction comes of it; TC-08 tells with `--strict` of the one before `tcgen05.ld` and `st`",
        ((ALL, out("tcgen05.fence")),),
    ),
    Survivor(
        "all", "`tcgen05.relinquish_alloc_permit` is left out, or comes later",
        "nobody has to give the permit back; who does lets other CTAs of the SM allocate",
        ((ALL, either(out(PERMIT), later(PERMIT, ""))),),
    ),
    Survivor(
        "all", "bytes are expected after they were asked for, or before, where it was the other way round",
        "the phase waits for the arrival that expects them, and a count of bytes may be negative until then",
        (
            (ALL, either(later(EXPECT, COPY), earlier(COPY, EXPECT), earlier(EXPECT, COPY), later(COPY, EXPECT))),
            ("takeover", either(later(EXPECT, "clusterlaunchcontrol", 0), earlier("clusterlaunchcontrol", EXPECT, 0))),
        ),
    ),
)  # fmt: skip
"""What is so at any place."""

OURS = (
    Survivor(
        "those of one CTA", "`fence.mbarrier_init` is left out",
        "a barrier of the CTA follows, which is enough for its own threads",
        (
            (r"step.*|roles|takeover|groups|chained|dependent|scaled|TVM.*", out("fence.mbarrier_init", 0)),
        ),
    ),
    Survivor(
        "steps 4 to 6, roles, split, chained, TVM", "all threads fence for the asynchronous proxy after their barrier",
        "the thread that issues the store or the MMA fences too, and its fence covers what the barrier has ordered "
        "before it",
        (
            (r"step [456]|roles|split|chained", later(PROXY, BAR, 0)),
            ("step 6, sm_90a", either(later(PROXY, BAR, 0), earlier(BAR, PROXY, 3))),
            ("roles", earlier(BAR, PROXY, 2)),
            ("split", earlier(BAR, PROXY, 0)),
            ("chained", earlier(BAR, PROXY, 1)),
            (r"TVM.*", later(PROXY, BAR, 1)),
        ),
    ),
    Survivor(
        "multicast, takeover", "readers of a stage or a response fence after they have come together",
        "the lane that hands it back fences too, after it has come after what the others have read",
        (
            ("multicast", either(later(PROXY, BAR, 0), earlier(BAR, PROXY, 0))),
            ("takeover", either(later(PROXY, WARP, 1), earlier(WARP, PROXY, 1))),
        ),
    ),
    Survivor(
        "steps 4 to 6, roles, pair, multicast, takeover, groups",
        "`bar.warp.sync` and a barrier of the CTA or the cluster change places",
        "one follows the other: either brings the lanes together before anybody goes on",
        (
            (r"step [456]", later(WARP, BAR, 1)),
            ("step 6, sm_90a", later(WARP, BAR, 2)),
            ("roles", either(later(WARP, BAR, 2), earlier(BAR, WARP, 3))),
            ("pair", either(later(WARP, CLUSTER_ARRIVE, 2), earlier(CLUSTER_ARRIVE, WARP, 0))),
            ("multicast", either(later(WARP, CLUSTER_ARRIVE, 0, 1), earlier(CLUSTER_ARRIVE, WARP, 0))),
            ("takeover", either(later(WARP, BAR, 0), earlier(BAR, WARP, 0))),
            ("groups", either(later(WARP, BAR, 1), earlier(BAR, WARP, 0))),
        ),
    ),
    Survivor(
        "ours", "a `bar.warp.sync` behind what an elected lane does is left out",
        "no other lane of the warp looks at that before a barrier of the CTA or the cluster, or a `.sync.aligned` "
        "instruction, which brings the lanes together; `elect.sync` takes the same lane again",
        (
            (r"step [456]|step 6, sm_90a", out(WARP, 0, 1, 2, 3)),
            (r"roles|pair", out(WARP, 0, 2)),
            ("multicast", out(WARP, 0, 1)),
            (r"takeover|chained|scaled", out(WARP, 0)),
            ("groups", out(WARP, 0, 1, 2)),
        ),
    ),
    Survivor(
        "steps 4 to 6, chained, scaled", "`bar.warp.sync` and `tcgen05.alloc` or `dealloc` change places",
        "those are `.sync.aligned`, and do not touch what an elected lane has done before: its mbarriers, its stores",
        (
            (r"step [456]", either(later(WARP, ALLOC, 0), later(WARP, FREE, 3))),
            (r"chained|scaled", either(later(WARP, ALLOC, 0), earlier(ALLOC, WARP, 0))),
        ),
    ),
    Survivor(
        "step 4, step 5, step 6", "all lanes wait for bulk groups, where the elected one had to",
        "the others have no groups and wait for nothing",
        (
            (r"step [45]", out(ELECT, 3)),
            ("step 6", out(ELECT, 2, 4)),
            ("step 6, sm_90a", out(ELECT, 3, 5)),
        ),
    ),
    Survivor(
        "step 6, sm_90a", "the barrier after `wgmma.wait_group` is left out, or stands before it",
        "a wgmma is one operation of four warps, and the warp that refills waits for it",
        (("step 6, sm_90a", either(out(BAR, 1), later("wgmma.wait_group", BAR, 0))),),
    ),
)  # fmt: skip
