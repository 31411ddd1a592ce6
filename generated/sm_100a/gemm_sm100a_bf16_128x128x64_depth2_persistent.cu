// SPDX-License-Identifier: 0BSD
//
// gemm_sm100a_bf16_128x128x64_depth2_persistent
// D = A * B^T on sm_100a, a ring of 2 stages with prefetch, 148 persistent CTAs
//
// Written by tmagen, which can rewrite it with
//   tmagen emit --dtype bf16 --persistent
// The generated code is free to use, change and ship, in any project, without conditions.
//
// Use: include this file in a .cu, fill a GemmArgs and call launch(), both in its namespace.
//   nvcc -std=c++17 -gencode arch=compute_100a,code=sm_100a -c your_file.cu
// Define TMAGEN_EXTERN_C in one translation unit to get C symbols as well (end of this file).
//
// Tiles
//   matrix   element  global  tile       moves as
//   A        bf16     [m, k]  128 x 64   1 box of 128 x 64
//   B        bf16     [n, k]  128 x 64   1 box of 128 x 64
//   D        bf16     [m, n]  128 x 128  2 boxes of 128 x 64
//   product  f32      -       128 x 128  128 TMEM columns
//
// Shared memory (99,328 bytes, dynamic)
//   offset  bytes   member     holds
//   0       32,768  a          A, 2 stages of 16,384 bytes
//   32,768  32,768  b          B, 2 stages of 16,384 bytes
//   65,536  32,768  d          D on its way to the TMA store
//   98,304  16      full       mbarriers: a stage is loaded
//   98,320  8       mma_done   mbarrier: the MMAs of a K tile are complete
//   98,328  4       tmem_base  where tcgen05.alloc writes the TMEM address
//
// Roles
//   role      warps  threads  does
//   load      0      1        the elected thread starts the TMA loads
//   MMA       0      1        the same thread issues tcgen05.mma and waits for it
//   epilogue  0-3    128      TMEM -> registers -> shared memory, a row a thread
//   store     0      1        the elected thread starts the TMA stores
//   TMEM      0      32       the whole warp allocates and frees
//
// mbarriers
//   barrier        full                                mma_done
//   count          2                                   1
//   arrivals       1                                   1
//   tx bytes       32,768                              0
//   arrives        the elected thread, with expect_tx  tcgen05.commit
//   waits          the same thread, before the MMA     the same thread, after each K tile
//   then readable  A and B of the stage                the accumulator in TMEM
//   then reusable  -                                   A and B of the stage
#ifndef TMAGEN_GUARD_gemm_sm100a_bf16_128x128x64_depth2_persistent
#define TMAGEN_GUARD_gemm_sm100a_bf16_128x128x64_depth2_persistent

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 1000 && !defined(__CUDA_ARCH_FEAT_SM100_ALL)
#error "compile with -gencode arch=compute_100a,code=sm_100a: the a matters"
#endif
#if __cplusplus < 201703L
#error "compile with -std=c++17 or later"
#endif

#ifndef __CUDACC_RTC__
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

struct __nv_bfloat16;
#endif

namespace gemm_sm100a_bf16_128x128x64_depth2_persistent {

#ifdef __CUDACC_RTC__
// NVRTC compiles the device part alone, and these types are all that it takes from a header.
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using int32_t = int;
using int64_t = long long;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};
#endif

// ---- Configuration -----------------------------------------------------------------------------

constexpr uint32_t kThreads = 128;  // one warpgroup
constexpr uint32_t kWarpSize = 32;

// One CTA computes a kBlockM x kBlockN tile of D; K is walked in steps of kBlockK.
constexpr uint32_t kBlockM = 128;
constexpr uint32_t kBlockN = 128;
constexpr uint32_t kBlockK = 64;
constexpr uint32_t kMmaK = 16;  // elements of K that one MMA takes

// A stage holds rows of 128 bytes, the width of the TMA swizzle.
constexpr uint32_t kPipeDepth = 2;
constexpr uint32_t kElementBytes = 2;
constexpr uint32_t kAtomBytes = 128;
constexpr uint32_t kAtomElems = 64;
constexpr uint32_t kAtoms = 1;
constexpr uint32_t kAtomABytes = kBlockM * kAtomBytes;
constexpr uint32_t kAtomBBytes = kBlockN * kAtomBytes;
constexpr uint32_t kTxBytes = 32768;  // what the loads of one stage deliver to its barrier
static_assert(kAtoms * kAtomElems == kBlockK && kAtomElems * kElementBytes == kAtomBytes,
              "the swizzle atoms must cover the K extent of a tile");
static_assert(kTxBytes == kAtoms * (kAtomABytes + kAtomBBytes),
              "the barrier must expect exactly the bytes that its loads complete");

// The accumulator: one f32 TMEM column per column of D, allocated in powers of two from 32.
constexpr uint32_t kTmemColumns = 128;
static_assert(kBlockN <= kTmemColumns && (kTmemColumns & (kTmemColumns - 1)) == 0,
              "tcgen05.alloc takes a power of two that holds the tile");
constexpr uint32_t kBoxUnroll = 1;  // not unrolled: boxes differ in nothing but addresses

// D leaves through shared memory in boxes of 128 bytes a row, one TMA store each.
constexpr uint32_t kBoxCols = 64;
constexpr uint32_t kBoxRowBytes = 128;
constexpr uint32_t kDElementBytes = 2;
constexpr uint32_t kBoxBytes = kBlockM * kBoxRowBytes;
constexpr uint32_t kBoxes = 2;
constexpr uint32_t kBoxesPerPass = 2;
constexpr uint32_t kStagingBytes = kBoxesPerPass * kBoxBytes;
constexpr uint32_t kStagingRowBytes = 256;  // of each row, at most
constexpr uint32_t kChunkBytes = 16;  // what st.shared.v4 writes and the swizzle moves
constexpr uint32_t kChunkCols = kChunkBytes / kDElementBytes;
static_assert(kBoxes * kBoxCols == kBlockN, "the boxes must cover a row of the tile");
static_assert(kBoxCols * kDElementBytes == kBoxRowBytes, "a box is as wide as its swizzle");
static_assert(kStagingBytes <= kBlockM * kStagingRowBytes,
              "the staging buffer must leave room for the ring");

// Named barriers; 0 is __syncthreads.
constexpr uint32_t kEpilogueBarrier = 1;

// The problem in tiles, counted on the host. Any of the counts but k_tiles is at least one.
struct Problem {
  uint32_t m_tiles;
  uint32_t n_tiles;
  uint32_t k_tiles;  // 0 when K is 0: D is then all zeros
};

// A TMA store writes whole 16-byte chunks, so a row of D that ends inside a chunk would overwrite
// what lies behind it. Those last columns leave by ordinary stores, and map_d ends before them.
struct Edge {
  uint16_t* d;  // elements of D as they lie in memory
  int64_t ldd;
  uint32_t m;
  uint32_t first_column;  // a multiple of kChunkCols
  uint32_t columns;       // fewer than kChunkCols; 0 where rows end with a chunk
};

namespace ptx {

// mbarrier: a phase completes when its arrivals and its tx bytes are both in (PTX ISA "mbarrier").
__device__ __forceinline__ uint32_t smem_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(smem_address(barrier)), "r"(arrivals)
               : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t tx_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(smem_address(barrier)), "r"(tx_bytes)
               : "memory");
}

// True once the phase with this parity has completed; false after a while if it has not.
__device__ __forceinline__ bool mbarrier_try_wait_parity(uint64_t* barrier, uint32_t parity) {
  uint32_t completed;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(completed)
      : "r"(smem_address(barrier)), "r"(parity)
      : "memory");
  return completed != 0;
}

__device__ __forceinline__ void mbarrier_wait_parity(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// TMA: one thread starts the copy of a box; the tensor map says where it lies and how to swizzle.
__device__ __forceinline__ void prefetch_tensormap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];"
               :
               : "l"(map)
               : "memory");
}

// Reports its bytes to the barrier. Elements past the edge of the tensor arrive as zeros and count.
__device__ __forceinline__ void cp_async_bulk_tensor_load(void* smem, const CUtensorMap* map,
                                                          int32_t column, int32_t row,
                                                          uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, { %2, %3 }], [%4];"
      :
      : "r"(smem_address(smem)), "l"(map), "r"(column), "r"(row), "r"(smem_address(barrier))
      : "memory");
}

// Joins the thread's next bulk group. 16-byte chunks past the edge of the tensor are not written.
__device__ __forceinline__ void cp_async_bulk_tensor_store(const CUtensorMap* map, int32_t column,
                                                           int32_t row, const void* smem) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, { %1, %2 }], [%3];"
      :
      : "l"(map), "r"(column), "r"(row), "r"(smem_address(smem))
      : "memory");
}

__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Every store of this thread is complete: its global writes too.
__device__ __forceinline__ void cp_async_bulk_wait_group_0() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Every store of this thread has read its shared memory, which may be written again.
__device__ __forceinline__ void cp_async_bulk_wait_group_read_0() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Releases this thread's mbarrier.init, before a barrier shows it to the others.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Orders this thread's ordinary shared-memory writes before later reads by TMA (the async proxy).
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// True in one lane of the warp, the same one each time. ptxas knows this form: what it guards is
// issued once, without a loop over the lanes.
__device__ __forceinline__ bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(elected)
      :
      : "memory");
  return elected != 0;
}

__device__ __forceinline__ void barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;"
               :
               : "r"(id), "r"(threads)
               : "memory");
}

// TMEM: the tensor core's own memory, 128 lanes of 512 columns. A whole warp allocates and frees.
__device__ __forceinline__ void tcgen05_alloc(uint32_t* address_out, uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
               :
               : "r"(smem_address(address_out)), "r"(columns)
               : "memory");
}

__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_dealloc(uint32_t tmem, uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
               :
               : "r"(tmem), "r"(columns)
               : "memory");
}

// Each thread reads 64 columns of its own lane. The registers hold them after tcgen05_wait_ld().
__device__ __forceinline__ void tcgen05_ld_32x32b(uint32_t (&values)[kBoxCols], uint32_t tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x64.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "[%64];"
      : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3]),
        "=r"(values[4]), "=r"(values[5]), "=r"(values[6]), "=r"(values[7]),
        "=r"(values[8]), "=r"(values[9]), "=r"(values[10]), "=r"(values[11]),
        "=r"(values[12]), "=r"(values[13]), "=r"(values[14]), "=r"(values[15]),
        "=r"(values[16]), "=r"(values[17]), "=r"(values[18]), "=r"(values[19]),
        "=r"(values[20]), "=r"(values[21]), "=r"(values[22]), "=r"(values[23]),
        "=r"(values[24]), "=r"(values[25]), "=r"(values[26]), "=r"(values[27]),
        "=r"(values[28]), "=r"(values[29]), "=r"(values[30]), "=r"(values[31]),
        "=r"(values[32]), "=r"(values[33]), "=r"(values[34]), "=r"(values[35]),
        "=r"(values[36]), "=r"(values[37]), "=r"(values[38]), "=r"(values[39]),
        "=r"(values[40]), "=r"(values[41]), "=r"(values[42]), "=r"(values[43]),
        "=r"(values[44]), "=r"(values[45]), "=r"(values[46]), "=r"(values[47]),
        "=r"(values[48]), "=r"(values[49]), "=r"(values[50]), "=r"(values[51]),
        "=r"(values[52]), "=r"(values[53]), "=r"(values[54]), "=r"(values[55]),
        "=r"(values[56]), "=r"(values[57]), "=r"(values[58]), "=r"(values[59]),
        "=r"(values[60]), "=r"(values[61]), "=r"(values[62]), "=r"(values[63])
      : "r"(tmem)
      : "memory");
}

__device__ __forceinline__ void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// D[tmem] = A * B^T, added to what D holds when `accumulate`. Asynchronous; one thread issues it,
// and the MMAs of one thread run in order.
__device__ __forceinline__ void tcgen05_mma_f16(uint32_t tmem, uint64_t descriptor_a,
                                                uint64_t descriptor_b, uint32_t instr_descriptor,
                                                bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t"
      "}"
      :
      : "r"(tmem), "l"(descriptor_a), "l"(descriptor_b), "r"(instr_descriptor),
        "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// Arrives on the barrier when every MMA that this thread has issued is complete.
__device__ __forceinline__ void tcgen05_commit(uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :
               : "r"(smem_address(barrier))
               : "memory");
}

// These two order tcgen05 work across a thread barrier: one before it, the other after it.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void st_shared_v4(uint32_t address, const uint32_t (&words)[4]) {
  asm volatile("st.shared.v4.b32 [%0], { %1, %2, %3, %4 };"
               :
               : "r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

// Rounds two f32 values to nearest even and packs them, the first one in the low half.
__device__ __forceinline__ uint32_t cvt_rn_bf16x2(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
      : "=r"(packed)
      : "f"(high), "f"(low));
  return packed;
}

}  // namespace ptx

// ---- Shared memory -----------------------------------------------------------------------------

// Every buffer that TMA or the MMA touches starts on a 1,024-byte boundary: the 128-byte swizzle
// permutes 16-byte chunks by address bits 7 to 9, so a tile must begin where that pattern begins.
struct SharedStorage {
  alignas(1024) uint8_t a[kPipeDepth][kAtoms][kAtomABytes];
  alignas(1024) uint8_t b[kPipeDepth][kAtoms][kAtomBBytes];
  alignas(1024) uint8_t d[kBoxesPerPass][kBoxBytes];
  alignas(8) uint64_t full[kPipeDepth];  // TMA has delivered a stage
  alignas(8) uint64_t mma_done;          // the MMAs of a K tile have completed
  alignas(4) uint32_t tmem_base;         // tcgen05.alloc writes the TMEM address here
};
constexpr uint32_t kSmemBytes = 99328;
static_assert(sizeof(SharedStorage) == kSmemBytes, "the launch must ask for what the struct takes");
#ifndef __CUDACC_RTC__  // NVRTC has no offsetof
static_assert(offsetof(SharedStorage, a) == 0, "as the header says");
static_assert(offsetof(SharedStorage, b) == 32768, "as the header says");
static_assert(offsetof(SharedStorage, d) == 65536, "as the header says");
static_assert(offsetof(SharedStorage, full) == 98304, "as the header says");
static_assert(offsetof(SharedStorage, mma_done) == 98320, "as the header says");
static_assert(offsetof(SharedStorage, tmem_base) == 98328, "as the header says");
#endif

// Uniform across the warp, and the shuffle lets the compiler know it.
__device__ __forceinline__ uint32_t warp_index() {
  return __shfl_sync(0xffffffff, threadIdx.x / kWarpSize, 0);
}

// ---- Descriptors of the MMA --------------------------------------------------------------------

// SMEM descriptor (PTX ISA "tcgen05 shared memory descriptor"); offsets are in units of 16 bytes.
constexpr uint64_t kDescriptorLeadingOffset = uint64_t{1} << 16;  // unused when swizzled
constexpr uint64_t kDescriptorStrideOffset = uint64_t{64} << 32;  // 1,024 bytes every 8 rows
constexpr uint64_t kDescriptorVersion = uint64_t{1} << 46;  // the constant 0b001
constexpr uint64_t kDescriptorSwizzle = uint64_t{2} << 61;  // 128-byte swizzle
constexpr uint64_t kDescriptorBase =
    kDescriptorLeadingOffset | kDescriptorStrideOffset | kDescriptorVersion | kDescriptorSwizzle;
static_assert(kDescriptorBase == 0x4000404000010000ull, "as `tmagen explain` prints it");

// The start address goes into bits 0 to 13: 18 bits of it, in units of 16 bytes.
constexpr uint32_t kAddressMask = 0x3FFFF;
constexpr uint32_t kAddressShift = 4;

// The next K step lies further along the same swizzled rows, so only the start address moves.
constexpr uint64_t kKStep = (kMmaK * kElementBytes) >> kAddressShift;
constexpr uint32_t kStepsPerAtom = kAtomElems / kMmaK;

__device__ __forceinline__ uint64_t smem_descriptor(const void* tile) {
  return kDescriptorBase | ((ptx::smem_address(tile) & kAddressMask) >> kAddressShift);
}

// Instruction descriptor (PTX ISA "tcgen05 instruction descriptor", kind::f16); other fields are 0.
constexpr uint32_t kInstrAccumulator = uint32_t{1} << 4;  // D is f32
constexpr uint32_t kInstrA = uint32_t{1} << 7;  // A is bf16
constexpr uint32_t kInstrB = uint32_t{1} << 10;  // B is bf16
constexpr uint32_t kInstrN = uint32_t{16} << 17;  // N = 128
constexpr uint32_t kInstrM = uint32_t{8} << 24;  // M = 128
constexpr uint32_t kInstrDescriptor =
    kInstrAccumulator | kInstrA | kInstrB | kInstrN | kInstrM;
static_assert(kInstrDescriptor == 0x08200490u, "as `tmagen explain` prints it");

// ---- Tiles -------------------------------------------------------------------------------------

// An output tile: rows m * kBlockM of A and D, columns n * kBlockN of D (rows of B).
struct Tile {
  uint32_t m;
  uint32_t n;
};

// Hands this CTA its tiles: ids blockIdx.x, blockIdx.x + gridDim.x, ... in group-major order. Ids
// run down the kL2Group rows of a group before they step to the next column, so that CTAs working
// at the same time share tiles of B, and come back to few tiles of A while L2 still has them.
constexpr uint32_t kL2Group = 8;  // rows of tiles in a group; the last group may have fewer

struct TileScheduler {
  uint32_t next_id;
  Problem problem;

  __device__ __forceinline__ bool next(Tile& tile) {
    const uint32_t tiles = problem.m_tiles * problem.n_tiles;
    if (next_id >= tiles) {
      return false;
    }
    const uint32_t group_rows = min(kL2Group, problem.m_tiles);
    const uint32_t group_tiles = group_rows * problem.n_tiles;
    const uint32_t group = next_id / group_tiles;
    const uint32_t first_m = group * group_rows;
    const uint32_t rows = min(group_rows, problem.m_tiles - first_m);
    const uint32_t within = next_id - group * group_tiles;
    tile.m = first_m + within % rows;
    tile.n = within / rows;
    next_id += gridDim.x;  // launch() keeps tiles below 2^31, so this cannot wrap
    return true;
  }
};

// ---- Load: the elected thread of warp 0 --------------------------------------------------------

// Starts the loads of K tile `k` into `stage`. The stage must be free: its last MMA has completed.
__device__ __forceinline__ void load_stage(SharedStorage& smem, uint32_t stage, uint32_t k,
                                           const Tile& tile, const CUtensorMap& map_a,
                                           const CUtensorMap& map_b) {
  uint64_t* full = &smem.full[stage];
  ptx::mbarrier_arrive_expect_tx(full, kTxBytes);  // the one arrival, and the bytes to come
  ptx::cp_async_bulk_tensor_load(smem.a[stage], &map_a, k * kBlockK, tile.m * kBlockM, full);
  ptx::cp_async_bulk_tensor_load(smem.b[stage], &map_b, k * kBlockK, tile.n * kBlockN, full);
}

// ---- MMA: the elected thread of warp 0 ---------------------------------------------------------

// Multiplies a stage into TMEM and commits: mma_done gets its arrival when the product is there and
// the stage has been read. The first MMA of a tile overwrites what TMEM held.
__device__ __forceinline__ void mma_stage(SharedStorage& smem, uint32_t stage, uint32_t tmem,
                                          bool first) {
  const uint64_t a = smem_descriptor(smem.a[stage]);
  const uint64_t b = smem_descriptor(smem.b[stage]);
#pragma unroll
  for (uint32_t step = 0; step < kStepsPerAtom; ++step) {
    const bool accumulate = !first || step > 0;
    ptx::tcgen05_mma_f16(tmem, a + step * kKStep, b + step * kKStep, kInstrDescriptor, accumulate);
  }
  ptx::tcgen05_commit(&smem.mma_done);
}

// ---- Main loop: a ring of stages, filled ahead -------------------------------------------------

// A position in the ring. The stage comes round every kPipeDepth steps, and its barrier is then one
// phase further. The position lives as long as the CTA, so K may have any number of tiles.
struct Ring {
  uint32_t stage;
  uint32_t phase;

  __device__ __forceinline__ void advance() {
    if (++stage == kPipeDepth) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Both phases start at 0, the phase in which a fresh barrier is.
struct Pipeline {
  Ring ring;
  uint32_t mma_phase;
};

__device__ __forceinline__ void main_loop(SharedStorage& smem, const Tile& tile, uint32_t k_tiles,
                                          uint32_t tmem, const CUtensorMap& map_a,
                                          const CUtensorMap& map_b, Pipeline& pipeline) {
  // Prefetch: every stage is free, since the tile before has waited for all of its MMAs.
  Ring fill = pipeline.ring;
#pragma unroll 1
  for (uint32_t k = 0; k < min(kPipeDepth, k_tiles); ++k) {
    load_stage(smem, fill.stage, k, tile, map_a, map_b);
    fill.advance();
  }

#pragma unroll 1
  for (uint32_t k = 0; k < k_tiles; ++k) {
    const uint32_t stage = pipeline.ring.stage;
    ptx::mbarrier_wait_parity(&smem.full[stage], pipeline.ring.phase);
    pipeline.ring.advance();

    ptx::tcgen05_fence_after_thread_sync();  // after the wait, and after the last epilogue
    mma_stage(smem, stage, tmem, k == 0);

    // The refill overwrites the stage, and the epilogue reads TMEM: both need the MMA's end.
    ptx::mbarrier_wait_parity(&smem.mma_done, pipeline.mma_phase);
    pipeline.mma_phase ^= 1;

    if (k + kPipeDepth < k_tiles) {
      load_stage(smem, stage, k + kPipeDepth, tile, map_a, map_b);
    }
  }
}

// ---- Epilogue: all four warps, each thread one row of the tile ---------------------------------

// The store un-swizzles what it reads: it XORs address bits 4-6 with bits 7-9, so chunk c of a
// row is staged as chunk c ^ swizzle_of(row).
__device__ __forceinline__ uint32_t swizzle_of(uint32_t row) {
  return row & (kBoxRowBytes / kChunkBytes - 1);
}

// Chunk `chunk` of a row of D: kChunkCols values, rounded to bf16.
__device__ __forceinline__ void chunk_words(const uint32_t (&values)[kBoxCols], uint32_t chunk,
                                            uint32_t (&words)[4]) {
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t column = chunk * kChunkCols + i * 2;
    const float low = __uint_as_float(values[column]);
    const float high = __uint_as_float(values[column + 1]);
    words[i] = ptx::cvt_rn_bf16x2(low, high);
  }
}

// TMEM -> registers -> shared memory, one box. Warp w may read only TMEM lanes 32 w to 32 w + 31,
// so thread t takes row t.
__device__ __forceinline__ void stage_box(SharedStorage& smem, uint32_t slot, uint32_t box,
                                          uint32_t tmem, bool has_product) {
  const uint32_t row = threadIdx.x;
  uint32_t values[kBoxCols] = {};
  if (has_product) {
    const uint32_t first_lane = row / kWarpSize * kWarpSize;
    ptx::tcgen05_ld_32x32b(values, tmem + (first_lane << 16) + box * kBoxCols);
    ptx::tcgen05_wait_ld();  // the next MMA may overwrite the columns only after this
  }

  const uint32_t row_address = ptx::smem_address(smem.d[slot]) + row * kBoxRowBytes;
#pragma unroll
  for (uint32_t chunk = 0; chunk < kBoxRowBytes / kChunkBytes; ++chunk) {
    uint32_t words[4];
    chunk_words(values, chunk, words);
    ptx::st_shared_v4(row_address + (chunk ^ swizzle_of(row)) * kChunkBytes, words);
  }
}

// Stores the columns that TMA may not, from the boxes that are staged. A thread takes whole rows.
__device__ __forceinline__ void store_edge(const SharedStorage& smem, const Tile& tile,
                                           uint32_t first_box, uint32_t boxes, const Edge& edge) {
  // Where the edge lies in the staged columns; where it lies left of them this wraps, and is large.
  const uint32_t column = edge.first_column - (tile.n * kBlockN + first_box * kBoxCols);
  if (edge.columns == 0 || column >= boxes * kBoxCols) {
    return;
  }
  const uint8_t* box = smem.d[column / kBoxCols];
  const uint32_t chunk = column % kBoxCols / kChunkCols;
  const uint32_t first_row = tile.m * kBlockM;
  for (uint32_t row = threadIdx.x; row < min(kBlockM, edge.m - first_row); row += kThreads) {
    const uint8_t* staged = box + row * kBoxRowBytes + (chunk ^ swizzle_of(row)) * kChunkBytes;
    uint16_t* out = edge.d + (first_row + row) * edge.ldd + edge.first_column;
    for (uint32_t i = 0; i < edge.columns; ++i) {
      out[i] = reinterpret_cast<const uint16_t*>(staged)[i];
    }
  }
}

__device__ __forceinline__ void epilogue(SharedStorage& smem, uint32_t warp, const Tile& tile,
                                         uint32_t tmem, bool has_product,
                                         const CUtensorMap& map_d, const Edge& edge) {
  if (warp == 0 && ptx::elect_sync()) {
    ptx::cp_async_bulk_wait_group_read_0();  // the stores of the tile before have read the staging
  }
  // Warp 0 has waited for the last MMA; now the other warps may read TMEM too.
  __syncwarp();
  ptx::tcgen05_fence_before_thread_sync();
  ptx::barrier_sync(kEpilogueBarrier, kThreads);
  ptx::tcgen05_fence_after_thread_sync();

#pragma unroll kBoxUnroll
  for (uint32_t box = 0; box < kBoxes; ++box) {
    stage_box(smem, box, box, tmem, has_product);
  }

  // Each thread makes its own writes visible to TMA before the barrier lets the store start.
  ptx::fence_proxy_async_shared();
  ptx::tcgen05_fence_before_thread_sync();  // TMEM has been read: the next tile may overwrite it
  ptx::barrier_sync(kEpilogueBarrier, kThreads);

  if (warp == 0 && ptx::elect_sync()) {
    for (uint32_t box = 0; box < kBoxes; ++box) {
      const uint32_t column = tile.n * kBlockN + box * kBoxCols;
      if (column >= edge.first_column) break;  // past the map's edge there is nothing to store
      ptx::cp_async_bulk_tensor_store(&map_d, column, tile.m * kBlockM, smem.d[box]);
    }
    ptx::cp_async_bulk_commit_group();
  }
  __syncwarp();
  store_edge(smem, tile, 0, kBoxes, edge);
}

// ---- Setup and teardown ------------------------------------------------------------------------

// Returns the TMEM address of the accumulator. Done once, however many tiles follow.
__device__ __forceinline__ uint32_t set_up(SharedStorage& smem, uint32_t warp, bool has_product,
                                           const CUtensorMap& map_a, const CUtensorMap& map_b,
                                           const CUtensorMap& map_d) {
  if (warp == 0) {
    if (ptx::elect_sync()) {
      if (has_product) {  // with K = 0 there are no maps of A and B
        ptx::prefetch_tensormap(&map_a);
        ptx::prefetch_tensormap(&map_b);
      }
      ptx::prefetch_tensormap(&map_d);
      for (uint32_t stage = 0; stage < kPipeDepth; ++stage) {
        ptx::mbarrier_init(&smem.full[stage], 1);  // the thread that issues the loads
      }
      ptx::mbarrier_init(&smem.mma_done, 1);  // tcgen05.commit
      ptx::fence_mbarrier_init();
    }
    __syncwarp();
    ptx::tcgen05_alloc(&smem.tmem_base, kTmemColumns);
    ptx::tcgen05_relinquish_alloc_permit();  // at once: other CTAs of this SM wait for it
  }
  // Shows all threads the barriers and the TMEM address.
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  return smem.tmem_base;
}

__device__ __forceinline__ void tear_down(uint32_t warp, uint32_t tmem) {
  if (warp == 0) {
    if (ptx::elect_sync()) {
      ptx::cp_async_bulk_wait_group_0();  // the last stores are in global memory
    }
    __syncwarp();
    // No warp reads TMEM any more: each passed the last barrier of the epilogue after its reads.
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(tmem, kTmemColumns);
  }
}

// ---- Kernel ------------------------------------------------------------------------------------

// Internal linkage, so that any number of translation units may include this file; a C symbol where
// the kernel is looked up by name. At least one CTA per SM: left to itself, ptxas may spill
// registers to fit more.
#if defined(TMAGEN_EXTERN_C) || defined(__CUDACC_RTC__)
extern "C"
#else
static
#endif
    __global__ void __launch_bounds__(kThreads, 1)
        gemm_sm100a_bf16_128x128x64_depth2_persistent(
            const __grid_constant__ CUtensorMap map_a,
            const __grid_constant__ CUtensorMap map_b,
            const __grid_constant__ CUtensorMap map_d, const Problem problem, const Edge edge) {
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM100_ALL)
  __trap();  // built for another architecture as well, whose devices launch() refuses
#else
  extern __shared__ __align__(1024) uint8_t dynamic_smem[];
  SharedStorage& smem = *reinterpret_cast<SharedStorage*>(dynamic_smem);

  const uint32_t warp = warp_index();
  const bool has_product = problem.k_tiles > 0;
  const uint32_t tmem = set_up(smem, warp, has_product, map_a, map_b, map_d);

  Pipeline pipeline{};  // kept by the elected thread, which is the same one for every tile
  TileScheduler scheduler{blockIdx.x, problem};
  Tile tile;
  while (scheduler.next(tile)) {
    if (warp == 0 && ptx::elect_sync()) {
      main_loop(smem, tile, problem.k_tiles, tmem, map_a, map_b, pipeline);
    }
    epilogue(smem, warp, tile, tmem, has_product, map_d, edge);
  }

  tear_down(warp, tmem);
#endif
}

// ---- Host part ---------------------------------------------------------------------------------

#ifndef __CUDACC_RTC__

// D = A * B^T. Leading dimensions are in elements, from one row to the next.
struct GemmArgs {
  const __nv_bfloat16* a;  // [m, k]; may be null when k is 0
  const __nv_bfloat16* b;  // [n, k]; may be null when k is 0
  __nv_bfloat16* d;        // [m, n]
  int64_t m, n, k;
  int64_t lda, ldb, ldd;
};

// The shape that is baked in; -1 where it is an argument.
inline constexpr int64_t kStaticM = -1;
inline constexpr int64_t kStaticN = -1;
inline constexpr int64_t kStaticK = -1;

// What the hardware and this kernel can take.
constexpr int64_t kMaxExtent = 2147483647;                    // TMA coordinates are 32-bit signed
constexpr int64_t kMaxStrideBytes = (int64_t{1} << 40) - 16;  // of a row, in a tensor map
constexpr int64_t kMaxTiles = 2147483647;  // tile ids are 32-bit
constexpr int64_t kCtas = 148;  // of the grid, or fewer where there are fewer tiles
constexpr int64_t kTmaAlignBytes = 16;  // of addresses and strides in a tensor map

// What was wrong with the arguments of this thread's last launch() that failed.
inline constexpr int kErrorTextBytes = 160;
inline char* last_error_text() {
  static thread_local char text[kErrorTextBytes] = "no error";
  return text;
}
inline const char* last_error() { return last_error_text(); }

inline cudaError_t fail(cudaError_t code, const char* what, const char* rule) {
  std::snprintf(last_error_text(), kErrorTextBytes, "%s: %s", what, rule);
  return code;
}

inline cudaError_t fail(cudaError_t code, const char* what, int64_t value, const char* rule) {
  std::snprintf(last_error_text(), kErrorTextBytes, "%s = %lld: %s", what,
                static_cast<long long>(value), rule);
  return code;
}

inline cudaError_t check_extent(const char* name, int64_t extent) {
  if (extent < 0) return fail(cudaErrorInvalidValue, name, extent, "must not be negative");
  if (extent > kMaxExtent) return fail(cudaErrorInvalidValue, name, extent, "exceeds kMaxExtent");
  return cudaSuccess;
}

inline int64_t tiles_of(int64_t extent, uint32_t block) { return (extent + block - 1) / block; }

inline cudaError_t check_shape(const GemmArgs& args) {
  cudaError_t status = check_extent("m", args.m);
  if (status == cudaSuccess) status = check_extent("n", args.n);
  if (status == cudaSuccess) status = check_extent("k", args.k);
  if (status != cudaSuccess) return status;

  const int64_t n_tiles = tiles_of(args.n, kBlockN);
  if (n_tiles > 0 && tiles_of(args.m, kBlockM) > kMaxTiles / n_tiles) {
    return fail(cudaErrorInvalidValue, "n", args.n, "gives more tiles than kMaxTiles with this m");
  }
  return cudaSuccess;
}

// A row-major matrix that TMA reads or writes: its base and its rows start on 16-byte boundaries.
inline cudaError_t check_matrix(const char* name, const void* data, const char* ld_name, int64_t ld,
                                int64_t columns, int64_t element_bytes) {
  if (data == nullptr) return fail(cudaErrorInvalidValue, name, "must not be null");
  if (reinterpret_cast<uintptr_t>(data) % kTmaAlignBytes != 0) {
    return fail(cudaErrorInvalidValue, name, "must be aligned to 16 bytes");
  }
  if (ld < columns) return fail(cudaErrorInvalidValue, ld_name, ld, "is shorter than a row");
  if (ld > kMaxStrideBytes / element_bytes) {
    return fail(cudaErrorInvalidValue, ld_name, ld, "exceeds kMaxStrideBytes");
  }
  if (ld * element_bytes % kTmaAlignBytes != 0) {
    return fail(cudaErrorInvalidValue, ld_name, ld, "rows must be a multiple of 16 bytes apart");
  }
  return cudaSuccess;
}

inline cudaError_t check_matrices(const GemmArgs& args) {
  cudaError_t status = cudaSuccess;
  if (args.k > 0) {
    status = check_matrix("a", args.a, "lda", args.lda, args.k, kElementBytes);
    if (status != cudaSuccess) return status;
    status = check_matrix("b", args.b, "ldb", args.ldb, args.k, kElementBytes);
    if (status != cudaSuccess) return status;
  }
  return check_matrix("d", args.d, "ldd", args.ldd, args.n, kDElementBytes);
}

inline cudaError_t check_device() {
  int device = 0;
  int major = 0;
  int minor = 0;
  int smem_bytes = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return fail(status, "cudaGetDevice", cudaGetErrorString(status));
  status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  }
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (status != cudaSuccess) {
    return fail(status, "cudaDeviceGetAttribute", cudaGetErrorString(status));
  }
  if (major != 10 || minor != 0) {
    std::snprintf(last_error_text(), kErrorTextBytes,
                  "device %d has compute capability %d.%d: this kernel is for sm_100a only", device,
                  major, minor);
    return cudaErrorNoKernelImageForDevice;
  }
  if (smem_bytes < static_cast<int>(kSmemBytes)) {
    std::snprintf(last_error_text(), kErrorTextBytes,
                  "shared memory per block = %d: this kernel needs %u bytes", smem_bytes,
                  kSmemBytes);
    return cudaErrorLaunchOutOfResources;
  }
  return cudaSuccess;
}

constexpr unsigned int kDriverVersion = 12000;  // CUDA 12.0, the first to have tensor maps

// A driver function, fetched through the runtime so that nobody has to link libcuda; null if the
// driver lacks it.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &entry, kDriverVersion, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
}

// A row-major [rows, columns] matrix, copied in boxes of [box_rows, box_columns].
inline cudaError_t encode_map(CUtensorMap& map, const char* name, CUtensorMapDataType type,
                              const void* data, int64_t columns, int64_t rows, int64_t ld_bytes,
                              uint32_t box_columns, uint32_t box_rows, CUtensorMapSwizzle swizzle) {
  const auto encode = tensor_map_encoder();
  if (encode == nullptr) {
    return fail(cudaErrorNotSupported, "cuTensorMapEncodeTiled", "not found in this driver");
  }
  constexpr cuuint32_t kRank = 2;
  const cuuint64_t dims[kRank] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[kRank - 1] = {static_cast<cuuint64_t>(ld_bytes)};
  const cuuint32_t box[kRank] = {box_columns, box_rows};
  const cuuint32_t element_strides[kRank] = {1, 1};
  const CUresult result =
      encode(&map, type, kRank, const_cast<void*>(data), dims, strides, box, element_strides,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::snprintf(last_error_text(), kErrorTextBytes,
                  "%s: cuTensorMapEncodeTiled returned error %d", name, static_cast<int>(result));
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// The kernel's tensor maps. With k = 0 those of A and B stay empty: the kernel does not touch them.
struct Maps {
  CUtensorMap a{};
  CUtensorMap b{};
  CUtensorMap d{};
};

inline cudaError_t encode_maps(const GemmArgs& args, Maps& maps) {
  cudaError_t status = cudaSuccess;
  if (args.k > 0) {
    status = encode_map(maps.a, "a", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, args.a, args.k, args.m,
                        args.lda * kElementBytes, kAtomElems, kBlockM, CU_TENSOR_MAP_SWIZZLE_128B);
    if (status != cudaSuccess) return status;
    status = encode_map(maps.b, "b", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, args.b, args.k, args.n,
                        args.ldb * kElementBytes, kAtomElems, kBlockN, CU_TENSOR_MAP_SWIZZLE_128B);
    if (status != cudaSuccess) return status;
  }
  // The columns that TMA stores. With none the map is not used, but it may not be empty.
  const int64_t whole_columns = args.n - args.n % kChunkCols;
  const int64_t columns = whole_columns > 0 ? whole_columns : args.n;
  return encode_map(maps.d, "d", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, args.d, columns, args.m,
                    args.ldd * kDElementBytes, kBoxCols, kBlockM, CU_TENSOR_MAP_SWIZZLE_128B);
}

// Starts the kernel on `stream` of the current device. Safe from several threads, and while the
// stream is being captured: a graph keeps the pointers and the shape, as kernel parameters.
[[maybe_unused]] static cudaError_t launch(const GemmArgs& args, cudaStream_t stream) {
  cudaError_t status = check_shape(args);
  if (status != cudaSuccess) return status;
  if (args.m == 0 || args.n == 0) return cudaSuccess;  // D has no elements

  Maps maps;
  status = check_matrices(args);
  if (status == cudaSuccess) status = check_device();
  if (status == cudaSuccess) status = encode_maps(args, maps);
  if (status != cudaSuccess) return status;

  // An attribute of the current device, and cheap enough to set each time: no state to guard.
  const auto kernel = &gemm_sm100a_bf16_128x128x64_depth2_persistent;
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemBytes);
  if (status != cudaSuccess) {
    return fail(status, "cudaFuncSetAttribute", cudaGetErrorString(status));
  }

  const int64_t m_tiles = tiles_of(args.m, kBlockM);
  const int64_t n_tiles = tiles_of(args.n, kBlockN);
  cudaLaunchConfig_t config{};
  const int64_t tiles = m_tiles * n_tiles;
  config.gridDim = dim3(static_cast<uint32_t>(tiles < kCtas ? tiles : kCtas));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kSmemBytes;
  config.stream = stream;
  const int64_t edge_columns = args.n % kChunkCols;
  const Edge edge{reinterpret_cast<uint16_t*>(args.d), args.ldd,
                  static_cast<uint32_t>(args.m), static_cast<uint32_t>(args.n - edge_columns),
                  static_cast<uint32_t>(edge_columns)};
  const Problem problem{static_cast<uint32_t>(m_tiles), static_cast<uint32_t>(n_tiles),
                        static_cast<uint32_t>(tiles_of(args.k, kBlockK))};
  status = cudaLaunchKernelEx(&config, kernel, maps.a, maps.b, maps.d, problem, edge);
  if (status != cudaSuccess) {
    return fail(status, "cudaLaunchKernelEx", cudaGetErrorString(status));
  }
  return cudaSuccess;
}

#ifdef TMAGEN_EXTERN_C
// The same for callers that look symbols up by name.
extern "C" cudaError_t gemm_sm100a_bf16_128x128x64_depth2_persistent_launch(
    const GemmArgs* args, cudaStream_t stream) {
  return launch(*args, stream);
}
extern "C" const char* gemm_sm100a_bf16_128x128x64_depth2_persistent_last_error() {
  return last_error();
}
#endif

#endif  // __CUDACC_RTC__

}  // namespace gemm_sm100a_bf16_128x128x64_depth2_persistent

#endif  // TMAGEN_GUARD_gemm_sm100a_bf16_128x128x64_depth2_persistent
