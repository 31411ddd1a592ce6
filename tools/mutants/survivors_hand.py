# SPDX-License-Identifier: Apache-2.0
"""What breaks nothing in the hand-written kernels."""

from __future__ import annotations

from tools.mutants.survivor import (
    ARRIVE,
    ARRIVE_FAR,
    BAR,
    CLUSTER_ARRIVE,
    CLUSTER_WAIT,
    ELECT,
    EXPECT,
    GROW,
    LOADED,
    MAP_COPY,
    PROXY,
    WARP,
    Survivor,
    earlier,
    either,
    later,
    out,
)

BY_HAND = (
    Survivor(
        "roles, pair", "`bar.warp.sync` before the arrive of the elected lane is left out, or stands after it",
        "what it hands back was read by `tcgen05.ld` alone, which is of the whole warp, and `tcgen05.wait::ld`, "
        "`.sync.aligned`, has brought the lanes together after it",
        (
            ("roles", either(out(WARP, 1), later(WARP, ARRIVE, 1), earlier(ARRIVE, WARP, 0))),
            ("pair", either(out(WARP, 1), later(WARP, ARRIVE_FAR, 1), earlier(ARRIVE_FAR, WARP, 0))),
        ),
    ),
    Survivor(
        "roles", "`tcgen05.wait::ld` and `bar.warp.sync` change places",
        "both stand between the loads and the arrive, and the wait brings the lanes together too",
        (("roles", either(later(LOADED, WARP, 0), earlier(WARP, LOADED, 1))),),
    ),
    Survivor(
        "pair", "a barrier of the CTA stands between arrive and wait of the cluster's barrier",
        "the arrive hands on the thread's own init alone, and both barriers are passed before anything is used",
        (("pair", either(later(BAR, CLUSTER_ARRIVE, 0), earlier(CLUSTER_ARRIVE, BAR, 0))),),
    ),
    Survivor(
        "pair, multicast", "the cluster's wait comes after what touches nothing of the peer",
        "the own tensor memory's address is ordered by the barrier of the CTA; an election touches no memory",
        (
            ("pair", later(CLUSTER_WAIT, "ld.shared.u32", 0)),
            ("multicast", later(CLUSTER_WAIT, ELECT, 0)),
        ),
    ),
    Survivor(
        "multicast", "`setmaxnreg.inc` is left out",
        "a warp may have fewer registers than there are; whether they are enough ptxas knows",
        (("multicast", out(GROW, 0)),),
    ),
    Survivor(
        "multicast", "the arrives on the own and the peer's barrier change places",
        "they are of different CTAs, and neither waits",
        (("multicast", later(ARRIVE, ARRIVE_FAR, 0, 1)),),
    ),
    Survivor(
        "multicast", "C is handed back a store later",
        "the store is of global memory, which nobody reads; the loads of C stand before both",
        (("multicast", later(ARRIVE, "st.global", 2)),),
    ),
    Survivor(
        "groups", "`bar.warp.sync` before the stores of the first map, or beside the copy of a map",
        "a barrier of the CTA follows; `tensormap.cp_fenceproxy` is `.sync.aligned`: the lanes come together there",
        (("groups", either(earlier(WARP, "st.shared.u32", 0), later(WARP, MAP_COPY, 2), earlier(MAP_COPY, WARP, 0))),),
    ),
    Survivor(
        "chained", "the barrier after the copies of E is left out",
        "the next barrier stands before the product that reads E",
        (("chained", out(BAR, 1)),),
    ),
    Survivor(
        "chained", "the first commit stands before `tcgen05.cp`",
        "the product that reads S comes after the copy down the same pipeline, and has a commit of its own",
        (("chained", earlier("tcgen05.commit", "tcgen05.cp", 0)),),
    ),
    Survivor(
        "chained", "the first `tcgen05.wait::ld` is left out, or stands elsewhere",
        "registers are used only when they are there, and the second wait covers the first loads before the next tile",
        (("chained", either(out(LOADED, 0), later(LOADED, "tcgen05.st", 0), earlier(LOADED, "tcgen05.ld", 0))),),
    ),
    Survivor(
        "chained, scaled", "stores to global memory move past `tcgen05.wait::ld` or the barrier after it",
        "nobody reads them; a register's use waits for its load, and the columns are given back after both",
        (
            ("chained", either(later(LOADED, "st.global", 1), earlier(BAR, "st.global", 3))),
            ("scaled", either(later(LOADED, "st.global", 0), earlier(BAR, "st.global", 1))),
        ),
    ),
    Survivor(
        "split", "the proxy fence stands before a store to global memory",
        "it is of shared memory",
        (("split", earlier(PROXY, "st.global.u32", 0)),),
    ),
    Survivor(
        "split", "the fence after the count stands after the store of the count to shared memory",
        "the barrier that hands on what the fence acquired follows both",
        (("split", later("fence.acq_rel.gpu", "st.shared.u32", 1)),),
    ),
    Survivor(
        "relay", "`fence.mbarrier_init` is left out",
        "the arrive at the cluster's barrier that follows is a release; the fence is for `.relaxed` ones (MB-42)",
        (("relay", out("fence.mbarrier_init", 0)),),
    ),
    Survivor(
        "relay", "a cluster's barrier and an access to global memory change places",
        "nobody writes the input, and nobody reads the output; the barriers are about shared memory",
        (("relay", either(later(CLUSTER_WAIT, "ld.global.u32", 0), earlier(CLUSTER_ARRIVE, "st.global.u32", 1))),),
    ),
    Survivor(
        "dependent", "`griddepcontrol.launch_dependents` is left out, or stands elsewhere",
        "it says when the next grid may start, and orders no memory: that grid's own wait is for the end of this one",
        (
            (
                "dependent",
                either(
                    out("griddepcontrol.launch_dependents", 0),
                    later("griddepcontrol.launch_dependents", "ld.global", 0),
                    later("griddepcontrol.wait", "griddepcontrol.launch_dependents", 1),
                    earlier("griddepcontrol.launch_dependents", "griddepcontrol.wait", 0),
                ),
            ),
        ),
    ),
    Survivor(
        "dependent", "`griddepcontrol.wait` and the count of bytes change places",
        "the mbarrier is the CTA's own; the wait stands before the copy in both orders",
        (("dependent", either(later(EXPECT, "griddepcontrol.wait", 0), earlier("griddepcontrol.wait", EXPECT, 0))),),
    ),
)  # fmt: skip
