// SPDX-License-Identifier: Apache-2.0
#ifndef TMAGEN_HOSTRUN_LAUNCH_HPP
#define TMAGEN_HOSTRUN_LAUNCH_HPP

#include <cuda_runtime_api.h>

#include <string>

namespace standin {

struct LaunchShape {
  dim3 grid, block, cluster;
  std::size_t smem_bytes;  // dynamic
  cudaStream_t stream;
  std::string attributes;  // of cudaLaunchKernelExC, other than the cluster: a JSON object's members
  bool names_cluster = false;
};

// Checks a launch as the CUDA runtime does and records it. `function` is a host function or a kernel handle.
cudaError_t launch(const void* function, LaunchShape shape, void** arguments);

}  // namespace standin

#endif
