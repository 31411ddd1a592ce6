# SPDX-License-Identifier: Apache-2.0
"""mbarriers and named barriers under observation."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import FILL, INIT, LOAD, SYNC, check, one, rules, wait, warp
from tmagen.emu import Deadlock

ARRIVE = "mbarrier.arrive.shared.b64 _, [%r91];\n"
INVAL = "mbarrier.inval.shared.b64 [%r91];\n"


def test_init_is_ordered_before_use() -> None:
    assert rules(INIT + SYNC + one(ARRIVE, 1, thread=32) + wait()) == set()
    assert rules(INIT + one(ARRIVE, 1, thread=32) + SYNC + wait()) == {"MB-40"}
    assert rules(INIT + one(LOAD, 1) + SYNC + wait()) == set(), "the thread that initialised may use it"


def test_inval_comes_after_the_last_use() -> None:
    start = INIT + SYNC + one(ARRIVE, 1, thread=32) + wait()
    assert rules(start + SYNC + one(INVAL, 2)) == set()
    assert rules(start + one(INVAL, 2)) == {"MB-45"}
    # thread 0 knows of its own load no more than others do
    assert rules(INIT + SYNC + one(LOAD, 1) + wait() + SYNC + one(INVAL, 2)) == set()
    assert rules(INIT + SYNC + one(LOAD + INVAL, 1)) == {"MB-45", "MB-09"}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (one(ARRIVE, 1), "MB-01"),
        (INIT + one("mbarrier.init.shared::cta.b64 [%r91], 1;\n", 1), "MB-02"),
        (INIT + one("st.shared.b32 [%r91], 1;\n", 1), "MB-02"),
        (one("mbarrier.init.shared::cta.b64 [%r91], 0;\n", 1), "MB-03"),
        (INIT + one("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r91], 64;\n" + ARRIVE + ARRIVE, 1), "MB-04"),
        (INIT + one("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r91], 1048576;\n", 1), "MB-05"),
        (INIT + one("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r91], 64;\n", 1), "MB-09"),
        (one("mbarrier.init.shared::cta.b64 [%r91+4], 1;\n", 1), "MB-11"),
        (INIT + one("mbarrier.arrive.noComplete.shared.b64 %rd20, [%r91], 1;\n", 1), "MB-10"),
        ("bar.sync 16;\n", "NB-01"),
        ("bar.sync 1, 33;\n", "NB-01"),
        (warp("bar.arrive 1, 64;\n", 1) + warp("bar.sync 1, 32;\n", 2, index=1), "NB-03"),
        (warp("bar.sync 1, 32;\n", 1) + warp("bar.sync 1, 32;\n", 2, index=1), "NB-07"),
    ],
)
def test_faults_name_their_rule(body: str, rule: str) -> None:
    assert rule in rules(body)


@pytest.mark.parametrize(
    "between",
    [SYNC, warp("bar.arrive 2, 64;\n", 3) + warp("bar.sync 2, 64;\n", 4, index=1)],
    ids=["barrier of the CTA", "hand-over"],
)
def test_a_named_barrier_goes_from_one_group_to_another(between: str) -> None:
    first, second = warp("bar.sync 1, 32;\n", 1), warp("bar.sync 1, 32;\n", 2, index=1)
    assert rules(first + between + second) == set()


def test_who_arrives_and_goes_on_has_to_know_that_the_phase_is_over() -> None:
    """Warp 0 arrives again; only with warp 1's answer it knows that warp 1 was there."""
    arrive, sync = "bar.arrive 1, 64;\n", "bar.sync 1, 64;\n"
    alone = warp(arrive + arrive, 1) + warp(sync + sync, 2, index=1)
    answered = warp(arrive + "bar.sync 2, 64;\n" + arrive, 1) + warp(sync + "bar.arrive 2, 64;\n" + sync, 2, index=1)
    assert "NB-03" in rules(alone) or "NB-07" in rules(alone)
    assert rules(answered) == set()


def test_a_phase_that_nobody_waits_for() -> None:
    again = ARRIVE + ARRIVE
    assert rules(INIT + one(again, 1), "W") == {"MB-22"}
    assert rules(INIT + one(ARRIVE + wait() + ARRIVE, 1), "W") == set()


def test_arrivals_that_leave_the_phase_open() -> None:
    two = "mbarrier.init.shared::cta.b64 [%r91], 2;\n" + ARRIVE.replace("arrive", "arrive.noComplete").replace(
        "];", "], 1;"
    )
    assert rules(one(two + ARRIVE + wait(), 1)) == set()
    assert rules(one(two + two.split("\n")[1] + "\n", 1)) == {"MB-10"}


def test_pending_count_is_of_a_state() -> None:
    state = "mbarrier.arrive.shared.b64 %rd20, [%r91];\n{}mbarrier.pending_count.b64 %r5, %rd20;\n"
    assert rules(INIT + one(state.format(""), 1), "W") == set()
    assert rules(INIT + one(state.format("mov.u64 %rd20, 7;\n"), 1), "W") == {"MB-14"}


def test_parity_is_one_bit() -> None:
    assert rules(INIT + SYNC + one(ARRIVE + wait(2), 1), "W") == {"MB-23"}


def test_a_vacuous_wait_orders_nothing() -> None:
    """Parity 1 of a fresh barrier passes at once; it is no order."""
    body = INIT + SYNC + one("st.shared.b32 [%r93], 7;\n" + ARRIVE, 1) + "{}ld.shared.b32 %r5, [%r93];\n"
    assert rules(body.replace("{}", wait(0))) == set()
    late = INIT + SYNC + one(wait(1), 2, thread=32) + FILL + "xor.b32 %r95, %r94, 512;\nld.shared.b32 %r5, [%r95];\n"
    assert rules(late) == {"RC-01"}


def test_strict_rules_are_silent_otherwise() -> None:
    assert rules(INIT + one(ARRIVE + ARRIVE, 1), "W", strict=False) == set()


COUNT = "setp.eq.u32 %p5, %r0, 0;\nbar.red.popc.u32 %r70, 0, %p5;\n"


def test_reductions_and_plain_barriers_do_not_mix() -> None:
    assert rules(COUNT + SYNC + COUNT) == set()
    mixed = warp(COUNT + "bra $met;\n", 1) + SYNC + "$met:\n"
    assert rules(mixed) == {"NB-06"}
    (found,) = (f for f in check(mixed) if f.level == "E")
    assert found.instruction == SYNC.strip(";\n") and "barrier 0 is used with .sync or .arrive" in found.message


def test_threads_that_have_exited_and_a_count() -> None:
    leaves = warp("exit;\n", 1, index=1)
    assert rules(leaves + SYNC) == set()
    assert rules(leaves + "bar.sync 1, 32;\n") == set()
    with pytest.raises(Deadlock) as caught:
        check(leaves + "bar.sync 1, 64;\n")
    assert caught.value.rule == "NB-09"
    assert "32 of 64 threads have arrived, and 1 of the CTA's 2 warps have exited" in caught.value.report()
    # others could still come: it is not this barrier's fault
    with pytest.raises(Deadlock) as caught:
        check(INIT + SYNC + warp(wait() + "bra $end;\n", 2, index=1) + "bar.sync 1, 64;\n$end:\n")
    assert caught.value.rule is None
