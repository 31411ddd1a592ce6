# SPDX-License-Identifier: Apache-2.0
"""mbarriers and named barriers under observation."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import FILL, INIT, LOAD, SYNC, one, rules, wait, warp

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
        ("bar.sync 16;\n", "NB-01"),
        ("bar.sync 1, 33;\n", "NB-01"),
        (warp("bar.arrive 1, 64;\n", 1) + warp("bar.sync 1, 32;\n", 2, index=1), "NB-03"),
    ],
)
def test_faults_name_their_rule(body: str, rule: str) -> None:
    assert rule in rules(body)


def test_a_phase_that_nobody_waits_for() -> None:
    again = ARRIVE + ARRIVE
    assert rules(INIT + one(again, 1), "W") == {"MB-22"}
    assert rules(INIT + one(ARRIVE + wait() + ARRIVE, 1), "W") == set()


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
