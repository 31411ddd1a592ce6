# SPDX-License-Identifier: Apache-2.0
"""Mutants of our own kernels."""

from __future__ import annotations

from tools.mutants.edits import Edit, add, both, delay, drop, move, pass_wait, replace, substitute
from tools.mutants.mutant import Mutant, table

LOAD = r"cp\.async\.bulk\.tensor\.2d\.shared"
STORE = r"cp\.async\.bulk\.tensor\.2d\.global"
COMMIT = r"tcgen05\.commit"
EXPECT = r"mbarrier\.arrive\.expect_tx"
MMA = r"tcgen05\.mma"
WGMMA = r"wgmma\.mma_async"
BAR = r"bar\.sync"
WARP_SYNC = r"bar\.warp\.sync"
FENCE = r"fence\.proxy\.async"
ALLOC = r"tcgen05\.alloc"
ELECT = r"elect\.sync"


def by_lanes(condition: str, lane: int, instruction: str) -> str:
    """`instruction` by the threads whose index compares like that."""
    return (
        "{ .reg .pred q; .reg .b32 t; mov.u32 t, %tid.x; "
        f"setp.{condition}.u32 q, t, {lane}; @!q bra $Lskip; {instruction} $Lskip: }}"
    )


def wait_by_lane(lane: int) -> Edit:
    """The wait for the last tile's stores moves to another lane than the one that issued them."""
    return both(
        drop(r"wait_group\.read"),
        add(by_lanes("eq", lane, "cp.async.bulk.wait_group.read 0;"), BAR, 1),
    )


EPILOGUE = (
    # (kind, name, edit, rules)
    (25, "no sync between epilogue stores and the TMA store", drop(BAR, 2), ("RC-01",)),
    (23, "no proxy fence before the TMA store", drop(FENCE), ("PX-01",)),
    (24, "proxy fence before the writes", move(FENCE, 0, BAR, 1), ("PX-01",)),
    (24, "proxy fence of global memory", substitute(FENCE + r"\.shared::cta", "fence.proxy.async.global"), ("PX-01",)),
    (24, "an ordinary fence for the proxy fence", replace(FENCE + r"\S+", "fence.acq_rel.cta;"), ("PX-01",)),
    (
        24,
        "proxy fence by warps 1 to 3 alone, after the barrier",
        both(drop(FENCE), add(by_lanes("ge", 32, "fence.proxy.async;"), WARP_SYNC, -1)),
        ("PX-01",),
    ),
    (
        24,
        "proxy fence by one writer of 128",
        both(drop(FENCE), add(by_lanes("eq", 0, "fence.proxy.async;"), BAR, 2)),
        ("PX-01",),
    ),
)
RING_OF_STORES = (
    (26, "no wait for the stores before staging is written again", drop(r"wait_group\.read"), ("BG-05",)),
    (
        26,
        "wait for the stores keeps one group open",
        substitute(r"wait_group\.read 0", "wait_group.read 1"),
        ("BG-05",),
    ),
    (26, "another lane waits for the stores", wait_by_lane(5), ("BG-05",)),
    (26, "another warp waits for the stores", wait_by_lane(64), ("BG-05",)),
    (26, "stores never committed", drop(r"cp\.async\.bulk\.commit_group"), ("BG-05",)),
    (26, "commit before the stores", move(r"cp\.async\.bulk\.commit_group", 0, STORE, 0), ("BG-05",)),
    (26, "no sync between the wait for the stores and the next staging", drop(BAR, 1), ("BG-05", "TC-06", "TC-05")),
)
LOADS = (
    (1, "no wait for the loads", pass_wait(0), ("TM-34",)),
    (
        5,
        "parity of the loads' wait inverted",
        substitute(r"(try_wait\.\S+ \w+, \[%\w+\]), (%\w+);", r"\1, 1;", 0),
        ("TM-34",),
    ),
    (6, "expected bytes halved", substitute(r"(expect_tx\S+ _, \[%\w+\]), %\w+;", r"\1, 16384;"), ("TM-34", "MB-07")),
)


def _ends(base: str) -> tuple[Mutant, ...]:
    return (
        Mutant(
            6,
            "expected bytes doubled",
            base,
            substitute(r"(expect_tx\S+ _, \[%\w+\]), %\w+;", r"\1, 65536;"),
            ends="deadlock",
        ),
        Mutant(
            8,
            "barrier initialised for two arrivals",
            base,
            substitute(r"(mbarrier\.init\S+ \[%\w+\]), %\w+;", r"\1, 2;", 0),
            ends="deadlock",
        ),
        Mutant(
            8,
            "barrier initialised for none",
            base,
            substitute(r"(mbarrier\.init\S+ \[%\w+\]), %\w+;", r"\1, 0;", 0),
            ("MB-03",),
        ),
        Mutant(11, "barrier never initialised", base, drop(r"mbarrier\.init", 0), ("MB-01",)),
        Mutant(
            26,
            "wait for the last stores dropped",
            base,
            drop(r"wait_group 0"),
            ("BG-07",),
            weak=True,
        ),
        Mutant(
            51, "no fence.mbarrier_init", base, drop(r"fence\.mbarrier_init"), equivalent="a barrier of the CTA follows"
        ),
    )


def _blackwell(base: str) -> tuple[Mutant, ...]:
    return (
        Mutant(14, "no wait for the MMA", base, pass_wait(1), ("TC-13", "TC-05")),
        Mutant(37, "no sync after alloc", base, drop(BAR, 0), ("TA-03",)),
        Mutant(17, "commit before the last MMA", base, delay(MMA, 3, COMMIT, 0), ("TC-13", "TC-05")),
        Mutant(17, "commit before every MMA", base, _all_after_commit(), ("TC-13", "TC-05")),
        Mutant(16, "no commit", base, drop(COMMIT), ends="deadlock"),
        Mutant(21, "wait::ld dropped", base, drop(r"tcgen05\.wait::ld"), ("TL-05",), weak=True),
        Mutant(36, "tensor memory not freed", base, drop(r"tcgen05\.dealloc"), ("TA-07",)),
        Mutant(
            36, "alloc after the permit was given back", base, move(r"tcgen05\.relinquish", 0, ALLOC, 0), ("TA-09",)
        ),
        Mutant(
            35,
            "half of the columns allocated",
            base,
            substitute(r"(tcgen05\.alloc\S+ \[%\w+\]), %\w+;", r"\1, 64;"),
            ("TA-14",),
        ),
        Mutant(
            35, "96 columns allocated", base, substitute(r"(tcgen05\.alloc\S+ \[%\w+\]), %\w+;", r"\1, 96;"), ("TA-01",)
        ),
        Mutant(
            36,
            "half of the columns freed",
            base,
            substitute(r"(tcgen05\.dealloc\S+ %\w+), %\w+;", r"\1, 64;"),
            ("TA-06",),
        ),
        Mutant(50, "no tcgen05.fence", base, drop(r"tcgen05\.fence"), ("TC-08",), weak=True),
    )


def _all_after_commit() -> Edit:
    return both(delay(MMA, 0, COMMIT, 0), *(delay(MMA, 0, MMA, 3) for _ in range(3)))


_STEP6_BLACKWELL = (
    Mutant(36, "no sync before tensor memory is freed", "step 6", drop(BAR, 2), ("TA-10",)),
    Mutant(
        47, "one buffer for every load", "step 6", substitute(f"({LOAD}\\S+) \\[%\\w+\\]", r"\1 [1024]"), ("TM-35",)
    ),
    Mutant(
        10,
        "copies by every lane",
        "step 6",
        substitute(r"elect\.sync _\|p, 0xffffffff", "setp.eq.u32 p, 0, 0"),
        ("MB-02", "MB-04"),
    ),
    Mutant(
        10,
        "init by every lane",
        "step 4",
        substitute(r"elect\.sync _\|p, 0xffffffff", "setp.eq.u32 p, 0, 0", 0),
        ("MB-02",),
    ),
)

_HOPPER = (
    Mutant(14, "no wait for the wgmma", "step 6, sm_90a", drop(r"wgmma\.wait_group"), ("WG-03",)),
    Mutant(
        15,
        "wait for the wgmma keeps one group open",
        "step 6, sm_90a",
        substitute(r"wait_group\.sync\.aligned 0", "wait_group.sync.aligned 1"),
        ("WG-05", "WG-03"),
    ),
    Mutant(17, "wgmma never committed", "step 6, sm_90a", drop(r"wgmma\.commit_group"), ("WG-05", "WG-03")),
    Mutant(
        17,
        "commit before the last wgmma",
        "step 6, sm_90a",
        delay(WGMMA, 3, r"wgmma\.commit_group", 0),
        ("WG-05", "WG-03"),
    ),
    Mutant(
        14,
        "no sync between the wgmma and the refill",
        "step 6, sm_90a",
        drop(BAR, 1),
        equivalent="a wgmma is one operation of four warps, and the refilling warp waits for it",
    ),
    Mutant(11, "no sync after mbarrier.init", "step 6, sm_90a", drop(BAR, 0), ("MB-40",)),
    Mutant(14, "no wgmma.fence", "step 6, sm_90a", drop(r"wgmma\.fence"), ("WG-02",), weak=True),
)

_BAR_OF_90 = (
    (25, "no sync between epilogue stores and the TMA store", drop(BAR, 3), ("RC-01",)),
    (23, "no proxy fence before the TMA store", drop(FENCE), ("PX-01",)),
    (24, "proxy fence before the writes", move(FENCE, 0, BAR, 2), ("PX-01",)),
    (24, "proxy fence of global memory", substitute(FENCE + r"\.shared::cta", "fence.proxy.async.global"), ("PX-01",)),
    (24, "an ordinary fence for the proxy fence", replace(FENCE + r"\S+", "fence.acq_rel.cta;"), ("PX-01",)),
    (26, "no wait for the stores before staging is written again", drop(r"wait_group\.read"), ("BG-05",)),
    (26, "stores never committed", drop(r"cp\.async\.bulk\.commit_group"), ("BG-05",)),
    (26, "no sync between the wait for the stores and the next staging", drop(BAR, 2), ("BG-05",)),
)

MUTANTS = (
    *table("step 4", (*LOADS, *EPILOGUE)),
    *_blackwell("step 4"),
    *_ends("step 4"),
    *table("step 5", (*LOADS, *EPILOGUE)),
    *_blackwell("step 5"),
    *_ends("step 5"),
    *table("step 6", (*LOADS, *EPILOGUE, *RING_OF_STORES)),
    *_blackwell("step 6"),
    *_STEP6_BLACKWELL,
    *_ends("step 6"),
    *table("step 6, sm_90a", (*LOADS, *_BAR_OF_90)),
    *_HOPPER,
    *_ends("step 6, sm_90a"),
)
