# SPDX-License-Identifier: Apache-2.0
"""The grid before a dependent launch, and clusters that have not been launched."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import COMMIT, FENCE, FILL, INIT, LOAD, STORE, SYNC, check, one, rules, wait
from tmagen.emu import Fault, Predecessor

# --- the grid before --------------------------------------------------------------------------------------------------

GRID_WAIT = "griddepcontrol.wait;\n"
READ = "ld.global.b32 %r5, [%rd2];\n"
WRITE = one("st.global.b32 [%rd1], %r0;\n", 5)
ATOMIC = one("red.global.add.u32 [%rd1], 1;\n", 6)


def anything(out: int, source: int) -> Predecessor:
    return Predecessor()


def writes_input(out: int, source: int) -> Predecessor:
    return Predecessor(writes=((source, 8192),), reads=())


def reads_output(out: int, source: int) -> Predecessor:
    return Predecessor(writes=(), reads=((out, 8192),))


@pytest.mark.parametrize("access", [READ, WRITE, ATOMIC])
def test_global_memory_before_the_wait(access: str) -> None:
    assert rules(GRID_WAIT + access, predecessor=anything) == set()
    assert rules(access + GRID_WAIT, predecessor=anything) == {"GD-01"}
    assert rules(access, predecessor=anything) == {"GD-01"}
    assert rules(access) == rules(access + GRID_WAIT) == set()


@pytest.mark.parametrize(
    ("predecessor", "access", "fired"),
    [
        (writes_input, READ, {"GD-01"}),
        (writes_input, WRITE, set()),
        (reads_output, READ, set()),
        (reads_output, WRITE, {"GD-01"}),
    ],
)
def test_what_the_grid_before_has_to_do_with(predecessor: object, access: str, fired: set[str]) -> None:
    assert rules(access + GRID_WAIT, predecessor=predecessor) == fired


def test_copies_count_at_their_issue() -> None:
    load, end = one(LOAD, 1), wait()
    assert rules(INIT + SYNC + GRID_WAIT + load + end, predecessor=anything) == set()
    assert rules(INIT + SYNC + load + GRID_WAIT + end, predecessor=anything) == {"GD-01"}
    store = one(STORE + COMMIT + "cp.async.bulk.wait_group 0;\n", 2)
    assert rules(FILL + FENCE + SYNC + GRID_WAIT + store, predecessor=anything) == set()
    assert rules(FILL + FENCE + SYNC + store + GRID_WAIT, predecessor=anything) == {"GD-01"}


def test_the_wait_of_another_thread() -> None:
    waits = one(GRID_WAIT, 1)
    assert rules(waits + SYNC + READ, predecessor=anything) == set()
    (found,) = (f for f in check(waits + READ, predecessor=anything) if f.level == "E")
    assert found.rule == "GD-01" and found.instruction == READ.strip(";\n")
    assert "reads what the grid before this one may still write" in found.message
    assert any(line.startswith("GD-04") for line in found.detail)


def test_barriers_and_shared_memory_come_before_the_wait() -> None:
    assert rules(INIT + FILL + FENCE + SYNC + GRID_WAIT + one(LOAD, 1) + wait(), predecessor=anything) == set()


def test_a_grid_that_never_waits() -> None:
    assert rules("griddepcontrol.launch_dependents;\n", "R", predecessor=anything) == {"GD-05"}
    assert rules(GRID_WAIT, "R", predecessor=anything) == set()
    assert rules("griddepcontrol.launch_dependents;\n", "R") == set()


# --- other clusters ---------------------------------------------------------------------------------------------------

ASK = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r91], 16;\n"
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r90], [%r91];\n"
)
RESPONSE = "{{\n.reg .b128 Q;\nld.shared.b128 Q, [%r90];\n{}}}\n"
IS_GIVEN = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p5, Q;\n"
FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r15, Q;\n"


def test_a_response_and_its_barrier() -> None:
    look = RESPONSE.format(IS_GIVEN)
    assert rules(INIT + SYNC + one(ASK, 1) + wait() + look) == set()
    assert rules(INIT + SYNC + one(ASK, 1) + SYNC + look + wait()) == {"CL-02"}
    (found,) = (f for f in check(INIT + SYNC + one(ASK, 1) + SYNC + look + wait()) if f.level == "E")
    assert found.instruction == "ld.shared.b128 Q, [%r90]" and "on which the response arrives" in (found.edge or "")


@pytest.mark.parametrize("query", [IS_GIVEN, FIRST])
@pytest.mark.parametrize("words", ["0, 0", "1, 0", "-1, -1"])
def test_what_is_no_response(query: str, words: str) -> None:
    """Other bytes of shared memory, which look like a cluster that was given or was not."""
    first, second = words.split(", ")
    other = f"mov.u64 %rd8, {first};\nmov.u64 %rd9, {second};\nst.shared.v2.b64 [%r90+32], {{%rd8, %rd9}};\n"
    look = RESPONSE.format(query)
    start = INIT + one(other, 3) + SYNC + one(ASK, 1) + wait()
    assert rules(start + look, grid=16) == set()
    elsewhere = look.replace("[%r90]", "[%r90+32]")
    with pytest.raises(Fault, match="no response of a try_cancel") as caught:
        check(start + elsewhere, grid=16)
    assert caught.value.rule == "CL-02"
    assert rules(INIT + one(other, 3) + SYNC + elsewhere) == {"CL-02"}


def test_a_warp_that_asks_as_a_whole() -> None:
    many = INIT.replace("], 1;", "], 32;", 1) + SYNC + ASK + wait()
    assert "CL-02" in rules(many, threads=32, grid=64)


def test_coordinates_of_a_request_that_failed() -> None:
    start = INIT + SYNC + one(ASK, 1) + wait()
    assert rules(start + RESPONSE.format(FIRST)) == {"CL-03"}
    ignored = start + RESPONSE.format(FIRST + IS_GIVEN)
    assert rules(ignored) == set()
    assert rules(ignored, "R") == {"CL-03"}
    guarded = start + RESPONSE.format(IS_GIVEN + "@%p5 " + FIRST)
    assert rules(guarded, "R") == set()


def test_a_request_after_one_that_failed() -> None:
    look = RESPONSE.format(IS_GIVEN)
    again = one(ASK, 2)
    start = INIT + SYNC + one(ASK, 1) + wait() + look + FENCE + SYNC
    assert rules(start + again + wait(1, name="L2")) == {"CL-04"}
    # the failure is seen by a warp that the one which asks again is ordered after
    other = INIT + SYNC + one(ASK, 1) + wait()
    seen = "shr.u32 %r80, %r0, 5;\nsetp.eq.u32 %p7, %r80, 0;\n@%p7 bra $skip;\n" + look + "$skip:\n"
    assert rules(other + seen + FENCE + SYNC + again + wait(1, name="L2")) == {"CL-04"}
    assert rules(other + seen + FENCE + SYNC) == set()


def test_a_response_that_is_overwritten_by_the_next() -> None:
    """Nine CTAs: three run, and each takes over two. Thread 0 reads the response and asks again."""
    read = "ld.shared.b32 %r5, [%r90];\n"
    start = INIT + SYNC + one(ASK, 1) + wait()
    end = SYNC + one(ASK, 2) + wait(1, name="L2")
    use = "add.u32 %r6, %r5, 1;\n"
    assert rules(start + read + end + use, grid=9) == {"PX-15"}
    assert rules(start + read + FENCE + end + use, grid=9) == set()
    assert rules(start + read + use + end, grid=9) == set()
    assert rules(start + read + use + end, "R", grid=9) == {"PX-15"}


def test_bad_addresses_of_a_response() -> None:
    assert rules(INIT + SYNC + one("add.u32 %r90, %r90, 8;\n" + ASK, 1) + wait()) == {"CL-01"}
