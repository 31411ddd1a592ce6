# SPDX-License-Identifier: Apache-2.0
"""Mutants of what products need around them: work taken over, shared sums, changed tensor maps, products in a row."""

from __future__ import annotations

from tools.mutants.edits import add, both, delay, drop, move, pass_wait, pass_wait_on, replace, substitute
from tools.mutants.mutant import DEADLOCK, WRONG, Mutant, table

FENCE = r"fence\.proxy\.async"
GPU_FENCE = r"fence\.acq_rel\.gpu"
ATOM = r"atom\.relaxed\.gpu"
COMMIT_1 = r"tcgen05\.commit\S+ \[%first_at\]"
COMMIT_2 = r"tcgen05\.commit\S+ \[%second_at\]"
BAR = r"bar\.sync 0"

TAKEOVER = (
    Mutant(43, "failure not heeded by the workers", "takeover", drop(r"@!%given bra done", 1), ("CL-03",), weak=True),
    *table(
        "takeover",
        (
            (1, "workers do not wait for the response", pass_wait(2), ("CL-02",)),
            (
                6,
                "no bytes expected for the response",
                replace(r"mbarrier\.arrive\.expect_tx.*", "  mbarrier.arrive.shared::cta.b64 _, [%full_at];"),
                ("CL-02", "MB-07"),
            ),
            (1, "who asks does not wait for the response", pass_wait(1), ("CL-02",)),
            (
                8,
                "response handed back by 3 of 4 warps",
                substitute(r"(\[%empty_at\]), 4", r"\1, 3"),
                ("PX-15", "RC-01"),
            ),
            (11, "no sync after mbarrier.init", drop(BAR), ("MB-40", "MB-01")),
            (43, "response asked for before all have read the last", pass_wait_on("%empty_at"), ("PX-15", "RC-01")),
            (43, "no proxy fence after the response is read", drop(FENCE), ("PX-15", "PX-03")),
            (43, "no proxy fence by the workers", drop(FENCE, 1), ("PX-15", "PX-03")),
            (43, "failure not heeded by who asks", drop(r"@!%given bra done", 0), ("CL-04",)),
            (43, "asked by every lane", drop(r"@!%lead bra done"), ("MB-04", "TM-35")),
            (54, "no warp barrier before the response is handed back", drop(r"bar\.warp\.sync", 1), ("RC-01",)),
            (
                54,
                "response handed back before the warp barrier",
                move(r"@%lead mbarrier\.arrive", 0, r"bar\.warp\.sync", 1),
                ("RC-01",),
            ),
            (
                54,
                "warp barrier before the response is read",
                move(r"bar\.warp\.sync", 1, r"ld\.shared\.b128", 1),
                ("RC-01",),
            ),
        ),
    ),
)

SPLIT = table(
    "split",
    (
        (23, "no proxy fence before the bulk store", drop(FENCE), ("PX-01",)),
        (25, "no sync before the bulk store", drop(BAR, 0), ("RC-01", "BG-05", "RC-02")),
        (26, "bulk store never committed", drop(r"commit_group"), ("RC-02", "BG-09")),
        (
            27,
            "sums handed on after wait_group.read",
            substitute(r"wait_group 0", "wait_group.read 0"),
            ("RC-02", "BG-09"),
        ),
        (27, "sums handed on with no wait", drop(r"wait_group 0"), ("RC-02", "BG-09")),
        (44, "no fence before the count", drop(GPU_FENCE, 0), ("RC-02",)),
        (44, "no fence after the count", drop(GPU_FENCE, 1), ("RC-02",)),
        (44, "no fences", drop(GPU_FENCE), ("RC-02",)),
        (44, "fence of the scope of a CTA before the count", substitute(GPU_FENCE, "fence.acq_rel.cta", 0), ("RC-02",)),
        (44, "fence of the scope of a CTA after the count", substitute(GPU_FENCE, "fence.acq_rel.cta", 1), ("RC-02",)),
        (44, "count of the scope of a CTA", substitute(ATOM, "atom.relaxed.cta"), ("RC-02",)),
        (
            44,
            "count by ordinary accesses",
            replace(ATOM + ".*", "  ld.global.u32 %old, [%to];\n  add.u32 %t, %old, 1;\n  st.global.u32 [%to], %t;"),
            ("RC-02",),
        ),
        (44, "count before the sums are there", move(ATOM, 0, r"bar\.sync 0", 0), WRONG),
        (
            25,
            "sums added up by all but the last",
            replace(r"setp\.ne\.u32 %late.*", "  setp.gt.u32 %late, %old, %parts;"),
            ("RC-02",),
        ),
        (25, "no sync before the count is read", drop(BAR, 1), ("RC-01",)),
    ),
)

GROUPS = (
    Mutant(28, "no proxy fence after the buffer is read", "groups", drop(FENCE), ("PX-03",), weak=True),
    *table(
        "groups",
        (
            (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34", "RC-01")),
            (2, "no wait for an empty buffer", pass_wait_on("%empty_at"), ("PX-03", "RC-01")),
            (3, "loader starts with parity 0", replace(r"xor\.b32 %t, %phase, 1;", "  mov.u32 %t, %phase;"), DEADLOCK),
            (11, "no sync after mbarrier.init", drop(BAR), ("MB-40", "MB-01")),
            (39, "rows of the last group", drop(r"tensormap\.replace\.tile\.global_dim"), ("TM-20",)),
            (45, "no acquire of the changed map", drop(r"fence\.proxy\.tensormap"), ("PX-12",)),
            (
                45,
                "acquire of the changed map by another warp",
                both(
                    drop(r"fence\.proxy\.tensormap"),
                    add(
                        "  fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;",
                        r"mul\.wide\.u32 %u, %group, 2048",
                        0,
                    ),
                ),
                ("PX-12",),
            ),
            (
                45,
                "acquire before the map is there",
                move(r"fence\.proxy\.tensormap", 0, r"tensormap\.cp_fenceproxy", 0),
                ("PX-12",),
            ),
            (45, "map changed while the load before uses it", pass_wait_on("%full_before"), ("PX-13",)),
            (
                45,
                "map copied by ordinary accesses",
                replace(
                    r"tensormap\.cp_fenceproxy.*",
                    "  shl.b32 %t, %lane, 2;\n  add.u32 %t, %made_at, %t;\n"
                    "  ld.shared.u32 %word, [%t];\n  mul.wide.u32 %u, %lane, 4;\n  add.s64 %from, %slot, %u;\n"
                    "  st.global.u32 [%from], %word;\n  bar.warp.sync 0xffffffff;",
                ),
                ("PX-12",),
            ),
        ),
    ),
)

_COPY = """  shr.u32 %t, %s0, 4;
  cvt.u64.u32 %desc_s, %t;
  or.b64 %desc_s, %desc_s, 0x0000400800800000;
  tcgen05.cp.cta_group::1.128x256b [%s_at], %desc_s;"""
CHAINED = (
    *table(
        "chained",
        (
            (1, "no wait for the loads", pass_wait_on("%full_at"), ("TM-34",)),
            (7, "bytes of S not expected", substitute("36864", "32768"), ("TM-34", "MB-07")),
            (
                14,
                "tiles loaded again before the second product is done",
                pass_wait_on("%second_at"),
                ("TC-13", "TC-05"),
            ),
            (17, "commit of the first product before it", move(COMMIT_1, 0, r"mov\.u32 %step, 0;", 0), ("TC-05",)),
            (
                17,
                "commit of the second product before its last MMA",
                move(COMMIT_2, 0, r"tcgen05\.mma\S+ \[%d_second\], \[%s_at\]", 0),
                ("TC-05",),
            ),
            (19, "no wait for the first product", pass_wait_on("%first_at"), ("TC-05",)),
            (22, "wait::st dropped", drop(r"tcgen05\.wait::st"), ("TL-07",)),
            (22, "wait::st by another warp", substitute(r"tcgen05\.wait::st", "@!%skip tcgen05.wait::st"), ("TL-07",)),
            (22, "no sync between P's stores and the product", drop(BAR, 2), ("TL-07", "TC-07")),
            (23, "no proxy fence before E is an operand", drop(FENCE), ("PX-01",)),
            (23, "E not waited for", drop(r"cp\.async\.wait_group"), ("RC-01",)),
            (24, "proxy fence before E is there", move(FENCE, 0, r"cp\.async\.wait_group", 0), ("PX-01",)),
            (
                24,
                "proxy fence by the issuing warp before the barrier",
                substitute(FENCE, "@!%skip fence.proxy.async"),
                ("PX-01",),
            ),
            (
                29,
                "descriptor of E: strides exchanged",
                substitute("0x0000400800400000", "0x0000404000080000"),
                ("DS-04",),
            ),
            (
                34,
                "first product read from the second's columns",
                replace(r"add\.u32 %sums, %tmem, %t;", "  add.u32 %sums, %d_second, %t;"),
                WRONG,
            ),
            (35, "P overlaps S", substitute(r"add\.u32 %s_at, %tmem, 96", "add.u32 %s_at, %tmem, 88"), WRONG),
            (
                35,
                "D overlaps P",
                substitute(r"add\.u32 %d_second, %tmem, 128", "add.u32 %d_second, %tmem, 80"),
                ("TM5-11",),
            ),
            (48, "S copied before it is there", both(drop(r"tcgen05\.cp"), add(_COPY, r"^wait_full:", 0)), ("TM-34",)),
            (48, "column of S off by four", substitute(r"\[%s_at\], %desc_s", "[%p_at], %desc_s"), WRONG),
            (49, "C said to be stored by columns", substitute("0x08100010", "0x08110010"), WRONG),
        ),
    ),
    Mutant(21, "wait::ld dropped", "chained", drop(r"tcgen05\.wait::ld"), ("TL-05",), weak=True),
    Mutant(50, "no tcgen05.fence", "chained", drop(r"tcgen05\.fence"), ("TC-08",), weak=True),
)

WAIT = r"griddepcontrol\.wait"
DEPENDENT = table(
    "dependent",
    (
        (42, "no wait in the thread that fetches", drop(WAIT, 0), ("GD-01",)),
        (42, "no wait in the threads that read", drop(WAIT, 1), ("GD-01",)),
        (42, "no wait at all", drop(WAIT), ("GD-01",)),
        (42, "wait after the copy was asked for", delay(WAIT, 0, r"cp\.async\.bulk", 0), ("GD-01",)),
        (42, "wait after the first load", delay(WAIT, 1, r"ld\.global\.u32 %scale", 0), ("GD-01",)),
        (42, "launch_dependents for the wait", replace(WAIT, "  griddepcontrol.launch_dependents;"), ("GD-01",)),
        (1, "no wait for the copy", pass_wait_on("%full_at"), ("TM-34",)),
        (11, "no sync after mbarrier.init", drop(BAR), ("MB-40", "MB-01")),
    ),
)

MUTANTS = (*TAKEOVER, *SPLIT, *GROUPS, *CHAINED, *DEPENDENT)
