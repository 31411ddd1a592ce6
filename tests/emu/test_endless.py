# SPDX-License-Identifier: Apache-2.0
"""Kernels that never end: they are told from those that take long, and who loops where is said."""

from __future__ import annotations

import pytest

from tests.emu.ptx import LANE, words
from tmagen.emu import Deadlock, Endless
from tmagen.emu.state import endless

COMPLETIONS = ("eager", "lazy", "newest-first", "random", "timed")
STORE = "st.global.u32 [%rd41], %r5;\n"
SHARED = ".shared .align 8 .b64 bar;\n.shared .align 8 .b64 flag;\n"
INIT = (
    "mov.u32 %r90, bar;\nmov.u32 %r91, flag;\nsetp.ne.u32 %p9, %r0, 0;\n@%p9 bra $ready;\n"
    "mbarrier.init.shared::cta.b64 [%r90], 64;\nst.shared.u32 [%r91], 0;\n$ready:\nbar.sync 0;\n"
)
# All 64 threads arrive and wait, phase after phase: somebody can run at all times.
PHASES = (
    "mov.u32 %r10, 0;\nmov.u32 %r11, 0;\n$again:\n"
    "mbarrier.arrive.shared.b64 _, [%r90];\n"
    "$wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r90], %r10;\n@!%p1 bra $wait;\n"
    "xor.b32 %r10, %r10, 1;\nadd.u32 %r11, %r11, {step};\n"
    "setp.lt.u32 %p2, %r11, {end};\n@%p2 bra $again;\n"
)


def run(text: str, threads: int = 64, **options: object) -> list[int]:
    return words(LANE + text, threads=threads, declarations=SHARED, **options)


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_phases_without_end(completion: str) -> None:
    with pytest.raises(
        Endless, match=r"comes back to the state that it was in \d+ turns? of its warps before"
    ) as caught:
        run(INIT + PHASES.format(step=0, end=100) + STORE, completion=completion)
    report = caught.value.report()
    assert caught.value.exit_code == 1
    assert report.startswith("error: never ends: the CTA comes back to the state")
    assert "CTA (0, 0, 0) warps 0, 1 lanes 0-31 pass" in report
    assert "PTX line" in report


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_phases_without_end_of_one_warp(completion: str) -> None:
    init = INIT.replace(", 64;", ", 32;")
    with pytest.raises(Endless, match="comes back to the state"):
        run(init + PHASES.format(step=0, end=100) + STORE, threads=32, completion=completion)
    many = run(
        init + PHASES.format(step=1, end=20_000) + STORE.replace("%r5", "%r11"), threads=32, completion=completion
    )
    assert many == [20_000] * 32


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_as_many_phases_that_end(completion: str) -> None:
    rounds = 3 * endless.FIRST_ROUND
    assert run(INIT + PHASES.format(step=1, end=rounds) + "mov.u32 %r5, %r11;\n" + STORE, completion=completion) == (
        [rounds] * 32
    )


@pytest.mark.parametrize(
    "loop",
    [
        "$spin:\nbra $spin;\n",
        # Eleven blocks to a turn of the outer loop.
        "$outer:\nmov.u32 %r10, 0;\n$inner:\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, 5;\n@%p1 bra $inner;\n"
        "setp.ne.u32 %p2, %r10, 0;\n@%p2 bra $outer;\n",
        "setp.gt.u32 %p1, %r0, 3;\n@%p1 bra $out;\n$spin:\nbra $spin;\n$out:\n",
        # Lanes that part and meet again, for ever.
        "$outer:\nand.b32 %r10, %r0, 1;\nsetp.eq.u32 %p1, %r10, 0;\n@%p1 bra $even;\n"
        "add.u32 %r11, %r0, 3;\nbra $meet;\n"
        "$even:\nadd.u32 %r11, %r0, 4;\n$meet:\nsetp.ne.u32 %p2, %r11, 0;\n@%p2 bra $outer;\n",
        "mov.u32 %r91, flag;\n$spin:\nld.shared.u32 %r10, [%r91];\nsetp.ne.u32 %p1, %r10, 1;\n@%p1 bra $spin;\n",
    ],
)
def test_a_warp_that_turns_alone(loop: str) -> None:
    with pytest.raises(Endless):
        run(loop + STORE, threads=32)


def test_a_long_loop_of_one_warp_ends() -> None:
    text = "mov.u32 %r5, 0;\n$loop:\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 300000;\n@%p1 bra $loop;\n"
    assert run(text + STORE, threads=32) == [300_000] * 32


def test_a_flag_that_another_warp_sets_late() -> None:
    # Warp 1 counts for several long turns, while warp 0 looks at a flag in shared memory.
    text = INIT + (
        "setp.gt.u32 %p1, %r0, 31;\n@%p1 bra $count;\n"
        "$look:\nld.volatile.shared.u32 %r5, [%r91];\nsetp.eq.u32 %p2, %r5, 0;\n@%p2 bra $look;\nbra $out;\n"
        "$count:\nmov.u32 %r10, 0;\n$loop:\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p3, %r10, 200000;\n@%p3 bra $loop;\n"
        "mov.u32 %r5, 7;\nst.volatile.shared.u32 [%r91], %r5;\n$out:\n"
    )
    assert run(text + STORE) == [7] * 32


def test_looking_in_vain_stays_a_deadlock() -> None:
    look = "$look:\nld.volatile.shared.u32 %r5, [%r91];\nsetp.eq.u32 %p2, %r5, 0;\n@%p2 bra $look;\n"
    with pytest.raises(Deadlock, match="look at memory again and again") as caught:
        run(INIT + look + STORE)
    assert "PTX line" in caught.value.report()


def test_what_global_memory_or_a_clock_ends_is_no_proof() -> None:
    # Registers and shared memory are the same whenever the loop begins; what ends it is a count in global memory.
    count = (
        "$loop:\nld.global.u32 %r10, [%rd41];\nadd.u32 %r10, %r10, 1;\nst.global.u32 [%rd41], %r10;\n"
        "setp.lt.u32 %p1, %r10, 200000;\nmov.u32 %r10, 0;\n@%p1 bra $loop;\n"
    )
    assert run(count, threads=1)[0] == 200_000
    clock = (
        "mov.u64 %rd50, %clock64;\n$loop:\nmov.u64 %rd51, %clock64;\nsub.u64 %rd51, %rd51, %rd50;\n"
        "setp.lt.u64 %p1, %rd51, 20000000;\nmov.u64 %rd51, 0;\n@%p1 bra $loop;\nmov.u32 %r5, 1;\n"
    )
    assert run(clock + STORE, threads=1)[0] == 1


def test_a_loop_that_counts_meets_the_limit() -> None:
    from tests.emu.ptx import module
    from tmagen.emu import GlobalMemory, Launch
    from tmagen.emu import run as emulate

    text = LANE + INIT + PHASES.format(step=1, end=1 << 30) + STORE
    memory = GlobalMemory()
    params = memory.allocate(4096).address.to_bytes(8, "little")
    launch = Launch("k", (1, 1, 1), (64, 1, 1), params=params)
    with pytest.raises(Endless, match="has not ended after 5,000 turns of its warps") as caught:
        emulate(module(text, declarations=SHARED), launch, memory, max_rounds=5000)
    assert "PTX line" in caught.value.report()
    with pytest.raises(ValueError, match="max_rounds = 0"):
        emulate(module(text, declarations=SHARED), launch, memory, max_rounds=0)
