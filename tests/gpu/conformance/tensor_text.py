# SPDX-License-Identifier: Apache-2.0
"""Kernels around one or a few tensor copies, for questions about TMA."""

from __future__ import annotations

from collections.abc import Sequence

Copies = Sequence[tuple[Sequence[int], int]]
"""Boxes: the coordinates, innermost first, and a byte offset in dynamic shared memory."""

STORED = "bulk_commit();\n    bulk_wait();"
"""Statements: wait until the thread's stores have been done."""


def operand(coords: Sequence[int], first: int) -> tuple[str, str]:
    """A tensor operand for inline assembly whose map is %1, and its coordinates from operand `first` on."""
    names = ", ".join(f"%{first + i}" for i in range(len(coords)))
    return f"[%1, {{{names}}}]", "".join(f', "r"({c})' for c in coords)


def tensor_load(coords: Sequence[int], offset: int | str, *, space: str = "cluster", name: str = "&map") -> str:
    """One statement: the box at `coords` to shared memory, completing on `bar`."""
    tensor, values = operand(coords, 3)
    return (
        f'asm volatile("cp.async.bulk.tensor.{len(coords)}d.shared::{space}.global.mbarrier::complete_tx::bytes "\n'
        f'               "[%0], {tensor}, [%2];"\n'
        f'               ::"r"(smem(dynamic_smem + {offset})), "l"({name}), "r"(bar){values} : "memory");'
    )


def tensor_store(coords: Sequence[int], offset: int | str, *, reduction: str = "") -> str:
    """One statement: the box in shared memory to `coords`; `reduction` "add" and the like reduce it."""
    tensor, values = operand(coords, 2)
    head, op = ("cp.reduce.async.bulk", f".{reduction}") if reduction else ("cp.async.bulk", "")
    return (
        f'asm volatile("{head}.tensor.{len(coords)}d.global.shared::cta{op}.bulk_group {tensor}, [%0];"\n'
        f'               ::"r"(smem(dynamic_smem + {offset})), "l"(&map){values} : "memory");'
    )


def smem_bytes(dumped: int) -> int:
    """Dynamic shared memory of a kernel that keeps a barrier behind its data."""
    return dumped + 16


FILL = """\
  for (u32 i = threadIdx.x; i < {bytes} / 4; i += blockDim.x)
    reinterpret_cast<u32*>(dynamic_smem)[i] = {word};
"""

DUMP = """\
  for (u32 i = threadIdx.x; i < {bytes} / 4; i += blockDim.x)
    out[i] = reinterpret_cast<u32*>(dynamic_smem)[i];
"""


def load_kernel(loads: Copies, complete: int, dumped: int, *, space: str = "cluster", rows: str = "") -> str:
    """Copy boxes to memory that is full of 0xEE, and write out `dumped` bytes of it.

    The barrier is told to expect `complete` bytes; the word behind the dump is 1 if just these came. `rows` are
    statements before the copies.
    """
    copies = "\n    ".join(tensor_load(coords, offset, space=space) for coords, offset in loads)
    return f"""
extern "C" __global__ void question(u32* out, const u8* in, const __grid_constant__ CUtensorMap map) {{
  const u32 bar = smem(dynamic_smem + {dumped});
{FILL.format(bytes=dumped, word="0xEEEEEEEE")}\
  if (threadIdx.x == 0) mbar_init(bar, 1);
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {{
    mbar_arrive_expect(bar, {complete});
    {rows}{copies}
  }}
  const u32 done = mbar_waits(bar, 0);
  __syncthreads();
{DUMP.format(bytes=dumped)}\
  if (threadIdx.x == 0) out[{dumped} / 4] = done;
}}
"""


def store_kernel(stores: Copies, filled: int, *, reduction: str = "") -> str:
    """Copy boxes from shared memory, whose first `filled` bytes are those of a buffer, to the tensor."""
    copies = "\n    ".join(tensor_store(coords, offset, reduction=reduction) for coords, offset in stores)
    return f"""
extern "C" __global__ void question(u32* out, const u32* in, const __grid_constant__ CUtensorMap map) {{
{FILL.format(bytes=filled, word="in[i]")}\
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {{
    {copies}
    {STORED}
  }}
}}
"""
