// SPDX-License-Identifier: Apache-2.0
// Events: the moment at which the host came by, since everything before it is done by then.
#include <chrono>
#include <map>

#include "state.hpp"

using standin::finish;
using standin::Lock;
using standin::state;

namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  bool recorded = false;
  bool timed = true;
  Clock::time_point at;
};

std::map<cudaEvent_t, Event>& events() {
  static auto* const instance = new std::map<cudaEvent_t, Event>;
  return *instance;
}

Event* find_event(cudaEvent_t handle) {
  const auto found = events().find(handle);
  return found != events().end() ? &found->second : nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  if (handle == nullptr) return finish(cudaErrorInvalidValue);
  const Lock lock(state().mutex);
  *handle = reinterpret_cast<cudaEvent_t>(new char);  // a key that is never used again
  events()[*handle].timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, cudaEventDefault); }

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  const Lock lock(state().mutex);
  Event* event = find_event(handle);
  const standin::Stream* on = standin::find_stream(stream);
  if (event == nullptr || on == nullptr) return finish(cudaErrorInvalidResourceHandle);
  if (on->capturing) standin::not_modelled("an event in a stream capture");
  event->recorded = true;
  event->at = Clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned) {
  return cudaEventRecord(handle, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const Lock lock(state().mutex);
  return finish(find_event(handle) != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) { return cudaEventQuery(handle); }

// The time that emulation took: real, and no measure of a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Lock lock(state().mutex);
  const Event *first = find_event(from), *last = find_event(to);
  if (milliseconds == nullptr) return finish(cudaErrorInvalidValue);
  if (first == nullptr || last == nullptr || !first->recorded || !last->recorded || !first->timed || !last->timed)
    return finish(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const Lock lock(state().mutex);
  return finish(events().erase(handle) != 0 ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  const Lock lock(state().mutex);
  const bool known = standin::find_stream(stream) != nullptr && find_event(handle) != nullptr;
  return finish(known ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // extern "C"
