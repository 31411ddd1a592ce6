# SPDX-License-Identifier: Apache-2.0
"""TMA: one load for several CTAs of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gpu.conformance.question import Buffer, Map, Question, out
from tests.gpu.conformance.tensor_text import DUMP, FILL, operand, smem_bytes
from tests.gpu.conformance.tensors import complete_bytes, extent_of, tensor
from tmagen.emu.tensormap import DataType, SwizzleMode


def _multicast(
    id: str,
    asks: str,
    ctas: int,
    copies: Sequence[tuple[int, int, Sequence[int], int]],
    map_: Map,
    *,
    dumped: int = 1024,
    expected: Sequence[int],
) -> Question:
    """`copies` are (issuing CTA, mask, coordinates, byte offset); CTA i expects `expected[i]` boxes."""
    box = complete_bytes(map_)
    lines = []
    for rank, mask, coords, offset in copies:
        there, values = operand(coords, 4)
        lines.append(
            f"if (rank == {rank})\n      asm volatile("
            f'"cp.async.bulk.tensor.{len(coords)}d.shared::cluster.global.mbarrier::complete_tx::bytes"\n'
            f'                   ".multicast::cluster [%0], {there}, [%2], %3;"\n'
            f'                   ::"r"(smem(dynamic_smem + {offset})), "l"(&map), "r"(bar), "h"((u16){mask}){values}'
            ' : "memory");'
        )
    counts = ", ".join(str(count * box) for count in expected)
    text = "\n    ".join(lines)
    source = f"""
extern "C" __global__ void question(u32* out, const u8* in, const __grid_constant__ CUtensorMap map) {{
  const u32 rank = cluster_rank(), bar = smem(dynamic_smem + {dumped});
  const u32 expected[] = {{{counts}}};
{FILL.format(bytes=dumped, word="0xEEEEEE00 + rank")}\
  if (threadIdx.x == 0) mbar_init(bar, 1);
  fence_async();
  cluster_sync();
  if (threadIdx.x == 0) {{
    mbar_arrive_expect(bar, expected[rank]);
    {text}
  }}
  const u32 done = mbar_waits(bar, 0);
  cluster_sync();
  out += blockIdx.x * {dumped // 4 + 1};
{DUMP.format(bytes=dumped)}\
  if (threadIdx.x == 0) out[{dumped} / 4] = done;
}}
"""
    return Question(
        id,
        asks,
        "cp.async.bulk.tensor: .multicast::cluster",
        source,
        (out((dumped // 4 + 1) * ctas), Buffer("in", "u1", extent_of(map_), "bytes"), map_),
        grid=(ctas, 1, 1),
        cluster=(ctas, 1, 1),
        smem=smem_bytes(dumped),
    )


_PLAIN = tensor(DataType.FLOAT16, (40, 20), (32, 4))

QUESTIONS = (
    _multicast(
        "tma-multicast-both",
        "Does one load reach both CTAs at the same offset, and complete all bytes on the barrier of each?",
        2,
        [(0, 3, (8, 1), 256)],
        _PLAIN,
        expected=(1, 1),
    ),
    _multicast(
        "tma-multicast-peer-only",
        "Does a load for the peer alone leave the issuing CTA's memory and barrier untouched?",
        2,
        [(1, 1, (8, 1), 256)],
        _PLAIN,
        expected=(1, 0),
    ),
    _multicast(
        "tma-multicast-sparse-mask",
        "Are the bits of the mask ranks in a cluster of four, the issuer not among them?",
        4,
        [(2, 0b1011, (8, 1), 128), (0, 0b0100, (0, 9), 128)],
        _PLAIN,
        expected=(1, 1, 1, 1),
    ),
    _multicast(
        "tma-multicast-halves",
        "Do both CTAs get both halves where each loads one half for both?",
        2,
        [(0, 3, (0, 0), 0), (1, 3, (0, 4), 256)],
        _PLAIN,
        expected=(2, 2),
    ),
    _multicast(
        "tma-multicast-edge",
        "Do both barriers get all bytes of a box that is mostly out of bounds?",
        2,
        [(1, 3, (32, 18), 512)],
        _PLAIN,
        expected=(1, 1),
    ),
    _multicast(
        "tma-multicast-swizzle",
        "Is the swizzle's phase the same in every CTA, at a start inside of the pattern?",
        2,
        [(0, 3, (0, 2), 256)],
        tensor(DataType.FLOAT16, (64, 20), (64, 4), swizzle=SwizzleMode.B128),
        expected=(1, 1),
    ),
)
