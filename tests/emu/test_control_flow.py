# SPDX-License-Identifier: Apache-2.0
"""Divergence, loops, reconvergence, guards, exits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import LANE, execute, lanes, words
from tmagen.emu import NotJudged

STORE = "st.global.u32 [%rd41], %r5;\n"


def test_divergent_if_else_merges_values() -> None:
    body = LANE + (
        "mov.u32 %r6, 7;\nand.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $even;\n"
        "mul.lo.u32 %r5, %r0, 3;\nmov.u32 %r6, 9;\nbra $join;\n$even:\nadd.u32 %r5, %r0, 100;\n$join:\n"
        "add.u32 %r5, %r5, %r6;\n" + STORE
    )
    assert words(body) == lanes(lambda i: i * 3 + 9 if i % 2 else i + 107)


def test_loop_with_a_trip_count_per_lane() -> None:
    body = LANE + (
        "mov.u32 %r5, 0;\nmov.u32 %r1, 0;\n$loop:\nsetp.ge.u32 %p1, %r1, %r0;\n@%p1 bra $done;\n"
        "add.u32 %r5, %r5, %r1;\nadd.u32 %r1, %r1, 1;\nbra $loop;\n$done:\n" + STORE
    )
    assert words(body) == lanes(lambda i: i * (i - 1) // 2)


def test_nested_divergence() -> None:
    body = LANE + (
        "mov.u32 %r5, 0;\nsetp.lt.u32 %p1, %r0, 16;\n@!%p1 bra $high;\n"
        "and.b32 %r1, %r0, 3;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra $inner;\nadd.u32 %r5, %r5, 1;\n$inner:\n"
        "add.u32 %r5, %r5, 10;\nbra $join;\n$high:\nadd.u32 %r5, %r5, 1000;\n$join:\nadd.u32 %r5, %r5, %r0;\n" + STORE
    )
    assert words(body) == lanes(lambda i: i + (1000 if i >= 16 else 10 + (i % 4 == 0)))


def test_one_lane_changes_some_registers_and_not_others() -> None:
    body = LANE + (
        "add.u32 %r2, %r0, 50;\nmov.u32 %r3, 4;\nmov.u32 %r5, 0;\nsetp.ne.u32 %p1, %r0, 11;\n@%p1 bra $join;\n"
        "add.u32 %r3, %r3, %r2;\nmov.u32 %r1, 0;\n$loop:\nadd.u32 %r3, %r3, 2;\nadd.u32 %r1, %r1, 1;\n"
        "setp.lt.u32 %p2, %r1, 5;\n@%p2 bra $loop;\n$join:\nadd.u32 %r5, %r2, %r3;\n" + STORE
    )
    assert words(body) == lanes(lambda i: i + 50 + 4 + (71 if i == 11 else 0))


def test_guarded_instructions_select_per_lane() -> None:
    body = LANE + (
        "mov.u32 %r5, 1;\nsetp.gt.u32 %p1, %r0, 20;\n@%p1 add.u32 %r5, %r0, 5;\n@!%p1 shl.b32 %r5, %r5, 3;\n"
        "@%p1 setp.gt.u32 %p1, %r0, 25;\n@%p1 mov.u32 %r5, 77;\n" + STORE
    )
    assert words(body) == lanes(lambda i: 8 if i <= 20 else 77 if i > 25 else i + 5)


def test_guarded_store_load_and_exit() -> None:
    body = LANE + (
        "setp.lt.u32 %p1, %r0, 4;\nmov.u32 %r5, 9;\n@%p1 st.global.u32 [%rd41], %r0;\n@%p1 exit;\n"
        "ld.global.u32 %r6, [%rd1+12];\nadd.u32 %r5, %r5, %r6;\nsetp.eq.u32 %p2, %r0, 30;\n@%p2 ret;\n" + STORE
    )
    assert words(body) == lanes(lambda i: i if i < 4 else 0 if i == 30 else 12)


def test_collectives_wait_for_lanes_that_took_the_longer_way() -> None:
    # Lane 3 loops first; the shuffle after the join reads its value in all lanes.
    body = LANE + (
        "mov.u32 %r2, %r0;\nsetp.ne.u32 %p1, %r0, 3;\n@%p1 bra $join;\nmov.u32 %r1, 0;\n$loop:\n"
        "add.u32 %r2, %r2, 100;\n"
        "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 6;\n@%p2 bra $loop;\n$join:\n"
        "shfl.sync.idx.b32 %r5, %r2, 3, 31, -1;\n" + STORE
    )
    assert words(body) == [603] * 32


def test_indexed_branch() -> None:
    body = LANE + (
        "and.b32 %r1, %r0, 3;\n$targets: .branchtargets $a, $b, $c, $a;\nbrx.idx %r1, $targets;\n"
        "$a:\nmov.u32 %r5, 10;\nbra $join;\n$b:\nmov.u32 %r5, 20;\nbra $join;\n$c:\nmov.u32 %r5, 30;\n$join:\n" + STORE
    )
    assert words(body) == lanes(lambda i: (10, 20, 30, 10)[i % 4])


def test_partial_warps_and_special_registers() -> None:
    body = LANE + (
        "mov.u32 %r1, %laneid;\nmov.u32 %r2, %warpid;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %ctaid.x;\n"
        "mad.lo.u32 %r5, %r2, 100, %r1;\nmad.lo.u32 %r5, %r3, 1000, %r5;\nmov.u32 %r6, %nctaid.x;\n"
        "mad.lo.u32 %r7, %r4, %r3, %r0;\nmul.wide.u32 %rd40, %r7, 4;\nadd.s64 %rd41, %rd1, %rd40;\n"
        "mad.lo.u32 %r5, %r6, 1000000, %r5;\n" + STORE
    )
    got = words(body, count=160, threads=70, grid=2)
    want = [2000000 + 70000 + (t // 32) * 100 + t % 32 for t in range(70)] * 2
    assert got[:140] == want


def test_blocks_of_two_dimensions() -> None:
    from tests.emu.ptx import module
    from tmagen.emu import GlobalMemory, Launch, run

    body = (
        "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.z;\nmov.u32 %r3, %ntid.x;\n"
        "mov.u32 %r4, %ntid.y;\n"
        "mad.lo.u32 %r5, %r2, %r4, %r1;\nmad.lo.u32 %r5, %r5, %r3, %r0;\nmul.wide.u32 %rd40, %r5, 4;\n"
        "add.s64 %rd41, %rd1, %rd40;\nmad.lo.u32 %r6, %r1, 100, %r0;\nmad.lo.u32 %r6, %r2, 10000, %r6;\n"
        "st.global.u32 [%rd41], %r6;\n"
    )
    memory = GlobalMemory()
    out = memory.allocate(4 * 5 * 6 * 3)
    run(module(body), Launch("k", (1, 1, 1), (5, 6, 3), params=out.address.to_bytes(8, "little")), memory)
    want = [z * 10000 + y * 100 + x for z in range(3) for y in range(6) for x in range(5)]
    assert out.data.view(np.uint32).tolist() == want


@pytest.mark.parametrize("completion", ["eager", "lazy", "newest-first", "random", "timed"])
def test_result_does_not_depend_on_the_policy(completion: str) -> None:
    body = LANE + "bar.sync 0;\nadd.u32 %r5, %r0, 1;\n" + STORE
    assert words(body, count=128, threads=128, completion=completion) == list(range(1, 129))


def test_unknown_register_values_are_the_same_in_every_run() -> None:
    body = LANE + "mov.u32 %r5, %r77;\n" + STORE
    assert words(body) == words(body)


def test_many_ctas_in_two_processes() -> None:
    body = (
        "mov.u32 %r0, %ctaid.x;\nmul.wide.u32 %rd40, %r0, 4;\nadd.s64 %rd41, %rd1, %rd40;\n"
        "add.u32 %r5, %r0, 5;\nst.global.u32 [%rd41], %r5;\n"
    )
    got = execute(body, grid=100, jobs=2).view(np.uint32)[:100]
    assert got.tolist() == list(range(5, 105))


def test_a_flag_in_shared_memory_is_waited_for() -> None:
    # Warp 0 looks at a word that warp 1 writes later: it must not keep the machine to itself.
    body = LANE + (
        "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra $writer;\n$look:\nld.volatile.shared.u32 %r6, [flag];\n"
        "setp.ne.u32 %p2, %r6, 7;\n@%p2 bra $look;\nmov.u32 %r5, 1;\n" + STORE + "ret;\n$writer:\n"
        "mov.u32 %r7, 7;\nst.volatile.shared.u32 [flag], %r7;\n"
    )
    flag = ".shared .align 4 .b32 flag;\n"
    assert words(body, count=32, threads=64, declarations=flag) == [1] * 32


def test_ctas_that_wait_for_later_ones_are_not_judged() -> None:
    body = (
        "mov.u32 %r0, %ctaid.x;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra $writer;\n$look:\n"
        "ld.acquire.gpu.global.u32 %r6, [%rd1];\nsetp.ne.u32 %p2, %r6, 7;\n@%p2 bra $look;\nret;\n$writer:\n"
        "mov.u32 %r7, 7;\nst.release.gpu.global.u32 [%rd1], %r7;\n"
    )
    with pytest.raises(NotJudged, match="wait for each other"):
        words(body, grid=2)


def test_a_lock_in_shared_memory() -> None:
    # One lane of each warp adds its thread's number to a counter, under a lock taken by compare-and-swap.
    body = LANE + (
        "mov.u32 %r9, 0;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra $start;\n"
        "st.shared.u32 [flag], %r9;\nst.shared.u32 [flag+4], %r9;\n"
        "$start:\nbar.sync 0;\nand.b32 %r1, %r0, 31;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra $end;\n"
        "$try:\natom.shared.cas.b32 %r2, [flag], 0, 1;\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra $try;\n"
        "ld.shared.u32 %r3, [flag+4];\nadd.u32 %r3, %r3, %r0;\nst.shared.u32 [flag+4], %r3;\n"
        "atom.shared.exch.b32 %r4, [flag], 0;\n$end:\nbar.sync 0;\nld.shared.u32 %r5, [flag+4];\n" + STORE
    )
    assert words(body, threads=128, declarations=".shared .align 8 .b8 flag[8];\n") == [32 + 64 + 96] * 32
