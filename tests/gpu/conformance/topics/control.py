# SPDX-License-Identifier: Apache-2.0
"""Register counts, dependent grids, exits and special registers.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, data, out

QUESTIONS = (
    Question(
        "setmaxnreg-give-and-take",
        "Does a warpgroup get the registers that another gave up?",
        "setmaxnreg: .inc blocks until enough registers are available",
        """
extern "C" __global__ void __launch_bounds__(256, 1) __maxnreg__(168) question(u32* out) {
  if (threadIdx.x < 128)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  else
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  out[threadIdx.x] = threadIdx.x;
}
""".replace("__launch_bounds__(256, 1) ", ""),
        (out(256),),
        block=(256, 1, 1),
        may_trap=True,
        shows="all went on: {w[0]}, {w[255]}",
    ),
    Question(
        "setmaxnreg-again",
        "May a warpgroup lower and raise its registers time after time, to its own count too?",
        "setmaxnreg",
        """
extern "C" __global__ void __maxnreg__(128) question(u32* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 128;");
  for (u32 i = 0; i < 3; ++i) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 128;");
  }
  out[threadIdx.x] = threadIdx.x;
}
""",
        (out(128),),
        block=(128, 1, 1),
        may_trap=True,
        shows="went on: {w[127]}",
    ),
    Question(
        "griddepcontrol-alone",
        "Do griddepcontrol.wait and launch_dependents pass in a grid that depends on nothing?",
        "griddepcontrol: .wait blocks until prerequisite grids are complete",
        """
extern "C" __global__ void question(u32* out) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[threadIdx.x] = threadIdx.x;
}
""",
        (out(32),),
        shows="went on: {w[31]}",
    ),
    Question(
        "exit-of-lanes",
        "Do lanes that go on after others exited still compute and meet?",
        "exit",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x;
  if (t % 3 == 1) asm volatile("exit;");
  u32 sum = __reduce_add_sync(0x6db6db6d, t);
  out[t] = sum;
}
""",
        (out(32),),
        policies=("eager",),
        shows="lane 0: {w[0]}",
    ),
    Question(
        "special-registers",
        "What do the registers of place hold in a grid of 3 x 2 x 2 blocks of 8 x 4 x 2 threads?",
        "Special Registers: %tid, %ntid, %ctaid, %nctaid, %laneid",
        """
extern "C" __global__ void question(u32* out) {
  u32 r[13], t = (threadIdx.z * 4 + threadIdx.y) * 8 + threadIdx.x;
  asm volatile("mov.u32 %0, %%tid.x;\\nmov.u32 %1, %%tid.y;\\nmov.u32 %2, %%tid.z;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]));
  asm volatile("mov.u32 %0, %%ntid.x;\\nmov.u32 %1, %%ntid.y;\\nmov.u32 %2, %%ntid.z;"
               : "=r"(r[3]), "=r"(r[4]), "=r"(r[5]));
  asm volatile("mov.u32 %0, %%ctaid.x;\\nmov.u32 %1, %%ctaid.y;\\nmov.u32 %2, %%ctaid.z;"
               : "=r"(r[6]), "=r"(r[7]), "=r"(r[8]));
  asm volatile("mov.u32 %0, %%nctaid.x;\\nmov.u32 %1, %%nctaid.y;\\nmov.u32 %2, %%nctaid.z;"
               : "=r"(r[9]), "=r"(r[10]), "=r"(r[11]));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(r[12]));
  u32 all = 0;
  for (u32 i = 0; i < 13; ++i) all = all * 7 + r[i];
  out[((blockIdx.z * 2 + blockIdx.y) * 3 + blockIdx.x) * 64 + t] = all;
}
""",
        (out(768),),
        grid=(3, 2, 2),
        block=(8, 4, 2),
        policies=("eager",),
    ),
    Question(
        "shared-sizes",
        "What do %dynamic_smem_size and %total_smem_size hold for 1000 static and 3000 dynamic bytes?",
        "Special Registers: %total_smem_size, %dynamic_smem_size",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ volatile u8 fixed[1000];
  fixed[threadIdx.x * 31] = 1;
  dynamic_smem[threadIdx.x] = fixed[0];
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(out[0]));
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(out[1]));
  out[2] = smem(dynamic_smem);
}
""",
        (out(4),),
        smem=3000,
        shows="dynamic {w[0]}, total {w[1]}; the dynamic part begins at {w[2]:#x}",
    ),
    Question(
        "static-shared-address",
        "At which shared address does a CTA's first variable lie?",
        "State Spaces: .shared",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ __align__(16) volatile u32 first[4];
  first[threadIdx.x & 3] = 1;
  out[0] = smem(const_cast<u32*>(first));
}
""",
        (out(2),),
        shows="{w[0]:#x}",
    ),
    Question(
        "branch-apart",
        "Do the lanes of a loop with their own counts of rounds each get their own sum?",
        "Divergence of Threads in Control Constructs",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  u32 t = threadIdx.x, sum = 0, n = t * 7 % 32;
#pragma unroll 1
  for (u32 i = 0; i < n; ++i) {
    if (in[i] & 1) continue;
    sum += in[i] * (t + 1);
    if (sum > 5000) break;
  }
  out[t] = sum;
}
""",
        (out(32), data(32)),
    ),
    Question(
        "setmaxnreg-waits",
        "Does setmaxnreg.inc wait until another warpgroup has given up registers?",
        "setmaxnreg: .inc blocks until enough registers are available",
        """
extern "C" __global__ void __maxnreg__(168) question(u32* out) {
  __shared__ volatile u32 passed;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");
    passed = 1;
  } else {
    u32 seen = 0;
    for (u32 looks = 0; looks < 1000 && !seen; ++looks) {
      seen = passed;
      __nanosleep(500);
    }
    out[threadIdx.x - 128] = seen;
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
  }
}
""",
        (out(128),),
        block=(256, 1, 1),
        may_trap=True,
        registers=168,
        shows="passed before they were given up: {w[0]}",
    ),
)
