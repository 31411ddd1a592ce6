# SPDX-License-Identifier: Apache-2.0
"""Emitted kernels with mechanisms that no emitted kernel has, added by hand: right ones, to be broken."""

from __future__ import annotations

from tests.planted.edit import edited
from tmagen.emit import emit
from tmagen.ir import Gemm, Schedule, Target
from tmagen.plan import plan

_BEFORE_WAITS = "// True once the phase with this parity"
_RING_BARRIERS = "  alignas(8) uint64_t full[kPipeDepth];  // TMA has delivered a stage\n"
_SIZE = "static_assert(sizeof(SharedStorage) == kSmemBytes"
_SIZE_AT_MOST = "static_assert(sizeof(SharedStorage) <= kSmemBytes"


def mailbox() -> str:
    """Step 6 on sm_90a with three CTAs, where one thread takes tiles from the scheduler and hands them to all by a
    mailbox with a full and an empty barrier. The columns at the edge are stored last, from the mailbox's tile.
    """
    text = emit(plan(Gemm(target=Target.SM_90A, schedule=Schedule(persistent=True, ctas=3))))
    return edited(
        text,
        (_SIZE, _SIZE_AT_MOST),
        (_BEFORE_WAITS, _ARRIVE + _BEFORE_WAITS),
        (
            _RING_BARRIERS,
            _RING_BARRIERS + "  alignas(8) uint64_t tile_full;         // the mailbox holds a tile\n"
            "  alignas(8) uint64_t tile_empty;        // every warp has read it for the last time\n"
            "  uint32_t tile[3];                      // the mailbox: m, n, and whether there is one\n",
        ),
        (
            "    ptx::fence_mbarrier_init();\n",
            "    ptx::mbarrier_init(&smem.tile_full, 1);   // thread 0\n"
            "    ptx::mbarrier_init(&smem.tile_empty, 4);  // one lane of each warp\n"
            "    ptx::fence_mbarrier_init();\n",
        ),
        ("  __syncwarp();\n  store_edge(smem, tile, 0, kBoxes, edge);\n}", "  __syncwarp();\n}"),
        (_TILE_LOOP, _MAILBOX_LOOP),
    )


def cluster() -> str:
    """Step 5 on sm_90a in clusters of two CTAs along M, which load half of B each and multicast it to both."""
    text = emit(plan(Gemm(target=Target.SM_90A)))
    init = "      ptx::mbarrier_init(&smem.full[stage], 1);  // the thread that issues the loads\n"
    rows = "  const uint32_t first_row = tile.m * kBlockM;\n"
    return edited(
        text,
        (_SIZE, _SIZE_AT_MOST),
        (_BEFORE_WAITS, _CLUSTER_PTX + _BEFORE_WAITS),
        (
            _RING_BARRIERS,
            _RING_BARRIERS + "  alignas(8) uint64_t empty[kPipeDepth];  // both CTAs have read a stage\n",
        ),
        (init, init + "      ptx::mbarrier_init(&smem.empty[stage], 2);  // one thread of each CTA\n"),
        (_LOAD_B, _MULTICAST_B),
        ("  __syncthreads();  // shows all threads the barriers\n", "  ptx::cluster_sync();  // of both CTAs\n"),
        (_REFILL, _REFILL_OF_BOTH),
        ("  tear_down(warp);\n#endif", "  tear_down(warp);\n  ptx::cluster_sync();\n#endif"),
        (rows, rows + "  if (first_row >= edge.m) return;  // the CTA that only fills up a cluster\n"),
        ("args.ldb * kElementBytes, kAtomElems, kBlockN,", "args.ldb * kElementBytes, kAtomElems, kBlockN / 2,"),
        ("dim3(static_cast<uint32_t>(m_tiles), ", "dim3(static_cast<uint32_t>((m_tiles + 1) / 2 * 2), "),
        ("  config.stream = stream;\n", "  config.stream = stream;\n" + _CLUSTER_OF_TWO),
    )


def relay() -> str:
    """The same, where the leader tells its peer which column of tiles the cluster has."""
    return edited(
        cluster(),
        (_BEFORE_WAITS, _RELAY_PTX + _BEFORE_WAITS),
        (
            "  alignas(8) uint64_t empty[kPipeDepth];",
            "  alignas(8) uint64_t told;  // column has come\n"
            "  uint32_t column;\n  alignas(8) uint64_t empty[kPipeDepth];",
        ),
        (
            "    ptx::fence_mbarrier_init();\n",
            "    ptx::mbarrier_init(&smem.told, 1);  // a thread of the leader\n    ptx::fence_mbarrier_init();\n",
        ),
        ("  const Tile tile{blockIdx.x, blockIdx.y};\n", _RELAYED_TILE),
    )


_ARRIVE = """\
__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(smem_address(barrier))
               : "memory");
}

"""

_TILE_LOOP = """\
  Tile tile;
  while (scheduler.next(tile)) {
    Accumulator acc{};  // zeros, which is D where K is 0
    main_loop(smem, warp, tile, problem.k_tiles, map_a, map_b, pipeline, acc);
    epilogue(smem, warp, tile, acc, map_d, edge);
  }
"""

_MAILBOX_LOOP = """\
  for (uint32_t round = 0;; ++round) {
    if (threadIdx.x == 0) {
      Tile tile{};
      ptx::mbarrier_wait_parity(&smem.tile_empty, (round & 1) ^ 1);  // passes at once the first time
      const bool more = scheduler.next(tile);
      smem.tile[0] = tile.m;
      smem.tile[1] = tile.n;
      smem.tile[2] = more;
      ptx::mbarrier_arrive(&smem.tile_full);
    }
    __syncwarp();
    ptx::mbarrier_wait_parity(&smem.tile_full, round & 1);
    if (smem.tile[2] == 0) break;
    const Tile tile{smem.tile[0], smem.tile[1]};
    Accumulator acc{};  // zeros, which is D where K is 0
    main_loop(smem, warp, tile, problem.k_tiles, map_a, map_b, pipeline, acc);
    epilogue(smem, warp, tile, acc, map_d, edge);
    const volatile uint32_t* again = smem.tile;
    if (tile.m * kBlockM + threadIdx.x < edge.m) {
      const Tile last{again[0], again[1]};
      store_edge(smem, last, 0, kBoxes, edge);
    }
    __syncwarp();
    if (ptx::elect_sync()) ptx::mbarrier_arrive(&smem.tile_empty);
  }
"""

_CLUSTER_PTX = """\
// The same barrier of the CTA of this rank.
__device__ __forceinline__ void mbarrier_arrive_remote(uint64_t* barrier, uint32_t rank) {
  asm volatile(
      "{\\n\\t"
      ".reg .b32 remote;\\n\\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\\n\\t"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\\n\\t"
      "}"
      :
      : "r"(smem_address(barrier)), "r"(rank)
      : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\\n\\tbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ void cp_async_bulk_tensor_multicast(void* smem, const CUtensorMap* map,
                                                               int32_t column, int32_t row,
                                                               uint64_t* barrier, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, { %2, %3 }], [%4], %5;"
      :
      : "r"(smem_address(smem)), "l"(map), "r"(column), "r"(row), "r"(smem_address(barrier)),
        "h"(mask)
      : "memory");
}

"""

_LOAD_B = """\
  ptx::cp_async_bulk_tensor_load(smem.b[stage], &map_b, k * kBlockK, tile.n * kBlockN, full);
"""

_MULTICAST_B = """\
  const uint32_t rank = ptx::cluster_rank();
  ptx::cp_async_bulk_tensor_multicast(smem.b[stage][0] + rank * (kAtomBBytes / 2), &map_b,
                                      k * kBlockK, tile.n * kBlockN + rank * (kBlockN / 2), full,
                                      0b11);
"""

_REFILL = """\
      if (warp == 0 && ptx::elect_sync()) {
        load_stage(smem, stage, k + kPipeDepth, tile, map_a, map_b);
"""

_REFILL_OF_BOTH = """\
      if (warp == 0 && ptx::elect_sync()) {
        ptx::mbarrier_arrive_remote(&smem.empty[stage], 0);
        ptx::mbarrier_arrive_remote(&smem.empty[stage], 1);
        ptx::mbarrier_wait_parity(&smem.empty[stage], k / kPipeDepth % 2);
        load_stage(smem, stage, k + kPipeDepth, tile, map_a, map_b);
"""

_CLUSTER_OF_TWO = """\
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
"""

_RELAY_PTX = """\
__device__ __forceinline__ void st_remote(uint32_t* place, uint32_t rank, uint32_t value) {
  asm volatile(
      "{\\n\\t"
      ".reg .b32 remote;\\n\\t"
      "mapa.shared::cluster.u32 remote, %0, %1;\\n\\t"
      "st.shared::cluster.u32 [remote], %2;\\n\\t"
      "}"
      :
      : "r"(smem_address(place)), "r"(rank), "r"(value)
      : "memory");
}

__device__ __forceinline__ void mbarrier_wait_parity_cluster(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\\n\\t"
      ".reg .pred p;\\n\\t"
      "AGAIN_%=:\\n\\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\\n\\t"
      "@!p bra AGAIN_%=;\\n\\t"
      "}"
      :
      : "r"(smem_address(barrier)), "r"(parity)
      : "memory");
}

"""

_RELAYED_TILE = """\
  if (ptx::cluster_rank() == 0 && threadIdx.x < 2) {
    ptx::st_remote(&smem.column, threadIdx.x, blockIdx.y);
    ptx::mbarrier_arrive_remote(&smem.told, threadIdx.x);
  }
  ptx::mbarrier_wait_parity_cluster(&smem.told, 0);
  const uint32_t told = *reinterpret_cast<volatile uint32_t*>(&smem.column);
  const Tile tile{blockIdx.x, told};
"""
