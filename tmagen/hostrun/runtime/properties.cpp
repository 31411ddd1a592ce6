// SPDX-License-Identifier: Apache-2.0
// cudaDeviceProp: the fields whose values the stand-in's devices have; the others are zero.
#include <cstdio>
#include <cstring>

#include "state.hpp"

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return standin::finish(cudaErrorInvalidValue);
  const auto& devices = standin::state().devices;
  if (device < 0 || device >= static_cast<int>(devices.size())) return standin::finish(cudaErrorInvalidDevice);
  const standin::Device& known = devices[device];
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU of compute capability %d.%d", known.major,
                known.minor);
  properties->major = known.major;
  properties->minor = known.minor;
  properties->multiProcessorCount = known.sm_count;
  properties->totalGlobalMem = std::size_t{180} << 30;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = known.smem_optin_bytes;
  properties->sharedMemPerMultiprocessor = known.smem_per_sm_bytes();
  properties->reservedSharedMemPerBlock = known.smem_per_sm_bytes() - known.smem_optin_bytes;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxThreadsDim[0] = 1024;
  properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = 65535;
  properties->maxGridSize[2] = 65535;
  properties->unifiedAddressing = 1;
  properties->managedMemory = 1;
  properties->cooperativeLaunch = 1;
  return cudaSuccess;
}
