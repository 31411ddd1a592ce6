// SPDX-License-Identifier: Apache-2.0
// Devices and what they can do.
#include "json.hpp"
#include "state.hpp"

using standin::finish;

namespace {
bool exists(int device) { return device >= 0 && device < static_cast<int>(standin::state().devices.size()); }

// Sets `value` and returns true if `attribute` is one whose value this runtime knows.
bool attribute_of(const standin::Device& device, cudaDeviceAttr attribute, int& value) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return value = 1024, true;
    case cudaDevAttrMaxBlockDimX:
      return value = 1024, true;
    case cudaDevAttrMaxBlockDimY:
      return value = 1024, true;
    case cudaDevAttrMaxBlockDimZ:
      return value = 64, true;
    case cudaDevAttrMaxGridDimX:
      return value = 0x7fffffff, true;
    case cudaDevAttrMaxGridDimY:
      return value = 65535, true;
    case cudaDevAttrMaxGridDimZ:
      return value = 65535, true;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return value = 49152, true;
    case cudaDevAttrWarpSize:
      return value = 32, true;
    case cudaDevAttrMaxRegistersPerBlock:
      return value = 65536, true;
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return value = 65536, true;
    case cudaDevAttrMultiProcessorCount:
      return value = device.sm_count, true;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return value = 2048, true;
    case cudaDevAttrUnifiedAddressing:
      return value = 1, true;
    case cudaDevAttrComputeCapabilityMajor:
      return value = device.major, true;
    case cudaDevAttrComputeCapabilityMinor:
      return value = device.minor, true;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return value = device.smem_optin_bytes, true;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return value = device.smem_per_sm_bytes() - device.smem_optin_bytes, true;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return value = device.smem_per_sm_bytes(), true;
    case cudaDevAttrCooperativeLaunch:
      return value = 1, true;
    case cudaDevAttrClusterLaunch:
      return value = device.major >= 9 ? 1 : 0, true;
    default:
      return false;
  }
}
}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return finish(cudaErrorInvalidValue);
  *count = static_cast<int>(standin::state().devices.size());
  return finish(*count != 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return finish(cudaErrorInvalidValue);
  if (standin::state().devices.empty()) return finish(cudaErrorNoDevice);
  *device = standin::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return finish(cudaErrorInvalidDevice);
  standin::set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return finish(cudaErrorInvalidValue);
  if (!exists(device)) return finish(cudaErrorInvalidDevice);
  if (!attribute_of(standin::state().devices[device], attribute, *value))
    standin::not_modelled("the device attribute " + std::to_string(static_cast<int>(attribute)));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const standin::Lock lock(standin::state().mutex);
  return finish(standin::break_captures() ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

cudaError_t cudaDeviceReset() { return cudaSuccess; }

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return finish(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

}  // extern "C"
