# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and tensor cores under observation."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import FENCE, INIT, LOAD, SYNC, one, rules, wait, warp
from tests.emu.ptx import module
from tests.emu.test_block_scale import KERNEL as SCALED
from tmagen.emu import GlobalMemory, Launch, run

ALLOC = warp("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r93], 64;\n", 90)
ADDRESS = "ld.shared.b32 %r20, [%r93];\n"
FREE = warp("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 64;\n", 91)
START = INIT + ALLOC + SYNC + ADDRESS
# A: 128 rows and B: 64 rows of 32 bytes, K-major without a swizzle, anywhere in the tile; f16 in, f32 out.
DESCRIPTOR = (
    "shr.u32 %r30, %r90, 4;\ncvt.u64.u32 %rd20, %r30;\n"
    f"mov.b64 %rd21, {(8 << 16) | (16 << 32) | (1 << 46)};\nor.b64 %rd20, %rd20, %rd21;\n"
    f"mov.b32 %r31, {(1 << 4) | (64 >> 3 << 17) | (128 >> 4 << 24)};\nsetp.ne.u32 %p4, 0, 1;\n"
)
MMA = "tcgen05.mma.cta_group::1.kind::f16 [%r20], %rd20, %rd20, %r31, %p4;\n"
DONE = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r92];\n"
DONE_BAR = DONE.replace("%r92", "%r91")
CLEAR = "".join(f"st.shared.b32 [%r94+{4096 * i}], 0;\n" for i in range(2))
TAKE = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r40}, [%r20];\n"
TAKEN = "tcgen05.wait::ld.sync.aligned;\n"
PUT = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%r0};\n"
PUTTED = "tcgen05.wait::st.sync.aligned;\n"
USE = "add.u32 %r41, %r40, 1;\n"
OVER = wait(barrier="%r92", name="V")


def fired(body: str, level: str = "E", **options: int) -> set[str]:
    return rules(START + DESCRIPTOR + body, level, **{"threads": 128, **options})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (one(MMA + DONE, 1) + OVER + TAKE + TAKEN + SYNC + FREE, set()),
        (one(MMA + DONE, 1) + warp(OVER, 2) + SYNC + TAKE + TAKEN + SYNC + FREE, set()),
        (one(MMA + DONE, 1) + SYNC + TAKE + TAKEN + SYNC + OVER + FREE, {"TC-05"}),
        (one(DONE + MMA, 1) + OVER + TAKE + TAKEN + SYNC + FREE, {"TC-05", "TA-10"}),
        (one(MMA, 1) + one(DONE, 2, thread=1) + OVER + TAKE + TAKEN + SYNC + FREE, {"TC-05", "TA-10"}),
        (one(MMA + MMA + DONE, 1) + OVER + TAKE + TAKEN + SYNC + FREE, set()),
        (one(MMA + DONE, 1) + one(MMA, 2, thread=32) + OVER + SYNC + FREE, {"TC-03", "TA-10"}),
        (
            one(MMA + DONE, 1) + OVER + one(MMA + DONE_BAR, 2, thread=32) + wait() + SYNC + FREE,
            set(),
        ),
    ],
)
def test_the_end_of_an_mma(body: str, expected: set[str]) -> None:
    assert fired(body) == expected


def test_a_commit_arrives_before_its_barrier_is_no_more() -> None:
    """Who has waited for a later commit of the thread knows that earlier ones have arrived."""
    end = SYNC + one("mbarrier.inval.shared.b64 [%r92];\n", 9) + FREE
    again = one(DONE_BAR, 2) + wait()
    assert fired(one(MMA + DONE, 1) + OVER + end) == set()
    assert fired(one(MMA + DONE_BAR + DONE, 1) + wait() + end) == {"MB-45"}
    assert fired(one(MMA + DONE + DONE_BAR, 1) + wait() + end) == set()
    assert fired(one(MMA + DONE, 1) + again + end) == set()
    assert fired(one(MMA + DONE, 1) + one(DONE_BAR, 2, thread=32) + wait() + end) == {"MB-45", "TA-10"}


def test_a_load_that_nobody_waits_for() -> None:
    def body(after: str) -> str:
        return TAKE + after + SYNC + one(MMA + DONE, 1) + OVER + SYNC + FREE

    assert fired(body(TAKEN)) == set()
    assert fired(body("") + USE) == {"TL-05"}
    # a register that is used waits for the load
    assert fired(body(USE)) == set()
    assert fired(body(USE), "R") == {"TL-05"}
    # no order at all, and the other warps have read first
    assert fired(TAKE + TAKEN + one(MMA + DONE, 1, thread=96) + OVER + SYNC + FREE) == {"TC-06"}


def test_a_store_that_nobody_waits_for() -> None:
    def body(after: str) -> str:
        return PUT + after + SYNC + one(MMA + DONE, 1) + OVER + SYNC + FREE

    assert fired(body(PUTTED)) == set()
    assert fired(body("")) == {"TL-07"}
    assert fired(PUT + TAKE + TAKEN + PUTTED + SYNC + FREE) == {"TL-08"}
    assert fired(PUT + PUTTED + TAKE + TAKEN + SYNC + FREE) == set()


def test_the_wait_of_another_warp_is_no_wait() -> None:
    body = TAKE + warp(TAKEN, 1, index=2) + SYNC + one(MMA + DONE, 2) + OVER + SYNC + FREE + USE
    assert fired(body) == {"TL-05"}


def test_an_operand_that_is_overwritten() -> None:
    refill = one(LOAD, 3) + wait() + SYNC
    assert fired(one(MMA + DONE, 1) + OVER + SYNC + refill + FREE) == set()
    assert fired(one(MMA + DONE, 1) + refill + OVER + FREE) == {"TC-13"}
    assert fired(one(MMA + DONE, 1) + CLEAR + OVER + FREE + SYNC) == {"TC-13"}


def test_ordinary_stores_are_fenced_before_an_mma() -> None:
    end = one(MMA + DONE, 1) + OVER + SYNC + FREE
    assert fired(CLEAR + FENCE + SYNC + end) == set()
    assert fired(CLEAR + SYNC + one(FENCE + MMA + DONE, 1) + OVER + SYNC + FREE) == set()
    assert fired(CLEAR + SYNC + end) == {"PX-01"}


def test_the_address_of_an_allocation() -> None:
    assert rules(INIT + ALLOC + SYNC + ADDRESS + FREE, threads=128) == set()
    assert rules(INIT + ALLOC + ADDRESS + SYNC + FREE, threads=128) == {"TA-03"}


def test_the_address_after_a_relaxed_barrier_of_the_cluster() -> None:
    meet = "barrier.cluster.arrive{}.aligned;\nbarrier.cluster.wait.aligned;\n"
    first = INIT + "fence.mbarrier_init.release.cluster;\n" + ALLOC + meet + ADDRESS + SYNC + FREE

    def told(how: str, level: str) -> set[str]:
        return rules(first.format(how), level, threads=128, grid=2, cluster=2)

    assert told("", "E") == told("", "W") == told(".relaxed", "E") == set()
    assert told(".relaxed", "W") == {"TA-03"}


def test_columns_that_are_freed_in_use() -> None:
    assert fired(TAKE + TAKEN + SYNC + FREE) == set()
    by_the_last = warp("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 64;\n", 92, index=3)
    assert fired(TAKE + TAKEN + by_the_last) == {"TA-10"}
    assert fired(one(MMA + DONE, 1) + SYNC + FREE + OVER) == {"TA-10"}


@pytest.mark.parametrize(
    ("before", "expected"),
    [(TAKEN, set()), ("", {"TL-05"})],
    ids=["waited for", "not waited for"],
)
def test_a_relaxed_barrier_of_the_cluster_orders_tensor_memory(before: str, expected: set[str]) -> None:
    meet = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
    assert fired(PUT + PUTTED + TAKE + before + meet + FREE + USE, grid=2, cluster=2) == expected


@pytest.mark.parametrize(("waits", "expected"), [(TAKEN, set()), ("", {"TL-05"})], ids=["waited for", "not waited for"])
def test_a_barrier_of_the_cluster_that_other_warps_leave_by_exiting(waits: str, expected: set[str]) -> None:
    meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    gone = "shr.u32 %r80, %r0, 5;\nsetp.ne.u32 %p7, %r80, 0;\n@%p7 exit;\n"
    body = PUT + PUTTED + TAKE + waits + gone + meet + FREE
    assert fired(body, grid=2, cluster=2) == set()
    assert fired(body, "R", grid=2, cluster=2) == expected
    assert fired(body.replace(meet, ""), grid=2, cluster=2) == {"TA-14"}  # the others find nothing allocated


def test_lanes_that_the_odd_cta_of_a_pair_counts_on_from_its_peer() -> None:
    # epilogues of pairs add 128 * rank to the lane; hardware ignores it
    body = "or.b32 %r20, %r20, 0x800000;\n" + PUT + PUTTED + TAKE + TAKEN + SYNC + ADDRESS + FREE
    assert fired(body) == set()
    assert "TL-02" in fired(body, "W")
    assert "TL-02" in fired(body.replace("0x800000", "0x1000000"))


def test_factors_that_the_odd_cta_of_a_pair_makes() -> None:
    """Its threads write them to their own memory and tell the even one by an arrive, whose MMA or copy reads both."""
    pair = START.replace("cta_group::1", "cta_group::2") + DESCRIPTOR
    peer = "mov.u32 %r60, %cluster_ctarank;\nmapa.shared::cluster.u32 %r63, %r91, 0;\nsetp.ne.u32 %p10, %r60, 0;\n"
    arrive = "mbarrier.arrive.{}shared::cluster.b64 _, [%r63];\n"
    even = (
        "@%p10 bra $odd;\n" + wait() + one(COPY.replace("cta_group::1", "cta_group::2"), 2)
        + one(DONE.replace("cta_group::1", "cta_group::2"), 3) + OVER + "$odd:\n"
    )  # fmt: skip
    meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
    free = meet + FREE.replace("cta_group::1", "cta_group::2")

    def told(made: str, how: str, level: str) -> set[str]:
        tell = "@!%p10 bra $told;\n" + one(arrive.format(how), 4) + "$told:\n"
        body = pair + peer + meet + CLEAR + made + SYNC + tell + even + free
        return rules(body, level, threads=128, grid=2, cluster=2) & {"MB-34", "MB-35", "PX-01"}

    assert told(FENCE, "release.cluster.", "E") == told(FENCE, "release.cluster.", "W") == set()
    assert told(FENCE, "", "E") == set() and told(FENCE, "", "W") == {"MB-34"}
    assert told("", "", "E") == {"MB-35", "PX-01"}  # what it reads of its own CTA is not fenced either


def test_the_formal_fence() -> None:
    before, after = one(MMA + DONE, 1) + OVER, TAKE + TAKEN + SYNC + FREE
    assert fired(before + after, "W") == {"TC-08"}
    assert fired(before + "tcgen05.fence::after_thread_sync;\n" + after, "W") == set()


def test_one_accumulator_of_two_shapes() -> None:
    other = f"mov.b32 %r32, {(1 << 4) | (32 >> 3 << 17) | (128 >> 4 << 24)};\n"
    narrow = MMA.replace("%r31", "%r32")
    before = CLEAR + FENCE + SYNC + other
    end = DONE + "tcgen05.fence::after_thread_sync;\n"
    rest = OVER + "tcgen05.fence::after_thread_sync;\n" + SYNC + FREE
    assert fired(before + one(MMA + MMA + end, 1) + rest, "W") == set()
    assert fired(before + one(MMA + narrow + end, 1) + rest, "W") == {"TC-01"}


# --- copies to tensor memory, and pipelines of two threads ------------------------------------------------------------

# A copy of A to columns 32 to 39, of which an MMA takes it: 32 bytes of 128 rows.
COPY = "add.u32 %r21, %r20, 32;\ntcgen05.cp.cta_group::1.128x256b [%r21], %rd20;\n"
MMA_OF_COPY = "add.u32 %r21, %r20, 32;\n" + MMA.replace("%rd20, %rd20", "[%r21], %rd20").replace("%r31", "%r33")
# N = 32: D is in columns 0 to 31
NARROW = f"mov.b32 %r33, {(1 << 4) | (32 >> 3 << 17) | (128 >> 4 << 24)};\n"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"
END = OVER + SYNC + FREE
FILLED = CLEAR + FENCE + SYNC + NARROW


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (one(COPY + MMA_OF_COPY + DONE, 1), set()),
        (one(COPY + BEFORE, 1) + SYNC + one(AFTER + MMA_OF_COPY + DONE, 2, thread=32), set()),
        (one(COPY, 1) + SYNC + one(MMA_OF_COPY + DONE, 2, thread=32), {"TC-09", "TA-10"}),
        (one(COPY, 1) + SYNC + one(AFTER + MMA_OF_COPY + DONE, 2, thread=32), {"TC-09", "TA-10"}),
        (one(COPY + BEFORE, 1) + SYNC + one(MMA_OF_COPY + DONE, 2, thread=32), {"TC-09", "TA-10"}),
        (one(BEFORE + COPY, 1) + SYNC + one(AFTER + MMA_OF_COPY + DONE, 2, thread=32), {"TC-09", "TA-10"}),
        (one(COPY + DONE_BAR, 1) + wait() + one(MMA_OF_COPY + DONE, 2, thread=32), set()),
        (one(COPY, 1) + SYNC + one(COPY + DONE, 2, thread=32), {"TC-04"}),
        (one(COPY + BEFORE, 1) + SYNC + one(AFTER + COPY + DONE, 2, thread=32), set()),
        (one(MMA + BEFORE, 1) + SYNC + one(AFTER + MMA + DONE, 2, thread=32), set()),
        (one(MMA, 1) + SYNC + one(AFTER + MMA + DONE, 2, thread=32), {"TC-03"}),
    ],
)
def test_work_of_two_threads_on_the_same_columns(body: str, expected: set[str]) -> None:
    assert fired(FILLED + body + END) == expected


def test_a_copy_reads_shared_memory_as_an_mma_does() -> None:
    assert fired(CLEAR + SYNC + one(COPY + DONE, 1) + END) == {"PX-01"}
    assert fired(FILLED + one(COPY + DONE, 1) + CLEAR + END) == {"TC-13"}
    assert fired(FILLED + one(COPY + DONE, 1) + SYNC + TAKE.replace("[%r20]", "[%r20+32]") + TAKEN + END) == {"TC-05"}


def test_two_copies_of_one_thread_are_a_formal_matter() -> None:
    done = DONE + AFTER
    assert fired(FILLED + one(COPY + COPY + done, 1) + OVER + AFTER + SYNC + FREE, "W") == {"TC-04"}
    assert fired(FILLED + one(COPY + BEFORE + COPY + done, 1) + OVER + AFTER + SYNC + FREE, "W") == set()


def test_an_accumulator_over_its_own_operand() -> None:
    over = MMA.replace("%rd20, %rd20", "[%r20], %rd20")
    assert fired(FILLED + one(MMA_OF_COPY + DONE, 1) + END) == set()
    assert fired(FILLED + one(over + DONE, 1) + END) == {"TM5-11"}


def test_an_accumulator_over_its_scale_factors() -> None:
    def of(text: str) -> set[str]:
        memory = GlobalMemory()
        params = memory.allocate(4096).address.to_bytes(8, "little")
        launch = Launch("k", (1, 1, 1), (128, 1, 1), dynamic_smem_bytes=12304, params=params)
        return {finding.rule for finding in run(module(text), launch, memory, checks=True).findings}

    place = "add.u32 %r6, %r5, 64;"
    assert place in SCALED
    assert of(SCALED) == set()
    assert "TM5-11" in of(SCALED.replace(place, "add.u32 %r6, %r5, 32;"))


def test_what_the_collector_holds() -> None:
    def of(how: str, text: str = MMA) -> str:
        return text.replace("kind::f16", f"kind::f16.collector::a::{how}")

    other = "add.s64 %rd22, %rd20, 1;\n" + MMA.replace("%rd20, %rd20", "%rd22, %rd20")
    for body, expected in (
        (of("fill") + of("use") + of("lastuse"), set()),
        (of("fill") + of("lastuse") + of("use"), {"TM5-09"}),
        (MMA + of("use"), {"TM5-09"}),
        (of("fill") + of("use", other), {"TM5-09"}),
        (of("fill") + MMA + MMA, set()),
    ):
        assert fired(FILLED + one(body + DONE, 1) + END, "R") == expected, body


def test_inputs_of_two_types() -> None:
    mixed = f"mov.b32 %r31, {(1 << 4) | (1 << 7) | (64 >> 3 << 17) | (128 >> 4 << 24)};\n"
    assert fired(FILLED + mixed + one(MMA + DONE, 1) + END, "R") == {"ID-01"}
    assert fired(FILLED + mixed + one(MMA + DONE, 1) + END) == set()


def test_registers_of_a_load_that_are_lost() -> None:
    other = TAKE.replace("[%r20]", "[%r20+1]")
    assert fired(TAKE + other + TAKEN + SYNC + FREE, "W") == {"TL-09"}
    assert fired(TAKE + TAKEN + other + TAKEN + SYNC + FREE, "W") == set()
    assert fired(TAKE + USE + other + TAKEN + SYNC + FREE, "W") == set()
    assert fired(TAKE + "mov.u32 %r40, 0;\n" + TAKEN + SYNC + FREE, "W") == {"TL-09"}


def test_an_ordinary_overwrite_of_an_operand() -> None:
    """After the commit that is order; the fence between the proxies is a formal matter."""
    start = one(MMA + DONE, 1) + OVER
    assert fired(start + CLEAR + SYNC + FREE) == set()
    assert fired(start + CLEAR + SYNC + FREE, "W") == {"PX-07"}
    assert fired(start + FENCE + CLEAR + SYNC + FREE, "W") == set()
