# SPDX-License-Identifier: Apache-2.0
"""Bulk copies without a tensor map, and bulk groups.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from typing import Any

from tests.gpu.conformance.question import Parameter, Question, data, out

BULK = "cp.async.bulk: "


def alone(
    id: str, asks: str, ptx: str, body: str, parameters: tuple[Parameter, ...], shows: str = "", **rest: Any
) -> Question:
    """One thread, 8 KiB of shared memory `tile` that hold their word's index, an mbarrier of count 1 at `b`; `out` is
    the first parameter and `in` the second; `zero` is 0, and the compiler does not know.
    """
    source = f"""
extern "C" __global__ void question(u32* out, const u32* in) {{
  __shared__ __align__(1024) u32 tile[2048];
  __shared__ u64 bar;
  u32 b = smem(&bar), t = smem(tile), zero = out[0] - 0xa5a5a5a5;
  mbar_init(b, 1);
#pragma unroll 1
  for (u32 i = 0; i < 2048; ++i) tile[i] = i;
  fence_async();
  {body.strip()}
}}
"""
    return Question(id, asks, ptx, source, parameters, block=(1, 1, 1), shows=shows, **rest)


ONE = (out(8), data(2048, "u4", "in", "bytes"))

QUESTIONS = (
    alone(
        "bulk-load-sizes",
        "Do bulk loads of 16, 48 and 4096 bytes on one mbarrier write just their bytes and complete their sum?",
        BULK + "size is a multiple of 16",
        """
  bulk_load(t + 16, in, 16 + zero, b);
  bulk_load(t + 64, in + 4, 48 + zero, b);
  bulk_load(t + 4096, in + 1024, 4096 + zero, b);
  mbar_expect(b, 16 + 48 + 4096);
  mbar_arrive(b);
  out[0] = mbar_waits(b, 0);
#pragma unroll 1
  for (u32 i = 0; i < 2048; ++i) out[1 + i] = tile[i];
""",
        (out(2049), data(2048, "u4", "in", "bytes")),
    ),
    alone(
        "bulk-load-bytes-counted",
        "Does a bulk load of 64 bytes complete 64, so that a phase of 128 waits for more?",
        BULK + ".mbarrier::complete_tx::bytes",
        """
  mbar_arrive_expect(b, 128);
  bulk_load(t, in, 64, b);
  out[0] = mbar_waits(b, 0);
  mbar_complete(b, 48);
  out[1] = mbar_test(b, 0);
  mbar_complete(b, 16);
  out[2] = mbar_test(b, 0);
""",
        ONE,
        "after the copy {w[0]}, and 48 bytes {w[1]}, and 16 bytes {w[2]}",
    ),
    alone(
        "bulk-load-nothing",
        "Does a bulk load of 0 bytes do nothing?",
        BULK + "size is a multiple of 16",
        """
  bulk_load(t, in, zero, b);
  mbar_arrive_expect(b, 16);
  out[0] = mbar_waits(b, 0);
  mbar_complete(b, 16);
  out[1] = mbar_test(b, 0);
  out[2] = tile[0];
""",
        ONE,
        "a phase of 16 bytes: before complete_tx {w[0]}, after it {w[1]}; the first word {w[2]}",
        may_trap=True,
    ),
    alone(
        "bulk-load-size-24",
        "What does a bulk load of 24 bytes do?",
        BULK + "size is a multiple of 16",
        """
  mbar_arrive_expect(b, 24);
  bulk_load(t, in, 24 + zero, b);
  out[0] = mbar_waits(b, 0);
""",
        ONE,
        may_trap=True,
        fault="must be multiples of 16",
        explained="The ISA asks for a multiple of 16; the H200 drops the copy without a word, and the phase "
        "never ends. The emulator reports it.",
    ),
    alone(
        "bulk-load-misaligned-global",
        "What does a bulk load from a global address do that is a multiple of 8 only?",
        BULK + "addresses are aligned to 16 bytes",
        """
  mbar_arrive_expect(b, 16);
  bulk_load(t, in + 2 + zero, 16, b);
  out[0] = mbar_waits(b, 0);
""",
        ONE,
        may_trap=True,
        fault="must be multiples of 16",
    ),
    alone(
        "bulk-load-misaligned-shared",
        "What does a bulk load to a shared address do that is a multiple of 8 only?",
        BULK + "addresses are aligned to 16 bytes",
        """
  mbar_arrive_expect(b, 16);
  bulk_load(t + 8 + zero, in, 16, b);
  out[0] = mbar_waits(b, 0);
""",
        ONE,
        may_trap=True,
        fault="must be multiples of 16",
    ),
    alone(
        "bulk-store-misaligned-global",
        "What does a bulk store to a global address do that is a multiple of 8 only?",
        BULK + "addresses are aligned to 16 bytes",
        """
  bulk_store(out + 2 + zero, t, 16);
  bulk_commit();
  bulk_wait();
""",
        ONE,
        may_trap=True,
        fault="must be multiples of 16",
    ),
    alone(
        "bulk-load-null",
        "What does a bulk load from an address do where no memory is?",
        BULK + "srcMem is in global memory",
        """
  mbar_arrive_expect(b, 16);
  bulk_load(t, reinterpret_cast<const void*>(16ull + zero), 16, b);
  out[0] = mbar_waits(b, 0);
""",
        ONE,
        may_trap=True,
        fault="outside every allocation",
    ),
    alone(
        "bulk-load-outside-shared",
        "What does a bulk load past the end of the CTA's shared memory do?",
        BULK + "dstMem is in shared memory",
        """
  mbar_arrive_expect(b, 1024);
  bulk_load(t + (256u << 10) + zero, in, 1024, b);
  out[0] = mbar_waits(b, 0);
""",
        ONE,
        may_trap=True,
        fault="outside the CTA's shared memory",
        explained="The H200 drops such a copy without a word, and the phase never ends. The emulator reports it.",
    ),
    alone(
        "bulk-store-sizes",
        "Do bulk stores of 16 and 1040 bytes write just their bytes?",
        BULK + "size is a multiple of 16",
        """
  bulk_store(out + 4, t + 32, 16 + zero);
  bulk_store(out + 12, t + 64, 1040 + zero);
  bulk_commit();
  bulk_wait();
""",
        (out(512), data(4)),
    ),
    alone(
        "bulk-store-read-then-overwrite",
        "After wait_group.read, does a store still write what shared memory held before it was overwritten?",
        "cp.async.bulk.wait_group: .read waits until the sources have been read",
        """
  bulk_store(out, t, 4096);
  bulk_commit();
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#pragma unroll 1
  for (u32 i = 0; i < 1024; ++i) tile[i] = ~0u;
  bulk_wait();
  out[1024] = out[1023];
""",
        (out(1025), data(4)),
    ),
    alone(
        "bulk-wait-without-groups",
        "Do wait_group of groups that were never committed, and empty groups, return at once?",
        "cp.async.bulk.wait_group; cp.async.bulk.commit_group: an empty group is one too",
        """
  bulk_wait();
  asm volatile("cp.async.bulk.wait_group.read 7;" ::: "memory");
  bulk_commit();
  bulk_commit();
  asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
  bulk_store(out, t + 400, 16);
  bulk_wait();
  bulk_commit();
  bulk_wait();
  out[4] = 1;
""",
        ONE,
        "stored {w[0]}..., went on {w[4]}",
    ),
    alone(
        "bulk-wait-all-but-one",
        "Does wait_group 1 complete the older of two groups of one thread?",
        "cp.async.bulk.wait_group: at most N of the most recent groups are pending",
        """
  bulk_store(out, t + 16, 16);
  bulk_commit();
  bulk_store(out + 4, t + 32, 16);
  bulk_commit();
  asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
  volatile u32* seen = out;
  out[8] = seen[0];
  bulk_wait();
  out[9] = seen[4];
""",
        (out(12), data(4)),
        "the older group's word {w[8]}, then the newer's {w[9]}",
    ),
    alone(
        "bulk-prefetch",
        "Does a bulk prefetch change nothing that a program sees?",
        "cp.async.bulk.prefetch.L2",
        """
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in), "r"(4096 + zero) : "memory");
  out[0] = in[1];
  bulk_wait();
  out[1] = mbar_test(b, 0);
""",
        ONE,
        "{w[0]:#x} {w[1]}",
    ),
    alone(
        "bulk-load-own-cta",
        "Do .shared::cta and .shared::cluster destinations name the same memory of the own CTA?",
        BULK + ".dst = .shared::cta, .shared::cluster",
        """
  mbar_arrive_expect(b, 32);
  asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
               ::"r"(t), "l"(in), "r"(b) : "memory");
  bulk_load(t + 16, in, 16, b);
  out[0] = mbar_waits(b, 0);
  out[1] = tile[0];
  out[2] = tile[4];
""",
        ONE,
        "complete {w[0]}; {w[1]:#x} {w[2]:#x}",
    ),
    alone(
        "bulk-copy-to-itself",
        "What does a bulk copy from shared to shared memory do in a launch without clusters?",
        BULK + "shared::cluster from shared::cta",
        """
  mbar_arrive_expect(b, 32);
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 32, [%2];"
               ::"r"(t), "r"(t + 256), "r"(b) : "memory");
  out[0] = mbar_waits(b, 0);
  for (u32 i = 1; i < 12; ++i) out[i] = tile[i - 1];
""",
        (out(12), data(4)),
        "complete {w[0]}; words {w[1]}, {w[8]}, {w[9]}",
        may_trap=True,
        fault="without clusters",
    ),
)
