// SPDX-License-Identifier: Apache-2.0
// Kernel launches: the checks that the CUDA runtime makes, then a record in place of a run, or a wait for an emulator's.
#include "launch.hpp"

#include <algorithm>
#include <cstring>

#include "json.hpp"
#include "protocol.hpp"
#include "state.hpp"

namespace standin {
namespace {

constexpr int kDefaultSmemBytes = 49152;  // static and dynamic together, without cudaFuncSetAttribute
constexpr unsigned kPortableClusterSize = 8;
constexpr unsigned kLargestClusterSize = 16;

bool within(const dim3& size, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return size.x != 0 && size.y != 0 && size.z != 0 && size.x <= x && size.y <= y && size.z <= z;
}

std::string triple(const dim3& size) {
  const unsigned values[3] = {size.x, size.y, size.z};
  return array(values, 3);
}

cudaError_t check_cluster(const Kernel& kernel, const LaunchShape& shape, int device) {
  const dim3 &grid = shape.grid, &cluster = shape.cluster;
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) return cudaErrorInvalidClusterSize;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) return cudaErrorInvalidClusterSize;
  const auto allowed = kernel.any_cluster_size.find(device);
  const bool any = allowed != kernel.any_cluster_size.end() && allowed->second;
  const std::uint64_t size = std::uint64_t{cluster.x} * cluster.y * cluster.z;
  return size <= (any ? kLargestClusterSize : kPortableClusterSize) ? cudaSuccess : cudaErrorInvalidClusterSize;
}

cudaError_t check_stream(const Stream& stream) {
  if (stream.capturing && stream.invalidated) return cudaErrorStreamCaptureInvalidated;
  if (stream.id != 0) return cudaSuccess;
  // Work on the null stream waits for every blocking stream, which a capture cannot express.
  for (auto& [handle, other] : state().streams) {
    if (!other.capturing || !other.blocking || other.device != stream.device) continue;
    other.invalidated = true;
    return cudaErrorStreamCaptureImplicit;
  }
  return cudaSuccess;
}

cudaError_t check(const Kernel& kernel, const Description& code, const LaunchShape& shape, const Stream* stream) {
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  // A kernel runs where its stream is, whatever the calling thread's device.
  const int device = stream->device;
  if (!runs_on(code.arch, state().devices[device])) return cudaErrorNoKernelImageForDevice;
  if (!within(shape.grid, 0x7fffffff, 65535, 65535)) return cudaErrorInvalidValue;
  if (!within(shape.block, 1024, 1024, 64)) return cudaErrorInvalidValue;
  const std::uint64_t threads = std::uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  if (threads > static_cast<std::uint64_t>(code.max_threads)) return cudaErrorInvalidValue;
  const auto raised = kernel.max_dynamic_smem_bytes.find(device);
  const std::uint64_t limit = raised != kernel.max_dynamic_smem_bytes.end()
                                  ? static_cast<std::uint64_t>(raised->second)
                                  : kDefaultSmemBytes - code.static_smem_bytes;
  if (shape.smem_bytes > limit) return cudaErrorInvalidValue;
  const cudaError_t cluster = check_cluster(kernel, shape, device);
  return cluster != cudaSuccess ? cluster : check_stream(*stream);
}

// The parameter block, filled as the entry's .param table says; gaps are zero.
std::string pack(const std::vector<Parameter>& parameters, void** arguments) {
  std::size_t end = 0;
  for (const Parameter& parameter : parameters) end = std::max(end, parameter.offset + parameter.size);
  std::string block(end, '\0');
  for (std::size_t i = 0; i < parameters.size(); ++i)
    std::memcpy(&block[parameters[i].offset], arguments[i], parameters[i].size);
  return block;
}

}  // namespace

cudaError_t launch(const void* function, LaunchShape shape, void** arguments) {
  const Lock lock(state().mutex);
  Kernel* kernel = find_kernel(function);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  const Description& code = description_of(*kernel);
  if (!shape.names_cluster) shape.cluster = code.cluster;
  Stream* stream = find_stream(shape.stream);
  const cudaError_t error = check(*kernel, code, shape, stream);
  if (error == cudaSuccess && stream->capturing) ++stream->captured;
  Object event;
  event.text("event", "launch").text("kernel", kernel->name);
  event.number("unit", kernel->unit).number("units", state().units);
  event.number("error", static_cast<int>(error)).text("error_name", cudaGetErrorName(error));
  event.raw("grid", triple(shape.grid)).raw("block", triple(shape.block)).raw("cluster", triple(shape.cluster));
  event.number("dynamic_smem_bytes", shape.smem_bytes).number("device", stream != nullptr ? stream->device : -1);
  event.number("stream", stream != nullptr ? stream->id : -1);
  event.raw("attributes", "{" + shape.attributes + "}");
  event.number("captured", error == cudaSuccess && stream->capturing ? 1 : 0);
  event.text("params", error == cudaSuccess ? hex(pack(code.parameters, arguments)) : "");
  record(event.str());
  // A captured launch does not run now.
  if (error == cudaSuccess && !stream->capturing) await_run();
  return error;
}

}  // namespace standin

using standin::LaunchShape;

extern "C" {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t smem_bytes,
                             cudaStream_t stream) {
  return standin::finish(standin::launch(function, {grid, block, {1, 1, 1}, smem_bytes, stream, {}}, arguments));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return standin::finish(cudaErrorInvalidValue);
  LaunchShape shape{config->gridDim, config->blockDim, {1, 1, 1}, config->dynamicSmemBytes, config->stream, {}};
  standin::Object attributes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeIgnore:
        break;
      case cudaLaunchAttributeClusterDimension:
        shape.cluster = dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
        shape.names_cluster = true;
        break;
      case cudaLaunchAttributeCooperative:
        attributes.number("cooperative", attribute.val.cooperative);
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        attributes.number("programmatic_stream_serialization", attribute.val.programmaticStreamSerializationAllowed);
        break;
      case cudaLaunchAttributePriority:
        attributes.number("priority", attribute.val.priority);
        break;
      default:
        standin::not_modelled("the launch attribute " + std::to_string(static_cast<int>(attribute.id)));
    }
  }
  const std::string object = attributes.str();
  shape.attributes = object.substr(1, object.size() - 2);
  return standin::finish(standin::launch(function, shape, arguments));
}

}  // extern "C"
