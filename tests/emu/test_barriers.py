# SPDX-License-Identifier: Apache-2.0
"""Named barriers, warp barriers, and what happens when the counts do not agree."""

from __future__ import annotations

import pytest

from tests.emu.ptx import LANE, module, words
from tmagen.emu import Deadlock, Fault, GlobalMemory, Launch, run

SHARED = ".shared .align 4 .b8 cell[1024];\n"
PLACE = "mov.u32 %r90, cell;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r91, %r90, %r1;\n"
STORE = "st.global.u32 [%rd41], %r5;\n"


@pytest.mark.parametrize(
    "barrier", ["bar.sync 0;", "barrier.sync.aligned 0;", "barrier.cta.sync 3;", "bar.sync 1, 128;"]
)
def test_all_threads_see_what_was_written_before(barrier: str) -> None:
    body = (
        LANE
        + PLACE
        + (
            f"st.shared.u32 [%r91], %r0;\n{barrier}\nxor.b32 %r2, %r0, 127;\nshl.b32 %r2, %r2, 2;\n"
            f"add.u32 %r2, %r2, %r90;\n"
            "ld.shared.u32 %r5, [%r2];\n" + STORE
        )
    )
    assert words(body, count=128, threads=128, declarations=SHARED) == [127 - i for i in range(128)]


def test_some_warps_arrive_and_one_waits() -> None:
    body = (
        LANE
        + PLACE
        + (
            "shr.u32 %r2, %r0, 5;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra $waits;\nst.shared.u32 [%r91], %r0;\n"
            "bar.arrive 2, 96;\nbra $end;\n$waits:\nbar.sync 2, 96;\nld.shared.u32 %r5, [%r91+256];\n"
            + STORE
            + "$end:\n"
        )
    )
    assert words(body, threads=96, declarations=SHARED) == [64 + i for i in range(32)]


def test_barrier_is_used_again_and_again() -> None:
    body = (
        LANE
        + PLACE
        + (
            "mov.u32 %r3, 0;\nmov.u32 %r5, 0;\n$loop:\nadd.u32 %r4, %r0, %r3;\nst.shared.u32 [%r91], %r4;\n"
            "bar.sync 0;\n"
            "xor.b32 %r2, %r0, 32;\nshl.b32 %r2, %r2, 2;\nadd.u32 %r2, %r2, %r90;\nld.shared.u32 %r6, [%r2];\n"
            "add.u32 %r5, %r5, %r6;\n"
            "bar.sync 0;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 4;\n@%p1 bra $loop;\n" + STORE
        )
    )
    assert words(body, count=64, threads=64, declarations=SHARED) == [4 * (i ^ 32) + 6 for i in range(64)]


def test_exited_warps_are_not_waited_for() -> None:
    body = LANE + "setp.ge.u32 %p1, %r0, 64;\n@%p1 exit;\nbar.sync 0;\nmov.u32 %r5, 1;\n" + STORE
    assert words(body, count=64, threads=128) == [1] * 64


def test_lanes_come_together_first() -> None:
    body = (
        LANE
        + PLACE
        + (
            "setp.ne.u32 %p1, %r0, 7;\n@%p1 bra $join;\nmov.u32 %r2, 5;\nst.shared.u32 [%r90], %r2;\n$join:\n"
            "bar.warp.sync -1;\n"
            "ld.shared.u32 %r5, [%r90];\n" + STORE
        )
    )
    assert words(body, declarations=SHARED) == [5] * 32


MISUSE = {
    "bar.sync 16;": "numbered 0 to 15",
    "bar.sync 1, 40;": "multiple of 32",
    "bar.sync 1, 256;": "has 128",
    "setp.lt.u32 %p1, %r0, 64;\n@%p1 bra $a;\nbar.sync 1, 96;\nbra $b;\n$a:\nbar.sync 1, 128;\n$b:\n"
    "bar.sync 0;": "gave",
    "bar.arrive 1, 64;\nbar.arrive 1, 96;": "gave",
}


@pytest.mark.parametrize("text", list(MISUSE))
def test_misuse_is_a_fault(text: str) -> None:
    with pytest.raises(Fault, match=MISUSE[text]):
        words(LANE + text + "\n", threads=128)


def test_missing_warps_are_a_deadlock_with_counts() -> None:
    body = LANE + "setp.ge.u32 %p1, %r0, 96;\n@%p1 exit;\nbar.sync 4, 128;\n"
    with pytest.raises(Deadlock) as caught:
        words(body, threads=128)
    assert "named barrier 4: 96 of 128 threads have arrived" in str(caught.value)
    assert "warps 0, 1, 2 lanes 0-31" in str(caught.value)


def test_membermask_must_name_the_lane() -> None:
    with pytest.raises(Fault, match="membermask"):
        words(LANE + "bar.warp.sync 1;\n")


def test_diverged_aligned_barrier_deadlocks() -> None:
    body = LANE + "setp.eq.u32 %p1, %r0, 0;\n@%p1 bra $a;\nbar.sync 1, 32;\nbra $b;\n$a:\nbar.sync 2, 32;\n$b:\n"
    with pytest.raises(Deadlock, match="waits for the other lanes"):
        words(body)


def rules(body: str, threads: int = 64) -> set[str]:
    """What checks find in it."""
    memory = GlobalMemory()
    params = memory.allocate(4096).address.to_bytes(8, "little")
    launch = Launch("k", (1, 1, 1), (threads, 1, 1), params=params)
    return {finding.rule for finding in run(module(body, declarations=SHARED), launch, memory, checks=True).findings}


APART = (
    LANE
    + PLACE
    + "and.b32 %r2, %r0, 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra $even;\n"
    + "st.shared.u32 [%r91], %r0;\n{barrier}\nld.shared.u32 %r5, [%r91+{odd}];\nbra $end;\n"
    + "$even:\nadd.u32 %r3, %r0, 100;\nst.shared.u32 [%r91], %r3;\n{barrier}\nld.shared.u32 %r5, [%r91+4];\n$end:\n"
    + STORE
)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("barrier", ["bar.warp.sync 0xffffffff;", "barrier.sync 1, 64;", "barrier.sync 2;"])
def test_lanes_meet_at_two_barriers(barrier: str, checks: bool) -> None:
    """The lanes of each warp stand at two places of the text, and see what the others wrote; that is no race."""
    body = APART.format(barrier=barrier, odd=-4)
    want = [i + 1 if i % 2 == 0 else i - 1 + 100 for i in range(64)]
    assert words(body, count=64, threads=64, declarations=SHARED) == want
    assert checks is False or rules(body) == set()


def test_barriers_that_all_threads_have_to_be_at_together() -> None:
    with pytest.raises(Deadlock, match="other lanes of its warp"):
        words(APART.format(barrier="bar.sync 1, 64;", odd=-4), threads=64, declarations=SHARED)
    half = APART.replace("{barrier}", "bar.warp.sync 0x55555555;", 1).replace("{barrier}", "bar.warp.sync 0xffffffff;")
    with pytest.raises((Deadlock, Fault)):
        words(half.format(odd=-4), threads=64, declarations=SHARED)


def test_lanes_apart_in_a_loop() -> None:
    """Each side has a barrier of its own, round after round."""
    side = (
        "$l{n}:\nadd.u32 %r3, %r3, 1;\nbar.warp.sync 0xffffffff;\nsetp.lt.u32 %p2, %r3, 5;\n@%p2 bra $l{n};\n"
        "bra $end;\n"
    )
    body = LANE + "mov.u32 %r3, 0;\nsetp.lt.u32 %p1, %r0, 7;\n@%p1 bra $l1;\n" + side.format(n=0) + side.format(n=1)
    assert words(body + "$end:\nst.global.u32 [%rd41], %r3;\n") == [5] * 32


@pytest.mark.parametrize(("name", "results"), [("popc", (29, 93)), ("and", (0, 0)), ("or", (1, 1))])
def test_reductions(name: str, results: tuple[int, int]) -> None:
    """Two of three warps with a count, then all that are left."""
    kind, get = ("u32", "mov.b32 %r5, %r6;") if name == "popc" else ("pred", "selp.u32 %r5, 1, 0, %p3;")
    out = "%r6" if name == "popc" else "%p3"
    red = "bar.red.{}.{} {}, {}%p2;\n{}\n".format(name, kind, out, "{}", get)
    body = (
        LANE
        + "setp.lt.u32 %p2, %r0, 29;\nsetp.ge.u32 %p1, %r0, 64;\n@%p1 bra $all;\n"
        + red.format("1, 64, ")
        + STORE
        + "$all:\nsetp.ge.u32 %p2, %r0, 3;\n"
        + red.format("0, ")
        + STORE.replace("]", "+384]")
    )
    got = words(body, count=192, threads=96)
    assert got[:64] == [results[0]] * 64
    assert got[96:] == [results[1]] * 96


def test_reductions_of_a_negated_predicate_and_of_part_of_a_warp() -> None:
    body = (
        LANE + "setp.lt.u32 %p2, %r0, 45;\nbarrier.cta.red.and.aligned.pred %p3, 0, !%p2;\nselp.u32 %r5, 1, 0, %p3;\n"
    )
    assert words(body + STORE, count=45, threads=45) == [0] * 45
    assert words(body.replace("!", "") + STORE, count=45, threads=45) == [1] * 45


def test_a_reduction_orders_memory() -> None:
    body = (
        LANE
        + PLACE
        + "st.shared.u32 [%r91], %r0;\nsetp.ne.u32 %p2, %r0, 99;\nbar.red.popc.u32 %r6, 0, %p2;\n"
        + "xor.b32 %r2, %r0, 63;\nshl.b32 %r2, %r2, 2;\nadd.u32 %r2, %r2, %r90;\nld.shared.u32 %r5, [%r2];\n"
        + STORE
    )
    assert words(body, count=64, threads=64, declarations=SHARED) == [63 - i for i in range(64)]
    assert rules(body) == set()
