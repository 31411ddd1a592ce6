// SPDX-License-Identifier: Apache-2.0
// The calls that nvcc writes into every host object: fat binaries, kernels, and the <<<>>> configuration.
#include <vector>

#include "launch.hpp"
#include "protocol.hpp"
#include "state.hpp"

namespace {
struct Configuration {
  dim3 grid, block;
  std::size_t smem_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

// A handle of __cudaRegisterFatBinary stands for a translation unit. Units register one after another.
int unit_of(void** handle) {
  static void** last = nullptr;
  if (handle != last) ++standin::state().units;
  last = handle;
  return standin::state().units - 1;
}
}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) { return new void*(fat_binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  const standin::Lock lock(standin::state().mutex);
  standin::Kernel& kernel = standin::state().kernels[host_function];
  kernel.name = name;
  kernel.unit = unit_of(handle);
}

// Device variables are registered by many headers; only a use of one would need the device.
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, std::size_t, int, int) {
  standin::not_modelled(std::string("the managed variable ") + name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t smem_bytes, void* stream) {
  configurations.push_back({grid, block, smem_bytes, static_cast<cudaStream_t>(stream)});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* smem_bytes, void* stream) {
  if (configurations.empty()) return standin::finish(cudaErrorInvalidConfiguration);
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *smem_bytes = top.smem_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host_function) {
  const standin::Lock lock(standin::state().mutex);
  standin::Kernel* kernel = standin::find_kernel(host_function);
  if (kernel == nullptr) return standin::finish(cudaErrorInvalidDeviceFunction);
  *handle = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t smem_bytes,
                               cudaStream_t stream) {
  return standin::finish(standin::launch(kernel, {grid, block, {1, 1, 1}, smem_bytes, stream, {}}, arguments));
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t smem_bytes, cudaStream_t stream) {
  const cudaStream_t meant = stream == nullptr ? cudaStreamPerThread : stream;
  return __cudaLaunchKernel(kernel, grid, block, arguments, smem_bytes, meant);
}

}  // extern "C"
