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

#define UNUSED 1
constexpr int kCount = 3;
constexpr int kLeft = 4;

__global__ void kernel() {
  int cse_v1 = kCount;
  int stage = 0;
  alignas(64) int _ptr_2[1];
  wait();
}

void launch();
"""


def test_each_line_is_of_one_kind() -> None:
    facts = source_facts(TEXT)
    kinds = (
        facts.blank_and_comments,
        facts.host,
        facts.kernel,
        facts.wrappers,
        facts.called,
        facts.directives,
        facts.unused,
    )
    assert sum(kinds) == facts.lines == len(TEXT.splitlines())
    assert facts.host == 1  # launch()
    assert facts.kernel == 6
    assert facts.wrappers == 1  # wait(): the others are not called
    assert facts.called == 1  # kCount
    assert facts.unused == 15  # load, mma, convert, the macro and kLeft


def test_parameters_names_and_clobbers() -> None:
    facts = source_facts(TEXT)
    assert facts.widest_line == max(map(len, TEXT.splitlines()))
    assert facts.most_parameters == 3
    assert facts.numbered == ("cse_v1", "_ptr_2")
    assert facts.unclobbered == ("cp.async.bulk.commit_group", "tcgen05.mma")
