# SPDX-License-Identifier: Apache-2.0
"""The faults: who reported each, how it is planted, and what verify has to say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.planted import extended
from tests.planted.edit import Edit
from tmagen.emit import emit
from tmagen.ir import Gemm, Schedule, Shape, Target
from tmagen.plan import plan

PLAIN = Shape(136, 136, 328)  # six K tiles of 64; a tail of M, N and K
EDGE = Shape(200, 520, 72)  # ten tiles; those at the bottom have 72 rows, so 8 lanes of a warp have one


def step5() -> str:
    return emit(plan(Gemm()))


def step6() -> str:
    """On two CTAs, so that each has several tiles."""
    return emit(plan(Gemm(schedule=Schedule(persistent=True, ctas=2))))


def step5_hopper() -> str:
    return emit(plan(Gemm(target=Target.SM_90A)))


@dataclass(frozen=True)
class Fault:
    """`told` are words that the report must have, the id of a rule where one is broken, and `untold` those that it must
    not; `line` stands in a line of the .cu that the report must name.
    """

    name: str
    source: str
    kernel: Callable[[], str]
    edits: tuple[Edit, ...]
    told: tuple[str, ...]
    line: str | None
    shape: Shape = PLAIN
    untold: tuple[str, ...] = ()


_SMEM_ATTRIBUTE = """\
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemBytes);
  if (status != cudaSuccess) {
    return fail(status, "cudaFuncSetAttribute", cudaGetErrorString(status));
  }
"""

FAULTS = (
    Fault(
        "parity from the loop index in a persistent kernel",
        "tilelang PR #2674",
        step6,
        (
            ("Ring fill = pipeline.ring;", "Ring fill{};"),
            ("const uint32_t stage = pipeline.ring.stage;", "const uint32_t stage = k % kPipeDepth;"),
            ("(&smem.full[stage], pipeline.ring.phase);", "(&smem.full[stage], k / kPipeDepth % 2);"),
        ),
        ("deadlock", "waits for the phase of parity"),
        "k / kPipeDepth % 2",
        Shape(136, 392, 136),
    ),
    Fault(
        "bytes counted for another barrier",
        "tilelang #2644",
        step5,
        (("tile.n * kBlockN, full);", "tile.n * kBlockN,\n &smem.full[(stage + 1) % kPipeDepth]);"),),
        ("TM-34", "on which the load completes"),
        "ptx::cp_async_bulk_tensor_load(smem.b[stage]",
    ),
    Fault(
        "bytes of both CTAs expected by each",
        "tilelang #2644",
        extended.cluster,
        (("(full, kTxBytes);", "(full, 2 * kTxBytes);"),),
        ("deadlock", "tx bytes 32,768\n", " the last expect_tx: "),
        "2 * kTxBytes",
    ),
    Fault(
        "barrier initialised for two of four warps",
        "quack PR #146",
        extended.mailbox,
        (("(&smem.tile_empty, 4);", "(&smem.tile_empty, 2);"),),
        ("deadlock", "no wait has seen its last 2 phases complete", "its last arrival: "),
        "ptx::mbarrier_arrive(&smem.tile_empty)",
    ),
    Fault(
        "no proxy fence on the path of K = 0",
        "FlashKDA #24, DeepEP PR #642",
        step5,
        (("  ptx::fence_proxy_async_shared();\n", "  if (has_product) ptx::fence_proxy_async_shared();\n"),),
        ("PX-01", "no fence.proxy.async"),
        "ptx::cp_async_bulk_tensor_store(&map_d",
        Shape(136, 72, 0),
        ("MB-24",),  # all lanes are ordered: the fence is what is missing
    ),
    Fault(
        "TMEM address read before the barrier",
        "cutlass PR #2835, TIRx-kernels #7",
        step5,
        (
            (
                "  // Shows all threads the barriers and the TMEM address.\n",
                "  const uint32_t early = *reinterpret_cast<volatile uint32_t*>(&smem.tmem_base);\n",
            ),
            ("return smem.tmem_base;", "return early;"),
        ),
        ("TA-03",),
        "const uint32_t early",
    ),
    Fault(
        "nothing freed where there is no work",
        "cutlass #2230",
        step5,
        (("  tear_down(warp, tmem);", "  if (has_product) tear_down(warp, tmem);"),),
        ("TA-07", "tcgen05.alloc"),
        "ptx::tcgen05_alloc(&smem.tmem_base",
        Shape(136, 72, 0),
    ),
    Fault(
        "K shorter than the pipeline",
        "TensorRT-LLM PR #12835",
        step5,
        (("k < min(kPipeDepth, k_tiles)", "k < kPipeDepth"),),
        ("MB-09", "the CTA exits"),
        "ptx::cp_async_bulk_tensor_load(smem.b[stage]",
        Shape(136, 136, 40),
    ),
    Fault(
        "shared memory not asked for",
        "sglang #29897",
        step5_hopper,
        ((_SMEM_ATTRIBUTE, ""),),
        ("99,328 bytes of dynamic shared memory", "cudaFuncSetAttribute", "was not called for it"),
        None,
    ),
    Fault(
        "grid that clusters do not divide",
        "cutlass #2157",
        extended.cluster,
        (("(m_tiles + 1) / 2 * 2", "m_tiles"),),
        ("a grid of 3x2x1 CTAs cannot be divided into clusters of 2x1x1",),
        None,
        Shape(264, 136, 72),
    ),
    Fault(
        "mailbox rewritten before all have read it",
        "cuda-oxide #1066",
        extended.mailbox,
        (
            (
                "      ptx::mbarrier_wait_parity(&smem.tile_empty, (round & 1) ^ 1);"
                "  // passes at once the first time\n",
                "",
            ),
        ),
        ("RC-01",),
        "const Tile last{again[0], again[1]};",
        EDGE,
    ),
    Fault(
        "a lane arrives while others of its warp still read",
        "TIRx-kernels #202",
        extended.mailbox,
        (
            (
                "    __syncwarp();\n    if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.tile_empty);",
                "    if (threadIdx.x % 32 == 31) ptx::mbarrier_arrive(&smem.tile_empty);",
            ),
        ),
        ("RC-01", "MB-31", "what lanes 0-30 did"),
        "const Tile last{again[0], again[1]};",
        EDGE,
    ),
    Fault(
        "an elected lane arrives for a warp that has not met",
        "TIRx-kernels #202",
        extended.mailbox,
        (
            (
                "    __syncwarp();\n    if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.tile_empty);",
                "    if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.tile_empty);",
            ),
        ),
        ("RC-01", "MB-31", "bar.warp.sync"),
        "const Tile last{again[0], again[1]};",
    ),
    Fault(
        "a whole warp does what one elected lane should",
        "apache/tvm #20250",
        step5,
        (("  if (warp == 0 && ptx::elect_sync()) {\n    main_loop", "  if (warp == 0) {\n    main_loop"),),
        ("MB-04", "mbarrier.arrive after the last expected one"),
        "ptx::mbarrier_arrive_expect_tx(full, kTxBytes)",
    ),
    Fault(
        "local arrive on a remote address",
        "apache/tvm #20074",
        extended.cluster,
        (
            (
                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];",
                "mbarrier.arrive.shared::cta.b64 _, [remote];",
            ),
        ),
        ("MB-12", "the memory of another CTA"),
        "ptx::mbarrier_arrive_remote(&smem.empty[stage], ",
    ),
    Fault(
        "relay to the peer with .cta scope",
        "quack #63",
        extended.relay,
        (("mbarrier.arrive.release.cluster.shared", "mbarrier.arrive.shared"),),
        ("MB-35",),
        "ptx::st_remote(&smem.column",
    ),
)
