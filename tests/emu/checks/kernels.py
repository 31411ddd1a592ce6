# SPDX-License-Identifier: Apache-2.0
"""Small kernels under observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.emu.ptx import module
from tmagen.emu import EmulatorError, GlobalMemory, Launch, Predecessor, run
from tmagen.emu.checks import Finding

SHARED = (
    ".shared .align 8 .b64 bar;\n.shared .align 8 .b64 bar2;\n.shared .align 1024 .b8 tile[8192];\n"
    ".shared .align 4 .b32 slot;\n"
)
START = (
    "mov.u32 %r0, %tid.x;\nmov.u32 %r90, tile;\nmov.u32 %r91, bar;\nmov.u32 %r92, bar2;\nmov.u32 %r93, slot;\n"
    "shl.b32 %r94, %r0, 4;\nadd.u32 %r94, %r94, %r90;\n"  # 16 bytes of the tile for each thread
)
INIT = (
    "setp.ne.u32 %p9, %r0, 0;\n@%p9 bra $ready;\nmbarrier.init.shared::cta.b64 [%r91], 1;\n"
    "mbarrier.init.shared::cta.b64 [%r92], 1;\n$ready:\n"
)
LOAD = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r91], 1024;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r90], [%rd2], 1024, [%r91];\n"
)
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r90], 1024;\n"
COMMIT = "cp.async.bulk.commit_group;\n"
SYNC = "bar.sync 0;\n"
FENCE = "fence.proxy.async.shared::cta;\n"
FILL = "st.shared.v4.b32 [%r94], {%r0, %r0, %r0, %r0};\n"
READ = "ld.shared.b32 %r5, [%r94];\n"
USE = "add.u32 %r6, %r5, 1;\n"


def wait(phase: int = 0, barrier: str = "%r91", name: str = "L") -> str:
    """All threads that execute it wait for a phase."""
    return (
        "{\n.reg .pred P;\n" + f"{name}:\nmbarrier.try_wait.parity.shared::cta.b64 P, [{barrier}], {phase};\n"
        f"@!P bra {name};\n}}\n"
    )


def one(text: str, number: int, thread: int = 0) -> str:
    """`text` by one thread."""
    return f"setp.ne.u32 %p8, %r0, {thread};\n@%p8 bra $past{number};\n{text}$past{number}:\n"


def warp(text: str, number: int, index: int = 0) -> str:
    """`text` by one warp."""
    return f"shr.u32 %r80, %r0, 5;\nsetp.ne.u32 %p7, %r80, {index};\n@%p7 bra $after{number};\n{text}$after{number}:\n"


def check(
    body: str,
    *,
    threads: int = 64,
    grid: int = 1,
    strict: bool = True,
    completion: str = "eager",
    out_bytes: int = 8192,
    cluster: int = 1,
    directives: str = "",
    registers: int | None = None,
    predecessor: Callable[[int, int], Predecessor] | None = None,
) -> tuple[Finding, ...]:
    """What a checked run of `body` finds. `predecessor` makes the grid before of the addresses of the output and of the
    input.
    """
    memory = GlobalMemory()
    out, source = memory.allocate(out_bytes), memory.allocate(8192)
    source.data[:] = np.arange(8192, dtype=np.uint8)
    kernel = module(START + body, pointers=2, declarations=SHARED, directives=directives)
    params = b"".join(a.address.to_bytes(8, "little") for a in (out, source))
    before = None if predecessor is None else predecessor(out.address, source.address)
    launch = Launch(
        "k", (grid, 1, 1), (threads, 1, 1), (cluster, 1, 1), params=params, registers=registers, predecessor=before
    )
    return run(kernel, launch, memory, completion=completion, checks=True, strict=strict).findings


def rules(body: str, level: str = "E", **options: Any) -> set[str]:
    """The rules of a severity that fire; a fault's rule is among those of severity E."""
    try:
        found = check(body, **options)
        fault = None
    except EmulatorError as error:
        found, fault = error.findings, error.rule
    fired = {finding.rule for finding in found if finding.level == level}
    return fired | {fault} if fault and level == "E" else fired
