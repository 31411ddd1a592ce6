# SPDX-License-Identifier: Apache-2.0
"""A warp whose lanes all execute one tensor store: the same box is no race, other bytes to one place are."""

from __future__ import annotations

import pytest

from tests.emu.ptx import HEADER
from tmagen.emu import GlobalMemory, Launch, TensorMap, parse, run
from tmagen.emu.tensormap import DataType

TEXT = (
    HEADER
    + """
.shared .align 1024 .b8 tile[2048];
.visible .entry k(.param .align 64 .b8 map[128])
{{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, 0;
shl.b32 %r3, %r0, 2; add.u32 %r3, %r1, %r3; st.shared.u32 [%r3], %r0; st.shared.u32 [%r3+1024], %r0;
fence.proxy.async.shared::cta;
bar.warp.sync 0xffffffff;
{source}
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {{%r2, %r2}}], [%r1];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
ret;
}}
"""
)


@pytest.mark.parametrize(
    ("source", "rules"),
    [("", set()), ("and.b32 %r4, %r0, 1; mad.lo.u32 %r1, %r4, 1024, %r1;", {"BG-08"})],
    ids=["one box", "two sources"],
)
def test_stores_of_a_whole_warp(source: str, rules: set[str]) -> None:
    memory = GlobalMemory()
    out = memory.allocate(128)
    tmap = TensorMap(DataType.UINT32, 2, out.address, (8, 4), (32,), (8, 4), (1, 1))
    launch = Launch("k", (1, 1, 1), (32, 1, 1), params=tmap.encode())
    findings = run(parse(TEXT.format(source=source)), launch, memory, checks=True, strict=True).findings
    assert {finding.rule for finding in findings if finding.level == "E"} == rules
    assert {finding.rule for finding in findings if finding.level == "W"} == {"RC-03"}
