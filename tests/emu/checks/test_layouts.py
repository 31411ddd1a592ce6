# SPDX-License-Identifier: Apache-2.0
"""Descriptors of MMAs against the tensor map that wrote the bytes: hints, and findings with `strict`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.checks.kernels import INIT, SHARED, START, SYNC, one, wait
from tests.emu.checks.test_tensor_memory import ADDRESS, ALLOC, DONE, END, MMA
from tests.emu.ptx import module
from tmagen.emu import GlobalMemory, Launch, RunResult, TensorMap, run
from tmagen.emu.tensormap import DataType, SwizzleMode

ROWS = 128
CODES = {SwizzleMode.NONE: 0, SwizzleMode.B32: 6, SwizzleMode.B64: 4, SwizzleMode.B128: 2}
TMA = (
    f"mbarrier.arrive.expect_tx.shared.b64 _, [%r91], {ROWS * 32};\nmov.u32 %r50, 0;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r90], [%rd1, {%r50, %r50}], [%r91];\n"
)


def observed(
    swizzle: SwizzleMode, code: int, *, base: int = 0, strict: bool = False, loads: bool = True, adds: bool = False
) -> RunResult:
    """A box of 128 rows of 32 bytes by a map with `swizzle`, read by an MMA as A and B with another swizzle code."""
    memory = GlobalMemory()
    where, matrix = memory.allocate(128), memory.allocate(ROWS * 32)
    matrix.data[:] = np.arange(ROWS * 32, dtype=np.uint8) & 0x3F
    tmap = TensorMap(DataType.FLOAT16, 2, matrix.address, (16, ROWS), (32,), (16, ROWS), (1, 1), swizzle=swizzle)
    where.data[:] = np.frombuffer(tmap.encode(), np.uint8)
    bits = (8 << 16) | (16 << 32) | (1 << 46) | (base << 49) | (code << 61)
    body = (
        f"shr.u32 %r30, %r90, 4;\ncvt.u64.u32 %rd20, %r30;\nmov.b64 %rd21, {bits};\nor.b64 %rd20, %rd20, %rd21;\n"
        f"mov.b32 %r31, {(1 << 4) | (64 >> 3 << 17) | (128 >> 4 << 24)};\nsetp.ne.u32 %p4, 0, {int(adds)};\n"
    )
    load = one(TMA, 1) + wait() if loads else ""
    text = START + INIT + ALLOC + SYNC + ADDRESS + body + load + one(MMA + DONE, 2) + END
    params = b"".join(a.address.to_bytes(8, "little") for a in (where, matrix))
    launch = Launch("k", (1, 1, 1), (128, 1, 1), params=params)
    return run(module(text, pointers=2, declarations=SHARED), launch, memory, checks=True, strict=strict)


@pytest.mark.parametrize("swizzle", [SwizzleMode.B32, SwizzleMode.B64])
def test_one_swizzle_for_both(swizzle: SwizzleMode) -> None:
    result = observed(swizzle, CODES[swizzle])
    # boxes of 32 bytes in rows of 64: the rest of the rows is nobody's, and the descriptor steps over it
    assert not result.findings and "DS-10" not in {hint.rule for hint in result.hints}


@pytest.mark.parametrize(
    ("swizzle", "code", "said"),
    [
        (
            SwizzleMode.B32,
            0,
            "reads with no swizzle, and the tensor map of the TMA load that wrote the bytes has swizzle 32",
        ),
        (
            SwizzleMode.NONE,
            6,
            "reads with swizzle 32, and the tensor map of the TMA load that wrote the bytes has no swizzle",
        ),
    ],
)
def test_another_swizzle_is_a_hint_beside_a_wrong_result(swizzle: SwizzleMode, code: int, said: str) -> None:
    result = observed(swizzle, code)
    assert not result.findings
    (hint,) = result.hints
    assert hint.rule == "DS-10" and said in hint.message and hint.instruction.startswith("tcgen05.mma")
    strict = observed(swizzle, code, strict=True)
    assert [(found.rule, found.level) for found in strict.findings if found.level == "R"] == [("DS-10", "R")]


def test_a_base_offset_for_what_tma_wrote() -> None:
    assert not observed(SwizzleMode.B32, 6).hints
    (hint,) = observed(SwizzleMode.B32, 6, base=1).hints
    assert hint.rule == "DS-05" and "base offset 1" in hint.message


def test_bytes_that_nobody_wrote() -> None:
    result = observed(SwizzleMode.B32, 6, loads=False)
    assert not result.findings and {hint.rule for hint in result.hints} == {"DS-08"}


@pytest.mark.parametrize("adds", [False, True])
def test_a_sum_that_nobody_has_begun(adds: bool) -> None:
    result = observed(SwizzleMode.B32, 6, adds=adds)
    assert not result.findings and ("TM5-01" in {hint.rule for hint in result.hints}) is adds
