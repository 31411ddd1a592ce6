# SPDX-License-Identifier: Apache-2.0
"""Programmatic dependent launch in host programs: the second kernel has to wait for what the first writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmagen.check import run_host

PROGRAM = """
#include <cuda_runtime.h>
__global__ void first(int* out) {
  asm volatile("griddepcontrol.launch_dependents;");
  out[threadIdx.x] = threadIdx.x + 1;
}
__global__ void second(const int* in, const int* weights, int* out) {
  int weight = weights[threadIdx.x];
  BEFORE
  out[threadIdx.x] = in[threadIdx.x] * weight;
}
int main() {
  int *a, *weights, *b, got[32];
  cudaMalloc(&a, 128); cudaMalloc(&weights, 128); cudaMalloc(&b, 128);
  cudaMemset(weights, 1, 128);
  first<<<1, 32>>>(a);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = ALLOWED;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1); config.blockDim = dim3(32); config.attrs = &attribute; config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, second, (const int*)a, (const int*)weights, b) != cudaSuccess) return 2;
  cudaMemcpy(got, b, 128, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) if (got[i] != (i + 1) * 0x01010101) return 3;
  return 0;
}
"""
WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'


@pytest.mark.parametrize(("wait", "allowed", "fired"), [(WAIT, 1, set()), ("", 1, {"GD-01"}), ("", 0, set())])
def test_a_dependent_kernel(tmp_path: Path, wait: str, allowed: int, fired: set[str]) -> None:
    """Weights, which the first kernel does not write, may be read before the wait."""
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM.replace("BEFORE", wait).replace("ALLOWED", str(allowed)))
    report = run_host([source], completion="eager", target="sm_90a")
    assert {finding.rule for case in report.cases for finding in case.findings} == fired, report.text()
    assert report.exit_code == (1 if fired else 0)
