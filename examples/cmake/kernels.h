// The generated kernels of the target that CMake chose, under names that do not depend on it.
#pragma once

#if TMAGEN_SM == 90
#include "gemm_sm90a_bf16_128x128x64_depth2_persistent.cu"
#include "gemm_sm90a_f16_128x128x64_depth2_persistent.cu"
namespace kernel_f16 = gemm_sm90a_f16_128x128x64_depth2_persistent;
namespace kernel_bf16 = gemm_sm90a_bf16_128x128x64_depth2_persistent;
#else
#include "gemm_sm100a_bf16_128x128x64_depth2_persistent.cu"
#include "gemm_sm100a_f16_128x128x64_depth2_persistent.cu"
namespace kernel_f16 = gemm_sm100a_f16_128x128x64_depth2_persistent;
namespace kernel_bf16 = gemm_sm100a_bf16_128x128x64_depth2_persistent;
#endif
