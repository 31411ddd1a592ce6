// SPDX-License-Identifier: Apache-2.0
// D = A * B with CUTLASS's collective builders, on integers, and a host program that compares every element.
// -D: ARCH (Sm90, Sm100), MAINLOOP, EPILOGUE (schedules), TILE_M, TILE_N, CLUSTER_M, CLUSTER_N, SMS.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "cutlass/cutlass.h"
#include "cute/tensor.hpp"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

using Half = cutlass::half_t;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
using CtaTile = cute::Shape<cute::Int<TILE_M>, cute::Int<TILE_N>, cute::_64>;
using ClusterShape = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, cute::_1>;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::ARCH, cutlass::arch::OpClassTensorOp, CtaTile, ClusterShape,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, Half, RowMajor, 8, Half, RowMajor, 8,
    EPILOGUE>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::ARCH, cutlass::arch::OpClassTensorOp, Half, RowMajor, 8, Half, ColumnMajor, 8, float, CtaTile,
    ClusterShape,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
    MAINLOOP>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, void>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

static std::vector<int> integers(size_t count, unsigned state) {
    std::vector<int> out(count);
    for (int& value : out) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<int>((state >> 16) % 13) - 6;
    }
    return out;
}

static void* on_device(const std::vector<int>& values) {
    std::vector<Half> halves(values.size());
    for (size_t i = 0; i < values.size(); ++i) halves[i] = Half(static_cast<float>(values[i]));
    void* memory = nullptr;
    cudaMalloc(&memory, halves.size() * sizeof(Half));
    cudaMemcpy(memory, halves.data(), halves.size() * sizeof(Half), cudaMemcpyHostToDevice);
    return memory;
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
    const std::vector<int> a = integers(size_t(m) * k, 1), b = integers(size_t(n) * k, 2);
    void *a_device = on_device(a), *b_device = on_device(b), *d_device = nullptr;
    cudaMalloc(&d_device, size_t(m) * n * sizeof(Half));

    const auto stride_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
    const auto stride_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
    const auto stride_d = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {m, n, 1});
    auto* d_half = static_cast<Half*>(d_device);
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {static_cast<Half*>(a_device), stride_a, static_cast<Half*>(b_device), stride_b},
        {{1.0f, 0.0f}, d_half, stride_d, d_half, stride_d}};
    arguments.hw_info.sm_count = SMS;
    Gemm gemm;
    void* workspace = nullptr;
    if (const size_t bytes = Gemm::get_workspace_size(arguments)) cudaMalloc(&workspace, bytes);
    if (gemm.can_implement(arguments) != cutlass::Status::kSuccess) return 3;
    if (gemm.initialize(arguments, workspace) != cutlass::Status::kSuccess) return 4;
    if (gemm.run() != cutlass::Status::kSuccess) return 5;
    if (cudaDeviceSynchronize() != cudaSuccess) return 6;

    std::vector<Half> d(size_t(m) * n);
    cudaMemcpy(d.data(), d_device, d.size() * sizeof(Half), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int row = 0; row < m; ++row) {
        for (int column = 0; column < n; ++column) {
            int sum = 0;
            for (int i = 0; i < k; ++i) sum += a[size_t(row) * k + i] * b[size_t(column) * k + i];
            wrong += Half(static_cast<float>(sum)).raw() != d[size_t(row) * n + column].raw();
        }
    }
    std::printf("%d of %d elements differ\n", wrong, m * n);
    return wrong != 0;
}
