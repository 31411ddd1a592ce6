# SPDX-License-Identifier: Apache-2.0
"""Bulk reductions into the shared memory of a peer.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, data, out

REDUCE = """
extern "C" __global__ void question(u32* out, const u32* in) {{
  __shared__ __align__(128) u32 sums[64], terms[64];
  __shared__ u64 bar;
  u32 rank = cluster_rank(), t = threadIdx.x, b = smem(&bar);
  for (u32 i = t; i < 64; i += 32) {{
    sums[i] = in[i];
    terms[i] = in[64 + 64 * rank + i];
  }}
  if (t == 0) {{
    mbar_init(b, 1);
    mbar_arrive_expect(b, rank == 0 ? 512 : 0);
  }}
  fence_async();
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cluster_sync();
  if (t == 0)
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{type}"
                 " [%0], [%1], 256, [%2];" ::"r"(mapa(smem(sums), 0)), "r"(smem(terms)), "r"(mapa(b, 0)) : "memory");
  u32 done = mbar_waits(b, 0);
  if (rank == 0) {{
    for (u32 i = t; i < 64; i += 32) out[i] = sums[i];
    if (t == 0) out[64] = done;
  }}
  cluster_sync();
}}
"""


def reduce(op: str, type: str) -> Question:
    """Both CTAs reduce 256 bytes of their own into the first one's."""
    return Question(
        f"cluster-reduce-{op}-{type}",
        f"What does cp.reduce.async.bulk {op} of {type} by two CTAs leave in the shared memory of one?",
        "cp.reduce.async.bulk: .shared::cluster destination, .mbarrier::complete_tx::bytes",
        REDUCE.format(op=op, type=type),
        (out(65), data(192, fill="random")),
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
        shows="the phase completes: {w[64]}; the first words are {w[0]:#x} {w[1]:#x}",
    )


QUESTIONS = tuple(
    reduce(op, type)
    for op, type in (
        *((op, type) for type in ("u32", "s32") for op in ("add", "min", "max")),
        *((op, "b32") for op in ("and", "or", "xor")),
        ("add", "u64"),
    )
)
