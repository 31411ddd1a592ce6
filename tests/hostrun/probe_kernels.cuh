// SPDX-License-Identifier: Apache-2.0
// Kernels that do nothing, to be launched in legal and illegal ways.
#ifndef PROBE_KERNELS_CUH
#define PROBE_KERNELS_CUH
#include <cuda_runtime.h>

// Built for an architecture that the device does not have.
cudaError_t launch_foreign(cudaStream_t stream);
cudaError_t set_foreign_attribute();
#endif
