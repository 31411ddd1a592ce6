// SPDX-License-Identifier: Apache-2.0
// Asks a CUDA runtime and driver what they answer to legal and illegal calls, one "question = answer" a line.
// The same program runs on a GPU (driver_answers.txt holds what it printed there) and on the stand-in runtime.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "probe_kernels.cuh"

static __global__ void plain(int* out) {
  if (out != nullptr) *out = 1;
}
static __global__ void __launch_bounds__(128) bounded(int* out) {
  if (out != nullptr) *out = 1;
}
static __global__ void with_static(int* out) {
  __shared__ int words[256];
  words[threadIdx.x % 256] = threadIdx.x;
  __syncthreads();
  if (out != nullptr) *out = words[0];
}

static void say(const char* question, cudaError_t answer) { std::printf("%s = %s\n", question, cudaGetErrorName(answer)); }

// Ends what the question left behind, so that questions do not depend on each other.
static void settle() {
  cudaDeviceSynchronize();
  cudaGetLastError();
}

template <typename... Arguments>
static cudaError_t launch(void (*kernel)(Arguments...), dim3 grid, dim3 block, size_t smem, cudaStream_t stream = nullptr) {
  kernel<<<grid, block, smem, stream>>>(nullptr);
  const cudaError_t answer = cudaGetLastError();
  settle();
  return answer;
}

static cudaError_t launch_cluster(dim3 grid, dim3 cluster) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t answer = cudaLaunchKernelEx(&config, plain, static_cast<int*>(nullptr));
  settle();
  return answer;
}

static void ask_launch_limits() {
  say("grid 1x1x1 block 1", launch(plain, 1, 1, 0));
  say("grid 0", launch(plain, 0, 32, 0));
  say("grid y 0", launch(plain, dim3(1, 0, 1), 32, 0));
  say("grid x 2^31", launch(plain, dim3(0x80000000u), 32, 0));
  say("grid y 65535", launch(plain, dim3(1, 65535), 32, 0));
  say("grid y 65536", launch(plain, dim3(1, 65536), 32, 0));
  say("grid z 65536", launch(plain, dim3(1, 1, 65536), 32, 0));
  say("block 0", launch(plain, 1, 0, 0));
  say("block 1024", launch(plain, 1, 1024, 0));
  say("block 1025", launch(plain, 1, 1025, 0));
  say("block 32x32x2", launch(plain, 1, dim3(32, 32, 2), 0));
  say("block z 64", launch(plain, 1, dim3(1, 1, 64), 0));
  say("block z 65", launch(plain, 1, dim3(1, 1, 65), 0));
  say("block 128 of launch bound 128", launch(bounded, 1, 128, 0));
  say("block 256 of launch bound 128", launch(bounded, 1, 256, 0));
}

static void ask_shared_memory() {
  const auto limit = [](auto kernel, int bytes) {
    const cudaError_t answer = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    settle();
    return answer;
  };
  say("dynamic 49152 by default", launch(plain, 1, 32, 49152));
  say("dynamic 49153 by default", launch(plain, 1, 32, 49153));
  say("dynamic 48128 beside static 1024", launch(with_static, 1, 32, 48128));
  say("dynamic 48129 beside static 1024", launch(with_static, 1, 32, 48129));
  int optin = 0;
  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  std::printf("opt-in limit = %d\n", optin);
  say("attribute at the limit", limit(plain, optin));
  say("dynamic at the limit", launch(plain, 1, 32, optin));
  say("attribute above the limit", limit(plain, optin + 1));
  say("dynamic at the limit after a rejected attribute", launch(plain, 1, 32, optin));
  say("dynamic above the limit", launch(plain, 1, 32, optin + 1));
  say("attribute -1", limit(plain, -1));
  say("attribute 100000", limit(plain, 100000));
  say("dynamic 100001 after attribute 100000", launch(plain, 1, 32, 100001));
  say("attribute 1024", limit(plain, 1024));
  say("dynamic 2048 after attribute 1024", launch(plain, 1, 32, 2048));
  say("attribute at the limit beside static 1024", limit(with_static, optin));
  say("attribute at the limit less static 1024", limit(with_static, optin - 1024));
  say("dynamic at the limit less static 1024", launch(with_static, 1, 32, optin - 1024));
  say("dynamic one above the limit less static", launch(with_static, 1, 32, optin - 1023));
  say("attribute of no kernel", cudaFuncSetAttribute(reinterpret_cast<const void*>(&optin),
                                                     cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  settle();
}

static void ask_clusters() {
  say("cluster 2 of grid 4", launch_cluster(4, 2));
  say("cluster 2 of grid 3", launch_cluster(3, 2));
  say("cluster 8 of grid 8", launch_cluster(8, 8));
  say("cluster 16 of grid 16", launch_cluster(16, 16));
  say("cluster 4x2 of grid 4x2", launch_cluster(dim3(4, 2), dim3(4, 2)));
  say("cluster 0", launch_cluster(4, 0));
}

static void ask_errors() {
  say("foreign attribute", set_foreign_attribute());
  say("last error after it", cudaGetLastError());
  say("foreign launch", launch_foreign(nullptr));
  say("last error after it was taken", cudaGetLastError());
  plain<<<0, 32>>>(nullptr);
  say("peek", cudaPeekAtLastError());
  say("peek again", cudaPeekAtLastError());
  plain<<<1, 32>>>(nullptr);
  say("peek after a good launch", cudaPeekAtLastError());
  say("get", cudaGetLastError());
  say("get again", cudaGetLastError());
  int value = 0;
  say("attribute of device 99", cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
  say("last error of device 99", cudaGetLastError());
  say("attribute into null", cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  settle();
  say("set device 99", cudaSetDevice(99));
  settle();
}

static void ask_entry_points() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  const auto ask = [&](const char* question, const char* symbol, unsigned version) {
    function = nullptr;
    const cudaError_t answer = cudaGetDriverEntryPointByVersion(symbol, &function, version, cudaEnableDefault, &found);
    std::printf("%s = %s, result %d, %s\n", question, cudaGetErrorName(answer), static_cast<int>(found),
                function != nullptr ? "found" : "null");
    settle();
  };
  ask("entry point of 12000", "cuTensorMapEncodeTiled", 12000);
  ask("entry point of 13000", "cuTensorMapEncodeTiled", 13000);
  ask("entry point of 11000", "cuTensorMapEncodeTiled", 11000);
  ask("entry point of no name", "noSuchFunction", 12000);
}

static void ask_streams() {
  cudaStream_t stream = nullptr;
  say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  say("launch on a stream", launch(plain, 1, 32, 0, stream));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  int value = 0;
  say("begin capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  say("capturing", cudaStreamIsCapturing(stream, &status));
  std::printf("capture status = %d\n", static_cast<int>(status));
  say("device attribute in capture", cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  say("entry point in capture",
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  say("function attribute in capture",
      cudaFuncSetAttribute(bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  bounded<<<1, 32, 65536, stream>>>(nullptr);
  say("launch in capture", cudaGetLastError());
  say("end capture", cudaStreamEndCapture(stream, &graph));
  std::printf("graph = %s\n", graph != nullptr ? "made" : "null");

  void* memory = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  say("malloc in capture", cudaMalloc(&memory, 16));
  say("launch after malloc in capture", (bounded<<<1, 32, 0, stream>>>(nullptr), cudaGetLastError()));
  say("end capture after malloc", cudaStreamEndCapture(stream, &graph));
  settle();

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  say("synchronize in capture", cudaStreamSynchronize(stream));
  say("launch after synchronize in capture", (bounded<<<1, 32, 0, stream>>>(nullptr), cudaGetLastError()));
  say("end capture after synchronize", cudaStreamEndCapture(stream, &graph));
  settle();

  cudaStream_t blocking = nullptr;
  cudaStreamCreate(&blocking);
  cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal);
  say("null stream while a blocking stream captures", (plain<<<1, 32>>>(nullptr), cudaGetLastError()));
  say("end capture after the null stream", cudaStreamEndCapture(blocking, &graph));
  settle();

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  say("null stream while a non-blocking stream captures", (plain<<<1, 32>>>(nullptr), cudaGetLastError()));
  say("device synchronize in capture", cudaDeviceSynchronize());
  say("end capture after device synchronize", cudaStreamEndCapture(stream, &graph));
  settle();
  say("begin capture of the null stream", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  settle();
  say("end capture of no capture", cudaStreamEndCapture(stream, &graph));
  settle();
}

// What belongs to a device, and what to the program.
static void ask_second_device() {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (count < 2) return;
  cudaStream_t first = nullptr;
  cudaStreamCreate(&first);
  say("attribute on the first device",
      cudaFuncSetAttribute(with_static, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  say("launch on the first device", launch(with_static, 1, 32, 65536));
  cudaSetDevice(1);
  say("launch on the second device", launch(with_static, 1, 32, 65536));
  say("small launch on the second device", launch(with_static, 1, 32, 1024));
  say("launch on a stream of the first device", launch(with_static, 1, 32, 1024, first));
  say("attribute on the second device",
      cudaFuncSetAttribute(with_static, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  say("launch on the second device with its attribute", launch(with_static, 1, 32, 65536));
  int device = -1;
  cudaGetDevice(&device);
  std::printf("device after that = %d\n", device);
  cudaSetDevice(0);
}

// The arguments of one encoding; a question changes one of them.
struct Encode {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 2;
  std::uintptr_t address = 0;
  cuuint64_t dims[5] = {512, 256, 4, 4, 4};
  cuuint64_t strides[4] = {1024, 262144, 1048576, 4194304};
  cuuint32_t box[5] = {64, 128, 1, 1, 1};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  bool no_map = false, no_dims = false, no_strides = false, no_box = false, no_steps = false;
  int map_offset = 0;
};

static PFN_cuTensorMapEncodeTiled_v12000 encode_tiled = nullptr;
static std::uintptr_t device_address = 0;

template <typename Change>
static void ask_encode(const char* question, Change change) {
  alignas(128) static unsigned char storage[512];
  Encode e;
  e.address = device_address;
  change(e);
  CUtensorMap* map = e.no_map ? nullptr : reinterpret_cast<CUtensorMap*>(storage + e.map_offset);
  const CUresult answer =
      encode_tiled(map, e.type, e.rank, reinterpret_cast<void*>(e.address), e.no_dims ? nullptr : e.dims,
                   e.no_strides ? nullptr : e.strides, e.no_box ? nullptr : e.box, e.no_steps ? nullptr : e.steps,
                   e.interleave, e.swizzle, e.promotion, e.fill);
  std::printf("%s = %d\n", question, static_cast<int>(answer));
}

static void ask_encodes() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  encode_tiled = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  void* memory = nullptr;
  cudaMalloc(&memory, 1 << 20);
  device_address = reinterpret_cast<std::uintptr_t>(memory);

  ask_encode("map", [](Encode&) {});
  ask_encode("map null", [](Encode& e) { e.no_map = true; });
  ask_encode("map at 64", [](Encode& e) { e.map_offset = 64; });
  ask_encode("map at 32", [](Encode& e) { e.map_offset = 32; });
  ask_encode("address null", [](Encode& e) { e.address = 0; });
  ask_encode("address + 8", [](Encode& e) { e.address += 8; });
  ask_encode("address + 16", [](Encode& e) { e.address += 16; });
  ask_encode("address not allocated", [](Encode& e) { e.address = 0x4000; });
  ask_encode("address 2^60", [](Encode& e) { e.address = std::uintptr_t{1} << 60; });
  ask_encode("address 2^47", [](Encode& e) { e.address = std::uintptr_t{1} << 47; });
  ask_encode("address 2^48", [](Encode& e) { e.address = std::uintptr_t{1} << 48; });
  ask_encode("address 2^52", [](Encode& e) { e.address = std::uintptr_t{1} << 52; });
  ask_encode("address 2^56", [](Encode& e) { e.address = std::uintptr_t{1} << 56; });
  ask_encode("address 2^57", [](Encode& e) { e.address = std::uintptr_t{1} << 57; });
  ask_encode("dims null", [](Encode& e) { e.no_dims = true; });
  ask_encode("strides null", [](Encode& e) { e.no_strides = true; });
  ask_encode("box null", [](Encode& e) { e.no_box = true; });
  ask_encode("element strides null", [](Encode& e) { e.no_steps = true; });
  ask_encode("rank 0", [](Encode& e) { e.rank = 0; });
  ask_encode("rank 1", [](Encode& e) { e.rank = 1; });
  ask_encode("rank 1 strides null", [](Encode& e) { e.rank = 1, e.no_strides = true; });
  ask_encode("rank 3", [](Encode& e) { e.rank = 3; });
  ask_encode("rank 5", [](Encode& e) { e.rank = 5; });
  ask_encode("rank 6", [](Encode& e) { e.rank = 6; });
  ask_encode("dim0 0", [](Encode& e) { e.dims[0] = 0; });
  ask_encode("dim1 0", [](Encode& e) { e.dims[1] = 0; });
  ask_encode("dim0 1", [](Encode& e) { e.dims[0] = 1; });
  ask_encode("dim0 7", [](Encode& e) { e.dims[0] = 7; });
  ask_encode("dim1 2^32", [](Encode& e) { e.dims[1] = cuuint64_t{1} << 32; });
  ask_encode("dim1 2^32 + 1", [](Encode& e) { e.dims[1] = (cuuint64_t{1} << 32) + 1; });
  ask_encode("dim0 2^32", [](Encode& e) { e.dims[0] = cuuint64_t{1} << 32; });
  ask_encode("dim0 above stride", [](Encode& e) { e.dims[0] = 1024; });
  ask_encode("stride 1008", [](Encode& e) { e.strides[0] = 1008; });
  ask_encode("stride 1032", [](Encode& e) { e.strides[0] = 1032; });
  ask_encode("stride 1026", [](Encode& e) { e.strides[0] = 1026; });
  ask_encode("stride 16", [](Encode& e) { e.strides[0] = 16; });
  ask_encode("stride 0", [](Encode& e) { e.strides[0] = 0; });
  ask_encode("stride 2^40 - 16", [](Encode& e) { e.strides[0] = (cuuint64_t{1} << 40) - 16; });
  ask_encode("stride 2^40", [](Encode& e) { e.strides[0] = cuuint64_t{1} << 40; });
  ask_encode("stride 2^63", [](Encode& e) { e.strides[0] = cuuint64_t{1} << 63; });
  ask_encode("rank 3 stride 1 below stride 0", [](Encode& e) { e.rank = 3, e.strides[1] = 128; });
  ask_encode("rank 3 stride 1 of 24", [](Encode& e) { e.rank = 3, e.strides[1] = 24; });
  ask_encode("box0 0", [](Encode& e) { e.box[0] = 0; });
  ask_encode("box1 0", [](Encode& e) { e.box[1] = 0; });
  ask_encode("box1 256", [](Encode& e) { e.box[1] = 256; });
  ask_encode("box1 257", [](Encode& e) { e.box[1] = 257; });
  ask_encode("box0 8", [](Encode& e) { e.box[0] = 8; });
  ask_encode("box0 4", [](Encode& e) { e.box[0] = 4; });
  ask_encode("box0 12", [](Encode& e) { e.box[0] = 12; });
  ask_encode("box0 56", [](Encode& e) { e.box[0] = 56; });
  ask_encode("box0 72 swizzle 128", [](Encode& e) { e.box[0] = 72; });
  ask_encode("box above dims", [](Encode& e) { e.dims[0] = 8, e.dims[1] = 8; });
  ask_encode("box0 32 swizzle 64", [](Encode& e) { e.box[0] = 32, e.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
  ask_encode("box0 40 swizzle 64", [](Encode& e) { e.box[0] = 40, e.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
  ask_encode("box0 16 swizzle 32", [](Encode& e) { e.box[0] = 16, e.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; });
  ask_encode("box0 24 swizzle 32", [](Encode& e) { e.box[0] = 24, e.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; });
  ask_encode("box0 256 swizzle none", [](Encode& e) { e.box[0] = 256, e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; });
  ask_encode("box 256x256 swizzle none",
             [](Encode& e) { e.box[0] = 256, e.box[1] = 256, e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; });
  ask_encode("box 256x256x4 swizzle none", [](Encode& e) {
    e.rank = 3, e.box[0] = 256, e.box[1] = 256, e.box[2] = 4, e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  });
  const auto box_u8 = [](const char* question, cuuint32_t rows, cuuint32_t planes) {
    ask_encode(question, [=](Encode& e) {
      e.rank = 3, e.type = CU_TENSOR_MAP_DATA_TYPE_UINT8, e.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
      e.box[0] = 256, e.box[1] = rows, e.box[2] = planes;
    });
  };
  box_u8("box of 196608 bytes", 256, 3);
  box_u8("box of 232448 bytes", 227, 4);
  box_u8("box of 233472 bytes", 228, 4);
  box_u8("box of 261120 bytes", 255, 4);
  box_u8("box of 262144 bytes", 256, 4);
  box_u8("box of 327680 bytes", 256, 5);
  ask_encode("swizzle 128 atom 32", [](Encode& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; });
  ask_encode("swizzle 128 atom 32 flip 8", [](Encode& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B; });
  ask_encode("swizzle 128 atom 64", [](Encode& e) { e.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B; });
  ask_encode("swizzle 99", [](Encode& e) { e.swizzle = static_cast<CUtensorMapSwizzle>(99); });
  ask_encode("type 99", [](Encode& e) { e.type = static_cast<CUtensorMapDataType>(99); });
  ask_encode("interleave 99", [](Encode& e) { e.interleave = static_cast<CUtensorMapInterleave>(99); });
  ask_encode("promotion 99", [](Encode& e) { e.promotion = static_cast<CUtensorMapL2promotion>(99); });
  ask_encode("fill 99", [](Encode& e) { e.fill = static_cast<CUtensorMapFloatOOBfill>(99); });
  ask_encode("element stride1 0", [](Encode& e) { e.steps[1] = 0; });
  ask_encode("element stride0 0", [](Encode& e) { e.steps[0] = 0; });
  ask_encode("element stride0 9", [](Encode& e) { e.steps[0] = 9; });
  ask_encode("element stride0 2", [](Encode& e) { e.steps[0] = 2; });
  ask_encode("element stride1 8", [](Encode& e) { e.steps[1] = 8; });
  ask_encode("element stride1 9", [](Encode& e) { e.steps[1] = 9; });
  ask_encode("fill NaN", [](Encode& e) { e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; });
  ask_encode("fill NaN bf16", [](Encode& e) {
    e.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  });
  ask_encode("fill NaN u16", [](Encode& e) {
    e.type = CU_TENSOR_MAP_DATA_TYPE_UINT16, e.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  });
  ask_encode("f32 box0 32", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, e.box[0] = 32; });
  ask_encode("f32 box0 64", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32; });
  ask_encode("u8 box0 128", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_UINT8, e.box[0] = 128; });
  ask_encode("u8 box0 8", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_UINT8, e.box[0] = 8; });
  ask_encode("f64 box0 16", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64, e.box[0] = 16; });
  ask_encode("f64 box0 32", [](Encode& e) { e.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64, e.box[0] = 32; });
  const auto interleaved = [](Encode& e, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle) {
    e.rank = 3, e.interleave = interleave, e.swizzle = swizzle, e.box[0] = 8;
  };
  ask_encode("interleave 16 rank 2", [&](Encode& e) {
    interleaved(e, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_SWIZZLE_NONE), e.rank = 2;
  });
  ask_encode("interleave 16", [&](Encode& e) { interleaved(e, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_SWIZZLE_NONE); });
  ask_encode("interleave 32 swizzle 32", [&](Encode& e) {
    interleaved(e, CU_TENSOR_MAP_INTERLEAVE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
  });
  ask_encode("interleave 32 swizzle none", [&](Encode& e) {
    interleaved(e, CU_TENSOR_MAP_INTERLEAVE_32B, CU_TENSOR_MAP_SWIZZLE_NONE);
  });
  ask_encode("interleave 32 swizzle 32 address + 16", [&](Encode& e) {
    interleaved(e, CU_TENSOR_MAP_INTERLEAVE_32B, CU_TENSOR_MAP_SWIZZLE_32B), e.address += 16;
  });
}

int main() {
  settle();
  ask_launch_limits();
  ask_shared_memory();
  ask_clusters();
  ask_errors();
  ask_entry_points();
  ask_streams();
  ask_second_device();
  ask_encodes();
  return EXIT_SUCCESS;
}
