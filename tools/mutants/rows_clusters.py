# SPDX-License-Identifier: Apache-2.0
"""Mutants of the two products of a cluster: by CTA pairs with tcgen05, by multicast with wgmma."""

from __future__ import annotations

from tools.mutants.edits import Edit, add, both, delay, drop, move, pass_wait_on, replace, substitute
from tools.mutants.mutant import DEADLOCK, WRONG, Mutant, table

CLUSTER_ARRIVE = r"barrier\.cluster\.arrive"
CLUSTER_WAIT = r"barrier\.cluster\.wait"
COMMIT = r"tcgen05\.commit\S+ \[%empty_at\]"
C_FENCE = r"fence\.proxy\.async"


def _no_barrier(number: int) -> Edit:
    """The cluster's barrier of this number is left out."""
    return both(drop(CLUSTER_ARRIVE, number), drop(CLUSTER_WAIT, number))


def _exits_early(rank: int) -> Edit:
    """One rank does not wait at the end."""
    at = "setp.eq.u32 %skip, %rank, "
    return add(f"  {at}{rank};\n  @%skip bra out;\n", CLUSTER_ARRIVE, 1)


PAIR = (
    *table(
        "pair",
        (
            (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34",)),
            (2, "no wait for an empty stage", pass_wait_on("%empty_at"), ("TM-35", "TC-13", "MB-04")),
            (3, "producers start with parity 0", replace(r"mov\.u32 %phase, 1;", "  mov.u32 %phase, 0;"), DEADLOCK),
            (6, "bytes of one CTA expected", substitute("40960", "20480"), ("TM-34", "MB-07")),
            (7, "bytes of both expected by both", substitute(r"@%even (mbarrier\.arrive\.expect)", r"\1"), ("MB-04",)),
            (8, "accumulator handed back by one CTA's warps", substitute(r"(\[%unread_at\]), 8", r"\1, 4"), ("TC-06",)),
            (8, "an arrival of each CTA for a stage", substitute(r"(init\S+ \[%empty0.*\]), 1", r"\1, 2"), DEADLOCK),
            (12, "no barrier of the cluster after the init", _no_barrier(0), ("MB-40", "MB-01", "TA-03")),
            (
                12,
                "a barrier of the CTA alone after the init",
                both(drop(CLUSTER_ARRIVE, 0), replace(CLUSTER_WAIT, "  bar.sync 0;", 0)),
                ("MB-40", "MB-01"),
            ),
            (
                14,
                "stage released by arrives, not by a commit",
                replace(
                    COMMIT,
                    "  mbarrier.arrive.shared::cta.b64 _, [%empty_at];\n  mapa.shared::cluster.u32 %t, "
                    "%empty_at, 1;\n  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t];",
                ),
                ("TC-13",),
            ),
            (17, "commit before the MMAs", move(COMMIT, 0, r"mov\.u32 %step, 0;", 0), ("TC-13",)),
            (19, "no wait for the accumulator", pass_wait_on("%ready_at"), ("TC-05", "TC-06")),
            (20, "no wait until the accumulator is read", pass_wait_on("%unread_at"), ("TC-06",)),
            (21, "wait::ld dropped", drop(r"tcgen05\.wait::ld"), ("TL-05",)),
            (36, "tensor memory not freed", drop(r"tcgen05\.dealloc"), ("TA-07",)),
            (36, "freed before the peer is done", _no_barrier(1), ("TA-10", "TA-14", "CB-06")),
            (
                38,
                "the peer's producer is not told of empty stages",
                add("  mov.u16 %both, 1;", r"mov\.u32 %step, 0;", 0),
                DEADLOCK,
            ),
            (
                38,
                "the own producer is not told of empty stages",
                add("  mov.u16 %both, 2;", r"mov\.u32 %step, 0;", 0),
                DEADLOCK,
            ),
            (
                38,
                "commit without multicast",
                replace(COMMIT, "  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%empty_at];"),
                DEADLOCK,
            ),
            (38, "both ranks multiply", drop(r"and\.pred %lead, %lead, %even"), DEADLOCK),
            (
                38,
                "each rank's loads on its own barrier",
                replace(r"and\.b32 %full_of_even.*", "  mov.u32 %full_of_even, %full_at;"),
                DEADLOCK,
            ),
            (
                38,
                "accumulator handed back to the own rank",
                substitute(r"(mapa\S+ %unread_of_even, %unread_at), 0", r"\1, %rank"),
                DEADLOCK,
            ),
            (39, "both ranks load the same rows of A", replace(r"add\.u32 %row_a, %row_a, %t", "", 0), WRONG),
            (39, "both ranks load the same rows of B", replace(r"add\.u32 %row_b, %row_b, %t", "", 0), WRONG),
        ),
    ),
    Mutant(51, "no fence.mbarrier_init", "pair", drop(r"fence\.mbarrier_init"), ("MB-42",), weak=True),
)

WGMMA = (
    *table(
        "multicast",
        (
            (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34",)),
            (1, "no wait for C", pass_wait_on("%c_full_at"), ("TM-34",)),
            (2, "no wait for an empty stage", pass_wait_on("%empty_at"), ("TM-35", "WG-05", "MB-04")),
            (2, "no wait until C is read", pass_wait_on("%c_empty_at"), ("PX-03", "RC-01", "TM-35")),
            (3, "producer starts with parity 0", replace(r"mov\.u32 %phase, 1;", "  mov.u32 %phase, 0;"), DEADLOCK),
            (
                4,
                "consumers start with parity 1",
                replace(r"mov\.u32 %phase, 0;", "  mov.u32 %phase, 1;"),
                ("WG-05", "TM-34"),
            ),
            (5, "phase of C never flipped by the consumers", drop(r"xor\.b32 %c_phase", 1), ("TM-34",)),
            (7, "half of B expected, which is multicast", substitute("24576", "20480"), ("TM-34", "MB-07")),
            (7, "all of B expected twice", substitute("24576", "32768"), DEADLOCK),
            (
                8,
                "stage released by one CTA's consumers",
                substitute(r"(init\S+ \[%empty0.*\]), 4", r"\1, 2"),
                ("WG-05", "TM-35"),
            ),
            (
                8,
                "C handed back by one of two groups",
                substitute(r"(\[%c_empty_at\]), 2", r"\1, 1"),
                ("RC-01", "PX-03"),
            ),
            (9, "C handed back by all 256 threads", substitute(r"(\[%c_empty_at\]), 2", r"\1, 256"), DEADLOCK),
            (12, "no barrier of the cluster after the init", _no_barrier(0), ("MB-40", "MB-01")),
            (13, "no barrier of the cluster at the end", _no_barrier(1), ("CB-06", "MB-09")),
            (
                13,
                "rank 1 does not wait at the end",
                both(
                    add("  setp.eq.u32 %skip, %rank, 1;\n  @%skip bra out;", CLUSTER_ARRIVE, 1),
                    replace(r"  ret;", "out:\n  ret;"),
                ),
                ("CB-06", "MB-09"),
            ),
            (
                14,
                "stage released right after its own wgmma",
                both(
                    drop(r"mbarrier\.arrive\S+ _, \[%(before|of_peer)\]", 2),
                    drop(r"mbarrier\.arrive\S+ _, \[%(before|of_peer)\]", 2),
                    drop(r"@%skip bra advance"),
                    substitute("%before", "%empty_at", 0),
                    substitute("%before", "%empty_at", 0),
                ),
                ("WG-05",),
            ),
            (
                14,
                "last stage released before the wait",
                delay(r"wgmma\.wait_group\.sync\.aligned 0", 0, r"@!%ok bra add_c", 0),
                ("WG-05",),
            ),
            (
                15,
                "wait_group leaves two groups open",
                substitute(r"wait_group\.sync\.aligned 1", "wait_group.sync.aligned 2"),
                ("WG-05",),
            ),
            (
                15,
                "wait_group leaves one group open at the end",
                substitute(r"wait_group\.sync\.aligned 0", "wait_group.sync.aligned 1"),
                ("WG-03", "WG-05"),
            ),
            (15, "no wait_group in the loop", drop(r"wait_group\.sync\.aligned 1"), ("WG-05",)),
            (17, "wgmma never committed", drop(r"wgmma\.commit_group"), ("WG-03", "WG-05")),
            (28, "no proxy fence after C is read", drop(C_FENCE), ("PX-03",)),
            (28, "proxy fence before C is read", move(C_FENCE, 0, r"ld\.shared\.b32 %g0,", 0), ("PX-03",)),
            (28, "no sync of the group before C is handed back", drop(r"bar\.sync %barrier"), ("RC-01", "PX-03")),
            (29, "descriptor of A: half the stride", substitute("0x4000004000000000", "0x4000002000000000", 0), WRONG),
            (
                40,
                "one number for both groups' barriers",
                replace(r"mov\.u32 %barrier, %group", "  mov.u32 %barrier, 1;"),
                ("NB-07",),
            ),
            (
                40,
                "barrier of a group for 256 threads",
                substitute(r"bar\.sync %barrier, 128", "bar.sync %barrier, 256"),
                DEADLOCK,
            ),
            (41, "no registers given back", drop(r"setmaxnreg\.dec"), ("SR-02", "SR-05")),
            (
                41,
                "registers given back by the loading warp alone",
                both(
                    drop(r"setmaxnreg\.dec"),
                    add("  setmaxnreg.dec.sync.aligned.u32 40;", r"mov\.u32 %phase, 1;", 0),
                ),
                ("SR-02", "SR-05"),
            ),
            (41, "more registers than there are", substitute(r"(setmaxnreg\.inc\S+) 232", r"\1 240"), ("SR-05",)),
            (
                41,
                "registers given back that are not there",
                substitute(r"(setmaxnreg\.dec\S+) 40", r"\1 176"),
                ("SR-03",),
            ),
            (41, "a count that there is not", substitute(r"(setmaxnreg\.inc\S+) 232", r"\1 250"), ("SR-01",)),
            (46, "result of the wait for C ignored", drop(r"@!%ok bra add_c"), ("TM-34",)),
        ),
    ),
    Mutant(51, "no fence.mbarrier_init", "multicast", drop(r"fence\.mbarrier_init"), ("MB-42",), weak=True),
    Mutant(
        52,
        "remote arrive of the scope of a CTA",
        "multicast",
        substitute(r"mbarrier\.arrive\.release\.cluster", "mbarrier.arrive.release.cta"),
        equivalent="the arrive hands on the ends of asynchronous reads alone, which have no scope",
    ),
)

ARRIVE_FULL = r"mbarrier\.arrive\.release\.cluster(\S+ _, \[%their_full\])"
ARRIVE_EMPTY = r"mbarrier\.arrive\.release\.cluster(\S+ _, \[%their_empty\])"
RELAY = (
    *table(
        "relay",
        (
            (1, "no wait for the peer's number", pass_wait_on("%full_at"), ("RC-01",)),
            (2, "no wait until the peer has read the last", pass_wait_on("%empty_at"), ("RC-01", "MB-04")),
            (12, "no barrier of the cluster after the init", _no_barrier(0), ("MB-40", "MB-01", "CB-06")),
            (13, "no barrier of the cluster at the end", _no_barrier(1), ("CB-06",)),
            (
                52,
                "number sent by an arrive of the scope of a CTA",
                substitute(ARRIVE_FULL, r"mbarrier.arrive.release.cta\1"),
                ("MB-35",),
            ),
            (
                52,
                "number sent by a relaxed arrive",
                substitute(ARRIVE_FULL, r"mbarrier.arrive.relaxed.cluster\1"),
                ("RC-01",),
            ),
        ),
    ),
    Mutant(
        52,
        "box given back by an arrive of the scope of a CTA",
        "relay",
        substitute(ARRIVE_EMPTY, r"mbarrier.arrive.release.cta\1"),
        ("MB-34",),
        weak=True,
    ),
)

MUTANTS = (*PAIR, *WGMMA, *RELAY)
