# SPDX-License-Identifier: Apache-2.0
"""mbarrier: phases, transaction counts and waits.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from typing import Any

from tests.gpu.conformance.question import Question, data, out

PHASE = "Phase of the mbarrier object"
TX = "Tracking asynchronous operations by the mbarrier object: "
CONTENTS = "Contents of the mbarrier object: "


def alone(id: str, asks: str, ptx: str, body: str, shows: str = "", **rest: Any) -> Question:
    """One thread with an mbarrier at `b`; `out` has 8 words."""
    source = f"""
extern "C" __global__ void question(u32* out) {{
  __shared__ u64 bars[4];
  u32 b = smem(bars);
  {body.strip()}
}}
"""
    return Question(id, asks, ptx, source, (out(8),), block=(1, 1, 1), shows=shows, **rest)


QUESTIONS = (
    alone(
        "mbarrier-negative-tx",
        "May complete_tx come before the expect_tx of its phase?",
        TX + "the tx-count's range is -(2^20-1) to 2^20-1",
        """
  mbar_init(b, 1);
  mbar_complete(b, 64);
  out[0] = mbar_test(b, 0);
  mbar_arrive_expect(b, 64);
  out[1] = mbar_test(b, 0);
  out[2] = mbar_test(b, 1);
""",
        "before the expect {w[0]}; after it: phase 0 over {w[1]}, phase 1 over {w[2]}",
    ),
    alone(
        "mbarrier-expect-flips",
        "With no arrival pending and a negative tx-count, does the expect_tx that brings it to 0 complete the phase?",
        PHASE + ": a phase is complete when pending count and tx-count are 0",
        """
  mbar_init(b, 1);
  mbar_complete(b, 64);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_expect(b, 64);
  out[1] = mbar_test(b, 0);
""",
        "before {w[0]}, after {w[1]}",
    ),
    alone(
        "mbarrier-over-arrival",
        "What does an arrival do that comes after the last one, while bytes are outstanding?",
        CONTENTS + "the pending count's range is 0 to 2^20-1",
        """
  mbar_init(b, 1);
  mbar_arrive_expect(b, 64);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
""",
        may_trap=True,
        fault="after the last expected one",
    ),
    alone(
        "mbarrier-over-count",
        "What does one arrival of a count above the pending one do?",
        CONTENTS + "the pending count's range is 0 to 2^20-1",
        """
  mbar_init(b, 2);
  mbar_arrive(b, 3);
  out[0] = mbar_test(b, 0);
""",
        may_trap=True,
        fault="too many arrivals",
    ),
    alone(
        "mbarrier-next-phase",
        "Is an arrival right after a phase's last one charged to the next phase?",
        PHASE,
        """
  mbar_init(b, 2);
  mbar_arrive(b);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_arrive(b);
  out[1] = mbar_test(b, 1);
  mbar_arrive(b);
  out[2] = mbar_test(b, 1);
""",
        "phase 0 over {w[0]}; phase 1 after one arrival {w[1]}, after two {w[2]}",
    ),
    alone(
        "mbarrier-lapped-waiter",
        "What does a parity wait see that is two or three phases behind?",
        "mbarrier.test_wait: only the current and the preceding phase may be waited for",
        """
  mbar_init(b, 1);
  for (u32 i = 0; i < 4; ++i) {
    out[2 * i] = mbar_test(b, 0);
    out[2 * i + 1] = mbar_test(b, 1);
    mbar_arrive(b);
  }
""",
        "(parity 0, parity 1) in phases 0 to 3: {w}",
    ),
    alone(
        "mbarrier-init-zero",
        "What becomes of an mbarrier initialised with count 0 when a thread arrives?",
        "mbarrier.init: the count's range is 1 to 2^20-1",
        """
  mbar_init(b, out[7] - 0xa5a5a5a5);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
""",
        may_trap=True,
        fault="count 0: a count is 1",
    ),
    alone(
        "mbarrier-largest-count",
        "Does an mbarrier count to 2^20-1 arrivals?",
        "mbarrier.init: the count's range is 1 to 2^20-1",
        """
  mbar_init(b, (1 << 20) - 1);
  mbar_arrive(b, (1 << 20) - 2);
  out[0] = mbar_test(b, 0);
  mbar_arrive(b);
  out[1] = mbar_test(b, 0);
  mbar_arrive(b, (1 << 20) - 1);
  out[2] = mbar_test(b, 1);
""",
        "all but one {w[0]}, all {w[1]}, the next phase in one arrival {w[2]}",
    ),
    alone(
        "mbarrier-largest-tx",
        "Does a phase take 2^20-1 bytes, expected at once?",
        TX + "the tx-count's range is -(2^20-1) to 2^20-1",
        """
  u32 most = (1 << 20) - 1;
  mbar_init(b, 1);
  mbar_arrive_expect(b, most);
  mbar_complete(b, most - 1);
  out[0] = mbar_test(b, 0);
  mbar_complete(b, 1);
  out[1] = mbar_test(b, 0);
""",
        "one byte missing {w[0]}, all there {w[1]}",
    ),
    alone(
        "mbarrier-smallest-tx",
        "May 2^20-1 bytes complete before they are expected?",
        TX + "the tx-count's range is -(2^20-1) to 2^20-1",
        """
  u32 most = (1 << 20) - 1;
  mbar_init(b, 1);
  mbar_complete(b, most);
  mbar_expect(b, most - 1);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_expect(b, 1);
  out[1] = mbar_test(b, 0);
""",
        "one byte missing {w[0]}, all expected {w[1]}",
    ),
    alone(
        "mbarrier-tx-overflow",
        "What do 2^20 expected bytes do, one more than fit?",
        TX + "the tx-count's range is -(2^20-1) to 2^20-1",
        """
  mbar_init(b, 1);
  mbar_expect(b, (1 << 20) - 1);
  mbar_expect(b, 1);
  mbar_complete(b, 1);
  mbar_complete(b, (1 << 20) - 1);
  out[0] = mbar_test(b, 0);
  mbar_arrive(b);
  out[1] = mbar_test(b, 0);
""",
        may_trap=True,
        fault="tx-count out of range",
    ),
    alone(
        "mbarrier-expect-2-21",
        "What does arrive.expect_tx of 2^21 bytes do?",
        TX + "the tx-count's range is -(2^20-1) to 2^20-1",
        """
  mbar_init(b, 1);
  mbar_arrive_expect(b, out[7] - 0xa5a5a5a5 + (1 << 21));
  out[0] = mbar_test(b, 0);
""",
        may_trap=True,
        fault="tx-count out of range",
    ),
    alone(
        "mbarrier-pending-count",
        "Does the state that an arrive returns hold the pending count before or after it?",
        "mbarrier.pending_count: the count prior to the arrive-on",
        """
  mbar_init(b, 5);
  u64 states[3] = {mbar_arrive(b), mbar_arrive(b, 3), mbar_arrive(b)};
  for (u32 i = 0; i < 3; ++i)
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[i]) : "l"(states[i]));
""",
        "of 5, at arrivals of 1, 3 and 1: {w[0]}, {w[1]}, {w[2]}",
    ),
    alone(
        "mbarrier-token-wait",
        "What does test_wait say with the state of the current and of the preceding phase?",
        "mbarrier.test_wait: waits for the completion of the phase that the state names",
        """
  mbar_init(b, 2);
  u64 first = mbar_arrive(b);
  out[0] = mbar_test_state(b, first);
  mbar_arrive(b);
  out[1] = mbar_test_state(b, first);
  u64 second = mbar_arrive(b);
  out[2] = mbar_test_state(b, first);
  out[3] = mbar_test_state(b, second);
  mbar_arrive(b);
  out[4] = mbar_test_state(b, second);
""",
        "phase 0 with its state {w[0]}, then {w[1]} and {w[2]}; phase 1 with its state {w[3]}, then {w[4]}",
    ),
    alone(
        "mbarrier-odd-parities",
        "Which bits of a parity operand count?",
        "mbarrier.test_wait: phaseParity is 0 or 1",
        """
  mbar_init(b, 1);
  u32 zero = out[7] - 0xa5a5a5a5;
  u32 parities[4] = {2 + zero, 3 + zero, 0x80000000 + zero, 0xfffffffe + zero};
  for (u32 i = 0; i < 4; ++i) out[i] = mbar_test(b, parities[i]);
""",
        "in phase 0, parities 2, 3, 2^31 and 2^32-2: {w[0]} {w[1]} {w[2]} {w[3]}",
    ),
    alone(
        "mbarrier-inval",
        "Are the bytes of an mbarrier plain memory after inval, and may an object be made there again?",
        "mbarrier.inval: the location can be repurposed",
        """
  mbar_init(b, 3);
  mbar_arrive(b);
  mbar_inval(b);
  volatile u64* word = bars;
  *word = 0x0123456789abcdefull;
  out[0] = static_cast<u32>(*word);
  mbar_init(b, 1);
  out[1] = mbar_test(b, 0);
  mbar_arrive(b);
  out[2] = mbar_test(b, 0);
""",
        "plain word {w[0]:#x}; the new object before {w[1]} and after its arrival {w[2]}",
    ),
    alone(
        "mbarrier-no-complete",
        "Does arrive.noComplete lower the pending count and return it?",
        "mbarrier.arrive: .noComplete must not complete the phase",
        """
  mbar_init(b, 4);
  u64 state;
  asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], 3;" : "=l"(state) : "r"(b) : "memory");
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[0]) : "l"(state));
  out[1] = mbar_test(b, 0);
  mbar_arrive(b);
  out[2] = mbar_test(b, 0);
""",
        "pending before it {w[0]}; complete {w[1]}, and after one more arrival {w[2]}",
    ),
    alone(
        "mbarrier-drop",
        "Does arrive_drop count in this phase, and lower what later phases expect?",
        "mbarrier.arrive_drop: decrements the expected count, and arrives",
        """
  mbar_init(b, 3);
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_arrive(b);
  out[1] = mbar_test(b, 0);
  mbar_arrive(b);
  out[2] = mbar_test(b, 1);
  mbar_arrive(b);
  out[3] = mbar_test(b, 1);
""",
        "phase 0 after 2 and 3 arrivals: {w[0]} {w[1]}; phase 1 after 1 and 2: {w[2]} {w[3]}",
    ),
    alone(
        "mbarrier-drop-expect",
        "Does arrive_drop.expect_tx expect bytes in this phase and one arrival less in the next?",
        "mbarrier.arrive_drop: with .expect_tx, an expect-tx operation comes first",
        """
  mbar_init(b, 2);
  asm volatile("mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%0], 48;" ::"r"(b) : "memory");
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_complete(b, 48);
  out[1] = mbar_test(b, 0);
  mbar_arrive(b);
  out[2] = mbar_test(b, 1);
""",
        "both arrived {w[0]}, bytes there {w[1]}; phase 1 after 1 arrival {w[2]}",
    ),
    alone(
        "mbarrier-expect-zero",
        "Does arrive.expect_tx of 0 bytes complete a phase like a plain arrive?",
        "mbarrier.arrive: with .expect_tx, an expect-tx operation of txCount comes first",
        """
  mbar_init(b, 1);
  mbar_arrive_expect(b, 0);
  out[0] = mbar_test(b, 0);
  mbar_expect(b, 0);
  mbar_complete(b, 0);
  out[1] = mbar_test(b, 1);
""",
        "phase 0 over {w[0]}; after expect and complete of 0 bytes phase 1 over {w[1]}",
    ),
    alone(
        "mbarrier-in-parts",
        "Do bytes that complete in parts complete the phase with the last part only?",
        PHASE,
        """
  mbar_init(b, 1);
  mbar_expect(b, 48);
  mbar_expect(b, 16);
  mbar_arrive(b);
  for (u32 i = 0; i < 4; ++i) {
    mbar_complete(b, 16);
    out[i] = mbar_test(b, 0);
  }
""",
        "after 16, 32, 48 and 64 of 64 bytes: {w[0]} {w[1]} {w[2]} {w[3]}",
    ),
    alone(
        "mbarrier-too-many-bytes",
        "Do bytes beyond those expected keep a phase open until they are expected?",
        PHASE,
        """
  mbar_init(b, 2);
  mbar_arrive_expect(b, 32);
  mbar_complete(b, 64);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_expect(b, 32);
  out[1] = mbar_test(b, 0);
""",
        "all arrived {w[0]}, the rest expected {w[1]}",
    ),
    alone(
        "mbarrier-try-wait-hint",
        "Does try_wait with a suspend-time hint come back with false when nothing completes?",
        "mbarrier.try_wait: suspended up to the time limit",
        """
  mbar_init(b, 1);
  u32 done;
  asm volatile(
      "{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, 1000;\\nselp.u32 %0, 1, 0, p;\\n}"
      : "=r"(done) : "r"(b) : "memory");
  out[0] = done;
  mbar_arrive(b);
  asm volatile(
      "{\\n.reg .pred p;\\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, 1000;\\nselp.u32 %0, 1, 0, p;\\n}"
      : "=r"(done) : "r"(b) : "memory");
  out[1] = done;
""",
        "before the arrival {w[0]}, after it {w[1]}",
    ),
    alone(
        "mbarrier-misaligned",
        "What does mbarrier.init at an address do that is no multiple of 8?",
        "mbarrier: the object is aligned to 8 bytes",
        """
  mbar_init(b + 4 + (out[7] - 0xa5a5a5a5), 1);
  out[0] = 1;
""",
        may_trap=True,
        fault="not a multiple of 8",
    ),
    alone(
        "mbarrier-generic",
        "Do mbarrier instructions without a state space take generic addresses?",
        "mbarrier: if no state space is given, generic addressing is used",
        """
  u64 state;
  u32 done;
  asm volatile("mbarrier.init.b64 [%0], 1;" ::"l"(bars) : "memory");
  asm volatile("mbarrier.arrive.expect_tx.b64 %0, [%1], 32;" : "=l"(state) : "l"(bars) : "memory");
  out[0] = mbar_test(b, 0);
  mbar_complete(b, 32);
  asm volatile("{\\n.reg .pred p;\\nmbarrier.test_wait.b64 p, [%1], %2;\\nselp.u32 %0, 1, 0, p;\\n}"
               : "=r"(done) : "l"(bars), "l"(state) : "memory");
  out[1] = done;
""",
        "bytes missing {w[0]}, there {w[1]}",
    ),
    alone(
        "mbarrier-reinit",
        "Does init of a live object begin at phase 0 again?",
        "mbarrier.init: undefined on a location that holds a valid object",
        """
  mbar_init(b, 1);
  mbar_arrive(b);
  out[0] = mbar_test(b, 0);
  mbar_init(b, 2);
  out[1] = mbar_test(b, 0);
  mbar_arrive(b, 2);
  out[2] = mbar_test(b, 0);
""",
        "before {w[0]}; after init {w[1]}, after its arrivals {w[2]}",
        fault="live object",
        explained="The ISA leaves init of a live object undefined; the H200 overwrites it. The emulator reports it.",
    ),
    alone(
        "mbarrier-never-initialised",
        "What does a thread's arrival do on bytes that were never initialised as an mbarrier?",
        "mbarrier: operations on locations without a valid object are undefined",
        """
  volatile u64* word = bars;
  *word = ~0ull;
  mbar_arrive(b);
  out[0] = 1;
""",
        may_trap=True,
        fault="no initialised mbarrier",
    ),
    Question(
        "mbarrier-all-threads",
        "Do 128 arrivals of one instruction each complete a phase of count 128 once?",
        PHASE,
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u64 bar;
  u32 b = smem(&bar);
  if (threadIdx.x == 0) mbar_init(b, 128);
  __syncthreads();
  u64 state = mbar_arrive(b);
  out[threadIdx.x] = mbar_waits(b, 0) + 2 * mbar_test(b, 1) + 4 * mbar_test_state(b, state);
}
""",
        (out(128),),
        block=(128, 1, 1),
        shows="each thread sees phase 0 over, phase 1 not, its state's phase over (5): {w[0]}, {w[127]}",
    ),
    Question(
        "mbarrier-cp-async-arrive",
        "Does cp.async.mbarrier.arrive without .noinc leave the pending count as it was?",
        "cp.async.mbarrier.arrive: the pending count is incremented before the arrive-on",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  __shared__ u64 bar;
  __shared__ u32 to[32];
  u32 b = smem(&bar);
  if (threadIdx.x == 0) mbar_init(b, 32);
  __syncwarp();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem(to + threadIdx.x)), "l"(in + threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(b) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __nanosleep(100000);
  __syncwarp();
  out[threadIdx.x] = mbar_test(b, 0);
  __syncwarp();
  mbar_arrive(b);
  out[32 + threadIdx.x] = mbar_waits(b, 0);
  out[64 + threadIdx.x] = to[threadIdx.x];
}
""",
        (out(96), data(32)),
        shows="complete {w[0]}; after 32 arrivals by threads {w[32]}; thread 31's data {w[95]}",
    ),
    Question(
        "mbarrier-cp-async-noinc",
        "Do the arrivals of cp.async.mbarrier.arrive.noinc alone complete a phase that expects them?",
        "cp.async.mbarrier.arrive.noinc: the pending count is not incremented",
        """
extern "C" __global__ void question(u32* out, const u32* in) {
  __shared__ u64 bar;
  __shared__ u32 to[32];
  u32 b = smem(&bar);
  if (threadIdx.x == 0) mbar_init(b, 32);
  __syncwarp();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem(to + threadIdx.x)), "l"(in + threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
  out[threadIdx.x] = mbar_waits(b, 0);
  out[32 + threadIdx.x] = to[31 - threadIdx.x];
}
""",
        (out(64), data(32)),
        shows="complete {w[0]}; thread 0 reads thread 31's word {w[32]}",
    ),
    Question(
        "mbarrier-drop-to-zero",
        "Which phase is an mbarrier in whose only participant drops out?",
        "mbarrier.arrive_drop: decrements the expected count, and arrives",
        """
extern "C" __global__ void question(u32* out) {
  __shared__ u64 bar;
  u32 b = smem(&bar);
  mbar_init(b, 1);
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
  out[0] = mbar_test(b, 0);
  out[1] = mbar_test(b, 1);
}
""",
        (out(2),),
        block=(1, 1, 1),
        may_trap=True,
        shows="phase 0 over {w[0]}, phase 1 over {w[1]}",
    ),
)
