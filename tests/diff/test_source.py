# SPDX-License-Identifier: Apache-2.0
"""A CUDA text as a reader meets it."""

from __future__ import annotations

from tmagen.diff.source import source_facts

TEXT = r"""// A kernel.
__device__ __forceinline__ void load(void* a, void* b, int c) {
  asm volatile("cp.async.bulk.commit_group;");
}

__device__ void mma(uint32_t d) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], 0, 0, 0, p;\n"
      "}\n"
      :
      : "r"(d));
}

__device__ void wait() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

__device__ void convert(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); }

__global__ void kernel() {
  wait();
}

void launch();
"""


def test_lines_parameters_and_clobbers() -> None:
    facts = source_facts(TEXT)
    lines = TEXT.splitlines()
    assert facts.lines == len(lines)
    assert facts.before_kernel == lines.index("__global__ void kernel() {")
    assert facts.device_lines == lines.index("void launch();") - 1
    assert facts.comment_lines == 1
    assert facts.widest_line == max(map(len, lines))
    assert facts.most_parameters == 3
    assert facts.unclobbered == ("cp.async.bulk.commit_group", "tcgen05.mma")
