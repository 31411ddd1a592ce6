// SPDX-License-Identifier: Apache-2.0
// Driver functions that a host program asks for by name, so that it need not link libcuda.
#include <cuda.h>

#include <cstring>

#include "state.hpp"

namespace {

struct Entry {
  const char* symbol;
  void* function;
  unsigned since;  // CUDA version, as 1000 * major + 10 * minor
};

const Entry entries[] = {
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&cuTensorMapEncodeTiled), 12000},
    {"cuGetErrorString", reinterpret_cast<void*>(&cuGetErrorString), 6000},
    {"cuGetErrorName", reinterpret_cast<void*>(&cuGetErrorName), 6000},
};

cudaError_t look_up(const char* symbol, void** function, unsigned version, cudaDriverEntryPointQueryResult* result) {
  if (symbol == nullptr || function == nullptr) return cudaErrorInvalidValue;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  *function = nullptr;
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.symbol, symbol) != 0) continue;
    found = version >= entry.since ? cudaDriverEntryPointSuccess : cudaDriverEntryPointVersionNotSufficent;
    if (found == cudaDriverEntryPointSuccess) *function = entry.function;
  }
  // Any other name of the driver's kind may well exist there; only the driver knows.
  if (found == cudaDriverEntryPointSymbolNotFound && std::strncmp(symbol, "cu", 2) == 0)
    standin::not_modelled(std::string("the driver function ") + symbol);
  if (result != nullptr) *result = found;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return standin::finish(look_up(symbol, function, version, result));
}

// Deprecated in CUDA 13, and still what older host code calls.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return standin::finish(look_up(symbol, function, CUDART_VERSION, result));
}

}  // extern "C"
