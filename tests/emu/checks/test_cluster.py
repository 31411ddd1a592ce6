# SPDX-License-Identifier: Apache-2.0
"""Clusters under observation: barriers of the cluster, remote mbarriers, multicast commits, MMAs of a CTA pair."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.emu import test_mma_pair as pair
from tests.emu.checks.kernels import FILL, INIT, READ, SYNC, check, one, rules, warp
from tmagen.emu import EmulatorError

ARRIVE = "barrier.cluster.arrive.aligned;\n"
WAIT = "barrier.cluster.wait.aligned;\n"
RELAXED = "barrier.cluster.arrive.relaxed.aligned;\n"
PEER = (
    "mov.u32 %r60, %cluster_ctarank;\nxor.b32 %r61, %r60, 1;\nmapa.shared::cluster.u32 %r62, %r94, %r61;\n"
    "mapa.shared::cluster.u32 %r63, %r91, %r61;\n"
)
READ_PEER = "ld.shared::cluster.b32 %r5, [%r62];\n"
ARRIVE_PEER = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r63];\n"
ACQUIRE = (
    "{\n.reg .pred P;\nL:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 P, [%r91], 0;\n@!P bra L;\n}\n"
)
REMOTE_WAIT = (
    "{\n.reg .pred P;\n.reg .b64 A;\ncvt.u64.u32 A, %r63;\ncvta.shared.u64 A, A;\n"
    "mbarrier.test_wait.parity.b64 P, [A], 1;\n}\n"
)
BOTH = {"grid": 2, "cluster": 2, "threads": 32}


@pytest.mark.parametrize(
    ("between", "fired"),
    [
        (ARRIVE + WAIT, set()),
        (RELAXED + WAIT, {"RC-01"}),
        ("fence.acq_rel.cluster;\n" + RELAXED + WAIT, set()),
        ("fence.acq_rel.cta;\n" + RELAXED + WAIT, {"RC-01"}),
        (SYNC, {"RC-01", "CB-06"}),
    ],
    ids=["barrier", "relaxed barrier", "fence and relaxed barrier", "fence of the CTA", "barrier of the CTA"],
)
def test_shared_memory_of_a_peer(between: str, fired: set[str]) -> None:
    assert rules(PEER + FILL + between + READ_PEER + ARRIVE + WAIT, **BOTH) == fired


@pytest.mark.parametrize(
    ("made", "fired"),
    [
        ("fence.mbarrier_init.release.cluster;\n" + RELAXED + WAIT, set()),
        (ARRIVE + WAIT, set()),
        (SYNC, {"MB-40"}),
    ],
)
def test_mbarriers_of_a_peer(made: str, fired: set[str]) -> None:
    end = ARRIVE + WAIT
    body = PEER + INIT + "bar.warp.sync -1;\n" + made + FILL + "bar.warp.sync -1;\n"
    body += one(ARRIVE_PEER, 1) + ACQUIRE + READ_PEER + end
    # the rank that runs later may find no object at all, which ends the run
    assert rules(body, **BOTH) in (fired, {"MB-01"} if fired else fired)


def test_what_a_remote_arrive_publishes() -> None:
    start = PEER + INIT + ARRIVE + WAIT + FILL + "bar.warp.sync -1;\n"
    end = READ_PEER + ARRIVE + WAIT
    assert rules(start + one(ARRIVE_PEER, 1) + ACQUIRE + end, **BOTH) == set()
    assert rules(start + one(ARRIVE_PEER, 1) + one(ACQUIRE, 2) + end, **BOTH) == {"RC-01"}
    assert rules(start + ACQUIRE.replace("[%r91], 0", "[%r91], 1") + one(ARRIVE_PEER, 1) + end, **BOTH) == {"RC-01"}


def test_the_scope_of_a_remote_arrive() -> None:
    start = PEER + INIT + ARRIVE + WAIT + FILL + "bar.warp.sync -1;\n"
    end = READ_PEER + ARRIVE + WAIT
    narrow = "mbarrier.arrive.shared::cluster.b64 _, [%r63];\n"
    assert rules(start + one(narrow, 1) + ACQUIRE + end, **BOTH) == {"MB-35"}
    (found,) = (f for f in check(start + one(narrow, 1) + ACQUIRE + end, **BOTH) if f.rule == "MB-35")
    assert "is of .cta scope" in (found.edge or "") and found.place.instruction.startswith("ld.shared::cluster")
    fenced = "fence.acq_rel.cluster;\n" + narrow
    assert rules(start + one(fenced, 1) + ACQUIRE + end, **BOTH) == set()
    relaxed = "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r63];\n"
    assert rules(start + one(relaxed, 1) + ACQUIRE + end, **BOTH) == {"RC-01"}
    assert rules(start + one("fence.acq_rel.cluster;\n" + relaxed, 1) + ACQUIRE + end, **BOTH) == set()


def test_a_remote_arrive_that_hands_back_a_buffer() -> None:
    """The peer reads rank 0's memory and says so; then rank 0 overwrites it. A narrow scope is a formal matter."""
    start = PEER + INIT + FILL + ARRIVE + WAIT + READ_PEER + "bar.warp.sync -1;\n"
    narrow = "mbarrier.arrive.shared::cluster.b64 _, [%r63];\n"
    body = start + one(narrow, 1) + ACQUIRE + FILL + ARRIVE + WAIT
    assert rules(body, **BOTH) == set() and rules(body, "W", **BOTH) == {"MB-34"}
    wide = start + one(ARRIVE_PEER, 1) + ACQUIRE + FILL + ARRIVE + WAIT
    assert rules(wide, **BOTH) == set() and rules(wide, "W", **BOTH) == set()


def pair_rules(text: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The rules that fire on a kernel of a CTA pair."""
    found: set[str] = set()
    run = pair.run

    def checked(*args, **options):
        try:
            result = run(*args, checks=True, **options)
            found.update(finding.rule for finding in result.findings if finding.level == "E")
        except EmulatorError as error:
            found.update(finding.rule for finding in error.findings if finding.level == "E")
            found.update({error.rule} if error.rule else ())
            raise
        return result

    monkeypatch.setattr(pair, "run", checked)
    with suppress(EmulatorError):
        pair.product("eager", text=text)
    return found


def dropped(text: str, *instructions: str) -> str:
    for instruction in instructions:
        assert instruction in text
        text = text.replace(instruction, "")
    return text


FULL = "$wf: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r92], %r31;\n@!%p3 bra $wf;\n"
EMPTY = "$we: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r93], %r32;\n@!%p3 bra $we;\n"
DONE = "$wd: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r96], 0;\n@!%p3 bra $wd;\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (pair.KERNEL, set()),
        (dropped(pair.KERNEL, FULL), {"TM-34"}),
        (dropped(pair.KERNEL, EMPTY), {"TC-13", "TM-35"}),
        (dropped(pair.KERNEL, DONE), {"TC-05", "TC-06"}),
        (dropped(pair.KERNEL, "tcgen05.wait::ld.sync.aligned;"), set()),
    ],
    ids=["as it is", "no wait for the loads", "no wait for the stage", "no wait for the accumulator", "no wait::ld"],
)
def test_a_kernel_of_a_cta_pair(text: str, expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = pair_rules(text, monkeypatch)
    assert found & expected if expected else not found, found


def test_warps_of_two_ctas_with_one_number_are_two_threads() -> None:
    """Warp 0 of either CTA writes the same place of rank 0."""
    place = PEER + "mov.u32 %r64, 0;\nmapa.shared::cluster.u32 %r65, %r90, %r64;\n"
    body = place + ARRIVE + WAIT + warp("st.shared::cluster.b32 [%r65], %r60;\n", 1) + ARRIVE + WAIT
    assert rules(body, **BOTH) == {"RC-01"}


def test_the_fence_after_init() -> None:
    body = INIT + "bar.warp.sync -1;\n{}" + RELAXED + WAIT
    assert rules(body.replace("{}", ""), "W", **BOTH) == {"MB-42"}
    assert rules(body.replace("{}", "fence.mbarrier_init.release.cluster;\n"), "W", **BOTH) == set()
    by_another = one("fence.mbarrier_init.release.cluster;\n", 4, thread=1) + "bar.warp.sync -1;\n"
    assert rules(body.replace("{}", by_another), "W", **BOTH) == {"MB-44"}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (ARRIVE + ARRIVE, "CB-01"),
        (WAIT, "CB-01"),
        ("mapa.shared::cluster.u32 %r62, %r94, 2;\nld.shared::cluster.b32 %r5, [%r62];\n", "CB-07"),
        (PEER + INIT + ARRIVE + WAIT + REMOTE_WAIT + ARRIVE + WAIT, "MB-12"),
        (PEER + "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r62], 16;\n" + ARRIVE + WAIT, "TM-07"),
    ],
)
def test_faults_name_their_rule(body: str, rule: str) -> None:
    assert rules(body, **BOTH) == {rule}


def test_a_peer_that_has_exited() -> None:
    """Rank 1 reads rank 0's memory for a while after that has ended."""
    first = "setp.eq.u32 %p6, %r60, 0;\n@%p6 exit;\n"
    assert "CB-06" in rules(PEER + FILL + first + "nanosleep.u32 100;\n" + SYNC + READ_PEER, **BOTH)


FRESH = PEER + FILL
STARTED = ARRIVE + WAIT
LEFT = ARRIVE + WAIT


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (FRESH + STARTED + READ_PEER + LEFT, set()),
        (FRESH + STARTED + READ_PEER + RELAXED + WAIT, set()),
        (FRESH + STARTED + READ_PEER, {"CB-06"}),
        (FRESH + RELAXED + WAIT + "st.shared::cluster.b32 [%r62+1024], %r0;\n" + LEFT, set()),
        (FRESH + "st.shared::cluster.b32 [%r62+1024], %r0;\n" + LEFT, {"CB-06"}),
    ],
    ids=["both", "a relaxed end", "no end", "a relaxed start", "no start"],
)
def test_a_peer_runs_while_its_memory_is_used(body: str, expected: set[str]) -> None:
    assert rules(body, **BOTH) == expected


def test_a_peer_overwrites_what_was_read_before_a_relaxed_barrier() -> None:
    """The barrier orders no memory; that the load is over by then is what compilers go by."""
    write = "st.shared::cluster.b32 [%r62], %r0;\n" + LEFT
    for how, level, expected in (("", "R", set()), (".relaxed", "E", set()), (".relaxed", "R", {"RC-01"})):
        met = f"barrier.cluster.arrive{how}.aligned;\n" + WAIT
        assert rules(PEER + ARRIVE + WAIT + READ + met + write, level, **BOTH) == expected
    assert rules(PEER + ARRIVE + WAIT + RELAXED + WAIT + READ + write, **BOTH) == {"RC-01"}
    # what was written before it is another matter
    assert "RC-01" in rules(PEER + ARRIVE + WAIT + FILL + RELAXED + WAIT + write, **BOTH)


def test_a_remote_arrive_that_nobody_waits_for() -> None:
    start = PEER + INIT + ARRIVE + WAIT
    assert rules(start + one(ARRIVE_PEER, 1) + ACQUIRE, **BOTH) == set()
    assert rules(start + one(ARRIVE_PEER, 1) + LEFT, **BOTH) == set()
    # the peer still runs here, and nothing says that it does
    (found,) = (f for f in check(start + one(ARRIVE_PEER, 1) + SYNC, **BOTH) if f.level == "E")
    assert found.rule == "CB-06"
    assert found.instruction == ARRIVE_PEER.strip(";\n") and found.count == 2
    assert "nothing orders the end of that CTA after it" in found.message


RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r64], %r0, [%r63];\n"
BULK = (
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
    "[%r64], [%r66], 16, [%r63];\n"
)
BYTES = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r91], {};\n"
SUM = "mapa.shared::cluster.u32 %r64, %r90, %r61;\nadd.u32 %r66, %r90, 1024;\n"
LOOK = "ld.shared.b32 %r5, [%r90];\n"
CLEARED = "st.shared.v4.b32 [%r90], {%r60, %r60, %r60, %r60};\nst.shared.v4.b32 [%r66], {%r60, %r60, %r60, %r60};\n"
FENCED = "fence.proxy.async;\n"
OPEN = {"RC-01", "TM-34", "MB-09"}


@pytest.mark.parametrize(
    ("body", "fired"),
    [
        # all lanes add to one word, which is what atomics are for; and what was there before is ordered by the barrier
        (one(CLEARED + BYTES.format(128), 2) + ARRIVE + WAIT + RED + ACQUIRE + LOOK, set()),
        (one(CLEARED + BYTES.format(128), 2) + RELAXED + WAIT + RED + ACQUIRE + LOOK, {"RC-01"}),
        (one(CLEARED + BYTES.format(128), 2) + ARRIVE + WAIT + RED + LOOK + ACQUIRE, {"RC-01", "TM-34"}),
        # a bulk reduction is of the asynchronous proxy
        (one(CLEARED + BYTES.format(32) + FENCED, 2) + ARRIVE + WAIT + one(BULK + BULK, 3) + ACQUIRE + LOOK, set()),
        (one(CLEARED + BYTES.format(16), 2) + ARRIVE + WAIT + one(BULK, 3) + ACQUIRE + LOOK, {"PX-01", "PX-02"}),
        (one(CLEARED + BYTES.format(16) + FENCED, 2) + ARRIVE + WAIT + one(BULK, 3) + LOOK, OPEN),
        # its source is read until it is complete
        (
            one(CLEARED + BYTES.format(16) + FENCED, 2) + ARRIVE + WAIT
            + one(BULK + "st.shared.b32 [%r66], %r0;\n", 3) + ACQUIRE + LOOK,
            {"TM-34"},
        ),
    ],
)  # fmt: skip
def test_reductions_into_a_peer(body: str, fired: set[str]) -> None:
    init = "fence.mbarrier_init.release.cluster;\n" + ARRIVE + WAIT
    assert rules(INIT + PEER + SUM + init + body + ARRIVE + WAIT, **BOTH) == fired


COPY = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r64], [%r66], 16, [%r63];\n"


@pytest.mark.parametrize("copy", [COPY, BULK])
def test_the_source_of_a_copy_to_a_peer_outlives_it(copy: str) -> None:
    """Each CTA copies to the other, and waits for what it gets: that says nothing of what it sends."""
    start = INIT + PEER + SUM + "fence.mbarrier_init.release.cluster;\n" + ARRIVE + WAIT
    start += one(CLEARED + BYTES.format(16) + FENCED, 2) + ARRIVE + WAIT + one(copy, 3)
    assert rules(start + ACQUIRE + ARRIVE + WAIT, **BOTH) == set()
    assert rules(start + ACQUIRE + RELAXED + WAIT, **BOTH) == set()
    (found,) = (f for f in check(start + ACQUIRE, **BOTH) if f.level == "E")
    assert found.rule == "CB-06" and found.instruction == copy.strip(";\n") and found.count == 2
    assert "reads shared memory of its own CTA" in found.message
    # A barrier of the cluster before the receiver's wait orders the issue of the copy alone.
    assert rules(start + ARRIVE + WAIT + ACQUIRE, **BOTH) == {"CB-06"}


def test_the_source_of_a_copy_whose_receiver_answers() -> None:
    """An arrive on the sender's second mbarrier, by who has waited for the copy, and a wait for that."""
    start = INIT + PEER + SUM + "mapa.shared::cluster.u32 %r67, %r92, %r61;\n"
    start += "fence.mbarrier_init.release.cluster;\n" + ARRIVE + WAIT
    start += one(CLEARED + BYTES.format(16) + FENCED, 2) + ARRIVE + WAIT + one(COPY, 3) + ACQUIRE
    answer = one("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r67];\n", 4)
    assert rules(start + answer + ACQUIRE.replace("%r91", "%r92").replace("L", "L2"), **BOTH) == set()


def test_an_arrive_and_no_wait() -> None:
    assert rules(ARRIVE + WAIT, **BOTH) == set()
    assert rules(ARRIVE, **BOTH) == {"CB-01"}
    assert rules(ARRIVE + one(WAIT.replace(".aligned", ""), 1), **BOTH) == {"CB-01"}


def test_allocations_of_a_pair_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    free = next(line for line in pair.KERNEL.splitlines() if "tcgen05.dealloc" in line)
    assert "cta_group::2" in free
    skipped = f"setp.eq.u32 %p8, %r80, 1;\n@%p8 bra $kept;\n{free}\n$kept:"
    assert "TA-11" in pair_rules(pair.KERNEL.replace(free, skipped), monkeypatch)
