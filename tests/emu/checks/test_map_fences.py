# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel makes: the fences between the change of a map and the copies that use it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import HEADER
from tests.emu.test_maps import PLAIN, replacements
from tmagen.emu import GlobalMemory, Launch, parse, run
from tmagen.emu.checks import Finding

TEXT = (
    HEADER
    + """
.shared .align 128 .b8 made[128]; .shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out, .param .u64 source)
{{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [source];
mov.u32 %r0, %tid.x; mov.u32 %r1, made; mov.u32 %r2, tile; mov.u32 %r3, bar; cvt.u64.u32 %rd3, %r1;
mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u32 %r9, %ctaid.x; setp.ne.u32 %p5, %r9, 0;
setp.ge.u32 %p3, %r0, 32;
shl.b32 %r4, %r0, 2; add.u32 %r4, %r1, %r4;
@!%p3 st.shared.u32 [%r4], 0;
setp.ne.u32 %p1, %r0, 0;
bar.sync 0;
@%p1 bra $made;
{fields}
mbarrier.init.shared.b64 [%r3], 1;
$made:
bar.sync 0;
{body}
ret;
}}
"""
)
COPY = (
    "@%p3 bra $copied;\n"
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;\n"
    "$copied:\n"
)
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"
SYNC = "bar.sync 0;\n"
LOAD = (
    "@%p1 bra $loaded;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r5, %r6}], [%r3];\n"
    "$loaded:\n"
)
WAIT = "$w: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;\n@!%p2 bra $w;\n"
CHANGE = "@%p1 bra $changed;\ntensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 1, 4;\n{}$changed:\n"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;\n"


def found(body: str, *, grid: int = 1, threads: int = 64) -> tuple[Finding, ...]:
    memory = GlobalMemory()
    out, source = memory.allocate(4096), memory.allocate(208 * 40)
    source.data.view(np.uint16)[:] = np.arange(104 * 40)
    params = out.address.to_bytes(8, "little") + source.address.to_bytes(8, "little")
    module = parse(TEXT.format(fields=replacements({**PLAIN, "swizzle_mode.shared::cta.b1024.b32": "0"}), body=body))
    launch = Launch("k", (grid, 1, 1), (threads, 1, 1), params=params)
    return run(module, launch, memory, checks=True).findings


def rules(body: str, **options: int) -> set[str]:
    return {finding.rule for finding in found(body, **options)}


@pytest.mark.parametrize(
    ("body", "fired"),
    [
        (COPY + ACQUIRE + SYNC + LOAD + WAIT, set()),
        (COPY + SYNC + ACQUIRE + LOAD + WAIT, set()),
        (COPY + SYNC + "@!%p3 bra $first;\n" + ACQUIRE + "$first:\n" + SYNC + LOAD + WAIT, set()),
        (COPY + SYNC + LOAD + WAIT, {"PX-12"}),
        (COPY + SYNC + ACQUIRE.replace("[%rd1]", "[%rd1+128]") + LOAD + WAIT, {"PX-12"}),
        (COPY + SYNC + "@!%p3 bra $first;\n" + ACQUIRE + "$first:\n" + LOAD + WAIT, {"PX-12"}),
        (ACQUIRE + SYNC + COPY + SYNC + LOAD + WAIT, {"PX-12"}),
    ],
    ids=[
        "acquired, then handed on", "acquired by all", "acquired by another warp", "not acquired", "another map",
        "acquired by another warp, unordered", "acquired too early",
    ],
)  # fmt: skip
def test_a_map_that_was_copied_from_shared_memory(body: str, fired: set[str]) -> None:
    assert rules(body) == fired


@pytest.mark.parametrize(
    ("between", "fired"),
    [
        (CHANGE.format(RELEASE) + SYNC + ACQUIRE, set()),
        (CHANGE.format("") + SYNC + RELEASE + ACQUIRE, set()),
        (CHANGE.format("") + SYNC + ACQUIRE, {"PX-12"}),
        (CHANGE.format("fence.proxy.async;\n") + SYNC + ACQUIRE, {"PX-12"}),
        (CHANGE.format(RELEASE) + SYNC, {"PX-12"}),
    ],
    ids=["both", "released after the barrier", "not released", "another proxy's fence", "not acquired"],
)
def test_a_map_that_is_changed_in_place(between: str, fired: set[str]) -> None:
    assert rules(COPY + ACQUIRE + SYNC + between + LOAD + WAIT) == fired


def test_what_is_missing_is_said() -> None:
    (finding,) = found(COPY + SYNC + LOAD + WAIT)
    assert finding.place.instruction.startswith("cp.async.bulk.tensor.2d")
    assert finding.other is not None and finding.other.instruction.startswith("tensormap.cp_fenceproxy")
    assert "no fence.proxy.tensormap::generic.acquire of the map at" in (finding.edge or "")
    (finding,) = found(COPY + ACQUIRE + SYNC + CHANGE.format("") + SYNC + ACQUIRE + LOAD + WAIT)
    assert finding.other is not None and finding.other.instruction.startswith("tensormap.replace")
    assert "no fence.proxy.tensormap::generic.release" in (finding.edge or "")


def test_a_map_in_use_is_not_changed() -> None:
    start = COPY + ACQUIRE + SYNC + LOAD
    assert rules(start + CHANGE.format(RELEASE) + WAIT) == {"PX-13"}
    assert rules(start + WAIT + CHANGE.format(RELEASE)) == set()


TELL = "@%p1 bra $told;\nst.release.gpu.global.b32 [%rd1+1024], 1;\n$told:\nret;\n"
ASK = (
    "@%p1 bra $asked;\n$ask: ld.acquire.gpu.global.b32 %r7, [%rd1+1024];\nsetp.eq.u32 %p4, %r7, 0;\n"
    "@%p4 bra $ask;\n$asked:\n"
)


@pytest.mark.parametrize(
    ("tell", "ask", "fired"),
    [
        (TELL, ASK + SYNC + ACQUIRE, set()),
        (TELL, ASK + ACQUIRE + SYNC, set()),
        (TELL, ASK + SYNC, {"PX-12"}),
        (TELL.replace("gpu", "cta"), ASK + SYNC + ACQUIRE, {"PX-12", "RC-02"}),
    ],
    ids=["acquired", "acquired before the barrier", "not acquired", "scope"],
)
def test_a_map_that_another_cta_made(tell: str, ask: str, fired: set[str]) -> None:
    body = "@%p5 bra $other;\n" + COPY + SYNC + tell + "$other:\n" + ask + LOAD + WAIT
    assert rules(body, grid=2) == fired


def test_the_staging_of_a_map_in_shared_memory() -> None:
    """Thread 0 puts in the fields, and another warp copies the map with no barrier between."""
    late = "@%p1 bra $late;\ntensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd3], 1;\n$late:\n"
    assert rules(late + SYNC + COPY) == set()
    assert rules(late + COPY.replace("@%p3", "@!%p3")) == {"RC-01"}
