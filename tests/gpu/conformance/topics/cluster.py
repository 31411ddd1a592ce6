# SPDX-License-Identifier: Apache-2.0
"""Clusters: ranks, shared memory of other CTAs, their mbarriers, multicast.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from typing import Any

from tests.gpu.conformance.question import Dim3, Parameter, Question, data, out

RANKS = """
extern "C" __global__ void question(u32* out) {
  u32 r[10], linear = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r[0]));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r[1]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(r[2]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(r[3]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(r[4]));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r[5]));
  asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(r[6]));
  asm volatile("mov.u32 %0, %%clusterid.z;" : "=r"(r[7]));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(r[8]));
  asm volatile("{\\n.reg .pred p;\\nmov.pred p, %%is_explicit_cluster;\\nselp.u32 %0, 1, 0, p;\\n}" : "=r"(r[9]));
  for (u32 i = 0; i < 10; ++i) out[linear * 10 + i] = r[i];
}
"""


def ranks(id: str, grid: Dim3, cluster: Dim3) -> Question:
    """Each CTA writes ten special registers."""
    shape, whole = ("x".join(map(str, dims)) for dims in (cluster, grid))
    return Question(
        id,
        f"Which ranks and cluster coordinates have the CTAs of a grid {whole} in clusters {shape}?",
        "Special Registers: %cluster_ctarank, %cluster_ctaid, %clusterid",
        RANKS,
        (out(10 * grid[0] * grid[1] * grid[2]),),
        grid=grid,
        block=(1, 1, 1),
        cluster=cluster,
        policies=("eager",),
    )


def together(
    id: str,
    asks: str,
    ptx: str,
    body: str,
    *,
    ctas: int = 2,
    parameters: tuple[Parameter, ...] = (out(64),),
    block: int = 32,
    before: str = "",
    **rest: Any,
) -> Question:
    """A cluster in a row. Each CTA has an mbarrier at `b` of count 1 and 256 words at `w` that hold 1000 * rank +
    index; its part of `out` is `mine`, 16 words. `rank` is its rank, `t` the thread.
    """
    given = ", const u32* in" if len(parameters) > 1 else ""
    source = f"""
{before}
extern "C" __global__ void question(u32* out{given}) {{
  __shared__ __align__(128) u32 words[256];
  __shared__ u64 bar;
  u32 rank = cluster_rank(), t = threadIdx.x, b = smem(&bar), w = smem(words);
  u32* mine = out + 16 * rank;
  for (u32 i = t; i < 256; i += blockDim.x) words[i] = 1000 * rank + i;
  if (t == 0) mbar_init(b, 1);
  fence_async();
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  cluster_sync();
  {body.strip()}
}}
"""
    return Question(
        id, asks, ptx, source, parameters, grid=(ctas, 1, 1), block=(block, 1, 1), cluster=(ctas, 1, 1), **rest
    )


MULTICAST = """
  u32 mask = {mask};
  if (t == 0) mbar_expect(b, mask >> rank & 1 ? 64 : 0);
  cluster_sync();
  if (rank == {issuer} && t == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], 64, [%2], %3;"
                 ::"r"(w), "l"(in), "r"(b), "h"(static_cast<u16>(mask)) : "memory");
  if (t == 0) {{
    mbar_arrive(b);
    mine[0] = mbar_waits(b, 0);
    mine[1] = words[0];
    mine[2] = words[15];
    mine[3] = words[16];
  }}
  cluster_sync();
"""


def multicast(id: str, asks: str, mask: str, issuer: int, ctas: int, **rest: Any) -> Question:
    """A bulk load to several CTAs."""
    return together(
        id,
        asks,
        "cp.async.bulk: .multicast::cluster; each bit of ctaMask is a %cluster_ctarank",
        MULTICAST.format(mask=mask, issuer=issuer),
        ctas=ctas,
        parameters=(out(16 * ctas), data(16, fill=tuple(range(7000, 7016)))),
        **rest,
    )


QUESTIONS = (
    ranks("cluster-ranks-2x1", (6, 2, 1), (2, 1, 1)),
    ranks("cluster-ranks-1x2", (3, 4, 1), (1, 2, 1)),
    ranks("cluster-ranks-2x2", (4, 4, 1), (2, 2, 1)),
    ranks("cluster-ranks-2x2x2", (4, 2, 4), (2, 2, 2)),
    ranks("cluster-ranks-8", (16, 1, 1), (8, 1, 1)),
    ranks("cluster-ranks-none", (3, 2, 2), (1, 1, 1)),
    together(
        "cluster-addresses",
        "Where in the shared window do a CTA's own variables and those of its peers lie?",
        "mapa; State Spaces: .shared::cta is a sub-window of .shared::cluster",
        """
  if (t == 0) {
    mine[0] = w >> 24;
    for (u32 i = 0; i < 4; ++i) mine[1 + i] = mapa(w, i) >> 24;
    mine[5] = (mapa(w, 3) ^ w) & 0xffffff;
    u64 there;
    asm volatile("mapa.u64 %0, %1, 2;" : "=l"(there) : "l"(words));
    mine[6] = static_cast<u32>(there ^ reinterpret_cast<u64>(words)) >> 24;
    asm volatile("getctarank.u64 %0, %1;" : "=r"(mine[7]) : "l"(there));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(mine[8]) : "r"(w));
  }
  cluster_sync();
""",
        ctas=4,
        shows="CTA 1: its own {w[16]}, mapa to 0 to 3: {w[17]} {w[18]} {w[19]} {w[20]}; getctarank {w[23]} {w[24]}",
    ),
    together(
        "cluster-load-store",
        "Do ld and st.shared::cluster reach the peer's words, and only those?",
        "ld, st: .shared::cluster",
        """
  u32 peer = mapa(w, rank ^ 1), got;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(peer + 4 * t));
  cluster_sync();
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer + 4 * (31 - t)), "r"(got + 5) : "memory");
  cluster_sync();
  if (t < 8) {
    mine[t] = got;
    mine[8 + t] = words[24 + t + (t & 4) * 4];
  }
""",
        shows="CTA 0 loads {w[0]}, then holds {w[8]} ... {w[15]}",
    ),
    together(
        "cluster-generic",
        "Does a generic pointer from mapa reach the peer by plain loads, stores and vectors?",
        "mapa: generic address of the corresponding location",
        """
  u64 there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(words), "r"(rank ^ 1));
  uint4 four = *reinterpret_cast<uint4*>(there);
  cluster_sync();
  if (t == 3) *reinterpret_cast<volatile u16*>(there + 6) = static_cast<u16>(rank + 77);
  cluster_sync();
  if (t == 0) {
    mine[0] = four.x;
    mine[1] = four.w;
    mine[2] = words[1];
  }
""",
        shows="CTA 0 loads {w[0]} and {w[1]}; its word 1 is then {w[2]:#x}",
    ),
    together(
        "cluster-atomics",
        "Do atomics on a peer's shared memory from all CTAs and lanes add up, and return the old value?",
        "atom: .shared::cluster",
        """
  u32 there = mapa(w, 0), old;
  asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(there), "r"(1 + rank) : "memory");
  asm volatile("red.shared::cluster.max.u32 [%0], %1;" ::"r"(there + 4), "r"(100 * rank + t) : "memory");
  asm volatile("atom.shared::cluster.cas.b32 %0, [%1], 2, %2;" : "=r"(old) : "r"(there + 8), "r"(rank + 50) : "memory");
  cluster_sync();
  if (t < 3) mine[t] = words[t];
  cluster_sync();
""",
        ctas=4,
        varies=lambda found: (
            f"sum {found['out'][0]}, max {found['out'][1]}, one CTA's swap won: {50 <= found['out'][2] < 54}"
        ),
    ),
    together(
        "cluster-barrier-split",
        "May a CTA work between barrier.cluster.arrive and wait, and see what peers wrote before they arrived?",
        "barrier.cluster: arrive has .release, wait has .acquire semantics by default",
        """
  u32 peer = mapa(w, rank ^ 1);
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer + 4 * t), "r"(rank * 10 + t) : "memory");
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  if (t < 4) mine[t] = words[100 + t];
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (t < 4) mine[4 + t] = words[t];
""",
        shows="CTA 0: {w[0]}, and its words from CTA 1 {w[4]} {w[7]}",
    ),
    Question(
        "cluster-barrier-exited",
        "Does the cluster's barrier wait for a CTA that has exited, or for warps that have?",
        "barrier.cluster.wait: waits for all non-exited threads of the cluster",
        """
extern "C" __global__ void question(u32* out) {
  u32 rank = cluster_rank();
  if (rank == 1 || threadIdx.x >= 32) return;
  __nanosleep(20000);
  asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;" ::: "memory");
  out[threadIdx.x] = 1;
}
""",
        (out(32),),
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
        block=(64, 1, 1),
        may_trap=True,
        shows="goes on: {w[0]}",
    ),
    together(
        "cluster-remote-arrive",
        "Do arrivals at a peer's mbarrier complete its phase, with and without a count?",
        "mbarrier.arrive: .shared::cluster, without a result",
        """
  if (t == 0) {
    mbar_inval(b);
    mbar_init(b, 5);
  }
  cluster_sync();
  u32 there = mapa(b, rank ^ 1);
  if (t == 0) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 3;" ::"r"(there) : "memory");
  }
  cluster_sync();
  if (t == 0) {
    mine[0] = mbar_test(b, 0);
    mbar_arrive(b);
    mine[1] = mbar_test(b, 0);
  }
""",
        shows="after 1 + 3 of 5 arrivals {w[0]}, after the own one {w[1]}",
    ),
    together(
        "cluster-remote-expect",
        "Do arrive.expect_tx, expect_tx and complete_tx reach a peer's mbarrier?",
        "mbarrier.arrive.expect_tx, mbarrier.expect_tx, mbarrier.complete_tx: .shared::cluster",
        """
  u32 there = mapa(b, rank ^ 1);
  if (t == 0) {
    asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" ::"r"(there) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 32;" ::"r"(there) : "memory");
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 32;" ::"r"(there) : "memory");
  }
  cluster_sync();
  if (t == 0) {
    mine[0] = mbar_test(b, 0);
    mbar_complete(b, 16);
    mine[1] = mbar_test(b, 0);
  }
""",
        shows="16 of 48 bytes missing {w[0]}, all there {w[1]}",
    ),
    together(
        "cluster-remote-drop",
        "Does arrive_drop at a peer's mbarrier lower what its later phases expect?",
        "mbarrier.arrive_drop: .shared::cluster",
        """
  if (t == 0) {
    mbar_inval(b);
    mbar_init(b, 2);
  }
  cluster_sync();
  if (t == 0)
    asm volatile("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%0];"
                 ::"r"(mapa(b, rank ^ 1)) : "memory");
  cluster_sync();
  if (t == 0) {
    mbar_arrive(b);
    mine[0] = mbar_test(b, 0);
    mbar_arrive(b);
    mine[1] = mbar_test(b, 1);
  }
""",
        shows="phase 0 over {w[0]}, phase 1 after one arrival {w[1]}",
    ),
    together(
        "cluster-bulk-copy",
        "Does a bulk copy to a peer's shared memory complete on the peer's mbarrier?",
        "cp.async.bulk: shared::cluster from shared::cta, mbarrier in the destination's CTA",
        """
  if (t == 0) {
    mbar_arrive_expect(b, 96);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 96, [%2];"
                 ::"r"(mapa(w + 512, rank ^ 1)), "r"(w + 16), "r"(mapa(b, rank ^ 1)) : "memory");
    mine[0] = mbar_waits(b, 0);
    mine[1] = words[127];
    mine[2] = words[128];
    mine[3] = words[151];
    mine[4] = words[152];
  }
  cluster_sync();
""",
        shows="complete {w[0]}; words 127, 128, 151, 152: {w[1]} {w[2]} {w[3]} {w[4]}",
    ),
    together(
        "cluster-st-async",
        "Does st.async write a peer's word and complete its size on the peer's mbarrier?",
        "st.async: .mbarrier::complete_tx::bytes",
        """
  if (t == 0) {
    mbar_arrive_expect(b, 4 + 16);
    u32 there = mapa(w, rank ^ 1), bar_there = mapa(b, rank ^ 1);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 ::"r"(there), "r"(rank + 60), "r"(bar_there) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, 2, 3, 4}, [%2];"
                 ::"r"(there + 16), "r"(rank + 80), "r"(bar_there) : "memory");
    mine[0] = mbar_waits(b, 0);
    mine[1] = words[0];
    mine[2] = words[3];
    mine[3] = words[4];
    mine[4] = words[7];
  }
  cluster_sync();
""",
        shows="complete {w[0]}; words 0, 3, 4, 7: {w[1]} {w[2]} {w[3]} {w[4]}",
    ),
    together(
        "cluster-red-async",
        "Does red.async add to a peer's word and complete its size on the peer's mbarrier?",
        "red.async: .mbarrier::complete_tx::bytes",
        """
  if (t == 0) {
    mbar_arrive_expect(b, 8);
    u32 there = mapa(w, rank ^ 1), bar_there = mapa(b, rank ^ 1);
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 ::"r"(there + 4), "r"(rank + 60), "r"(bar_there) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32 [%0], %1, [%2];"
                 ::"r"(there + 8), "r"(0x10000), "r"(bar_there) : "memory");
    mine[0] = mbar_waits(b, 0);
    mine[1] = words[1];
    mine[2] = words[2];
  }
  cluster_sync();
""",
        shows="complete {w[0]}; {w[1]}, {w[2]:#x}",
    ),
    multicast("cluster-multicast-all", "Does a multicast reach all CTAs of its mask, at the same offset?", "0xf", 2, 4),
    multicast("cluster-multicast-peer", "May a CTA multicast to others alone?", "0xa", 0, 4),
    multicast("cluster-multicast-self", "Does a mask of its own bit alone reach the issuer?", "2", 1, 2),
    multicast(
        "cluster-multicast-nobody",
        "What does a multicast with mask 0 do?",
        "out[0] - 0xa5a5a5a5",
        0,
        2,
        may_trap=True,
    ),
    multicast(
        "cluster-multicast-beyond",
        "What does a multicast do whose mask names a CTA beyond the cluster?",
        "(out[0] - 0xa5a5a5a5) | 5",
        0,
        2,
        may_trap=True,
        fault="mask",
    ),
    together(
        "cluster-mapa-beyond",
        "What does an access do with an address that mapa made of a rank beyond the cluster?",
        "mapa: the rank is below the cluster's size",
        """
  u32 got = 0;
  if (t == 0) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(mapa(w, 5)));
  mine[0] = got;
  cluster_sync();
""",
        may_trap=True,
        fault="rank",
    ),
    together(
        "cluster-exited-peer",
        "What does a load from the shared memory of a CTA that has exited do?",
        "State Spaces: .shared::cluster is valid while the CTA runs",
        """
  if (rank == 1) return;
  cluster_sync();  // until the peer's threads have exited
  __nanosleep(100000);
  u32 got;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(mapa(w, 1)) : "memory");
  mine[0] = got;
""",
        may_trap=True,
        fault="exited",
    ),
    together(
        "cluster-lanes-and-ctas",
        "Does fence-free remote arrival by 32 lanes of each of 4 CTAs complete a phase of 128 once?",
        "mbarrier.arrive: each executing thread arrives",
        """
  if (t == 0 && rank == 3) {
    mbar_inval(b);
    mbar_init(b, 128);
  }
  cluster_sync();
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mapa(b, 3)) : "memory");
  cluster_sync();
  if (t == 0) mine[0] = rank == 3 ? mbar_test(b, 0) * 2 + mbar_test(b, 1) : 9;
""",
        ctas=4,
        shows="phase 0 over << 1 | phase 1 over: {w[48]}",
    ),
    together(
        "cluster-bulk-copy-to-itself",
        "May a bulk copy from shared to shared memory of a cluster have the own CTA as its destination?",
        "cp.async.bulk: shared::cluster from shared::cta",
        """
  if (t == 0) {
    mbar_arrive_expect(b, 64);
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 64, [%2];"
                 ::"r"(w + 512), "r"(w + 16), "r"(b) : "memory");
    mine[0] = mbar_waits(b, 0);
    mine[1] = words[128];
  }
  cluster_sync();
""",
        shows="complete {w[0]}; word 128: {w[1]}",
        may_trap=True,
    ),
    together(
        "cluster-multicast-before-expect",
        "May multicast bytes arrive in a CTA that expects them only later?",
        "cp.async.bulk: .multicast::cluster; the tx-count may be negative",
        """
  if (t == 0) {
    if (rank == 0)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                   " [%0], [%1], 64, [%2], %3;"
                   ::"r"(w), "l"(in), "r"(b), "h"(static_cast<u16>(3)) : "memory");
    __nanosleep(200000);
    mine[0] = mbar_test(b, 0);
    mbar_arrive_expect(b, 64);
    mine[1] = mbar_waits(b, 0);
    mine[2] = words[15];
  }
  cluster_sync();
""",
        parameters=(out(32), data(16, fill=tuple(range(7000, 7016)))),
        shows="CTA 1: before {w[16]}, after {w[17]}, its word {w[18]}",
    ),
    together(
        "cluster-multicast-to-exited",
        "What does a multicast do whose mask names a CTA that has exited?",
        "cp.async.bulk: .multicast::cluster",
        """
  if (rank == 1) return;
  cluster_sync();  // until the peer's threads have exited
  __nanosleep(100000);
  if (t == 0) {
    mbar_arrive_expect(b, 64);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], 64, [%2], %3;"
                 ::"r"(w), "l"(in), "r"(b), "h"(static_cast<u16>(3)) : "memory");
    mine[0] = mbar_waits(b, 0);
  }
""",
        parameters=(out(32), data(16)),
        may_trap=True,
        fault="exited",
    ),
    together(
        "cluster-stores-and-remote-arrive",
        "Are stores to a peer's shared memory there once it has seen an arrival of default scope that follows them?",
        "mbarrier.arrive: .release at .cta scope by default; a peer is outside of it",
        """
  u32 wrong = 0;
  for (u32 round = 0; round < 200; ++round) {
    if (rank == 0) {
      asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapa(w + 4 * t, 1)), "r"(round * 64 + t) : "memory");
      __syncwarp();
      if (t == 0) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mapa(b, 1)) : "memory");
    } else {
      mbar_waits(b, round & 1);
      if (*static_cast<volatile u32*>(words + 31 - t) != round * 64 + 31 - t) ++wrong;
    }
    cluster_sync();
  }
  if (t < 16) mine[t] = wrong;
""",
        parameters=(out(32),),
        policies=("eager",),
        shows="stale words of CTA 1's first threads: {w[16]}, {w[17]}",
    ),
)
