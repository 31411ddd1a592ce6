# SPDX-License-Identifier: Apache-2.0
"""mbarrier objects by the rules of the PTX ISA: phases, parity, transaction bytes, and every misuse."""

from __future__ import annotations

import pytest

from tests.emu.ptx import LANE, words
from tmagen.emu import Deadlock, Fault

SHARED = ".shared .align 8 .b64 bar;\n.shared .align 8 .b64 other;\n"
INIT = (
    "mov.u32 %r90, bar;\nsetp.ne.u32 %p9, %r0, 0;\n@%p9 bra $ready;\n"
    "mbarrier.init.shared::cta.b64 [%r90], {n};\n$ready:\nbar.sync 0;\n"
)
WAIT = (
    "{{\n.reg .pred P;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P, [%r90], {parity};\n"
    "@P bra DONE;\nbra LAB_WAIT;\nDONE:\n}}\n"
)
ONE = "setp.ne.u32 %p9, %r0, 0;\n@%p9 bra $past{n};\n{text}$past{n}:\n"


def one(n: int, text: str) -> str:
    """`text` in thread 0 alone."""
    return ONE.format(n=n, text=text)


def run(text: str, count: int = 1, threads: int = 32, **options: object) -> list[int]:
    return words(LANE + INIT.format(n=count) + text, threads=threads, declarations=SHARED, **options)


def look(parity: int, into: str = "%r5") -> str:
    return f"mbarrier.test_wait.parity.shared.b64 %p1, [%r90], {parity};\nselp.u32 {into}, 1, 0, %p1;\n"


def test_loads_of_a_live_barrier_by_lanes_and_of_what_was_one() -> None:
    by_lane = "shl.b32 %r92, %r0, 2;\nadd.u32 %r91, %r90, %r92;\n"
    with pytest.raises(Fault, match="reads the live mbarrier") as caught:
        run(by_lane + "setp.gt.u32 %p1, %r0, 2;\n@%p1 bra $out;\nld.shared.u32 %r5, [%r91];\n$out:\n")
    assert caught.value.rule == "MB-02"
    # Its neighbour is plain memory, and so are its own bytes when it is invalid.
    after = one(1, "mbarrier.inval.shared::cta.b64 [%r90];\nld.shared.u32 %r5, [%r90];\n")
    assert run("ld.shared.u64 %rd20, [%r90+8];\n" + after + STORE)


STORE = "st.global.u32 [%rd41], %r5;\n"


def test_fresh_barrier_passes_parity_one_only() -> None:
    text = look(1) + look(0, "%r6") + "shl.b32 %r6, %r6, 1;\nor.b32 %r5, %r5, %r6;\n" + STORE
    assert run(text)[0] == 1


def test_arrivals_complete_a_phase_and_flip_the_parity() -> None:
    # 32 lanes arrive on a barrier of 32: one phase. Parity 0 has ended, parity 1 has not.
    text = (
        "mbarrier.arrive.shared.b64 _, [%r90];\n"
        + look(0)
        + look(1, "%r6")
        + "shl.b32 %r6, %r6, 1;\nor.b32 %r5, %r5, %r6;\n"
        + STORE
    )
    assert run(text, 32)[0] == 1
    assert run(text, 16)[0] == 2  # two phases


def test_arrive_with_count_and_pending_count() -> None:
    text = one(
        1,
        "mbarrier.arrive.shared.b64 %rd20, [%r90], 3;\nmbarrier.arrive.shared.b64 %rd21, [%r90], 2;\n"
        "mbarrier.pending_count.b64 %r5, %rd21;\nst.global.u32 [%rd41], %r5;\n"
        "mbarrier.test_wait.shared.b64 %p1, [%r90], %rd20;\nselp.u32 %r5, 1, 0, %p1;\nst.global.u32 [%rd41+4], %r5;\n"
        "mbarrier.arrive.shared.b64 %rd22, [%r90];\n"
        "mbarrier.test_wait.shared.b64 %p1, [%r90], %rd20;\nselp.u32 %r5, 1, 0, %p1;\nst.global.u32 [%rd41+8], %r5;\n",
    )
    assert run(text, 6)[:3] == [3, 0, 1]


def test_transaction_bytes_hold_the_phase() -> None:
    text = one(
        1,
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r90], 256;\n" + look(0) + STORE
        + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r90], 200;\n" + look(0)
        + "st.global.u32 [%rd41+4], %r5;\n"
        + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r90], 56;\n" + look(0)
        + "st.global.u32 [%rd41+8], %r5;\n",
    )  # fmt: skip
    assert run(text)[:3] == [0, 0, 1]


def test_bytes_may_complete_before_they_are_expected() -> None:
    text = one(
        1,
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r90], 128;\n" + look(0) + STORE
        + "mbarrier.arrive.expect_tx.shared.b64 _, [%r90], 128;\n" + look(0) + "st.global.u32 [%rd41+4], %r5;\n",
    )  # fmt: skip
    assert run(text)[:2] == [0, 1]


def test_expect_without_arrival_then_arrive() -> None:
    text = one(
        1,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r90], 64;\nmbarrier.arrive.shared.b64 _, [%r90];\n"
        + look(0) + STORE + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r90], 64;\n" + look(0)
        + "st.global.u32 [%rd41+4], %r5;\n",
    )  # fmt: skip
    assert run(text)[:2] == [0, 1]


def test_arrive_drop_lowers_later_phases() -> None:
    text = one(
        1,
        "mbarrier.arrive_drop.shared.b64 _, [%r90];\nmbarrier.arrive.shared.b64 _, [%r90];\n"  # phase 0: both of 2
        "mbarrier.arrive.shared.b64 _, [%r90];\n" + look(1) + STORE,  # phase 1 needs one
    )
    assert run(text, 2)[0] == 1


def test_a_wait_blocks_until_another_warp_arrives() -> None:
    body = (
        "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra $waiter;\n"
        "mov.u32 %r7, 42;\nst.shared.u32 [other], %r7;\nmbarrier.arrive.shared.b64 _, [%r90];\nbra $end;\n$waiter:\n"
        + WAIT.format(parity=0)
        + "ld.shared.u32 %r5, [other];\n" + STORE + "$end:\n"
    )  # fmt: skip
    assert run(body, 32, threads=64) == [42] * 32


def test_a_suspended_wait_sees_its_phase_although_the_barrier_moved_on() -> None:
    # Warp 0 waits for phase 0 while warp 1 completes two phases in one turn: parity 0 is incomplete again by then.
    body = (
        "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra $waiter;\nsetp.ne.u32 %p3, %r0, 32;\n@%p3 bra $end;\n"
        "mbarrier.arrive.shared.b64 _, [%r90];\nmbarrier.arrive.shared.b64 _, [%r90];\nbra $end;\n$waiter:\n"
        + WAIT.format(parity=0)
        + "mov.u32 %r5, 1;\n" + STORE + "$end:\n"
    )  # fmt: skip
    assert run(body, 1, threads=64) == [1] * 32


@pytest.mark.parametrize("form", ["setp", "not", "loop"])
def test_spin_loops_of_several_forms_block(form: str) -> None:
    loops = {
        "setp": "$w:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r90], 0;\nselp.u32 %r6, 1, 0, %p1;\n"
        "setp.eq.u32 %p2, %r6, 0;\n@%p2 bra $w;\n",
        "not": "$w:\nmov.u32 %r7, 1000;\nmbarrier.try_wait.parity.shared.b64 %p1, [%r90], 0, %r7;\n@!%p1 bra $w;\n",
        "loop": "bra $test;\n$body:\nnanosleep.u32 20;\n$test:\n"
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r90], 0;\n@!%p1 bra $body;\n",
    }
    body = (
        "setp.lt.u32 %p5, %r0, 32;\n@%p5 bra $waiter;\nmbarrier.arrive.shared.b64 _, [%r90];\nbra $end;\n$waiter:\n"
        + loops[form] + "mov.u32 %r5, 3;\n" + STORE + "$end:\n"
    )  # fmt: skip
    assert run(body, 32, threads=64) == [3] * 32
    # Nobody arrives: a poll would turn for ever, a blocked wait is a deadlock at once.
    with pytest.raises(Deadlock):
        run(loops[form], 32)


def test_a_look_with_another_way_out_does_not_block() -> None:
    body = (
        "mov.u32 %r6, 0;\n$w:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r90], 0;\n@%p1 bra $out;\n"
        "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 50;\n@%p2 bra $w;\n$out:\nmov.u32 %r5, %r6;\n" + STORE
    )
    assert run(body) == [50] * 32


def test_lanes_may_wait_for_different_phases() -> None:
    # Even lanes wait for parity 1 (open at once), odd lanes for parity 0, which lane 0 completes afterwards.
    body = (
        "and.b32 %r6, %r0, 1;\nxor.b32 %r6, %r6, 1;\n"
        "$w:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r90], %r6;\n@!%p1 bra $w;\n"
        "setp.ne.u32 %p3, %r0, 0;\n@%p3 bra $s;\nmbarrier.arrive.shared.b64 _, [%r90];\n$s:\nadd.u32 %r5, %r0, 1;\n"
        + STORE
    )
    assert run(body) == list(range(1, 33))


FAULTS = {
    "too many arrivals": ("mbarrier.arrive.shared.b64 _, [%r90], 2;\n", "too many arrivals"),
    "arrival while bytes are outstanding": (
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r90], 16;\nmbarrier.arrive.shared.b64 _, [%r90];\n",
        "tx bytes are outstanding",
    ),
    "never initialised": ("mov.u32 %r91, other;\nmbarrier.arrive.shared.b64 _, [%r91];\n", "no initialised mbarrier"),
    "misaligned": ("mbarrier.arrive.shared.b64 _, [%r90+4];\n", "not a multiple of 8"),
    "initialised twice": ("mbarrier.init.shared.b64 [%r90], 1;\n", "was not invalidated"),
    "count 0": ("mov.u32 %r91, other;\nmbarrier.init.shared.b64 [%r91], 0;\n", "count 0"),
    "count 2^20": ("mov.u32 %r91, other;\nmov.u32 %r92, 1048576;\nmbarrier.init.shared.b64 [%r91], %r92;\n", "1048576"),
    "tx overflow": ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r90], 1048576;\n", "out of range"),
    "tx at exit": ("mbarrier.arrive.expect_tx.shared.b64 _, [%r90], 16;\n", "tx bytes are outstanding"),
    "used after inval": (
        "mbarrier.inval.shared.b64 [%r90];\nmbarrier.arrive.shared.b64 _, [%r90];\n",
        "no initialised",
    ),
    "plain load of it": ("ld.shared.u32 %r91, [%r90+4];\n", "load of 4 bytes .* reads the live mbarrier"),
    "vector load of it": ("ld.shared.v2.u32 {%r91, %r92}, [%r90];\n", "load of 8 bytes .* reads the live mbarrier"),
    "plain store over it": ("mov.u32 %r91, 0;\nst.shared.u32 [%r90+4], %r91;\n", "overwrites the live mbarrier"),
    "init outside shared memory": ("mov.u32 %r91, 8;\nmbarrier.init.shared.b64 [%r91], 1;\n", "outside"),
    "drop more than expected": ("mbarrier.arrive_drop.shared.b64 _, [%r90], 2;\n", "arrive_drop of 2"),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_misuse_is_a_fault(name: str) -> None:
    text, message = FAULTS[name]
    with pytest.raises(Fault, match=message):
        run(one(1, text))


def test_init_again_after_inval() -> None:
    text = one(1, "mbarrier.inval.shared.b64 [%r90];\nmbarrier.init.shared.b64 [%r90], 2;\n" + look(1) + STORE)
    assert run(text)[0] == 1


def test_generic_addresses() -> None:
    text = one(1, "cvta.shared.u64 %rd20, bar;\nmbarrier.arrive.b64 _, [%rd20];\n" + look(0) + STORE)
    assert run(text)[0] == 1
    with pytest.raises(Fault, match="not in shared memory"):
        run(one(1, "mbarrier.arrive.b64 _, [%rd1];\n"))


def test_arrivals_that_keep_the_phase_open_and_drops_that_expect() -> None:
    test = "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r90], {};\nselp.u32 %r{}, 1, 0, %p2;\n"
    body = (
        "mov.u32 %r0, %tid.x;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra $end;\nmov.u32 %r90, bar;\n"
        "mbarrier.init.shared::cta.b64 [%r90], 4;\n"
        "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd5, [%r90], 3;\n"
        "mbarrier.pending_count.b64 %r1, %rd5;\n" + test.format(0, 2) + "{}\n"
        "mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r90], 48;\n" + test.format(0, 3)
        + "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r90], 48;\n" + test.format(0, 4)
        + "mbarrier.arrive.shared::cta.b64 %rd5, [%r90], 3;\n" + test.format(1, 5)
        + "st.global.v4.u32 [%rd1], {{%r1, %r2, %r3, %r4}};\nst.global.u32 [%rd1+16], %r5;\n$end:\n"
    )  # fmt: skip
    bar = ".shared .align 8 .b64 bar;\n"
    assert words(body.format(""), count=5, declarations=bar) == [4, 0, 0, 1, 1]
    ends = "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd5, [%r90], 1;"
    with pytest.raises(Fault, match="noComplete that completes"):
        words(body.format(ends), declarations=bar)
