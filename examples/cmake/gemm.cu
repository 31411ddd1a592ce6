// Two kernels in one translation unit: each lives in a namespace of its own.
#include "gemm.h"
#include "kernels.h"

cudaError_t multiply(const __half* a, const __half* b, __half* d, int64_t m, int64_t n, int64_t k,
                     cudaStream_t stream, const char** why) {
  const cudaError_t status = kernel_f16::launch({a, b, d, m, n, k, k, k, n}, stream);
  if (status != cudaSuccess) *why = kernel_f16::last_error();
  return status;
}

cudaError_t multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, int64_t m,
                     int64_t n, int64_t k, cudaStream_t stream, const char** why) {
  const cudaError_t status = kernel_bf16::launch({a, b, d, m, n, k, k, k, n}, stream);
  if (status != cudaSuccess) *why = kernel_bf16::last_error();
  return status;
}
