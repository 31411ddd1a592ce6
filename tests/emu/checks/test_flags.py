# SPDX-License-Identifier: Apache-2.0
"""What threads tell each other by strong accesses and atomics: release and acquire patterns, and their scopes."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import COMMIT, FENCE, FILL, INIT, STORE, SYNC, check, one, rules, wait

SELF = "mov.u32 %r50, %ctaid.x;\nsetp.ne.u32 %p5, %r50, 0;\n"
MINE = "mul.wide.u32 %rd30, %r0, 4;\nadd.s64 %rd31, %rd1, %rd30;\n"
WRITE = MINE + "st.global.b32 [%rd31], %r0;\n"
READ = MINE + "ld.global.b32 %r5, [%rd31];\nadd.u32 %r6, %r5, 1;\n"
FLAG = "[%rd1+4096]"


def handed_over(
    tell: str, ask: str, *, before: str = SYNC, after: str = SYNC, write: str = WRITE, read: str = READ
) -> str:
    """CTA 0 writes and tells; the others ask and read."""
    return f"{SELF}@%p5 bra $other;\n{write}{before}{one(tell, 1)}ret;\n$other:\n{one(ask, 2)}{after}{read}"


def asked(look: str, then: str = "") -> str:
    return f"$look:\n{look}\nsetp.eq.u32 %p4, %r40, 0;\n@%p4 bra $look;\n{then}"


TELL = "st.release.gpu.global.b32 [%rd1+4096], 1;\n"
ASK = asked("ld.acquire.gpu.global.b32 %r40, [%rd1+4096];")
GPU = "fence.acq_rel.gpu;\n"


@pytest.mark.parametrize(
    ("tell", "ask", "fired"),
    [
        (TELL, ASK, set()),
        (TELL.replace("release.gpu", "release.sys"), ASK.replace("acquire.gpu", "acquire.sys"), set()),
        (GPU + "st.relaxed.gpu.global.b32 [%rd1+4096], 1;\n", ASK, set()),
        ("membar.gl;\nst.volatile.global.b32 [%rd1+4096], 1;\n", ASK, set()),
        (TELL, asked("ld.relaxed.gpu.global.b32 %r40, [%rd1+4096];", GPU), set()),
        (TELL, asked("ld.volatile.global.b32 %r40, [%rd1+4096];", "membar.gl;\n"), set()),
        ("red.release.gpu.global.add.u32 [%rd1+4096], 1;\n", ASK, set()),
        (GPU + "red.global.add.u32 [%rd1+4096], 1;\n", ASK, set()),
        ("atom.add.release.gpu.global.u32 %r41, [%rd1+4096], 1;\n", ASK, set()),
        (TELL, asked("atom.global.acquire.gpu.or.b32 %r40, [%rd1+4096], 0;"), set()),
        ("st.relaxed.gpu.global.b32 [%rd1+4096], 1;\n", ASK, {"RC-02"}),
        ("red.relaxed.gpu.global.add.u32 [%rd1+4096], 1;\n", ASK, {"RC-02"}),
        (TELL, asked("ld.relaxed.gpu.global.b32 %r40, [%rd1+4096];"), {"RC-02"}),
        (TELL, GPU + asked("ld.relaxed.gpu.global.b32 %r40, [%rd1+4096];"), {"RC-02"}),
        (TELL.replace("gpu", "cta"), ASK, {"RC-02"}),
        (TELL, ASK.replace("gpu", "cluster"), {"RC-02"}),
        ("fence.acq_rel.cta;\nst.relaxed.gpu.global.b32 [%rd1+4096], 1;\n", ASK, {"RC-02"}),
        (TELL, asked("ld.relaxed.gpu.global.b32 %r40, [%rd1+4096];", "fence.acq_rel.cta;\n"), {"RC-02"}),
    ],
)  # fmt: skip
def test_between_ctas(tell: str, ask: str, fired: set[str]) -> None:
    assert rules(handed_over(tell, ask), grid=3) == fired


def test_both_sides_of_the_rendezvous() -> None:
    assert rules(handed_over(TELL, ASK, before=""), grid=2) == {"RC-02"}
    assert rules(handed_over(TELL, ASK, after=""), grid=2) == {"RC-02"}


def test_a_weak_look_races_with_the_flag() -> None:
    weak = one("ld.global.b32 %r40, [%rd1+4096];\n", 2)
    body = f"{SELF}@%p5 bra $other;\n{one(TELL, 1)}ret;\n$other:\n{weak}"
    assert rules(body, grid=2) == {"RC-02"}


def test_the_scope_is_named() -> None:
    found = check(handed_over(TELL.replace("gpu", "cta"), ASK), grid=2)
    data = [finding for finding in found if finding.place.instruction.startswith("ld.global")]
    assert "a release of .cta scope and an acquire of .gpu scope" in (data[0].edge or "")
    flag = [finding for finding in found if finding.place.instruction.startswith("ld.acquire")]
    assert "the scope of one of them, .cta" in (flag[0].edge or "")


LAST = "atom.global.inc.u32 %r40, [%rd1+4096], 3;\nsetp.ne.u32 %p4, %r40, 3;\n@%p4 bra $done;\n"


@pytest.mark.parametrize(
    ("before", "after", "fired"),
    [(GPU, GPU, set()), ("", GPU, {"RC-02"}), (GPU, "", {"RC-02"})],
    ids=["both fences", "no fence before", "no fence after"],
)
def test_the_last_to_arrive_reads_what_all_have_written(before: str, after: str, fired: set[str]) -> None:
    """Four CTAs of one thread, each with a word of its own; the last adds them up."""
    word = "mov.u32 %r50, %ctaid.x;\nmul.wide.u32 %rd30, %r50, 4;\nadd.s64 %rd31, %rd1, %rd30;\n"
    sums = "".join(f"ld.global.b32 %r{60 + i}, [%rd1+{4 * i}];\n" for i in range(4))
    body = word + "st.global.b32 [%rd31], %r50;\n" + before + LAST + after + sums + "$done:\n"
    assert rules(body, grid=4, threads=1) == fired


@pytest.mark.parametrize(
    ("before", "after", "fired"),
    [
        (GPU + SYNC, SYNC + GPU, set()),
        ("membar.gl;\n" + SYNC, SYNC + "membar.gl;\n", set()),
        (SYNC, SYNC + GPU, {"RC-02"}),
        (one(GPU, 6) + SYNC, SYNC + GPU, {"RC-02"}),
        (GPU + SYNC, SYNC, {"RC-02"}),
        (GPU, SYNC + GPU, {"RC-02"}),
        (SYNC + GPU, SYNC + GPU, set()),
    ],
    ids=["by all", "membar", "none before", "one before", "none after", "no barrier before", "barrier first"],
)
def test_all_threads_fence_and_one_counts(before: str, after: str, fired: set[str]) -> None:
    """Split-K as it is written: partial results, `__threadfence()` by all, a barrier, one atomic; the last adds up, and
    sets the counter back by a plain store. With the barrier first, the fence of the one that counts is enough.
    """
    count = (
        "setp.ne.u32 %p6, %r0, 0;\n@%p6 bra $counted;\natom.global.add.u32 %r40, [%rd1+4096], 1;\n"
        "st.shared.b32 [%r90], %r40;\n$counted:\n"
    )
    word = "mov.u32 %r50, %ctaid.x;\nmad.lo.u32 %r51, %r50, 512, 0;\nmul.wide.u32 %rd30, %r51, 1;\n"
    word += "add.s64 %rd32, %rd1, %rd30;\nmul.wide.u32 %rd33, %r0, 4;\nadd.s64 %rd31, %rd32, %rd33;\n"
    last = "ld.shared.b32 %r41, [%r90];\nsetp.ne.u32 %p4, %r41, 2;\n@%p4 bra $done;\n"
    add = "add.s64 %rd34, %rd1, %rd33;\nld.global.b32 %r42, [%rd34];\nld.global.b32 %r43, [%rd34+512];\n"
    reset = "@!%p6 st.global.b32 [%rd1+4096], 0;\n$done:\n"
    head, tail = after.split(SYNC)
    body = f"{word}st.global.b32 [%rd31], %r0;\n{before}{count}{head}{SYNC}{last}{tail}{add}{reset}"
    assert rules(body, grid=3) == fired


def test_lanes_that_part_and_meet_keep_one_record_of_a_fence() -> None:
    """What was known at a fence is not kept twice for each time that lanes part."""
    body = "".join(f"{one('st.shared.b32 [%r90], 1;', i)}bar.warp.sync -1;\n" for i in range(10, 37))
    assert rules(f"atom.global.add.u32 %r40, [%rd1+4096], 1;\n{GPU}{body}", threads=32) == set()


def test_order_is_handed_on_from_cta_to_cta() -> None:
    """CTA 1 waits for CTA 0, CTA 2 for CTA 1, and reads what CTA 0 wrote."""

    def body(second: str) -> str:
        return (
            f"{SELF}@%p5 bra $other;\n{WRITE}{SYNC}{one(TELL, 1)}ret;\n$other:\n"
            f"setp.ne.u32 %p5, %r50, 1;\n@%p5 bra $last;\n{one(ASK + second, 2)}ret;\n"
            f"$last:\n{one(ASK.replace('look', 'see').replace('4096', '4160'), 3)}{SYNC}{READ}"
        )

    assert rules(body(TELL.replace("4096", "4160")), grid=3) == set()
    assert rules(body("st.relaxed.gpu.global.b32 [%rd1+4160], 1;\n"), grid=3) == {"RC-02"}


LOAD = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r91], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd1], 256, [%r91];\n"
)
PROXY = "fence.proxy.async.global;\n"


@pytest.mark.parametrize(
    ("before", "tell", "ask", "fired"),
    [
        ("", "", "", {"PX-09"}),
        (PROXY, "", "", set()),
        (one(PROXY, 6), "", "", {"PX-09"}),
        ("", PROXY, "", set()),
        ("", "", PROXY, set()),
    ],
    ids=["none", "by every writer", "by one of them", "by who tells", "by who asks"],
)
def test_bulk_loads_of_what_another_cta_wrote(before: str, tell: str, ask: str, fired: set[str]) -> None:
    load = one(LOAD, 5) + wait()
    body = INIT + SYNC + handed_over(tell + TELL, ASK + ask, write=WRITE + before, read=load)
    assert rules(body, grid=2) == fired


def test_a_bulk_store_is_told_after_its_full_wait() -> None:
    def body(which: str) -> str:
        stored = FILL + FENCE + SYNC + one(STORE + COMMIT + f"cp.async.bulk.wait_group{which} 0;\n" + TELL, 4)
        return f"{SELF}@%p5 bra $other;\n{stored}ret;\n$other:\n{one(ASK, 2)}{SYNC}{READ}"

    assert rules(body(""), grid=2) == set()
    assert rules(body(".read"), grid=2) == {"RC-02"}


REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r90], 1024;\n"
DONE = COMMIT + "cp.async.bulk.wait_group 0;\n"


def test_reductions() -> None:
    ready = FILL + FENCE + SYNC
    assert rules(ready + one(REDUCE + REDUCE + DONE, 1), grid=2) == set()
    assert rules(ready + one(STORE + REDUCE + DONE, 1)) == {"BG-08"}
    assert rules(ready + one(STORE + DONE + REDUCE + DONE, 1)) == set()
    assert rules(ready + one(REDUCE + COMMIT, 1) + SYNC + FILL) == {"BG-05"}
    assert rules(FILL + SYNC + one(REDUCE + DONE, 1)) == {"PX-01"}


def test_an_overwrite_is_compared_with_every_reader() -> None:
    """Both warps read; the one that writes is ordered after its own reads alone."""
    read = "ld.global.b32 %r5, [%rd1];\nadd.u32 %r6, %r5, 1;\n"
    write = "st.global.b32 [%rd1], 7;\n"
    assert rules(read + SYNC + one(write, 1, thread=32)) == set()
    assert rules(one(read, 1) + one(read + write, 2, thread=32)) == {"RC-02"}


def test_flags_in_shared_memory() -> None:
    def body(tell: str, ask: str) -> str:
        return one("st.shared.b32 [%r90], 5;\n" + tell, 1) + one(ask + "ld.shared.b32 %r5, [%r90];\n", 2, thread=32)

    look = "ld.acquire.cta.shared.b32 %r40, [%r93];\n"
    assert rules(body("st.release.cta.shared.b32 [%r93], 1;\n", look)) == set()
    assert rules(body("st.relaxed.cta.shared.b32 [%r93], 1;\n", look)) == {"RC-01"}
