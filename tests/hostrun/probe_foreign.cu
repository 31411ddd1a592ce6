// SPDX-License-Identifier: Apache-2.0
#include "probe_kernels.cuh"

static __global__ void foreign(int* out) {
  if (out != nullptr) *out = 1;
}

cudaError_t launch_foreign(cudaStream_t stream) {
  foreign<<<1, 32, 0, stream>>>(nullptr);
  return cudaGetLastError();
}

cudaError_t set_foreign_attribute() {
  return cudaFuncSetAttribute(foreign, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
}
