# SPDX-License-Identifier: Apache-2.0
"""What is left when a CTA exits: copies to its shared memory that nobody has waited for."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import INIT, LOAD, SYNC, check, one, rules, wait

ARRIVE = "mbarrier.arrive.shared.b64 _, [%r91];\n"
AGAIN = LOAD + wait() + LOAD


@pytest.mark.parametrize("completion", ["eager", "lazy"])
@pytest.mark.parametrize(
    ("body", "fired"),
    [
        (one(LOAD, 1), {"MB-09"}),
        (one(LOAD + wait(), 1), set()),
        (one(LOAD, 1) + one(wait(), 2, thread=32), set()),
        (one(AGAIN, 1), {"MB-09"}),
        (one(AGAIN + wait(1, name="M"), 1), set()),
        (one(wait(1) + LOAD, 1), {"MB-09"}),
        (one(LOAD + wait() + ARRIVE, 1), set()),
    ],
    ids=["no wait", "wait", "of another thread", "one more", "both", "vacuous wait", "unobserved arrival"],
)
def test_a_copy_has_to_be_waited_for(body: str, fired: set[str], completion: str) -> None:
    assert rules(INIT + SYNC + body, completion=completion) == fired


def test_the_copy_is_named() -> None:
    (found,) = check(INIT + SYNC + one(AGAIN, 1))
    assert found.place.instruction.startswith("cp.async.bulk.shared::cluster.global")
    assert "completes on phase 1 of the mbarrier at shared 0x400" in found.message
    assert "the last phase that one has waited for is 0" in found.message
    lines = [line for line in check(INIT + SYNC + one(LOAD, 1))[0].lines() if "none has waited for any phase" in line]
    assert lines


def test_a_waiter_two_phases_behind() -> None:
    """All know of phase 0; thread 1 reads after the copy of phase 2."""
    more = LOAD + wait(1, name="M") + LOAD + wait(0, name="N")
    body = INIT + SYNC + one(LOAD, 1) + wait() + SYNC + one(more, 2) + one("ld.shared.b32 %r5, [%r90];\n", 3, thread=1)
    (found,) = (finding for finding in check(body) if finding.rule == "TM-34")
    assert found.hints[0].startswith("MB-20: the mbarrier at shared 0x400 has gone on by 2 phases since")
