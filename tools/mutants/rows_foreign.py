# SPDX-License-Identifier: Apache-2.0
"""Mutants of kernels that other compilers wrote."""

from __future__ import annotations

from tools.mutants.edits import both, delay, drop, pass_wait, replace, substitute
from tools.mutants.mutant import DEADLOCK, WRONG, Mutant, table

MMA = r"tcgen05\.mma"
COMMIT = r"tcgen05\.commit"
FENCE = r"fence\.proxy\.async"
NAMED = r"bar\.sync\s+%r\d+, 128"
BAR = r"bar\.sync\s+0;"
EXPECT = r"(expect_tx\S+ _, \[%\w+\]), \S+;"
INIT = r"(mbarrier\.init\S+ \[%\w+\]), \S+;"

_TVM = (
    (1, "no wait for the loads", pass_wait(0), ("TM-34",)),
    (6, "expected bytes halved", substitute(EXPECT, r"\1, 16384;"), ("TM-34", "MB-07")),
    (6, "expected bytes doubled", substitute(EXPECT, r"\1, 65536;"), DEADLOCK),
    (8, "barrier of the loads made for two arrivals", substitute(INIT, r"\1, 2;", 0), DEADLOCK),
    (9, "barrier of the MMAs made for 128 arrivals", substitute(INIT, r"\1, 128;", 2), DEADLOCK),
    (11, "no sync after mbarrier.init", drop(BAR, 0), ("MB-40", "TA-03")),
    (14, "no wait for the MMAs before the refill", pass_wait(1), ("TC-13",)),
    (17, "commit before the last MMA", delay(MMA, 3, COMMIT, 0), ("TC-13", "TC-05")),
    (19, "no wait for the accumulator", pass_wait(-1), ("TC-05",)),
    (23, "no proxy fence before the TMA store", drop(FENCE, 1), ("PX-01",)),
    (
        24,
        "proxy fence of global memory",
        substitute(FENCE + r"\.shared::cta", "fence.proxy.async.global", 1),
        ("PX-01",),
    ),
    (25, "no sync before the TMA store", drop(NAMED, 0), ("RC-01", "BG-05")),
    (32, "instruction descriptor: N of 64", substitute(r"\b136314896\b", "135266320"), WRONG),
    (36, "tensor memory not freed", drop(r"tcgen05\.dealloc"), ("TA-07",)),
    (
        36,
        "the permit given back first",
        both(
            drop(r"tcgen05\.relinquish"),
            replace(
                r"tcgen05\.alloc\.",
                r"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; tcgen05.alloc."
                "cta_group::1.sync.aligned.shared::cta.b32 [%r31], 512;",
            ),
        ),
        ("TA-09",),
    ),
)
TVM_5 = table("TVM, step 5", _TVM[:-1])
TVM_6 = (
    *table("TVM, step 6", _TVM),
    *table(
        "TVM, step 6",
        (
            (
                20,
                "no sync between the epilogue and the next tile",
                both(drop(NAMED), drop(BAR, 1), drop(BAR, 1)),
                ("TC-06", "BG-05", "RC-01"),
            ),
            (26, "no wait for the store before staging is written again", drop(r"wait_group\.read"), ("BG-05",)),
        ),
    ),
    Mutant(21, "wait::ld dropped", "TVM, step 6", drop(r"tcgen05\.wait::ld"), ("TL-05",), weak=True),
)

TRITON = (
    *table(
        "Triton",
        (
            (1, "no wait for the loads", pass_wait(0), ("TM-34",)),
            (6, "expected bytes halved", substitute(EXPECT, r"\1, 16384;"), ("TM-34", "MB-07")),
            (6, "expected bytes doubled", substitute(EXPECT, r"\1, 65536;"), DEADLOCK),
            (8, "barrier of the loads made for two arrivals", substitute(INIT, r"\1, 2;", 2), DEADLOCK),
            (14, "no wait for the MMAs before the refill", pass_wait(1), ("TC-13",)),
            (17, "commit before the last MMA", delay(MMA, 3, COMMIT, 0), ("TC-13", "TC-05")),
            (19, "no wait for the accumulator", pass_wait(-1), ("TC-05",)),
            (22, "wait::st of the zeros dropped", drop(r"tcgen05\.wait::st"), ("TL-07",)),
            (23, "no proxy fence before the TMA store", drop(FENCE), ("PX-01",)),
            (25, "no sync before the TMA store", drop(BAR, -2), ("RC-01", "BG-05")),
            (36, "tensor memory not freed", drop(r"tcgen05\.dealloc"), ("TA-07",)),
        ),
    ),
    *table(
        "Triton, roles",
        (
            (19, "no wait for the accumulator", pass_wait(1), ("TC-05", "TC-06")),
            (36, "tensor memory not freed", drop(r"tcgen05\.dealloc"), ("TA-07",)),
            (41, "registers not given up by one role", drop(r"setmaxnreg\.dec", -1), ("SR-02", "SR-05")),
            (53, "no wait for the last commit before mbarrier.inval", pass_wait(5), ("MB-45",)),
            (45, "no acquire of a map", drop(r"fence\.proxy\.tensormap", 0), ("PX-12",)),
        ),
    ),
)

FORMAL = (
    Mutant(
        10, "the TMA store by all lanes of two warps", "Triton", substitute(r"@%p65 (cp\.async)", r"@%p72 \1"),
        ("RC-03",), weak=True,
    ),
)  # fmt: skip

MUTANTS = (*TVM_5, *TVM_6, *TRITON, *FORMAL)
