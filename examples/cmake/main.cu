// Multiplies small integers, which f16 and bf16 hold exactly, and compares every element with the CPU.
#include <cstdio>
#include <vector>

#include "gemm.h"

// The same kernels once more, in another translation unit: the copies do not clash.
#include "kernels.h"

namespace {

bool ok(cudaError_t status, const char* what) {
  if (status != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  return status == cudaSuccess;
}

int value(int64_t row, int64_t column, int salt) {
  return static_cast<int>((row * 7 + column * 3 + salt) % 5) - 2;
}

template <class T>
bool check(const char* name, int64_t m, int64_t n, int64_t k) {
  std::vector<T> a(m * k), b(n * k), d(m * n);
  for (int64_t i = 0; i < m * k; ++i) a[i] = T(static_cast<float>(value(i / k, i % k, 1)));
  for (int64_t i = 0; i < n * k; ++i) b[i] = T(static_cast<float>(value(i / k, i % k, 3)));

  T *device_a = nullptr, *device_b = nullptr, *device_d = nullptr;
  if (!ok(cudaMalloc(&device_a, a.size() * sizeof(T)), "cudaMalloc")) return false;
  if (!ok(cudaMalloc(&device_b, b.size() * sizeof(T)), "cudaMalloc")) return false;
  if (!ok(cudaMalloc(&device_d, d.size() * sizeof(T)), "cudaMalloc")) return false;
  cudaMemcpy(device_a, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice);

  const char* why = "";
  if (!ok(multiply(device_a, device_b, device_d, m, n, k, nullptr, &why), name)) {
    std::fprintf(stderr, "  %s\n", why);
    return false;
  }
  if (!ok(cudaMemcpy(d.data(), device_d, d.size() * sizeof(T), cudaMemcpyDeviceToHost), name)) return false;

  int64_t wrong = 0;
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      int sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += value(row, i, 1) * value(column, i, 3);
      wrong += static_cast<float>(d[row * n + column]) != static_cast<float>(T(static_cast<float>(sum)));
    }
  }
  std::printf("%s %lld x %lld x %lld: %lld of %lld elements differ\n", name, static_cast<long long>(m),
              static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(wrong),
              static_cast<long long>(m * n));
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_d);
  return wrong == 0;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no CUDA device here; built and linked, nothing to run\n");
    return 0;
  }
  // launch() checks its arguments before it touches the GPU, and names the one that is wrong.
  if (kernel_f16::launch({nullptr, nullptr, nullptr, 128, 128, 64, 64, 64, 128}, nullptr) == cudaSuccess) return 1;
  std::printf("as expected: %s\n", kernel_f16::last_error());

  const bool right = check<__half>("f16", 512, 384, 256) && check<__nv_bfloat16>("bf16", 264, 136, 72);
  return right ? 0 : 1;
}
