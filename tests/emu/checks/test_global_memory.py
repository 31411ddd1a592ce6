# SPDX-License-Identifier: Apache-2.0
"""Global memory under observation: within a CTA, and between CTAs."""

from __future__ import annotations

import pytest

from tests.emu.checks.kernels import COMMIT, FENCE, FILL, INIT, STORE, SYNC, check, one, rules, wait

MINE = "mul.wide.u32 %rd30, %r0, 4;\nadd.s64 %rd31, %rd1, %rd30;\n"
WRITE = MINE + "st.global.b32 [%rd31], %r0;\n"
OTHERS = MINE + "xor.b64 %rd32, %rd31, 128;\nld.global.b32 %r5, [%rd32];\n"
READY = FILL + FENCE + SYNC


def test_ordinary_accesses() -> None:
    assert rules(WRITE + SYNC + OTHERS) == set()
    assert rules(WRITE + OTHERS) == {"RC-02"}


@pytest.mark.parametrize(
    ("between", "fired"),
    [
        ("cp.async.bulk.wait_group 0;\n", set()),
        ("cp.async.bulk.wait_group.read 0;\n", {"BG-08"}),
        ("", {"BG-08"}),
    ],
)
def test_stores_of_one_thread_are_unordered(between: str, fired: set[str]) -> None:
    end = "cp.async.bulk.wait_group 0;\n"
    assert rules(READY + one(STORE + COMMIT + between + STORE + COMMIT + end, 1)) == fired


def test_what_a_bulk_store_wrote_is_there_after_its_full_wait() -> None:
    def body(which: str) -> str:
        return READY + one(STORE + COMMIT + f"cp.async.bulk.wait_group{which} 0;\n", 1) + SYNC + OTHERS

    assert rules(body("")) == set()
    assert rules(body(".read")) == {"BG-09"}


def test_bytes_that_are_written_and_then_loaded_by_bulk() -> None:
    load = (
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r91], 256;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd1], 256, [%r91];\n"
    )
    assert rules(INIT + WRITE + SYNC + one(load, 1) + wait()) == {"PX-09"}
    assert rules(INIT + WRITE + "fence.proxy.async.global;\n" + SYNC + one(load, 1) + wait()) == set()
    assert rules(INIT + SYNC + one(load, 1) + WRITE + wait()) == {"TM-37"}
    assert rules(INIT + SYNC + one(load, 1) + wait() + WRITE) == set()


def test_ctas_are_unordered() -> None:
    assert rules(WRITE, grid=2) == {"RC-02"}
    apart = "mov.u32 %r50, %ctaid.x;\nmul.wide.u32 %rd50, %r50, 1024;\nadd.s64 %rd1, %rd1, %rd50;\n"
    assert rules(apart + WRITE, grid=2) == set()
    found = check(WRITE, grid=2)
    assert "CTA (1, 0, 0)" in found[0].place.where and found[0].other is not None
    assert "CTA (0, 0, 0)" in found[0].other.where


def test_pieces_of_one_chunk_by_different_threads_are_no_race() -> None:
    body = "mul.wide.u32 %rd30, %r0, 1;\nadd.s64 %rd31, %rd1, %rd30;\nst.global.u8 [%rd31], %r0;\n"
    assert rules(body, threads=128) == set()


def test_atomics_are_no_race() -> None:
    assert rules("atom.global.add.u32 %r5, [%rd1], 1;\n", threads=128) == set()
    assert rules("red.global.add.u32 [%rd1], 1;\n", threads=128, grid=2) == set()
    assert rules("red.global.add.u32 [%rd1], 1;\n" + one("ld.global.b32 %r5, [%rd1];\n", 1)) == {"RC-02"}
