// SPDX-License-Identifier: Apache-2.0
// Device memory for host programs that allocate their own: host memory under another name.
#include <cstdlib>
#include <cstring>
#include <set>

#include "state.hpp"

using standin::finish;
using standin::Lock;
using standin::state;

namespace {

constexpr std::size_t kAlignment = 256;  // of cudaMalloc (CUDA programming guide, device memory accesses)

std::set<void*>& allocations() {
  static auto* const instance = new std::set<void*>;
  return *instance;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < bytes || (*pointer = std::aligned_alloc(kAlignment, rounded)) == nullptr)
    return finish(cudaErrorMemoryAllocation);
  allocations().insert(*pointer);
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  if (pointer == nullptr) return cudaSuccess;
  if (allocations().erase(pointer) == 0) return finish(cudaErrorInvalidValue);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

}  // extern "C"
