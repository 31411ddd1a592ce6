# SPDX-License-Identifier: Apache-2.0
"""Recordings: what the threads of a CTA do, brought together."""

from __future__ import annotations

from tmagen.diff.record import record
from tmagen.emu import GlobalMemory, Launch, parse

PTX = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel()
{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .shared .align 8 .b8 bar[8];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $skip;
    mov.u32 %r2, bar;
    mbarrier.init.shared.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
$skip:
    bar.sync 0;
    mov.u32 %r3, 0;
$loop:
    bar.sync 1, 64;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p2, %r3, 3;
    @%p2 bra $loop;
    ret;
}
"""


def test_the_nth_execution_of_an_instruction_is_one_event() -> None:
    module = parse(PTX)
    launch = Launch(kernel="kernel", grid=(2, 1, 1), block=(64, 1, 1))
    found = record(module, launch, GlobalMemory(), ctaid=(1, 0, 0))
    assert found.threads == 64
    told = [(event.kind, event.operands[:1], event.threads) for event in found.events]
    everyone = {0: 0xFFFFFFFF, 1: 0xFFFFFFFF}
    assert [kind for kind, _, _ in told] == ["barrier_init", "fence", *["barrier"] * 4]
    assert [threads for _, _, threads in told] == [{0: 1}, {0: 1}, *[everyone] * 4]
    assert [operands[0] for _, operands, _ in told[2:]] == [0, 1, 1, 1]


def test_a_recording_changes_nothing_and_repeats() -> None:
    launch = Launch(kernel="kernel", grid=(1, 1, 1), block=(64, 1, 1))
    one, other = (record(parse(PTX), launch, GlobalMemory()) for _ in range(2))
    assert [event.instruction.text for event in one.events] == [event.instruction.text for event in other.events]
