# SPDX-License-Identifier: Apache-2.0
"""What breaks nothing in Triton's kernels. Numbers are those of the version that `make peers` fetches."""

from __future__ import annotations

from tools.mutants.survivor import (
    ARRIVE,
    BAR,
    BARRIER,
    BRANCH,
    COMMIT_STORES,
    COPY,
    ELECT,
    EXPECT,
    FREE,
    GIVE,
    GROW,
    INIT,
    INVAL,
    LOADED,
    MAP_COPY,
    MAP_FENCE,
    PERMIT,
    PROXY,
    STORED,
    STORES_DONE,
    STORES_READ,
    WARP,
    Survivor,
    earlier,
    either,
    later,
    out,
)

OF_TRITON = (
    Survivor(
        "Triton; Triton, roles", "the barrier after the address of tensor memory has been read",
        "it keeps the address until all have read it, and so do the barriers before that place is written; the permit "
        "to allocate has nothing to do with it",
        (
            ("Triton", either(out(BAR, 1), later(BAR, PERMIT, 1), earlier(BAR, "ld.shared", 1))),
            ("Triton, roles", later(BAR, PERMIT, 1)),
            (r"Triton(, roles)?", earlier(PERMIT, BAR, 0)),
        ),
    ),
    Survivor(
        "Triton; Triton, roles", "something changes places with `elect.sync`",
        "an election touches no memory, and what it chooses does not depend on it",
        (
            (
                "Triton",
                either(
                    later(STORED, ELECT, 0), later(INIT, ELECT, 0, 1, 2, 3), later(INVAL, ELECT, 0, 2, 3),
                    later(BAR, ELECT, 3, 4, 6, 7, 10, 11, 14, 15, 17, 18, 19),
                ),
            ),
            (
                "Triton, roles",
                either(
                    later(STORED, ELECT, 0), later(INIT, ELECT, 0, 1, 2, 5, 6, 7), later(BAR, ELECT, 8, 10, 11, 15),
                    later(INVAL, ELECT, 0, 1, 2, 3, 4, 8), later(WARP, ELECT, 7, 8), later(GROW, ELECT, 6),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton; Triton, roles", "the last mbarrier is initialised after the barrier of the CTA",
        "another barrier, or several, come before its first use",
        (
            ("Triton", either(later(INIT, BAR, 4), earlier(BAR, INIT, 2))),
            ("Triton, roles", earlier(BAR, INIT, 5)),
        ),
    ),
    Survivor(
        "Triton", "a barrier between the bytes that are expected and the copies is left out, or stands elsewhere",
        "the phase waits for both, in any order. That the stage is free each thread knows from its own wait for the "
        "MMAs, and the mbarriers are there since the first of these barriers",
        (
            (
                "Triton",
                either(
                    out(BAR, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15), later(EXPECT, BAR, 0, 1, 2, 3),
                    later(BAR, EXPECT, 5, 9, 13), earlier(BAR, EXPECT, 3, 6, 10, 14),
                    earlier(BAR, COPY, 4, 5, 7, 11, 15),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton", "a barrier beside the wait for a stage or for its MMAs is left out",
        "all threads execute both waits, so the one that issues has waited itself; others are never a phase behind, as "
        "the barriers around the copies hold everybody",
        (("Triton", out(BAR, 8, 12, 16)),),
    ),
    Survivor(
        "Triton; Triton, roles", "an `mbarrier.inval` is left out, or comes later",
        "no object needs it at exit, and its memory is not used for anything else",
        (
            ("Triton", either(out(INVAL, 0, 1, 2, 3, 4), later(INVAL, BAR, 1), later(INVAL, "tcgen05.ld", 4))),
            ("Triton, roles", out(INVAL, 1, 3, 4, 7, 8, 9)),
        ),
    ),
    Survivor(
        "Triton", "a barrier before `mbarrier.inval` is left out, or comes later or sooner",
        "the first two mbarriers were waited for before the barriers of the last K block; the others are invalidated "
        "after a second barrier, and one of the two is enough",
        (("Triton", either(out(BAR, 17, 18), earlier(BAR, INVAL, 18))),),
    ),
    Survivor(
        "Triton", "`tcgen05.wait::ld` changes places with a store to staging or the proxy fence",
        "a register's use waits for its load, the fence is for staging, and the columns are given back after both",
        (("Triton", either(later(LOADED, PROXY, 0), earlier(LOADED, "st.shared", 0), earlier(PROXY, LOADED, 0))),),
    ),
    Survivor(
        "Triton", "all threads fence for the asynchronous proxy after their barrier",
        "the thread that issues the store fences too, and its fence covers what the barrier has ordered before it",
        (("Triton", either(later(PROXY, BAR, 0), earlier(BAR, PROXY, 19))),),
    ),
    Survivor(
        "Triton", "the last wait, the barriers after it and `tcgen05.dealloc` change places, or a barrier is left out",
        "all have read the columns before the barrier that stands before the store, and staging is not written again",
        (
            (
                "Triton",
                either(
                    later(STORES_DONE, BAR, 0), out(BAR, 20), later(BAR, BARRIER, 20), earlier(BAR, STORES_DONE, 20),
                    out(BARRIER, 0), later(BARRIER, FREE, 0), earlier(BARRIER, BAR, 0), earlier(FREE, BARRIER, 0),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "`setmaxnreg` is left out, or changes places with something",
        "every thread has 256 registers from the start (`.maxnreg`) and nobody asks for more, so that what the others "
        "have given up is not waited for; whether a warp has enough of them ptxas knows",
        (
            (
                "Triton, roles",
                either(
                    out(GROW, 0, 1, 3), later(GROW, "st.shared", 0), later(GROW, BARRIER, 1),
                    earlier(GROW, BARRIER, 1, 4, 5, 6), later(BARRIER, GROW, 0, 3, 7, 12), earlier(BARRIER, GROW, 1),
                    later(GIVE, BARRIER, 0), earlier(BARRIER, GIVE, 2), later(GIVE, "ld.shared", 1),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "`bar.warp.sync` before the copy of a map is left out, or stands after it",
        "`tensormap.cp_fenceproxy` is `.sync.aligned`: the lanes come together there",
        (("Triton, roles", either(out(WARP, 1, 3, 5), later(WARP, MAP_COPY, 1, 3, 5), earlier(MAP_COPY, WARP, 1, 2))),),
    ),
    Survivor(
        "Triton, roles", "bulk groups are not committed or waited for where maps are made, or later",
        "no bulk copy has been issued by then: the groups are empty",
        (
            (
                "Triton, roles",
                either(
                    out(COMMIT_STORES, 0, 1, 2), later(COMMIT_STORES, BAR, 0, 1, 2),
                    out(STORES_READ, 0, 1, 2), later(STORES_READ, BAR, 0, 1, 2), earlier(BAR, STORES_READ, 2, 3, 4),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "a barrier after a map has been made is left out, or comes later or before the acquire",
        "warp 0 alone makes maps, one after another in one buffer; a barrier of all roles stands between the last "
        "acquire and the first use",
        (("Triton, roles", either(out(BAR, 2), later(BAR, "st.shared", 2), later(MAP_FENCE, BAR, 0, 1, 2))),),
    ),
    Survivor(
        "Triton, roles", "the first wait of all is not repeated until it is true",
        "it is for the phase before the first, which counts as complete: it is true at once",
        (("Triton, roles", out(BRANCH, 0)),),
    ),
    Survivor(
        "Triton, roles", "roles read what they were handed after the barrier, not before it",
        "it is written over by the epilogue of the first tile, which waits for MMAs: those were issued after the loads "
        "of all stages, and both after these reads",
        (("Triton, roles", earlier(BARRIER, "ld.shared", 5, 6)),),
    ),
    Survivor(
        "Triton, roles", "`bar.warp.sync` before an MMA or a commit is left out",
        "every lane has waited for the stage itself; the elected one commits the MMAs that it has issued itself",
        (("Triton, roles", out(WARP, 6, 7, 8)),),
    ),
    Survivor(
        "Triton, roles", "a fence by all threads of a role stands after their barrier, or beside the count of bytes",
        "the thread that issues fences too, after what the barrier has ordered before it; no fence is about a count",
        (
            (
                "Triton, roles",
                either(
                    later(PROXY, WARP, 1), earlier(WARP, PROXY, 6), earlier(BAR, PROXY, 8, 10, 15),
                    later(PROXY, BAR, 3), later(EXPECT, PROXY, 0), earlier(PROXY, EXPECT, 2),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "a barrier between the bytes that are expected and the copies of the two warps is left out",
        "the phase waits for both, in any order, and each thread has waited itself until the stage is free",
        (("Triton, roles", out(BAR, 10, 11)),),
    ),
    Survivor(
        "Triton, roles", "the accumulator is handed back after the wait for the last store",
        "that store reads staging, and the registers were loaded before both",
        (("Triton, roles", later(ARRIVE, STORES_READ, 0)),),
    ),
    Survivor(
        "Triton, roles", "at the end of the epilogue a wait, a barrier or an arrive is left out, or comes later",
        "staging is not written again, and nobody waits for the accumulator any more; the barriers of all roles follow",
        (
            (
                "Triton, roles",
                either(
                    later(STORES_DONE, BAR, 0), earlier(BAR, STORES_DONE, 16), out(BAR, 12, 13), later(BAR, ARRIVE, 13),
                    out(ARRIVE, 1), earlier(BARRIER, ARRIVE, 12),
                ),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "`tcgen05.dealloc`, and the barrier before it, of the warps that free nothing",
        "the predicate is true for warp 0 alone, and threads that have exited count as arrived",
        (
            (
                "Triton, roles",
                either(out(FREE, 0), earlier(FREE, BARRIER, 0), out(BARRIER, 11), later(BARRIER, FREE, 11)),
            ),
        ),
    ),
    Survivor(
        "Triton, roles", "`tcgen05.dealloc` and the last barrier change places",
        "the columns were read, and their MMAs waited for, before the barrier of all roles that stands before both",
        (("Triton, roles", either(later(BARRIER, FREE, 14), earlier(FREE, BARRIER, 1))),),
    ),
    Survivor(
        "Triton, roles", "two barriers of all roles change places",
        "they are the same instruction",
        (("Triton, roles", earlier(BARRIER, BARRIER, 10)),),
    ),
)  # fmt: skip
