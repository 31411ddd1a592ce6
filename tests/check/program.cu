// An ordinary host program; its argument says what it does, right or wrong.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define OK(call)                                                                    \
  do {                                                                              \
    const cudaError_t status = (call);                                              \
    if (status != cudaSuccess) {                                                    \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(status));           \
      return 3;                                                                     \
    }                                                                               \
  } while (0)

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__device__ int counter = 5;
__global__ void count(int* out) {
  counter += 1;
  *out = counter;
}

__device__ int constant_in_effect = 5;
__global__ void look(int* out) { *out = constant_in_effect; }

__global__ void never_ends(volatile int* flag) {
  while (*flag != 12345) {
  }
}

constexpr int kCount = 1000;

int sum(int bytes_of_c, bool read_freed) {
  std::vector<float> a(kCount), b(kCount), c(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = i, b[i] = 2 * i;
  float *da, *db, *dc;
  OK(cudaMalloc(&da, kCount * 4));
  OK(cudaMalloc(&db, kCount * 4));
  OK(cudaMalloc(&dc, bytes_of_c));
  OK(cudaMemcpy(da, a.data(), kCount * 4, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(db, b.data(), kCount * 4, cudaMemcpyHostToDevice));
  if (read_freed) OK(cudaFree(db));
  cudaEvent_t begin, end;
  OK(cudaEventCreate(&begin));
  OK(cudaEventCreate(&end));
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventRecord(begin, stream));
  add<<<(kCount + 127) / 128, 128, 0, stream>>>(da, db, dc, kCount);
  OK(cudaGetLastError());
  OK(cudaEventRecord(end, stream));
  OK(cudaEventSynchronize(end));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, begin, end));
  OK(cudaMemcpyAsync(c.data(), dc, kCount * 4, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  int wrong = milliseconds > 0 ? 0 : 1;
  for (int i = 0; i < kCount; ++i) wrong += c[i] != 3.0f * i;
  std::printf("%d wrong\n", wrong);
  OK(cudaFree(da));
  if (!read_freed) OK(cudaFree(db));
  OK(cudaFree(dc));
  return wrong != 0;
}

int twice(void (*kernel)(int*), int expected) {
  int *out, got = 0;
  OK(cudaMalloc(&out, 4));
  for (int i = 0; i < 2; ++i) kernel<<<1, 1>>>(out);
  OK(cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost));
  return got != expected;
}

int host_memory() {
  float *pinned, *managed, *out;
  OK(cudaMallocHost(&pinned, kCount * 4));
  OK(cudaMallocManaged(&managed, kCount * 4));
  OK(cudaHostAlloc(&out, kCount * 4, cudaHostAllocDefault));
  for (int i = 0; i < kCount; ++i) pinned[i] = i, managed[i] = 1;
  add<<<8, 128>>>(pinned, managed, out, kCount);
  OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += out[i] != i + 1.0f;
  OK(cudaFreeHost(pinned));
  OK(cudaFree(managed));
  OK(cudaFreeHost(out));
  return wrong != 0;
}

int copies() {
  char *device, rows[4][8], back[4][8] = {};
  OK(cudaMalloc(&device, 64));
  for (int i = 0; i < 32; ++i) rows[i / 8][i % 8] = i;
  OK(cudaMemset(device, 7, 64));
  OK(cudaMemcpy2D(device, 16, rows, 8, 8, 4, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2D(back, 8, device, 16, 8, 4, cudaMemcpyDeviceToHost));
  if (std::memcmp(rows, back, 32) != 0) return 1;
  char gap = 0;
  OK(cudaMemcpy(&gap, device + 8, 1, cudaMemcpyDefault));
  if (gap != 7) return 2;
  if (cudaMemcpy(device + 60, rows, 5, cudaMemcpyHostToDevice) != cudaErrorInvalidValue) return 4;
  if (cudaMemcpy(rows, back, 5, cudaMemcpyHostToDevice) == cudaSuccess) return 5;
  if (cudaMemcpy(device, rows, 5, cudaMemcpyDeviceToHost) == cudaSuccess) return 6;
  if (cudaFree(device + 1) == cudaSuccess) return 7;
  OK(cudaFree(device));
  if (cudaFree(device) == cudaSuccess) return 8;
  void* huge = nullptr;
  if (cudaMalloc(&huge, std::size_t{1} << 60) != cudaErrorMemoryAllocation) return 9;
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  cudaGetLastError();
  int* out;
  OK(cudaMalloc(&out, 4));
  look<<<1, 1>>>(out);
  return properties.multiProcessorCount > 0 && properties.warpSize == 32 ? 0 : 10;
}

extern "C" int called() { return sum(kCount * 4, false) == 0 ? 0 : 1; }

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "sum";
  const auto is = [&](const char* name) { return std::strcmp(mode, name) == 0; };
  if (is("sum")) return sum(kCount * 4, false);
  if (is("short")) return sum(kCount * 4 - 4, false);
  if (is("freed")) return sum(kCount * 4, true);
  if (is("variable")) return twice(count, 7);
  if (is("constant")) return twice(look, 5);
  if (is("host memory")) return host_memory();
  if (is("copies")) return copies();
  if (is("nothing")) return 0;
  if (is("status")) return std::printf("so long\n"), 42;
  if (is("abort")) std::abort();
  if (is("null")) return *static_cast<volatile int*>(nullptr);
  if (is("touch")) {
    float* device;
    OK(cudaMalloc(&device, 16));
    std::printf("before\n");
    return device[1] != 0;
  }
  if (is("refused")) {
    add<<<1, 2048>>>(nullptr, nullptr, nullptr, 0);
    return cudaGetLastError() == cudaErrorInvalidValue ? sum(kCount * 4, false) : 1;
  }
  if (is("attribute")) {
    int value;
    cudaDeviceGetAttribute(&value, cudaDevAttrMaxTexture1DWidth, 0);
    return 0;
  }
  if (is("thread")) {
    int status = 9;
    std::thread([&] { status = sum(kCount * 4, false); }).join();
    return status;
  }
  return 64;
}
