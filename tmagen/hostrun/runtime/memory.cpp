// SPDX-License-Identifier: Apache-2.0
// Allocation and copies. All of it takes place at once, in the order of the calls.
#include <cstring>
#include <map>

#include "device_memory.hpp"
#include "state.hpp"

using standin::Access;
using standin::finish;
using standin::Lock;
using standin::state;

namespace {

struct Kind {
  cudaMemoryType type;
  int device;
};

// Of live allocations, by their start.
std::map<const void*, Kind>& kinds() {
  static auto* const instance = new std::map<const void*, Kind>;
  return *instance;
}

cudaError_t allocate(void** pointer, std::size_t bytes, cudaMemoryType type) {
  const Access access = type == cudaMemoryTypeDevice ? Access::kDevice : Access::kHostToo;
  if (pointer == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = standin::allocate_device(bytes, access);
  if (*pointer != nullptr) kinds()[*pointer] = {type, standin::current_device()};
  return finish(*pointer != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t release(void* pointer) {
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  if (pointer == nullptr) return cudaSuccess;
  kinds().erase(pointer);
  return finish(standin::free_device(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}

// A pointer on the wrong side of the direction is refused, as by a runtime that knows which memory is whose.
bool direction_fits(const void* to, const void* from, cudaMemcpyKind kind) {
  const bool into = standin::is_device_address(to), out_of = standin::is_device_address(from);
  switch (kind) {
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return true;
    case cudaMemcpyHostToDevice:
      return into;
    case cudaMemcpyDeviceToHost:
      return out_of;
    case cudaMemcpyDeviceToDevice:
      return into && out_of;
  }
  return false;
}

struct Copy {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch;
  std::size_t width, height;  // bytes, rows
  cudaMemcpyKind kind;
};

cudaError_t copy(const Copy& c) {
  if (c.width == 0 || c.height == 0) return cudaSuccess;
  if (c.height > 1 && (c.to_pitch < c.width || c.from_pitch < c.width)) return cudaErrorInvalidPitchValue;
  if (standin::device_memory_is_apart() && !direction_fits(c.to, c.from, c.kind)) return cudaErrorInvalidMemcpyDirection;
  auto* to = static_cast<char*>(standin::reachable(c.to, (c.height - 1) * c.to_pitch + c.width));
  auto* from = static_cast<const char*>(standin::reachable(c.from, (c.height - 1) * c.from_pitch + c.width));
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  for (std::size_t row = 0; row < c.height; ++row) std::memmove(to + row * c.to_pitch, from + row * c.from_pitch, c.width);
  return cudaSuccess;
}

cudaError_t set(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  void* place = standin::reachable(to, bytes);
  if (place == nullptr) return cudaErrorInvalidValue;
  std::memset(place, value, bytes);
  return cudaSuccess;
}

template <typename Work>
cudaError_t at_once(Work work) {
  const Lock lock(state().mutex);
  if (standin::break_captures()) return finish(cudaErrorStreamCaptureUnsupported);
  return finish(work());
}

template <typename Work>
cudaError_t on_stream(cudaStream_t handle, Work work) {
  const Lock lock(state().mutex);
  const standin::Stream* stream = standin::find_stream(handle);
  if (stream == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (stream->capturing) standin::not_modelled("a copy in a stream capture");
  return finish(work());
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, cudaMemoryTypeDevice); }
cudaError_t cudaFree(void* pointer) { return release(pointer); }

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t) {
  return allocate(pointer, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return release(pointer); }

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, cudaMemoryTypeHost); }
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* pointer) { return release(pointer); }

// Memory that the runtime does not know is no error since CUDA 11.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(state().mutex);
  *attributes = {};
  attributes->device = cudaInvalidDeviceId;
  void* here = const_cast<void*>(pointer);
  const auto found = kinds().find(standin::allocation_of(pointer));
  if (found == kinds().end()) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = here;
    return cudaSuccess;
  }
  attributes->type = found->second.type;
  attributes->device = found->second.device;
  attributes->devicePointer = here;
  if (attributes->type != cudaMemoryTypeDevice) attributes->hostPointer = here;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return at_once([&] { return copy({to, bytes, from, bytes, bytes, 1, kind}); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return on_stream(stream, [&] { return copy({to, bytes, from, bytes, bytes, 1, kind}); });
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
  return at_once([&] { return copy({to, to_pitch, from, from_pitch, width, height, kind}); });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return on_stream(stream, [&] { return copy({to, to_pitch, from, from_pitch, width, height, kind}); });
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return at_once([&] { return set(to, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return on_stream(stream, [&] { return set(to, value, bytes); });
}

}  // extern "C"
