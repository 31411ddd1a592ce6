// SPDX-License-Identifier: Apache-2.0
// What the generated harness hands over: one kernel file's host part.
#ifndef TMAGEN_HOSTRUN_HARNESS_HPP
#define TMAGEN_HOSTRUN_HARNESS_HPP

#include <cuda_runtime_api.h>

#include <cstdint>

struct __half;
struct __nv_bfloat16;

namespace standin {

// The arguments of launch(), addresses as numbers: nothing on the host may look behind them.
struct Arguments {
  std::uint64_t a, b, d;
  std::int64_t m, n, k, lda, ldb, ldd;
};

struct HostPart {
  const char* elements[3];    // of A, B and D
  std::int64_t static_mnk[3];  // negative: given at run time
  cudaError_t (*launch)(const Arguments& arguments, cudaStream_t stream);
  const char* (*last_error)();
};

constexpr const char* element_name(const __half*) { return "f16"; }
constexpr const char* element_name(const __nv_bfloat16*) { return "bf16"; }
constexpr const char* element_name(const float*) { return "f32"; }
// Anything else has no name here and does not compile.

// Says what `part` is, then answers requests from stdin until it ends. Returns the exit status.
int serve(const HostPart& part);

}  // namespace standin

#endif
