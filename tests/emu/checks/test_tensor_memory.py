# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and tensor cores under observation."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import FENCE, INIT, LOAD, SYNC, one, rules, wait, warp

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


def test_columns_that_are_freed_in_use() -> None:
    assert fired(TAKE + TAKEN + SYNC + FREE) == set()
    by_the_last = warp("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 64;\n", 92, index=3)
    assert fired(TAKE + TAKEN + by_the_last) == {"TA-10"}
    assert fired(one(MMA + DONE, 1) + SYNC + FREE + OVER) == {"TA-10"}


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
