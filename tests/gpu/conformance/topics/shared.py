# SPDX-License-Identifier: Apache-2.0
"""ldmatrix, stmatrix, cp.async, and what a misaligned or wild access does.

Section names are those of the PTX ISA.
"""

from __future__ import annotations

from typing import Any

from tests.gpu.conformance.question import Map, Parameter, Question, data, out
from tmagen.emu.tensormap import DataType


def warp(
    id: str,
    asks: str,
    ptx: str,
    body: str,
    parameters: tuple[Parameter, ...] = (out(128), data(1024, "u2")),
    **rest: Any,
) -> Question:
    """A warp with 2 KiB of shared memory at `s`, where half-word i holds i; `t` is the lane, `zero` 0."""
    source = f"""
extern "C" __global__ void question(u32* out, const u16* in) {{
  __shared__ __align__(128) u16 tile[1024];
  u32 t = threadIdx.x, s = smem(tile), zero = out[127] - 0xa5a5a5a5;
  for (u32 i = t; i < 1024; i += 32) tile[i] = static_cast<u16>(i);
  __syncwarp();
  {body.strip()}
}}
"""
    return Question(id, asks, ptx, source, parameters, **rest)


def load(count: int, trans: bool, address: str) -> str:
    """ldmatrix to `out`, register r of lane t at [32 r + t]."""
    regs = ", ".join(f"%{i}" for i in range(count))
    outs = ", ".join(f'"=r"(out[{32 * i} + t])' for i in range(count))
    form = f"x{count}{'.trans' if trans else ''}"
    return f"""
  asm volatile("ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {{{regs}}}, [%{count}];"
               : {outs} : "r"({address}));
"""


def store(count: int, trans: bool, address: str) -> str:
    """stmatrix of registers with (lane, register) in both halves; the tile goes to `out`."""
    regs = ", ".join(f"%{1 + i}" for i in range(count))
    ins = ", ".join(f'"r"((t << 8 | {16 * i}) * 0x10001 + 1)' for i in range(count))
    form = f"x{count}{'.trans' if trans else ''}"
    return f"""
  asm volatile("stmatrix.sync.aligned.m8n8.{form}.shared.b16 [%0], {{{regs}}};"
               ::"r"({address}), {ins} : "memory");
  __syncwarp();
  for (u32 i = t; i < 512; i += 32) out[i] = tile[2 * i] | tile[2 * i + 1] << 16;
"""


ROWS = "s + (t * 80) % 2032 / 16 * 16"
STORED = (out(512), data(4, "u2"))
GATHER = "ldmatrix: lane l gives the address of row l % 8 of matrix l / 8"

ASYNC = """
  asm volatile("cp.async.{form} [%0], [%1], {size}{more};" ::"r"(s + {dst}), "l"(in + {src}){also} : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (u32 i = t; i < 512; i += 32) out[i] = tile[2 * i] | tile[2 * i + 1] << 16;
"""


def trap(id: str, asks: str, ptx: str, body: str, fault: str) -> Question:
    """Something that the hardware may refuse."""
    return warp(id, asks, ptx, body, may_trap=True, fault=fault)


TENSOR = Map("in", DataType.UINT16, (64, 16), (128,), (32, 8))


def tensor(id: str, asks: str, body: str) -> Question:
    """One thread with a tensor map."""
    source = f"""
extern "C" __global__ void question(u32* out, const u16* in, const __grid_constant__ CUtensorMap map) {{
  __shared__ __align__(1024) u16 tile[1024];
  __shared__ u64 bar;
  u32 s = smem(tile), b = smem(&bar), zero = out[7] - 0xa5a5a5a5;
  mbar_init(b, 1);
  fence_async();
  {body.strip()}
}}
"""
    return Question(
        id,
        asks,
        "cp.async.bulk.tensor: shared memory is aligned to 128 bytes",
        source,
        (out(8), data(1024, "u2"), TENSOR),
        block=(1, 1, 1),
        may_trap=True,
        fault="128",
    )


TENSOR_LOAD = """
  mbar_arrive_expect(b, 512);
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {{%2, %2}}], [%3];" ::"r"(s + {offset} + zero), "l"(&map), "r"(0), "r"(b) : "memory");
  out[0] = mbar_waits(b, 0);
"""
TENSOR_STORE = """
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {{%1, %1}}], [%2];"
               ::"l"(&map), "r"(0), "r"(s + {offset} + zero) : "memory");
  bulk_commit();
  bulk_wait();
  out[0] = 1;
"""

QUESTIONS = (
    warp("ldmatrix-x1", "Which element does each lane get from ldmatrix.x1?", GATHER, load(1, False, ROWS)),
    warp("ldmatrix-x2-trans", "Which elements does each lane get from ldmatrix.x2.trans?", GATHER, load(2, True, ROWS)),
    warp("ldmatrix-x4", "Which elements does each lane get from ldmatrix.x4?", GATHER, load(4, False, ROWS)),
    warp("ldmatrix-x4-trans", "Which elements does each lane get from ldmatrix.x4.trans?", GATHER, load(4, True, ROWS)),
    warp(
        "ldmatrix-other-lanes",
        "Does ldmatrix.x1 ignore the addresses of lanes 8 to 31, be they ever so wild?",
        "ldmatrix: .x1 takes the addresses of lanes 0 to 7",
        load(1, False, "t < 8 ? s + 16 * t : 0x7ffffff3 + zero"),
        may_trap=True,
    ),
    trap(
        "ldmatrix-misaligned",
        "What does ldmatrix do with a row address that is a multiple of 8 only?",
        "ldmatrix: rows are aligned to 16 bytes",
        load(1, False, "s + 16 * t + 8 + zero"),
        "16",
    ),
    warp("stmatrix-x1", "Where does stmatrix.x1 put each lane's elements?", "stmatrix", store(1, False, ROWS), STORED),
    warp(
        "stmatrix-x4-trans",
        "Where does stmatrix.x4.trans put each lane's elements?",
        "stmatrix",
        store(4, True, "s + 16 * ((t * 5 + 3) % 32)"),
        STORED,
    ),
    warp(
        "stmatrix-x2",
        "Where does stmatrix.x2 put each lane's elements?",
        "stmatrix",
        store(2, False, "s + 16 * ((t * 3 + 1) % 16)"),
        STORED,
    ),
    warp(
        "cp-async-sizes",
        "Which bytes does cp.async.ca of 4 and 8 bytes write, and which .cg of 16?",
        "cp.async: cp-size is 4, 8 or 16; .cg takes 16 alone",
        """
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(s + 4 * t), "l"(in + 200 + 2 * t) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(s + 256 + 16 * t), "l"(in + 4 * t) : "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s + 1024 + 32 * t), "l"(in + 512 + 8 * t) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (u32 i = t; i < 512; i += 32) out[i] = tile[2 * i] | tile[2 * i + 1] << 16;
""",
        (out(512), data(1024, "u2", fill="random")),
    ),
    warp(
        "cp-async-source-size",
        "Does a source size of 0 to 15 bytes fill the rest of 16 with zeros?",
        "cp.async: src-size bytes are read, the others are zero",
        ASYNC.format(form="cg.shared.global", size=16, more=", %2", dst="32 * t", src="8 * t", also=', "r"(t % 17)'),
        (out(512), data(1024, "u2", fill="random")),
    ),
    warp(
        "cp-async-source-size-4",
        "Does a source size of 0 to 4 bytes fill the rest of 4 with zeros?",
        "cp.async: src-size bytes are read, the others are zero",
        ASYNC.format(form="ca.shared.global", size=4, more=", %2", dst="8 * t", src="8 * t", also=', "r"(t % 5)'),
        (out(512), data(1024, "u2", fill="random")),
    ),
    warp(
        "cp-async-nothing-read",
        "Is the source address left alone where the source size is 0?",
        "cp.async: src-size 0",
        ASYNC.format(
            form="cg.shared.global",
            size=16,
            more=", %2",
            dst="16 * t",
            src="(t & 1 ? 0x400000000000ull + zero : 8 * t)",
            also=', "r"(t & 1 ? 0 : 16)',
        ),
        (out(512), data(1024, "u2", fill="random")),
        may_trap=True,
    ),
    warp(
        "cp-async-ignore",
        "Does an ignore-src predicate write zeros?",
        "cp.async: with ignore-src, zeros are written",
        """
  asm volatile("{\\n.reg .pred p;\\nsetp.gt.u32 p, %2, 20;\\ncp.async.ca.shared.global [%0], [%1], 8, p;\\n}"
               ::"r"(s + 16 * t), "l"(in + 4 * t), "r"(t) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (u32 i = t; i < 512; i += 32) out[i] = tile[2 * i] | tile[2 * i + 1] << 16;
""",
        (out(512), data(1024, "u2", fill="random")),
    ),
    warp(
        "cp-async-groups",
        "Does cp.async.wait_group 1 complete the older of two groups, and is an empty group one too?",
        "cp.async.wait_group: at most N of the most recent groups are pending",
        """
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(s + 4 * t), "l"(in + 100 + 2 * t) : "memory");
  asm volatile("cp.async.commit_group;\\ncp.async.commit_group;\\ncp.async.wait_group 1;" ::: "memory");
  out[t] = tile[2 * t];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(s + 4 * t), "l"(in + 300 + 2 * t) : "memory");
  asm volatile("cp.async.commit_group;\\ncp.async.wait_group 0;" ::: "memory");
  out[32 + t] = tile[2 * t];
""",
        shows="lane 3: {w[3]}, then {w[35]}",
    ),
    trap(
        "cp-async-misaligned",
        "What does cp.async of 16 bytes do with a shared address that is a multiple of 8 only?",
        "cp.async: addresses are aligned to the copy's size",
        ASYNC.format(form="cg.shared.global", size=16, more="", dst="32 * t + 8 + zero", src="8 * t", also=""),
        "16",
    ),
    trap(
        "ld-misaligned-shared",
        "What does a load of 4 bytes from a shared address do that is a multiple of 2 only?",
        "ld: addresses are aligned to the access's size",
        '  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out[t]) : "r"(s + 2 + 4 * t + zero));',
        "align|multiple",
    ),
    trap(
        "ld-misaligned-global",
        "What does a vector load of 16 bytes from a global address do that is a multiple of 8 only?",
        "ld: addresses are aligned to the access's size",
        """
  u32 a, b, c, d;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + 4 + zero) : "memory");
  out[t] = a ^ b ^ c ^ d;
""",
        "align|multiple",
    ),
    trap(
        "ld-outside-shared",
        "What does a load from behind the CTA's shared memory do?",
        "ld: State Spaces",
        '  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(out[t]) : "r"(s + 0x40000 + zero));',
        "outside",
    ),
    trap(
        "st-null",
        "What does a store to address 0 do?",
        "st: State Spaces",
        '  asm volatile("st.global.u32 [%0], 1;" ::"l"(0ull + zero) : "memory");',
        "outside every allocation",
    ),
    trap(
        "trap",
        "What does trap do?",
        "trap: aborts execution and interrupts the host",
        '  if (t == 5) asm volatile("trap;");\n  out[t] = 1;',
        "trap",
    ),
    *(
        tensor(
            f"tensor-{what}-align-{offset}",
            f"What does a tensor {what} do with shared memory aligned to {offset}?",
            body.format(offset=offset),
        )
        for what, body in (("load", TENSOR_LOAD), ("store", TENSOR_STORE))
        for offset in (16, 64)
    ),
)
