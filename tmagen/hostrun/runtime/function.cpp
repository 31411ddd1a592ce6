// SPDX-License-Identifier: Apache-2.0
// Attributes of kernels, which the runtime keeps for each device.
#include "json.hpp"
#include "state.hpp"

namespace {

cudaError_t set(standin::Kernel& kernel, cudaFuncAttribute attribute, int value) {
  const int device = standin::current_device();
  const standin::Device& properties = standin::state().devices[device];
  const standin::Description& code = standin::description_of(kernel);
  if (!standin::runs_on(code.arch, properties)) return cudaErrorNoKernelImageForDevice;
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      const int most = properties.smem_optin_bytes - static_cast<int>(code.static_smem_bytes);
      if (value < 0 || value > most) return cudaErrorInvalidValue;
      kernel.max_dynamic_smem_bytes[device] = value;
      return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      kernel.any_cluster_size[device] = value != 0;
      return cudaSuccess;
    default:
      standin::not_modelled("the function attribute " + std::to_string(static_cast<int>(attribute)));
  }
}

}  // namespace

extern "C" cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const standin::Lock lock(standin::state().mutex);
  standin::Kernel* kernel = standin::find_kernel(function);
  if (kernel == nullptr) return standin::finish(cudaErrorInvalidResourceHandle);
  const cudaError_t error = set(*kernel, attribute, value);
  standin::Object event;
  event.text("event", "set_attribute").text("kernel", kernel->name);
  event.number("error", static_cast<int>(error)).text("error_name", cudaGetErrorName(error));
  event.number("attribute", static_cast<int>(attribute)).number("value", value);
  standin::record(event.number("device", standin::current_device()).str());
  return standin::finish(error);
}
