// SPDX-License-Identifier: Apache-2.0
// What the stand-in runtime knows: devices, kernels, and the record of what the host program did.
#ifndef TMAGEN_HOSTRUN_STATE_HPP
#define TMAGEN_HOSTRUN_STATE_HPP

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace standin {

struct Device {
  int major = 10;
  int minor = 0;
  int sm_count = 148;
  int smem_optin_bytes = 232448;  // shared memory of one block at most

  // Of every block, 1,024 bytes are the system's (CUDA programming guide, compute capability 8 and later).
  int smem_per_sm_bytes() const { return smem_optin_bytes + 1024; }
};

struct Parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
};

// What is read from a kernel's device code, by the program that built it.
struct Description {
  std::string arch;  // the one that it is compiled for, such as "sm_100a"
  int max_threads = 1024;  // per block, its launch bound
  std::size_t static_smem_bytes = 0;
  dim3 cluster{1, 1, 1};  // of a launch that names none: __cluster_dims__
  std::vector<Parameter> parameters;
};

// A __global__ function, as the host object registers it.
struct Kernel {
  std::string name;
  int unit = 0;  // the translation unit: its place among those with kernels, in the order in which they were linked
  std::map<int, int> max_dynamic_smem_bytes;  // by device, where cudaFuncSetAttribute has set it
  std::map<int, bool> any_cluster_size;       // by device: non-portable cluster sizes allowed
};

struct Stream {
  int id = 0;  // 0 is the null stream, 1 the per-thread one; created streams count from 3
  int device = 0;
  bool blocking = true;  // the null stream waits for it
  bool capturing = false;
  bool invalidated = false;  // the capture has met something that it cannot hold
  std::size_t captured = 0;  // kernel nodes
};

struct State {
  std::recursive_mutex mutex;
  std::vector<Device> devices{Device{}};
  std::map<const void*, Kernel> kernels;  // by host function
  int units = 0;                          // translation units with kernels
  std::map<std::string, Description> descriptions;  // by kernel name
  std::map<cudaStream_t, Stream> streams;
  int next_stream = 3;
  bool collecting = false;          // events wait for take_events; else each is written at once
  std::vector<std::string> events;  // JSON objects, in the order in which they happened
};

// Never destroyed: a host program may call the runtime from its own static destructors.
State& state();

using Lock = std::lock_guard<std::recursive_mutex>;

// Per host thread, as in the CUDA runtime.
int current_device();
void set_current_device(int device);

// Keeps `error` as the thread's last error unless it is success, and returns it.
cudaError_t finish(cudaError_t error);
cudaError_t last_error(bool clear);

void record(std::string event);

// The host program does something whose effect this runtime does not know. Says so and ends the process:
// an invented answer would be worse than none.
[[noreturn]] void not_modelled(const std::string& what);

// The kernel of a host function or of a handle from __cudaGetKernel; null if it is neither.
Kernel* find_kernel(const void* function);

// What is known about a kernel's device code; a kernel that nobody described is not modelled.
const Description& description_of(const Kernel& kernel);

// The stream behind a handle on the current device; null if the handle is unknown.
Stream* find_stream(cudaStream_t handle);

// Marks every capture on a stream as broken if one is under way, and says whether one was.
bool break_captures();

bool runs_on(const std::string& arch, const Device& device);

}  // namespace standin

#endif
