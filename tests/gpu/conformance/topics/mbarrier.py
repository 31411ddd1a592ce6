# SPDX-License-Identifier: Apache-2.0
"""mbarrier: phases, transaction counts and waits.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, out

QUESTIONS = (
    Question(
        id="mbarrier-negative-tx",
        asks="May complete_tx come before the expect_tx of its phase?",
        ptx="mbarrier, Tx-count operations: the tx-count's range is -(2^20-1) to 2^20-1",
        source="""
extern "C" __global__ void question(u32* out) {
  __shared__ u64 bar;
  u32 b = smem(&bar);
  mbar_init(b, 1);
  mbar_complete(b, 64);
  out[0] = mbar_test(b, 0);
  mbar_arrive_expect(b, 64);
  out[1] = mbar_test(b, 0);
  out[2] = mbar_test(b, 1);
}
""",
        parameters=(out(4),),
        block=(1, 1, 1),
        shows="before the expect {w[0]}, after it phase 0 complete: {w[1]}, phase 1: {w[2]}",
    ),
    Question(
        id="mbarrier-over-arrival",
        asks="What does an arrival do that comes after the last one, while bytes are outstanding?",
        ptx="mbarrier, Phase of the mbarrier object: the pending count's range is 0 to 2^20-1",
        source="""
extern "C" __global__ void question(u32* out) {
  __shared__ u64 bar;
  u32 b = smem(&bar);
  mbar_init(b, 1);
  mbar_arrive_expect(b, 64);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
}
""",
        parameters=(out(4),),
        block=(1, 1, 1),
        may_trap=True,
        fault="after the last expected one",
    ),
)
