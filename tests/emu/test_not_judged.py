# SPDX-License-Identifier: Apache-2.0
"""What is not understood is said, with instruction and line, when it is reached: never skipped, never guessed."""

from __future__ import annotations

import pytest

from tests.emu.ptx import LANE, words
from tmagen.emu import NotJudged
from tmagen.emu.isa import registry

UNKNOWN = [
    "tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64 [%r1], %rd2;",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r1];",
    "istypep.texref %p1, %rd1;",
    "add.rz.f64 %fd1, %fd2, %fd3;",
    "mov.b128 %rd2, %rd3;",
    "fence.proxy.async.nonsense;",
    "fence.acq_rel;",
    "fence.acquire.sync_restrict::shared::cta.cluster;",
    "ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%r9];",
    "ld.shared.weird.u32 %r1, [%r2];",
    "mbarrier.try_wait.parity.layout::v1.shared.b64 %p1, [%r1], 0;",
    "mbarrier.arrive.noComplete.shared.b64 %rd2, [%r1];",
    "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2}], [%r3];",
    "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2}], [%r3];",
    "setmaxnreg.inc.sync.aligned.u32 %r1;",
    "mul24.lo.sat.u32 %r1, %r2, %r3;",
    "addc.u16 %rs1, %rs2, %rs3;",
    "call.uni (retval0), malloc, (param0);",
    "mov.u32 %r1, %clock_hi;",
    "cvt.rn.satfinite.e2m1x2.f32 %rs1, %f1, %f2;",
    "ld.param.u32 %r1, [missing];",
    "shfl.idx.b32 %r1, %r2, 0, 31;",
    "add.s32 %r1, %r2;",
    "cvt.u32.u32.sat %r1, %r2;",
    "sin.approx.f64 %fd1, %fd2;",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_reached_unknown_instructions_end_the_run(text: str) -> None:
    with pytest.raises(NotJudged) as caught:
        words(LANE + "mov.u32 %r5, 1;\n" + text + "\nst.global.u32 [%rd41], %r5;\n")
    error = caught.value
    assert error.exit_code == 2
    assert error.instruction == text.removesuffix(";")
    assert error.ptx_line is not None
    assert text.removesuffix(";") in error.report() and f"PTX line {error.ptx_line}" in error.report()


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_instructions_that_nobody_reaches_do_not_matter(text: str) -> None:
    body = (
        LANE + f"setp.gt.u32 %p1, %r0, 100;\n@!%p1 bra $past;\n{text}\n$past:\nmov.u32 %r5, 1;\n"
        "st.global.u32 [%rd41], %r5;\n"
    )
    assert words(body) == [1] * 32


def test_a_guarded_unknown_instruction_counts_only_where_its_guard_holds() -> None:
    text = LANE + "setp.gt.u32 %p1, %r0, {n};\n@%p1 istypep.texref %p1, %rd1;\nst.global.u32 [%rd41], %r0;\n"
    assert words(text.format(n=31)) == list(range(32))
    with pytest.raises(NotJudged):
        words(text.format(n=30))


def test_registry_describes_every_opcode() -> None:
    specs = registry.known()
    assert len(specs) > 80
    assert all(spec.summary and spec.family for spec in specs)
    assert registry.find("tcgen05.mma.cta_group::1.kind::f16").opcode == "tcgen05.mma"  # type: ignore[union-attr]
    assert registry.find("mbarrier.arrive.expect_tx.shared.b64").opcode == "mbarrier.arrive"  # type: ignore[union-attr]
    assert registry.find("tcgen05.shift.cta_group::1.down") is None
    with pytest.raises(ValueError, match="twice"):
        registry.instruction("add")(lambda cx, ins: None)
