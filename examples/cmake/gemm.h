// The two products that main.cu asks for, free of kernel code.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

// D = A * B^T with A [m, k], B [n, k] and D [m, n], dense. Say in `why` what was wrong when they fail.
cudaError_t multiply(const __half* a, const __half* b, __half* d, int64_t m, int64_t n, int64_t k,
                     cudaStream_t stream, const char** why);
cudaError_t multiply(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, int64_t m,
                     int64_t n, int64_t k, cudaStream_t stream, const char** why);
