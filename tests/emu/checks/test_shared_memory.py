# SPDX-License-Identifier: Apache-2.0
"""Races and proxies in shared memory, on kernels of a few instructions: what fires, and what must not."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import (
    COMMIT,
    FENCE,
    FILL,
    INIT,
    LOAD,
    READ,
    STORE,
    SYNC,
    USE,
    check,
    one,
    rules,
    wait,
    warp,
)  # fmt: skip

OTHER = "xor.b32 %r95, %r94, 512;\nld.shared.b32 %r5, [%r95];\n"  # what a thread of the other warp wrote
HALF = warp("bar.sync 1, 64;\n", 1) + warp("bar.arrive 1, 64;\n", 2, index=1)
WAIT_READ = "cp.async.bulk.wait_group.read 0;\n"
WAIT_ALL = "cp.async.bulk.wait_group 0;\n"


@pytest.mark.parametrize(
    ("body", "fired"),
    [
        (FILL + SYNC + OTHER, set()),
        (FILL + OTHER, {"RC-01"}),
        (READ + SYNC + FILL, set()),
        (FILL + READ, set()),
        (FILL + "membar.cta;\n" + OTHER, {"RC-01"}),
        # the other direction: read first, written by the other warp without order
        (OTHER + FILL, {"RC-01"}),
        # who arrives and does not wait gets no order; who waits does
        (FILL + HALF + OTHER, {"RC-01"}),
        (FILL + HALF + warp(OTHER, 3), set()),
    ],
)
def test_ordinary_accesses(body: str, fired: set[str]) -> None:
    assert rules(body) == fired


@pytest.mark.parametrize(
    ("sync", "fired"), [("bar.warp.sync -1;\n", set()), ("", {"RC-01"})], ids=["warp barrier", "nothing"]
)
def test_lanes_of_one_warp(sync: str, fired: set[str]) -> None:
    """Lane 0 writes alone; then all lanes read it."""
    body = one("st.shared.b32 [%r90], %r0;\n", 1) + sync + "ld.shared.b32 %r5, [%r90];\n"
    assert rules(body, threads=32) == fired


def test_a_release_of_one_lane_does_not_cover_the_others() -> None:
    """All lanes write, one arrives for them, without a warp barrier before it."""
    arrive = one("mbarrier.arrive.shared.b64 _, [%r91];\n", 1)
    take = warp(wait(name="W") + OTHER, 2, index=1)
    split = one("st.shared.b32 [%r93], %r0;\n", 3)  # lane 0 acts alone from here on
    before = INIT + SYNC + split
    assert rules(before + warp(FILL + arrive, 4) + take) == {"RC-01"}
    assert rules(before + warp(FILL + "bar.warp.sync -1;\n" + arrive, 4) + take) == set()


def test_the_acquire_of_one_lane_is_not_that_of_the_others() -> None:
    start = INIT + SYNC + one(LOAD, 1)
    assert rules(start + one(wait(), 2) + READ, threads=32) == {"TM-34"}
    assert rules(start + one(wait(), 2) + "bar.warp.sync -1;\n" + READ, threads=32) == set()
    found = check(start + one(wait(), 2) + READ, threads=32)
    assert any("MB-24" in hint for finding in found for hint in finding.hints)


@pytest.mark.parametrize("completion", ["eager", "lazy", "random"])
def test_a_load_is_complete_for_whoever_waits(completion: str) -> None:
    start = INIT + SYNC + one(LOAD, 1)
    assert rules(start + wait() + READ + USE + SYNC, completion=completion) == set()
    assert rules(start + READ + USE + SYNC + wait(), completion=completion) == {"TM-34"}
    assert rules(start + SYNC + READ + wait(name="M"), completion=completion) == {"TM-34"}
    # one warp waits and hands it on
    handed = warp(wait(), 2) + SYNC + READ
    assert rules(start + handed, completion=completion) == set()


@pytest.mark.parametrize("completion", ["eager", "lazy", "adversarial"])
def test_a_wait_whose_address_each_lane_has_computed(completion: str) -> None:
    """The lanes wait for one phase, and the emulator finds that out at the wait alone."""
    own = "and.b32 %r81, %r0, 0;\nadd.u32 %r91, %r91, %r81;\n"
    start = INIT + SYNC + one(LOAD, 1) + own
    assert rules(start + wait() + READ + USE + SYNC, completion=completion) == set()
    # where the phase is complete for one warp already
    handed = warp("bar.arrive 1, 64;\n", 2) + warp("bar.sync 1, 64;\n", 3, index=1)
    assert rules(start + handed + wait() + READ) == set()


def test_two_loads_into_one_buffer() -> None:
    again = LOAD.replace("%r91", "%r92")
    assert rules(INIT + SYNC + one(LOAD + again, 1) + wait() + wait(barrier="%r92", name="M")) == {"TM-35"}
    assert rules(INIT + SYNC + one(LOAD + wait() + again, 1) + wait(barrier="%r92", name="M")) == set()


@pytest.mark.parametrize(
    ("body", "fired"),
    [
        (FILL + FENCE + SYNC + one(STORE + COMMIT + WAIT_READ, 1), set()),
        (FILL + SYNC + one(FENCE + STORE + COMMIT + WAIT_READ, 1), set()),
        (FILL + SYNC + one(STORE + COMMIT + WAIT_READ, 1), {"PX-01"}),
        (FENCE + FILL + SYNC + one(STORE + COMMIT + WAIT_READ, 1), {"PX-01"}),
        (FILL + SYNC + one(FENCE, 1, thread=33) + one(STORE + COMMIT + WAIT_READ, 2), {"PX-01"}),
        (FILL + "fence.proxy.async.global;\n" + SYNC + one(STORE + COMMIT + WAIT_READ, 1), {"PX-01"}),
        (FILL + "fence.proxy.async;\n" + SYNC + one(STORE + COMMIT + WAIT_READ, 1), set()),
        # the other warp's part is written after the store was issued, and the own warp's is the other lanes'
        (FILL + FENCE + one(STORE + COMMIT + WAIT_READ, 1), {"BG-05", "RC-01"}),
        (FILL + FENCE + "bar.warp.sync -1;\n" + one(STORE + COMMIT + WAIT_READ, 1), {"BG-05"}),
    ],
)
def test_proxy_fence_before_a_bulk_store(body: str, fired: set[str]) -> None:
    assert rules(body) == fired


@pytest.mark.parametrize(
    ("between", "fired"),
    [
        (one(WAIT_READ, 2) + SYNC, set()),
        (one(WAIT_ALL, 2) + SYNC, set()),
        (SYNC, {"BG-05"}),
        (one("cp.async.bulk.wait_group.read 1;\n", 2) + SYNC, {"BG-05"}),
        (one(WAIT_READ, 2, thread=1) + SYNC, {"BG-05"}),
        (one(WAIT_READ, 2), {"BG-05"}),
    ],
)
def test_reuse_of_what_a_bulk_store_reads(between: str, fired: set[str]) -> None:
    start = FILL + FENCE + SYNC + one(STORE + COMMIT, 1)
    assert rules(start + between + FILL) == fired


def test_a_store_that_was_not_committed_is_never_covered() -> None:
    start = FILL + FENCE + SYNC
    assert rules(start + one(STORE + WAIT_READ, 1) + SYNC + FILL) == {"BG-05"}
    assert rules(start + one(STORE, 1), level="R") == {"BG-07"}


def test_ordinary_write_then_load() -> None:
    end = one(LOAD, 1) + wait()
    assert rules(INIT + FILL + SYNC + end) == {"PX-02"}
    assert rules(INIT + FILL + FENCE + SYNC + end) == set()


def test_ordinary_read_then_load() -> None:
    """Whether the registers are used before the barrier decides how bad it is."""
    end = one(LOAD, 1) + wait()
    assert rules(INIT + READ + SYNC + USE + end) == {"PX-03"}
    assert rules(INIT + READ + USE + SYNC + end) == set()
    assert rules(INIT + READ + USE + SYNC + end, level="R") == {"PX-03"}
    assert rules(INIT + READ + FENCE + SYNC + end, level="R") == set()
    # loads before a wgmma.fence are over when the MMAs behind it are: scales are read there and used after the release
    fence = "wgmma.fence.sync.aligned;\n"
    assert rules(INIT + READ + fence + SYNC + USE + end, threads=128) == set()
    assert rules(INIT + READ + fence + SYNC + USE + end, level="R", threads=128) == {"PX-03"}
    assert rules(INIT + fence + READ + SYNC + USE + end, threads=128) == {"PX-03"}


@pytest.mark.parametrize("work", [COMMIT * 3, "tcgen05.wait::ld.sync.aligned;\n" + COMMIT * 2])
def test_work_between_a_read_and_its_use(work: str) -> None:
    """What a warp issues after it has read is no release of what it has read."""
    end = one(LOAD, 1) + wait()
    assert rules(INIT + READ + work + USE + SYNC + end) == set()
    assert rules(INIT + READ + work + SYNC + USE + end) == {"PX-03"}


def test_a_relaxed_arrive_publishes_no_ordinary_store() -> None:
    def body(order: str) -> str:
        arrive = one(f"mbarrier.arrive{order}.shared.b64 _, [%r91];\n", 1)
        return INIT + SYNC + warp(FILL + "bar.warp.sync -1;\n" + arrive, 2) + warp(wait() + OTHER, 3, index=1)

    assert rules(body("")) == set()
    assert rules(body(".relaxed.cta")) == {"RC-01"}


def test_flags_in_shared_memory() -> None:
    """A store with release and a load with acquire are an order; weak ones are a race of their own."""

    def body(store: str, load: str) -> str:
        writer = one("st.shared.b32 [%r90], %r0;\n" + f"st{store}.shared.b32 [%r93], 1;\n", 1)
        reader = one(f"$again:\nld{load}.shared.b32 %r7, [%r93];\nsetp.ne.u32 %p3, %r7, 1;\n@%p3 bra $again;\n"
                     "ld.shared.b32 %r5, [%r90];\n", 2, thread=32)  # fmt: skip
        return writer + reader

    assert rules(body(".release.cta", ".acquire.cta")) == set()
    assert "RC-01" in rules(body(".relaxed.cta", ".acquire.cta"))
    assert "RC-01" in rules(body(".release.cta", ".relaxed.cta"))


def test_a_finding_says_who_what_where_and_what_is_missing() -> None:
    (finding,) = check(FILL + SYNC + one(STORE + COMMIT + WAIT_READ, 1), threads=32)
    assert finding.rule == "PX-01" and finding.level == "E" and finding.severity == "error"
    assert finding.place.instruction.startswith("cp.async.bulk.global.shared::cta")
    assert finding.place.where == "CTA (0, 0, 0) warp 0 lane 0"
    assert finding.other is not None and finding.other.instruction.startswith("st.shared.v4")
    assert finding.memory is not None and finding.memory.startswith("512 of shared 0x")
    assert finding.edge is not None and "fence.proxy.async" in finding.edge
    assert finding.ptx_line > 0 and finding.count == 1


def test_repetitions_are_counted() -> None:
    again = FILL + SYNC + one(STORE + COMMIT + WAIT_READ, 1) + SYNC
    loop = f"mov.u32 %r70, 0;\n$loop:\n{again}add.u32 %r70, %r70, 1;\nsetp.lt.u32 %p5, %r70, 5;\n@%p5 bra $loop;\n"
    (finding,) = [f for f in check(loop, threads=32) if f.rule == "PX-01"]
    assert finding.count == 5


WORDS = "shl.b32 %r80, %r0, 2;\nand.b32 %r80, %r80, 124;\nadd.u32 %r80, %r80, 2048;\n"  # one for each lane of a warp


@pytest.mark.parametrize(
    ("value", "rule"), [("7", "RC-03"), ("%r80", "RC-03"), ("%r0", "RC-01")], ids=["constant", "by lane", "by thread"]
)
@pytest.mark.parametrize("form", ["b32 [%r80], {0}", "v2.b32 [%r81], {{{0}, {0}}}"])
def test_two_warps_that_store_the_same(value: str, rule: str, form: str) -> None:
    body = WORDS + "add.u32 %r81, %r80, %r80;\nsub.u32 %r81, %r81, 2048;\n" + f"st.shared.{form.format(value)};\n"
    assert rules(body, "E" if rule == "RC-01" else "W", threads=64, strict=True) == {rule}


def test_lanes_that_went_apart_and_store_the_same() -> None:
    """Lanes 8 and up wait behind a branch of lanes 0 to 7, which does not bring them together for the memory model."""
    apart = "setp.lt.u32 %p1, %r0, 8;\n@!%p1 bra $skip;\nld.global.u32 %r81, [%rd1];\n$skip:\n"
    body = apart + "shfl.sync.idx.b32 %r82, %r0, 3, 31, -1;\nst.shared.b32 [2048], {};\n"
    assert rules(body.format("%r82"), threads=32) == set()
    assert rules(body.format("%r0"), threads=32) == {"RC-01"}
