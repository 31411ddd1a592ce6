# SPDX-License-Identifier: Apache-2.0
"""Named barriers of a CTA, and the warp's.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from tests.gpu.conformance.question import Question, out

BAR = "bar, barrier: "

# A warp that waits a bounded time for `flag`, and says whether it came.
WATCH = """
static __device__ u32 comes(volatile u32* flag) {
  for (u32 looks = 0; looks < 1000; ++looks) {
    if (*flag) return 1;
    __nanosleep(1000);
  }
  return 0;
}
"""

QUESTIONS = (
    Question(
        "bar-two-of-four-warps",
        "Does bar.sync with a count let two warps of four meet while the others go their way?",
        BAR + "the number of threads that participate is b",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 words[128];
  u32 t = threadIdx.x, warp = t / 32;
  if (warp < 2) {
    words[t] = t + 1;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = words[63 - t];
  } else {
    words[t] = t + 1;
    asm volatile("bar.sync 2, 64;" ::: "memory");
    out[t] = words[191 - t];
  }
}
""",
        (out(128),),
        block=(128, 1, 1),
        shows="thread 0 reads {w[0]}, thread 64 reads {w[64]}",
    ),
    Question(
        "bar-arrive-and-sync",
        "Does bar.arrive by one warp and bar.sync by another complete a barrier, time after time?",
        BAR + "arrive does not wait",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 word;
  u32 t = threadIdx.x;
  for (u32 round = 0; round < 4; ++round) {
    if (t < 32) {
      if (t == 0) word = round * 3 + 1;
      asm volatile("bar.arrive 3, 64;" ::: "memory");
      asm volatile("bar.sync 4, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 3, 64;" ::: "memory");
      if (t == 32) out[round] = word;
      asm volatile("bar.arrive 4, 64;" ::: "memory");
    }
  }
}
""",
        (out(4),),
        block=(64, 1, 1),
        shows="rounds: {w}",
    ),
    Question(
        "bar-exited-warp",
        "Does a barrier without a count wait for a warp that has exited?",
        BAR + "all threads of the CTA",
        """
extern "C" __global__ void question(u32* out) {
  if (threadIdx.x >= 32) return;
  __nanosleep(20000);
  asm volatile("bar.sync 0;" ::: "memory");
  out[threadIdx.x] = 1;
}
""",
        (out(32),),
        block=(64, 1, 1),
        may_trap=True,
        shows="the other warp goes on: {w[0]}",
    ),
    Question(
        "bar-exit-after-sync",
        "Does a warp that exits while others wait let them go on?",
        BAR + "all threads of the CTA",
        """
extern "C" __global__ void question(u32* out) {
  if (threadIdx.x >= 32) {
    __nanosleep(100000);
    return;
  }
  asm volatile("bar.sync 0;" ::: "memory");
  out[threadIdx.x] = 1;
}
""",
        (out(32),),
        block=(64, 1, 1),
        may_trap=True,
        shows="the waiting warp goes on: {w[0]}",
    ),
    Question(
        "bar-exited-warp-counted",
        "Does an exited warp count where the barrier's count includes it?",
        BAR + "b threads have to arrive",
        WATCH
        + """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 passed;
  u32 warp = threadIdx.x / 32;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (warp == 1) return;
  if (warp == 0) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    *static_cast<volatile u32*>(&passed) = 1;
  } else {
    out[threadIdx.x - 64] = comes(&passed);
    __syncwarp();
    if (!*static_cast<volatile u32*>(&passed)) asm volatile("bar.arrive 1, 64;" ::: "memory");
  }
}
""",
        (out(32),),
        block=(96, 1, 1),
        may_trap=True,
        shows="passed without another arrival: {w[0]}",
    ),
    Question(
        "bar-arrive-twice",
        "Do two arrivals of one warp count as 64 threads?",
        BAR + "arrivals are counted by threads of a warp",
        WATCH
        + """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 passed;
  if (threadIdx.x == 0) passed = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    asm volatile("bar.sync 1, 64;" ::: "memory");
    *static_cast<volatile u32*>(&passed) = 1;
  } else {
    out[threadIdx.x - 32] = comes(&passed);
    __syncwarp();
    if (!*static_cast<volatile u32*>(&passed)) asm volatile("bar.arrive 1, 64;" ::: "memory");
  }
}
""",
        (out(32),),
        block=(64, 1, 1),
        may_trap=True,
        shows="the warp passed alone: {w[0]}",
    ),
    Question(
        "bar-part-of-a-warp",
        "May 20 lanes of a warp meet the other warp at a barrier of 64 threads, while the others wait at its end?",
        BAR + "barrier.sync without .aligned: each thread on its own; bar counts are of whole warps",
        WATCH
        + """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 passed;
  u32 t = threadIdx.x;
  if (t == 0) passed = 0;
  __syncthreads();
  if (t < 32) {
    if (t < 20) {
      asm volatile("barrier.sync 1, 64;" ::: "memory");
      *static_cast<volatile u32*>(&passed) = 1;
    }
  } else if (t < 64) {
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  } else {
    u32 seen = comes(&passed);
    out[t - 64] = seen;
    __syncwarp();
    if (!seen) asm volatile("barrier.arrive 1, 64;" ::: "memory");
  }
}
""",
        (out(32),),
        block=(96, 1, 1),
        may_trap=True,
        shows="passed: {w[0]}",
    ),
    Question(
        "bar-lanes-apart",
        "Does barrier.sync bring the lanes of a warp together that reach it at two places?",
        BAR + "barrier.sync without .aligned",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u32 words[64];
  u32 t = threadIdx.x;
  if (t & 1) {
    words[t] = t * 2;
    asm volatile("barrier.sync 1, 64;" ::: "memory");
    out[t] = words[t ^ 1];
  } else {
    __nanosleep(1000);
    words[t] = t * 3;
    asm volatile("barrier.sync 1, 64;" ::: "memory");
    out[t] = words[t ^ 1];
  }
}
""",
        (out(64),),
        block=(64, 1, 1),
        may_trap=True,
        shows="thread 3 reads {w[3]}, thread 2 reads {w[2]}",
    ),
    Question(
        "bar-red",
        "What do bar.red.popc, .and and .or give over two warps of three?",
        BAR + "red performs a reduction over the participating threads",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x, count, all, any, none;
  if (t >= 64) return;
  asm volatile(
      "{\\n.reg .pred p, q, a, o, n;\\n"
      "setp.lt.u32 p, %4, 37;\\nsetp.ge.u32 q, %4, 99;\\n"
      "bar.red.popc.u32 %0, 1, 64, p;\\n"
      "bar.red.and.pred a, 1, 64, p;\\n"
      "bar.red.or.pred o, 1, 64, p;\\n"
      "bar.red.and.pred n, 1, 64, !q;\\n"
      "selp.u32 %1, 1, 0, a;\\nselp.u32 %2, 1, 0, o;\\nselp.u32 %3, 1, 0, n;\\n}"
      : "=r"(count), "=r"(all), "=r"(any), "=r"(none) : "r"(t) : "memory");
  out[t] = count | all << 8 | any << 9 | none << 10;
}
""",
        (out(64),),
        block=(96, 1, 1),
        shows="popc | and << 8 | or << 9 | and of the negated << 10: {w[0]:#x}, {w[63]:#x}",
    ),
    Question(
        "bar-syncthreads-count",
        "What does __syncthreads_count give in a block that is no multiple of 32 threads?",
        BAR + "red.popc",
        """
extern "C" __global__ void question(u32* out) {
  u32 t = threadIdx.x;
  u32 odd = __syncthreads_count(t % 3 == 0);
  u32 all = __syncthreads_and(t < 45);
  u32 any = __syncthreads_or(t == 44);
  out[t] = odd | all << 8 | any << 9;
}
""",
        (out(45),),
        block=(45, 1, 1),
        shows="{w[0]:#x}, {w[44]:#x}",
    ),
    Question(
        "bar-warp-sync-apart",
        "Does bar.warp.sync order memory between lanes that reach it at two places?",
        "bar.warp.sync: memory ordering among the participating threads",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ volatile u32 words[32];
  u32 t = threadIdx.x;
  if (t < 16) {
    words[t] = t + 100;
    __syncwarp();
    out[t] = words[t + 16];
  } else {
    words[t] = t + 200;
    __syncwarp();
    out[t] = words[t - 16];
  }
}
""",
        (out(32),),
        shows="lane 0 reads {w[0]}, lane 16 reads {w[16]}",
    ),
    Question(
        "bar-warp-sync-part",
        "Does bar.warp.sync of half a warp wait for that half alone?",
        "bar.warp.sync: waits for the threads in membermask",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ volatile u32 words[32];
  u32 t = threadIdx.x;
  words[t] = 0;
  __syncwarp();
  if (t < 16) {
    words[t] = t + 1;
    __syncwarp(0xffff);
    out[t] = words[15 - t];
    __syncwarp(0xffff);
    if (t == 0) words[16] = 7;
  } else {
    u32 seen = 0;
    for (u32 looks = 0; looks < 1000 && !seen; ++looks) {
      seen = words[16];
      __nanosleep(200);
    }
    out[t] = seen;
  }
}
""",
        (out(32),),
        shows="lane 0 reads {w[0]}; lane 16 saw {w[16]}",
    ),
    Question(
        "bar-count-of-half-a-warp",
        "What does bar.sync do with a count of 48 threads?",
        BAR + "the count is a multiple of the warp size",
        """
extern "C" __global__ void question(u32* out) {
  u32 count = 48 + (out[0] - 0xa5a5a5a5);
  asm volatile("barrier.sync 1, %0;" ::"r"(count) : "memory");
  out[1 + threadIdx.x] = 1;
}
""",
        (out(65),),
        block=(64, 1, 1),
        may_trap=True,
        fault="multiple of",
    ),
    Question(
        "bar-number-16",
        "What does a barrier number of 16 do?",
        BAR + "barriers 0 to 15",
        """
extern "C" __global__ void question(u32* out) {
  u32 number = 16 + (out[0] - 0xa5a5a5a5);
  asm volatile("barrier.sync %0;" ::"r"(number) : "memory");
  out[1 + threadIdx.x] = 1;
}
""",
        (out(33),),
        may_trap=True,
        fault="0 to 15",
        explained="There are barriers 0 to 15; the H200 takes the number's low bits. The emulator reports it.",
    ),
)
