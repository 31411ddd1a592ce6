// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "json.hpp"
#include "protocol.hpp"

namespace standin {

State& state() {
  static State* const instance = [] {
    State* made = new State;
    configure_from_environment(*made);
    return made;
  }();
  return *instance;
}

namespace {
thread_local int thread_device = 0;
thread_local cudaError_t thread_error = cudaSuccess;
}  // namespace

int current_device() { return thread_device; }
void set_current_device(int device) { thread_device = device; }

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) thread_error = error;
  return error;
}

cudaError_t last_error(bool clear) {
  const cudaError_t error = thread_error;
  if (clear) thread_error = cudaSuccess;
  return error;
}

void record(std::string event) {
  const Lock lock(state().mutex);
  if (state().collecting)
    state().events.push_back(std::move(event));
  else
    answer(event);
}

void not_modelled(const std::string& what) {
  answer(Object().text("not_modelled", what).str());
  std::_Exit(3);
}

Kernel* find_kernel(const void* function) {
  auto& kernels = state().kernels;
  const auto found = kernels.find(function);
  if (found != kernels.end()) return &found->second;
  for (auto& [host_function, kernel] : kernels)
    if (&kernel == function) return &kernel;
  return nullptr;
}

const Description& description_of(const Kernel& kernel) {
  const auto found = state().descriptions.find(kernel.name);
  if (found == state().descriptions.end()) not_modelled("the kernel " + kernel.name + ", which is not described");
  return found->second;
}

Stream* find_stream(cudaStream_t handle) {
  auto& streams = state().streams;
  const auto found = streams.find(handle);
  if (found != streams.end()) return &found->second;
  const bool implicit = handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  if (!implicit) return nullptr;
  // One implicit stream per device and kind; which device is meant follows from the calling thread.
  static std::map<std::pair<int, bool>, Stream> implicit_streams;
  const bool per_thread = handle == cudaStreamPerThread;
  Stream& stream = implicit_streams[{current_device(), per_thread}];
  stream.id = per_thread ? 1 : 0;
  stream.device = current_device();
  return &stream;
}

bool break_captures() {
  bool any = false;
  for (auto& [handle, stream] : state().streams)
    if (stream.capturing) any = stream.invalidated = true;
  return any;
}

bool runs_on(const std::string& arch, const Device& device) {
  int number = 0;
  char suffix = '\0';
  if (std::sscanf(arch.c_str(), "sm_%d%c", &number, &suffix) < 1) not_modelled("device code for " + arch);
  const int major = number / 10, minor = number % 10;
  if (suffix == 'a') return device.major == major && device.minor == minor;
  // Machine code of one architecture also runs on later minor versions of the same major one.
  return device.major == major && device.minor >= minor;
}

}  // namespace standin
