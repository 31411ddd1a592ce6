// SPDX-License-Identifier: Apache-2.0
// Cycles of what a GEMM kernel of sm_90a does, one CTA alone on the GPU: the measured rows of `tmagen/emu/timing`.
//   nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -o latencies benchmarks/latencies.cu && ./latencies
// Every figure is the least of 50 runs, so what it reads lies in L2.

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                \
  do {                                                                             \
    cudaError_t error = (call);                                                    \
    if (error != cudaSuccess) {                                                    \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));          \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ long long now() {
  long long cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
  return cycles;
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

constexpr int kRuns = 50;
enum Row {
  kClock, kArriveWait, kBarSync, kFenceProxy, kFenceBarrierInit, kShuffle, kElect, kLoadShared, kLoadGlobal,
  kStoreShared32, kLoadBox1, kLoadBox2, kLoadBox4, kLoadBox8, kIssueLoad, kStore1, kStore2, kStore4, kStoreRead1,
  kMma1, kMma2, kMma4, kMma8, kMma16, kRows
};
const char* const kNames[kRows] = {
    "two reads of the clock", "mbarrier.arrive, then a wait that succeeds", "bar.sync of 4 warps",
    "fence.proxy.async.shared::cta", "fence.mbarrier_init", "shfl.sync, dependent", "elect.sync",
    "ld.shared, dependent", "ld.global of L2, dependent", "32 st.shared.v4 of a warp",
    "TMA load of 1 box of 16 KiB, issue to wait", "2 boxes", "4 boxes", "8 boxes", "issue of 8 TMA loads",
    "TMA store of 1 box of 16 KiB, issue to wait_group 0", "2 boxes", "4 boxes", "1 box, to wait_group.read 0",
    "1 wgmma m64n128k16, issue to wait_group 0", "2", "4", "8", "16"};

template <int kN>
__device__ void wgmma(float (&d)[kN / 2], uint64_t a, uint64_t b);

template <>
__device__ void wgmma<128>(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,"
      "%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b));
}

template <int kCount>
__device__ long long time_wgmma(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  const long long start = now();
#pragma unroll
  for (int i = 0; i < kCount; ++i) wgmma<128>(d, a, b);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  return now() - start;
}

__device__ void load_box(uint32_t to, const CUtensorMap* map, uint32_t barrier, int x) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(0)
      : "memory");
}

__device__ void store_box(uint32_t from, const CUtensorMap* map, int x) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0];" ::"r"(from), "l"(map),
               "r"(x), "r"(0)
               : "memory");
}

__global__ void measure(const __grid_constant__ CUtensorMap map, uint32_t* chain, long long* out, float* sink) {
  extern __shared__ __align__(1024) uint8_t storage[];
  uint8_t* tiles = storage;  // 8 boxes of 16 KiB
  __shared__ __align__(8) uint64_t barriers[2];
  __shared__ uint32_t links[32];
  const bool first = threadIdx.x == 0;
  const uint32_t full = shared_address(&barriers[0]), own = shared_address(&barriers[1]);
  if (first) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(own));
    for (int i = 0; i < 32; ++i) links[i] = shared_address(&links[(i + 1) % 32]);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  uint32_t parity = 0;
  auto put = [&](int row, long long cycles) {
    if (first) out[row] = min(out[row], cycles);
  };
  float d[64] = {};
  const uint64_t descriptor = (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16);
  const uint64_t a = descriptor | (shared_address(tiles) >> 4), b = descriptor | (shared_address(tiles + 16384) >> 4);
  for (int run = 0; run < kRuns; ++run) {
    long long start = now();
    put(kClock, now() - start);
    if (first) {
      const uint32_t own_parity = run & 1;
      start = now();
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(own) : "memory");
      wait(own, own_parity);
      put(kArriveWait, now() - start);
      uint32_t at = shared_address(&links[0]);
      start = now();
#pragma unroll
      for (int i = 0; i < 32; ++i) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
      put(kLoadShared, (now() - start) / 32);
      uint32_t place = at & 0;
      start = now();
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(place) : "l"(chain + place) : "memory");
      }
      put(kLoadGlobal, (now() - start) / 32);
      sink[1] = place + at;
      const int counts[4] = {1, 2, 4, 8};
      for (int which = 0; which < 4; ++which) {
        const int boxes = counts[which];
        start = now();
        for (int i = 0; i < boxes; ++i) load_box(shared_address(tiles) + 16384 * i, &map, full, 64 * i);
        const long long issued = now();
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(16384 * boxes) : "memory");
        wait(full, parity);
        put(kLoadBox1 + which, now() - start);
        if (boxes == 8) put(kIssueLoad, issued - start);
        parity ^= 1;
      }
      for (int which = 0; which < 3; ++which) {
        start = now();
        for (int i = 0; i < counts[which]; ++i) store_box(shared_address(tiles) + 16384 * i, &map, 64 * i);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        put(kStore1 + which, now() - start);
      }
      start = now();
      store_box(shared_address(tiles), &map, 0);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      put(kStoreRead1, now() - start);
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      start = now();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      put(kFenceProxy, now() - start);
      start = now();
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      put(kFenceBarrierInit, now() - start);
    }
    __syncthreads();
    start = now();
    asm volatile("bar.sync 1, 128;" ::: "memory");
    put(kBarSync, now() - start);
    if (threadIdx.x < 32) {
      int value = threadIdx.x;
      start = now();
#pragma unroll
      for (int i = 0; i < 32; ++i) value = __shfl_sync(0xffffffff, value, (value + 1) & 31);
      put(kShuffle, (now() - start) / 32);
      uint32_t leader = 0;
      start = now();
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        asm volatile("{\n.reg .pred p;\n.reg .b32 r;\nelect.sync r|p, 0xffffffff;\nselp.u32 r, 1, 0, p;\nadd.u32 %0, %0, r;\n}\n"
                     : "+r"(leader)::"memory");
      }
      put(kElect, (now() - start) / 8);
      sink[2 + (threadIdx.x & 1)] = value + leader;
      const uint32_t at = shared_address(tiles) + 16 * threadIdx.x;
      start = now();
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(at + 512 * i), "r"(0) : "memory");
      }
      put(kStoreShared32, now() - start);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    put(kMma1, time_wgmma<1>(d, a, b));
    put(kMma2, time_wgmma<2>(d, a, b));
    put(kMma4, time_wgmma<4>(d, a, b));
    put(kMma8, time_wgmma<8>(d, a, b));
    put(kMma16, time_wgmma<16>(d, a, b));
    __syncthreads();
  }
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += d[i];
  sink[4 + threadIdx.x] = sum;
}

int main() {
  uint32_t* chain;
  long long* out;
  float* sink;
  void* matrix;
  CHECK(cudaMalloc(&chain, 1 << 20));
  CHECK(cudaMemset(chain, 0, 1 << 20));
  CHECK(cudaMalloc(&sink, 4096));
  CHECK(cudaMalloc(&matrix, 128 * 512 * 2));
  CHECK(cudaMemset(matrix, 0, 128 * 512 * 2));
  CHECK(cudaMallocManaged(&out, kRows * sizeof(long long)));
  for (int i = 0; i < kRows; ++i) out[i] = 1ll << 60;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
  CUtensorMap map;
  const cuuint64_t dims[2] = {512, 128}, strides[1] = {1024};
  const cuuint32_t box[2] = {64, 128}, steps[2] = {1, 1};
  auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
    std::fprintf(stderr, "no tensor map\n");
    return 1;
  }
  CHECK(cudaFuncSetAttribute(measure, cudaFuncAttributeMaxDynamicSharedMemorySize, 8 * 16384));
  measure<<<1, 128, 8 * 16384>>>(map, chain, out, sink);
  CHECK(cudaDeviceSynchronize());
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, cycles\n", device.name);
  for (int i = 0; i < kRows; ++i) {
    if (out[i] < (1ll << 60)) std::printf("%6lld  %s\n", out[i], kNames[i]);
  }
  return 0;
}
