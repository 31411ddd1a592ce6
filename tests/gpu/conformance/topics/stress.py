# SPDX-License-Identifier: Apache-2.0
"""Orders that no fence guarantees: whether they are broken in many rounds.

Section names are those of the PTX ISA. An order that held in some rounds on one machine is
still no guarantee: the checks report what is missing.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, data, out

PROXY = "Async proxy: a fence.proxy.async is needed between the generic and the async proxy"

QUESTIONS = (
    Question(
        "stress-store-without-fence",
        "Does a bulk store read what its own thread has just written, without fence.proxy.async?",
        PROXY,
        """
extern "C" __global__ void question(u32* out, u32* to) {
  __shared__ __align__(128) u32 tile[64];
  u32 wrong = 0;
#pragma unroll 1
  for (u32 round = 0; round < 300; ++round) {
    for (u32 i = 0; i < 4; ++i) tile[i + 4 * (round & 7)] = round * 4 + i;
    bulk_store(to, smem(tile + 4 * (round & 7)), 16);
    bulk_commit();
    bulk_wait();
    for (u32 i = 0; i < 4; ++i) wrong += static_cast<volatile u32*>(to)[i] != round * 4 + i;
  }
  out[0] = wrong;
}
""",
        (out(1), data(4, name="to")),
        block=(1, 1, 1),
        policies=("eager",),
        shows="stale words in 300 rounds: {w[0]}",
        rule="PX-01",
        fault="PX-01",
        explained="Without the fence nearly every store of the H200 reads what was there before. The emulator's "
        "copies see all writes; its checks name the missing fence.",
    ),
    Question(
        "stress-refill-without-fence",
        "Do loads see the old data when the slot is refilled by a bulk copy after an arrival without a fence?",
        PROXY,
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  __shared__ __align__(128) u32 tile[128];
  __shared__ u64 bars[2];
  u32 t = threadIdx.x, full = smem(bars), empty = smem(bars + 1), wrong = 0;
  if (t == 0) {
    mbar_init(full, 1);
    mbar_init(empty, 32);
  }
  __syncthreads();
#pragma unroll 1
  for (u32 round = 0; round < 200; ++round) {
    if (t < 32) {
      mbar_waits(full, round & 1);
      u32 sum = 0;
      for (u32 i = 0; i < 4; ++i) sum += tile[t + 32 * i];
      mbar_arrive(empty);
      wrong += sum != 4 * ((round & 7) * 128 + t) + 192;
    } else if (t == 32) {
      if (round) mbar_waits(empty, (round - 1) & 1);
      mbar_arrive_expect(full, 512);
      bulk_load(smem(tile), in + (round & 7) * 128, 512, full);
    }
  }
  if (t < 32) out[t] = wrong;
}
""",
        (out(32), data(1024)),
        block=(64, 1, 1),
        policies=("eager",),
        shows="wrong sums of lanes 0 and 31: {w[0]}, {w[31]}",
    ),
    Question(
        "stress-exit-while-storing",
        "Does a bulk store of shared memory still write the right bytes when its CTA has exited without waiting?",
        "cp.async.bulk.wait_group: the ISA does not say what becomes of a store whose CTA exits",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ __align__(128) u32 tile[2048];
  for (u32 i = threadIdx.x; i < 2048; i += 128) tile[i] = blockIdx.x * 2048 + i;
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(out + blockIdx.x * 2048, smem(tile), 8192);
    bulk_commit();
  }
}
""",
        (out(2048 * 400),),
        grid=(400, 1, 1),
        block=(128, 1, 1),
        policies=("eager",),
        varies=lambda found: f"wrong words: {int((found['out'] != range(2048 * 400)).sum())}",
    ),
    Question(
        "stress-relaxed-wait",
        "Are the bytes of a bulk copy there after a try_wait that is .relaxed?",
        "mbarrier.try_wait: .relaxed gives no order",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  __shared__ __align__(128) u32 tile[128];
  __shared__ u64 bar;
  u32 t = threadIdx.x, b = smem(&bar), wrong = 0;
  if (t == 0) mbar_init(b, 1);
  __syncwarp();
#pragma unroll 1
  for (u32 round = 0; round < 200; ++round) {
    if (t == 0) {
      mbar_arrive_expect(b, 512);
      bulk_load(smem(tile), in + (round & 7) * 128, 512, b);
    }
    u32 done = 0;
    for (u32 looks = 0; looks < 2000 && !done; ++looks)
      asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2;\\n"
                   "selp.u32 %0, 1, 0, p;\\n}" : "=r"(done) : "r"(b), "r"(round & 1) : "memory");
    wrong += tile[127 - t] != (round & 7) * 128 + 127 - t;
    __syncwarp();
  }
  out[t] = wrong;
}
""",
        (out(32), data(1024)),
        policies=("eager",),
        shows="stale words of lanes 0 and 31: {w[0]}, {w[31]}",
    ),
    Question(
        "stress-read-wait-and-release",
        "After wait_group.read alone, does a CTA on another SM see the global bytes that a bulk store writes?",
        "cp.async.bulk.wait_group: .read waits for the sources to be read, not for the writes",
        """
extern "C" __global__ void question(u32* out, u32* to) {
  __shared__ __align__(128) u32 tile[1024];
  __shared__ u64 bar;
  u32 t = threadIdx.x, b = smem(&bar), rank = cluster_rank(), wrong = 0;
  if (t == 0) mbar_init(b, 1);
  cluster_sync();
#pragma unroll 1
  for (u32 round = 0; round < 100; ++round) {
    if (rank == 0) {
      for (u32 i = t; i < 1024; i += 32) tile[i] = round * 1024 + i;
      fence_async();
      __syncwarp();
      if (t == 0) {
        bulk_store(to, smem(tile), 4096);
        bulk_commit();
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapa(b, 1)) : "memory");
      }
    } else {
      mbar_waits(b, round & 1);
      for (u32 i = t; i < 1024; i += 32) wrong += static_cast<volatile u32*>(to)[i] != round * 1024 + i;
    }
    if (rank == 0 && t == 0) bulk_wait();
    cluster_sync();
  }
  if (rank == 1) out[t] = wrong;
}
""",
        (out(32), data(1024, name="to")),
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
        policies=("eager",),
        shows="stale words of lanes 0 and 31: {w[0]}, {w[31]}",
    ),
)
