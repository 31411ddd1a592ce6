# SPDX-License-Identifier: Apache-2.0
"""Generic addresses, where an instruction names shared memory and where it names none.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, Scalar, data, out

QUESTIONS = (
    Question(
        "generic-in-shared",
        "Where do ld, st, atom and mbarrier that name shared memory go with a generic address of 64 bits?",
        "Generic Addressing; ld: the address lies in the state space that is named",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 words[64];
  __shared__ u64 bar;
  u32 t = threadIdx.x, got, old;
  u64 there = reinterpret_cast<u64>(words) + 4 * t;
  words[t] = 100 + t;
  words[32 + t] = 0;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 33;" ::"l"(&bar) : "memory");
  __syncthreads();
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(got) : "l"(there) : "memory");
  asm volatile("st.shared.u32 [%0+128], %1;" ::"l"(there), "r"(got + 7) : "memory");
  __syncthreads();
  asm volatile("atom.shared.add.u32 %0, [%1], 1000;" : "=r"(old) : "l"(reinterpret_cast<u64>(words + 5)) : "memory");
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"l"(&bar) : "memory");
  __syncthreads();
  out[t] = got;
  out[32 + t] = words[32 + t];
  if (t == 0) {
    out[64] = words[5];
    out[65] = mbar_test(smem(&bar), 0);
    mbar_arrive(smem(&bar));
    out[66] = mbar_test(smem(&bar), 0);
  }
}
""",
        (out(67),),
        shows="loads {w[0]} {w[1]}, stores {w[32]}, adds up to {w[64]}; phase complete {w[65]}, {w[66]}",
    ),
    Question(
        "generic-several-spaces",
        "May the lanes of one generic ld, st or atom go to shared, global and local memory?",
        "Generic Addressing",
        """
extern "C" __global__ void question(u32* out, u32* memory, u32 zero) {
  __shared__ u32 words[32];
  u32 own[4], t = threadIdx.x, got, old;
  for (u32 i = 0; i < 4; ++i) own[i + zero] = 300 + 4 * t + i;
  words[t] = 100 + t;
  __syncwarp();
  u32* p = t % 3 == 0 ? words + t : t % 3 == 1 ? memory + t : own + (t + zero) % 4;
  asm volatile("ld.u32 %0, [%1];" : "=r"(got) : "l"(p) : "memory");
  asm volatile("st.u32 [%0], %1;" ::"l"(p), "r"(got * 2) : "memory");
  __syncwarp();
  out[t] = got;
  out[32 + t] = t % 3 == 2 ? own[(t + zero) % 4] : t % 3 == 1 ? memory[t] : words[t];
  p = t & 1 ? words + 31 - t : memory + t;
  __syncwarp();
  asm volatile("atom.add.u32 %0, [%1], 5;" : "=r"(old) : "l"(p) : "memory");
  __syncwarp();
  out[64 + t] = old;
  out[96 + t] = words[t];
}
""",
        (out(128), data(32, name="memory"), Scalar(0)),
        shows="lanes 0, 1, 2 load {w[0]} {w[1]} {w[2]}, then hold {w[32]} {w[33]} {w[34]}",
    ),
)
