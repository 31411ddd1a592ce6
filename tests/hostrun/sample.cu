// SPDX-License-Identifier: Apache-2.0
// A host part that does as it is told by M: what a host part may do right, and wrong.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

struct __half;
struct __nv_bfloat16;

namespace sample {

struct Pair {
  std::int16_t first;
  std::int64_t second;
};

static __global__ void __launch_bounds__(64) kernel(const __grid_constant__ CUtensorMap map, char letter, Pair pair,
                                                    int number) {
  extern __shared__ int words[];
  words[threadIdx.x] = number + letter + pair.first + static_cast<int>(pair.second);
  asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}

struct GemmArgs {
  const __half* a;
  const __nv_bfloat16* b;
  float* d;
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldd;
};

inline constexpr std::int64_t kStaticM = -1;
inline constexpr std::int64_t kStaticN = 0;
inline constexpr std::int64_t kStaticK = 4096;

static thread_local char error_text[128] = "";
inline const char* last_error() { return error_text; }

static cudaError_t encode(CUtensorMap* map, const GemmArgs& args) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  cudaError_t status =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
  const cuuint64_t dims[3] = {64, static_cast<cuuint64_t>(args.n), 7};
  const cuuint64_t strides[2] = {128, std::uint64_t{1} << 33};
  const cuuint32_t box[3] = {32, 128, 1};
  const cuuint32_t element_strides[3] = {1, 2, 1};
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<__nv_bfloat16*>(args.b), dims, strides, box,
      element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  if (result == CUDA_SUCCESS) return cudaSuccess;
  std::snprintf(error_text, sizeof error_text, "b \"%p\": not accepted", static_cast<const void*>(args.b));
  return cudaErrorInvalidValue;
}

static cudaError_t launch(const GemmArgs& args, cudaStream_t stream) {
  CUtensorMap map{};
  const cudaError_t status = encode(&map, args);
  if (status != cudaSuccess) return status;
  const Pair pair{-2, std::int64_t{1} << 40};
  int value = 0;
  switch (args.m) {
    case 1:
      std::abort();
    case 2:
      std::exit(7);
    case 3:
      std::printf("a word on stdout\n");
      std::fflush(stdout);
      break;
    case 4:
      return cudaDeviceGetAttribute(&value, cudaDevAttrMaxTexture1DWidth, 0);
    case 5:  // the error of this launch is left for others to find
      kernel<<<1, 128, 0, stream>>>(map, 'x', pair, -1);
      return cudaSuccess;
    case 6:
      kernel<<<1, 64>>>(map, 'x', pair, -1);
      return cudaGetLastError();
    case 7:
      return cudaSetDevice(1);
    case 8:
      for (volatile bool forever = true; forever;) {
      }
      break;
    case 9:  // not allowed while a stream is captured
      cudaFree(nullptr);
      break;
    case 10: {
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(8, 2, 1);
      config.blockDim = dim3(32);
      config.dynamicSmemBytes = 65536;
      config.stream = stream;
      cudaLaunchAttribute attributes[2] = {};
      attributes[0].id = cudaLaunchAttributeClusterDimension;
      attributes[0].val.clusterDim.x = 4;
      attributes[0].val.clusterDim.y = 2;
      attributes[0].val.clusterDim.z = 1;
      attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[1].val.programmaticStreamSerializationAllowed = 1;
      config.attrs = attributes;
      config.numAttrs = 2;
      return cudaLaunchKernelEx(&config, kernel, map, 'x', pair, -1);
    }
    case 11:  // only a device whose attribute is set takes this
      kernel<<<1, 64, 65536, stream>>>(map, 'x', pair, -1);
      return cudaGetLastError();
    default:
      break;
  }
  kernel<<<dim3(3, 2), 64, 1024, stream>>>(map, 'x', pair, -1);
  return cudaGetLastError();
}

}  // namespace sample
