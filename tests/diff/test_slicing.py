# SPDX-License-Identifier: Apache-2.0
"""Schedulers cut out of kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tmagen.diff.record import stores_of
from tmagen.diff.slicing import NotSliced, scheduler_of
from tmagen.emu import Launch, Module, TensorMap, parse
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode

PTX = """
.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel(.param .align 64 .b8 d[128], .param .u32 tiles)
{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<4>;
    .shared .align 128 .b8 smem[1024];
    .shared .align 8 .b8 bar[8];
    ld.param.u32 %r1, [tiles];
    mov.u64 %rd1, d;
    cvta.param.u64 %rd2, %rd1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, smem;
    mov.u32 %r5, bar;
    bar.sync 0;
$tile:
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra $done;
    mov.u32 %r6, 0;
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;
    @!%p2 bra $wait;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 1000;
    @%p3 bra $wait;
    setp.ne.u32 %p4, %r3, 0;
    @%p4 bra $next;
    shl.b32 %r7, %r2, 3;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, %r7}], [%r4];
    cp.async.bulk.commit_group;
$next:
    bar.sync 0;
    mov.u32 %r8, %nctaid.x;
    add.u32 %r2, %r2, %r8;
    bra $tile;
$done:
    ret;
}
"""


def launch(tiles: int, ctas: int) -> Launch:
    fields = TensorMap(
        DataType.FLOAT16, 2, 1 << 40, (64, 8 * tiles), (128,), (64, 8), (1, 1), Interleave.NONE, SwizzleMode.NONE,
        L2Promotion.NONE, OobFill.NONE,
    )  # fmt: skip
    return Launch("kernel", (ctas, 1, 1), (64, 1, 1), params=fields.encode() + tiles.to_bytes(4, "little"))


def sliced(text: str) -> Module:
    module = parse(text)
    return scheduler_of(module, module.entries["kernel"])


def test_the_scheduler_runs_without_what_it_schedules() -> None:
    """No barrier ever completes and there is no memory: the whole kernel would wait for ever."""
    scheduler = sliced(PTX)
    found = dict(stores_of(scheduler, launch(tiles=7, ctas=3)))
    assert {cta[0]: [row // 8 for _, row in boxes] for cta, boxes in found.items()} == {
        0: [0, 3, 6],
        1: [1, 4],
        2: [2, 5],
    }
    opcodes = {instruction.parts[0] for instruction in scheduler.entries["kernel"].body}
    assert not opcodes & {"mbarrier", "bar"}


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        ("shl.b32 %r7, %r2, 3;", "ld.shared.u32 %r7, [smem];", "they depend on ld.shared.u32"),
        ("mov.u32 %r2, %ctaid.x;", "mov.u32 %r2, %smid;", "they depend on smid"),
        ("setp.ne.u32 %p4, %r3, 0;", "mbarrier.test_wait.shared::cta.b64 %p4, [%r5], %rd1;", "they depend on mbarrier"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {0, %r7}], [%r4];", "", "no TMA store"),
    ],
)
def test_what_depends_on_more_is_not_told(line: str, instead: str, reason: str) -> None:
    assert line in PTX
    with pytest.raises(NotSliced, match=reason):
        sliced(PTX.replace(line, instead))


def test_a_loop_that_decides_is_kept() -> None:
    """The row is counted up in a loop: the slice has to go through it as often."""
    counted = PTX.replace("shl.b32 %r7, %r2, 3;", "mul.lo.u32 %r7, %r6, 8;")
    found = dict(
        stores_of(sliced(counted.replace("%r6, 1000", "%r6, 3").replace("@!%p2 bra $wait;", "")), launch(2, 2))
    )
    assert {row for boxes in found.values() for _, row in boxes} == {24}


def test_the_same_tiles_as_the_whole_kernel_stores() -> None:
    from tmagen.diff.problem import addresses_of as addresses
    from tmagen.diff.problem import allocated, problem_of
    from tmagen.diff.record import record
    from tmagen.diff.sides import own_side, spec_elements
    from tmagen.emu import GlobalMemory
    from tmagen.ir import Gemm, Schedule, Shape, Tile
    from tmagen.toolchain import find_nvcc

    spec = Gemm(tile=Tile(128, 64, 64), schedule=Schedule(persistent=True, l2_group=2))
    side = own_side(spec, Shape(640, 200, 128), find_nvcc())
    problem = problem_of(Shape(640, 200, 128), spec_elements(spec))
    memory = GlobalMemory()
    assert side.trial_launch is not None
    small = replace(side.trial_launch(problem, addresses(allocated(problem, memory))), grid=(3, 1, 1))
    whole = record(side.trial.module, small, memory)
    alone = stores_of(scheduler_of(side.code.module, side.code.entry), small)
    assert dict(alone) == dict(whole.stores)
    assert sum(map(len, dict(alone).values())) == 5 * 4
