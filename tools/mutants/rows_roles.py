# SPDX-License-Identifier: Apache-2.0
"""Mutants of the product by roles."""

from __future__ import annotations

from tools.mutants.edits import add, both, delay, drop, move, pass_wait_on, replace, substitute
from tools.mutants.mutant import DEADLOCK, WRONG, Mutant, table

BASE = "roles"
COMMIT = r"tcgen05\.commit\S+ \[%empty_at\]"
COMMIT_ALL = r"tcgen05\.commit\S+ \[%ready_at\]"
FENCE = r"fence\.proxy\.async"
STORE = r"cp\.async\.bulk\.tensor\.2d\.global"
NAMED = r"bar\.sync 1, 128"
EXPECT = r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%full_at\], 24576;"
STEP = r"setp\.ne\.u32 %accumulate, %t, 0;"

MUTANTS = (
    *table(
        BASE,
        (
            (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34",)),
            (2, "no wait for an empty stage", pass_wait_on("%empty_at"), ("TM-35", "TC-13")),
            (3, "producer starts with parity 0", replace(r"mov\.u32 %phase, 1;", "  mov.u32 %phase, 0;"), DEADLOCK),
            (
                3,
                "MMA starts with parity 0 of the accumulator",
                replace(r"mov\.u32 %acc_phase, 1;", "  mov.u32 %acc_phase, 0;"),
                DEADLOCK,
            ),
            (4, "MMA starts with parity 1", replace(r"mov\.u32 %phase, 0;", "  mov.u32 %phase, 1;"), ("TM-34",)),
            (
                4,
                "epilogue starts with parity 1",
                replace(r"mov\.u32 %acc_phase, 0;", "  mov.u32 %acc_phase, 1;"),
                ("TC-06", "TC-05"),
            ),
            (5, "producer's phase never flipped", drop(r"xor\.b32 %phase", 0), ("TC-13",)),
            (5, "MMA's phase never flipped", drop(r"xor\.b32 %phase", 1), ("TM-34", "TC-13", "MB-04")),
            (5, "epilogue's phase never flipped", drop(r"xor\.b32 %acc_phase", 1), ("TC-05",)),
            (
                5,
                "producer's phase flipped with every stage",
                substitute(r"(xor\.b32 %phase, %phase), %t", r"\1, 1", 0),
                DEADLOCK,
            ),
            (6, "expected bytes halved", substitute("24576", "12288"), DEADLOCK),
            (6, "expected bytes doubled", substitute("24576", "49152"), DEADLOCK),
            (
                6,
                "no bytes expected",
                replace(EXPECT, "  mbarrier.arrive.shared::cta.b64 _, [%full_at];"),
                ("TM-34", "MB-07"),
            ),
            (7, "bytes of B not expected", substitute("24576", "16384"), ("TM-34", "MB-07")),
            (7, "bytes of A not expected", substitute("24576", "8192"), ("TM-34", "MB-07")),
            (
                8,
                "accumulator handed back by 3 of 4 warps",
                substitute(r"(init\S+ \[%unread0.*\]), 4", r"\1, 3"),
                ("TC-06",),
            ),
            (
                8,
                "accumulator handed back by 5 of 4 warps",
                substitute(r"(init\S+ \[%unread0.*\]), 4", r"\1, 5"),
                DEADLOCK,
            ),
            (
                9,
                "accumulator handed back by 128 threads",
                substitute(r"(init\S+ \[%unread0.*\]), 4", r"\1, 128"),
                DEADLOCK,
            ),
            (10, "every lane loads", drop(r"@!%lead bra done", 0), ("MB-04", "TM-35")),
            (10, "every lane multiplies", drop(r"@!%lead bra done", 1), ("MB-04", "TM-35", "TC-03")),
            (
                10,
                "every lane hands the accumulator back",
                substitute(r"@%lead mbarrier\.arrive", "mbarrier.arrive"),
                DEADLOCK,
            ),
            (11, "no sync after mbarrier.init", drop(r"bar\.sync 0", 0), ("MB-40", "MB-01")),
            (
                14,
                "stage released by an arrive, not by a commit",
                replace(COMMIT, "  mbarrier.arrive.shared::cta.b64 _, [%empty_at];"),
                ("TC-13",),
            ),
            (
                16,
                "commit of the stage to the accumulator's barrier",
                substitute(r"(tcgen05\.commit\S+) \[%empty_at\]", r"\1 [%ready_at]"),
                ("TC-05", "TC-06"),
            ),
            (
                16,
                "commit of the tile to the stage's barrier",
                substitute(r"(tcgen05\.commit\S+) \[%ready_at\]", r"\1 [%empty_at]"),
                DEADLOCK,
            ),
            (
                16,
                "commit of the stage to the barrier of its loads",
                substitute(r"(tcgen05\.commit\S+) \[%empty_at\]", r"\1 [%full_at]"),
                DEADLOCK,
            ),
            (17, "commit before the MMAs", move(COMMIT, 0, r"mov\.u32 %step, 0;", 0), ("TC-13",)),
            (
                17,
                "commit of the tile before its last stage",
                both(
                    drop(COMMIT_ALL),
                    add(
                        "  @!%more tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%ready_at];",
                        r"mov\.u32 %step, 0;",
                        0,
                    ),
                    add("  add.u32 %t, %block, 1; setp.lt.u32 %more, %t, %blocks;", r"mov\.u32 %step, 0;", 0),
                ),
                ("TC-05",),
            ),
            (
                18,
                "commit of the tile by another warp",
                both(
                    drop(COMMIT_ALL),
                    add(
                        "  @%storer tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%ready_at];",
                        r"add\.u32 %unread_at, %unread0, %t;",
                        1,
                    ),
                ),
                ("TC-05",),
            ),
            (19, "no wait for the accumulator", pass_wait_on("%ready_at"), ("TC-05",)),
            (20, "no wait until the accumulator is read", pass_wait_on("%unread_at"), ("TC-06",)),
            (21, "wait::ld dropped", drop(r"tcgen05\.wait::ld"), ("TL-05",)),
            (
                21,
                "accumulator handed back before wait::ld",
                delay(r"tcgen05\.wait::ld", 0, r"@%lead mbarrier\.arrive", 0),
                ("TL-05",),
            ),
            (23, "no proxy fence before the TMA store", drop(FENCE), ("PX-01",)),
            (24, "proxy fence before the writes", move(FENCE, 0, NAMED, 0), ("PX-01",)),
            (
                24,
                "proxy fence by the storing thread alone, before the barrier",
                substitute(FENCE, "@%storer fence.proxy.async"),
                ("PX-01",),
            ),
            (
                24,
                "proxy fence by all others, after the barrier",
                both(drop(FENCE), add("  @!%storer fence.proxy.async.shared::cta;", r"@!%storer bra next", 0)),
                ("PX-01",),
            ),
            (25, "no sync between the writes and the TMA store", drop(NAMED, 1), ("RC-01", "BG-05")),
            (
                25,
                "an arrive where the storing warp must wait",
                both(
                    add("  setp.eq.u32 %skip, %warp, 2;", NAMED, 1),
                    replace(NAMED, "  @!%skip bar.sync 1, 128;\n  @%skip bar.arrive 1, 128;", 1),
                ),
                ("RC-01", "BG-05"),
            ),
            (26, "no wait for the store before staging is written again", drop(r"wait_group\.read"), ("BG-05",)),
            (
                26,
                "wait for the store keeps one group open",
                substitute(r"wait_group\.read 0", "wait_group.read 1"),
                ("BG-05",),
            ),
            (26, "others wait for the store", replace(r"@!%storer bra staging", "  @%storer bra staging;"), ("BG-05",)),
            (26, "no sync between the wait for the store and the writes", drop(NAMED, 0), ("BG-05",)),
            (29, "descriptor of A: half the stride", substitute("0x4000404000000000", "0x4000402000000000", 0), WRONG),
            (29, "descriptor of A: no version", substitute("0x4000404000000000", "0x4000004000000000", 0), ("DS-01",)),
            (
                29,
                "descriptor of B: swizzle code 3",
                substitute("0x4000404000000000", "0x6000404000000000", 1),
                ("DS-01",),
            ),
            (29, "descriptor of A: address not shifted", drop(r"shr\.u32 %t, %a_at, 4", 0), ("DS-01",)),
            (
                29,
                "descriptor of A: steps of 64 bytes",
                substitute(r"add\.s64 %desc_a, %desc_a, 2", "add.s64 %desc_a, %desc_a, 4"),
                WRONG,
            ),
            (30, "descriptor of B: 64-byte swizzle", substitute("0x4000404000000000", "0x8000404000000000", 1), WRONG),
            (
                31,
                "tiles of B at an address that is no multiple of 128",
                substitute(r"%a0, 32768", "%a0, 32832"),
                ("TM-02",),
            ),
            (32, "instruction descriptor: N of 32", substitute("0x08100010", "0x08080010"), WRONG),
            (32, "instruction descriptor: M of 64", substitute("0x08100010", "0x04100010"), WRONG),
            (32, "instruction descriptor: bf16", substitute("0x08100010", "0x08100490"), WRONG),
            (32, "instruction descriptor: a reserved bit", substitute("0x08100010", "0x08900010"), ("ID-01",)),
            (32, "instruction descriptor: N of 0", substitute("0x08100010", "0x08000010"), ("ID-02",)),
            (32, "instruction descriptor: sums in float16", substitute("0x08100010", "0x08100000"), WRONG),
            (33, "always added", replace(STEP, "  setp.eq.u32 %accumulate, 0, 0;"), WRONG),
            (33, "never added", replace(STEP, "  setp.ne.u32 %accumulate, 0, 0;"), WRONG),
            (
                33,
                "added from the second step on in every block",
                replace(STEP, "  setp.ne.u32 %accumulate, %step, 0;"),
                WRONG,
            ),
            (
                34,
                "lanes by rank in the role",
                replace(r"and\.b32 %quadrant, %warp, 3;", "  sub.u32 %quadrant, %warp, 2;"),
                ("TL-02",),
            ),
            (34, "second half one column off", substitute(r"\[%from\+32\]", "[%from+33]"), ("TC-05", "TC-06", "TA-14")),
            (34, "the first half twice", substitute(r"\[%from\+32\]", "[%from]"), WRONG),
            (35, "half of the columns allocated", substitute(r"(\[%columns0\]), 128", r"\1, 64"), ("TA-14",)),
            (35, "96 columns allocated", substitute(r"(\[%columns0\]), 128", r"\1, 96"), ("TA-01",)),
            (
                35,
                "accumulators overlap",
                substitute(r"shl\.b32 %t, %acc, 6", "shl.b32 %t, %acc, 5"),
                ("TC-06", "TC-05", "TC-01"),
            ),
            (36, "tensor memory not freed", drop(r"tcgen05\.dealloc"), ("TA-07",)),
            (36, "half of the columns freed", substitute(r"(dealloc\S+ %tmem), 128", r"\1, 64"), ("TA-06",)),
            (
                36,
                "alloc after the permit was given back",
                move(r"tcgen05\.relinquish", 0, r"tcgen05\.alloc", 0),
                ("TA-09",),
            ),
            (
                36,
                "freed by two warps",
                substitute(r"setp\.ne\.u32 %skip, %warp, 1", "setp.gt.u32 %skip, %warp, 1", 1),
                ("TA-06",),
            ),
            (36, "freed before the epilogue is done", both(drop(r"bar\.sync 0", 1)), ("TA-10",)),
            (
                37,
                "address of tensor memory read by those who did not wait",
                both(drop(r"bar\.sync 0", 0), add("  bar.sync 0;", r"mov\.u32 %stage, 0;", 0)),
                ("TA-03",),
            ),
            (
                39,
                "coordinates of A in the other order",
                substitute(r"\[%map_a, \{%k, %row\}\]", "[%map_a, {%row, %k}]"),
                WRONG,
            ),
            (
                39,
                "coordinates of the store in the other order",
                substitute(r"\{%col, %row\}", "{%row, %col}", -1),
                WRONG,
            ),
            (
                40,
                "named barrier of 96 threads",
                substitute(r"bar\.sync 1, 128", "bar.sync 1, 96", 0),
                ("NB-03", "BG-05", "RC-01"),
            ),
            (40, "named barrier of 160 threads", substitute(r"bar\.sync 1, 128", "bar.sync 1, 160"), DEADLOCK),
            (40, "named barrier of 100 threads", substitute(r"bar\.sync 1, 128", "bar.sync 1, 100", 0), ("NB-01",)),
            (
                40,
                "the number of __syncthreads() for the epilogue",
                substitute(r"bar\.sync 1, 128", "bar.sync 0, 128"),
                ("NB-03",),
            ),
            (46, "result of the wait for the loads ignored", drop(r"@!%ok bra wait_full"), ("TM-34",)),
            (46, "result of the wait for the accumulator ignored", drop(r"@!%ok bra wait_ready"), ("TC-05",)),
            (46, "result of the wait for an empty stage ignored", drop(r"@!%ok bra wait_empty"), ("TC-13",)),
            (47, "producer's stage not wrapped", drop(r"selp\.b32 %stage, 0, %stage", 0), DEADLOCK),
            (47, "nobody's stage wrapped", drop(r"selp\.b32 %stage, 0, %stage"), DEADLOCK),
            (49, "A said to be stored by columns", substitute("0x08100010", "0x08108010"), WRONG),
            (49, "B said to be stored by columns", substitute("0x08100010", "0x08110010"), WRONG),
        ),
    ),
    Mutant(50, "no tcgen05.fence", BASE, drop(r"tcgen05\.fence"), ("TC-08",), weak=True),
    Mutant(
        24,
        "proxy fence by the storing thread, after the barrier",
        BASE,
        both(drop(FENCE), add("  fence.proxy.async.shared::cta;", STORE, 0)),
        equivalent="what the barrier has ordered, any fence on the way to the store covers",
    ),
)
