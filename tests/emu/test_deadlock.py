# SPDX-License-Identifier: Apache-2.0
"""A deadlock ends the run at once and says who waits where for what."""

from __future__ import annotations

import pytest

from tests.emu.ptx import HEADER, module
from tmagen.emu import Deadlock, Fault, GlobalMemory, Launch, parse, run

KERNEL = (
    HEADER
    + """
.extern .shared .align 8 .b8 dyn[];
.visible .entry k()
{
.reg .pred %p<9>; .reg .b32 %r<9>;
.loc 1 20 3
mov.u32 %r1, dyn;
mov.u32 %r2, %tid.x;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra $ready;
mbarrier.init.shared::cta.b64 [%r1+8], 3;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1+8], 4096;
mbarrier.arrive.shared::cta.b64 _, [%r1+8];
$ready:
bar.sync 0;
setp.ge.u32 %p2, %r2, 32;
@%p2 bra $second;
.loc 2 7 1, function_name $L__name, inlined_at 1 30 5
$wait:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], 0;
@!%p3 bra $wait;
$second:
.loc 1 40 1
bar.sync 2, 64;
ret;
}
.file 1 "kernel.cu"
.file 2 "ptx.h"
.section .debug_str
{
$L__name:
.b8 95,90,78,49,107,51,112,116,120,52,119,97,105,116,69,106,0
}
"""
)


@pytest.mark.parametrize("completion", ["eager", "lazy", "newest-first", "random", "timed"])
def test_report(completion: str) -> None:
    launch = Launch("k", (3, 1, 1), (64, 1, 1), dynamic_smem_bytes=64)
    with pytest.raises(Deadlock) as caught:
        run(parse(KERNEL), launch, GlobalMemory(), completion=completion)
    error = caught.value
    assert error.exit_code == 1
    text = error.report()
    assert text.startswith("error: deadlock: 2 groups of threads wait and nothing is left that could wake them")
    line = KERNEL.split("\n").index("mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], 0;") + 1
    assert "CTA (0, 0, 0) warp 0 lanes 0-31" in text
    assert f"PTX line {line}, kernel.cu:30 (ptx::wait at ptx.h:7)" in text
    assert "parity 0 of the mbarrier at shared 0x408 (dynamic + 8)" in text
    assert "current phase 0 (parity 0), pending arrivals 2 of 3, tx bytes 4,096" in text
    assert "warp 1 lanes 0-31" in text and "kernel.cu:40" in text
    assert "named barrier 2: 32 of 64 threads have arrived" in text
    init = 1 + next(i for i, row in enumerate(KERNEL.split("\n")) if "mbarrier.init.shared::cta.b64 [%r1+8]" in row)
    assert f" its mbarrier.init: PTX line {init}" in text


@pytest.mark.parametrize("checks", [False, True])
def test_what_a_barrier_lacks(checks: bool) -> None:
    """Bytes that nobody expected, and arrivals that raise the count by themselves."""
    start = (
        "mov.u32 %r1, bar;\nmov.u32 %r2, data;\nmov.u32 %r0, %tid.x;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 bra $ready;\n"
        "mbarrier.init.shared::cta.b64 [%r1], {count};\n{first}$ready:\nbar.sync 0;\n{all}"
        "$wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n@!%p2 bra $wait;\n"
    )
    load = (
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 32, [%r1];\n"
    )
    copies = "cp.async.ca.shared.global [%r2], [%rd1], 4;\ncp.async.mbarrier.arrive.shared::cta.b64 [%r1];\n"
    for fields, said in (
        ({"count": 1, "first": load, "all": ""}, "more bytes have arrived than were expected; the last expect_tx: PTX"),
        ({"count": 32, "first": "", "all": copies}, "32 of the phase's arrivals are by cp.async.mbarrier.arrive"),
    ):
        kernel = module(start.format(**fields), declarations=".shared .b64 bar;\n.shared .align 16 .b8 data[64];\n")
        memory = GlobalMemory()
        launch = Launch("k", (1, 1, 1), (32, 1, 1), params=memory.allocate(64).address.to_bytes(8, "little"))
        with pytest.raises(Deadlock) as caught:
            run(kernel, launch, memory, checks=checks)
        assert said in caught.value.report()


def test_as_many_groups_as_are_told() -> None:
    """Two warps at one place are a group."""
    text = KERNEL.replace("setp.ge.u32 %p2, %r2, 32;", "setp.ge.u32 %p2, %r2, 64;")
    with pytest.raises(Deadlock, match=r"^1 group of threads waits and nothing is left") as caught:
        run(parse(text), Launch("k", (1, 1, 1), (64, 1, 1), dynamic_smem_bytes=64), GlobalMemory())
    assert sum(line.startswith("CTA ") for line in caught.value.detail) == 1
    assert "warps 0, 1 lanes 0-31" in caught.value.detail[0]


def test_one_lane_of_a_warp_is_named() -> None:
    text = KERNEL.replace("setp.ge.u32 %p2, %r2, 32;", "setp.ne.u32 %p2, %r2, 5;")
    with pytest.raises(Deadlock) as caught:
        run(parse(text), Launch("k", (1, 1, 1), (32, 1, 1), dynamic_smem_bytes=64), GlobalMemory())
    assert "warp 0 lane 5\n" in str(caught.value)
    assert "waits for the other lanes of its warp" in str(caught.value)


def test_a_worker_process_reports_too() -> None:
    with pytest.raises(Deadlock) as caught:
        run(parse(KERNEL), Launch("k", (4, 1, 1), (64, 1, 1), dynamic_smem_bytes=64), GlobalMemory(), jobs=2)
    assert "pending arrivals 2 of 3" in str(caught.value)


def test_trap_is_a_fault_with_its_place() -> None:
    text = KERNEL.replace("bar.sync 0;", "trap;")
    with pytest.raises(Fault, match="trap") as caught:
        run(parse(text), Launch("k", (1, 1, 1), (64, 1, 1), dynamic_smem_bytes=64), GlobalMemory())
    assert caught.value.source == ("kernel.cu", 20) and caught.value.instruction == "trap"
    assert "CTA (0, 0, 0) warp 0" in caught.value.report()


def test_polling_for_ever_is_a_deadlock() -> None:
    text = KERNEL.replace("@!%p3 bra $wait;", "setp.eq.u32 %p4, %r2, 77;\n@%p4 bra $second;\n@!%p3 bra $wait;")
    with pytest.raises(Deadlock, match="look at memory again and again"):
        run(parse(text), Launch("k", (1, 1, 1), (64, 1, 1), dynamic_smem_bytes=64), GlobalMemory())
