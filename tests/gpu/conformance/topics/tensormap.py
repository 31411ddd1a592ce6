# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel changes before it copies."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gpu.conformance.question import Buffer, Map, Question, out
from tests.gpu.conformance.tensor_text import DUMP, FILL, smem_bytes, tensor_load
from tests.gpu.conformance.tensors import complete_bytes, extent_of, tensor
from tmagen.emu.tensormap import DataType, SwizzleMode

PTX = "tensormap.replace"
_WIDE = ("global_address", "global_stride")
_IMMEDIATE = ("elemtype", "fill_mode", "swizzle_mode")


def _replaced(
    id: str,
    asks: str,
    map_: Map,
    fields: Sequence[tuple[str, int | str]],
    coords: Sequence[int],
    *,
    complete: int = 0,
    in_global: bool = False,
) -> Question:
    """One load with the map after `fields` were replaced, each (name and ordinal, new value).

    The new value of an address is a parameter of the kernel. Maps are changed in shared memory and copied from there
    to global memory, or are changed in global memory.
    """
    dumped = 1024
    where, place = ("global", '"l"(made)') if in_global else ("shared::cta", '"r"(copy)')
    lines = []
    for field, value in fields:
        name, _, ordinal = field.partition(" ")
        bits, kind = ("b64", "l") if name in _WIDE else ("b32", "n" if name in _IMMEDIATE else "r")
        number = f"{ordinal}, " if ordinal else ""
        cast = "(u64)" if bits == "b64" else "(u32)"
        lines.append(
            f'asm volatile("tensormap.replace.tile.{name}.{where}.b1024.{bits} [%0], {number}%1;"\n'
            f'                 ::{place}, "{kind}"({cast}{value}) : "memory");'
        )
    first = "reinterpret_cast<u32*>(made)" if in_global else f"reinterpret_cast<u32*>(dynamic_smem + {dumped + 128})"
    publish = (
        'if (threadIdx.x == 0) asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");'
        if in_global
        else 'asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "\n'
        '               "[%0], [%1], 128;" ::"l"(made), "r"(copy) : "memory");'
    )
    text = "\n    ".join(lines)
    source = f"""
extern "C" __global__ void question(u32* out, const u8* in, const u8* other, u8* made,
                                    const __grid_constant__ CUtensorMap map) {{
  const u32 bar = smem(dynamic_smem + {dumped}), copy = smem(dynamic_smem + {dumped + 128});
{FILL.format(bytes=dumped, word="0xEEEEEEEE")}\
  {first}[threadIdx.x] = reinterpret_cast<const u32*>(&map)[threadIdx.x];
  if (threadIdx.x == 0) mbar_init(bar, 1);
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {{
    {text}
  }}
  __syncwarp();
  {publish}
  if (threadIdx.x == 0) {{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
    mbar_arrive_expect(bar, {complete or complete_bytes(map_)});
    {tensor_load(coords, 0, name="made")}
  }}
  const u32 done = mbar_waits(bar, 0);
  __syncthreads();
{DUMP.format(bytes=dumped)}\
  if (threadIdx.x == 0) out[{dumped} / 4] = done;
}}
"""
    size = extent_of(map_)
    parameters = (
        out(dumped // 4 + 1),
        Buffer("in", "u1", size, "bytes"),
        Buffer("other", "u1", size, "random"),
        Buffer("made", "u1", 128, "zeros"),
        map_,
    )
    return Question(id, asks, PTX, source, parameters, smem=smem_bytes(dumped) + 256)


_PLANE = tensor(DataType.FLOAT16, (40, 20), (32, 4))
_SWIZZLED = tensor(DataType.FLOAT16, (40, 20), (32, 4), swizzle=SwizzleMode.B64)

QUESTIONS = (
    _replaced(
        "tensormap-address",
        "Does a load follow a new global address?",
        _PLANE,
        [("global_address", "(other + 256)")],
        (8, 1),
    ),
    _replaced(
        "tensormap-dims",
        "Do new extents move the edges where zeros begin?",
        _PLANE,
        [("global_dim 0", 30), ("global_dim 1", 3)],
        (8, 1),
    ),
    _replaced(
        "tensormap-stride",
        "Is a new stride given in bytes?",
        _PLANE,
        [("global_stride 0", 160), ("global_dim 1", 10)],
        (8, 1),
    ),
    _replaced(
        "tensormap-box",
        "Does a new box change the rows that are copied, and the bytes that complete?",
        _PLANE,
        [("box_dim 1", 7), ("box_dim 0", 16)],
        (8, 1),
        complete=7 * 32,
    ),
    _replaced(
        "tensormap-element-stride",
        "Is a new element stride given as it is?",
        _PLANE,
        [("element_stride 1", 2)],
        (8, 1),
        complete=2 * 64,
    ),
    _replaced(
        "tensormap-fill",
        "Does fill mode 1 fill with NaN?",
        _PLANE,
        [("fill_mode", 1)],
        (24, 18),
    ),
    _replaced(
        "tensormap-swizzle",
        "Are the swizzle modes 0 to 3 none, 32, 64 and 128 bytes: does 2 swizzle as a map of 64 bytes?",
        _PLANE,
        [("swizzle_mode", 2)],
        (8, 1),
    ),
    _replaced(
        "tensormap-no-swizzle",
        "Does swizzle mode 0 make rows lie dense and plain?",
        _SWIZZLED,
        [("swizzle_mode", 0), ("box_dim 0", 16)],
        (8, 1),
        complete=4 * 32,
    ),
    _replaced(
        "tensormap-rank",
        "Is a new rank given less one: does a map of rank 3 with 1 take two coordinates?",
        tensor(DataType.FLOAT16, (40, 10, 2), (32, 4, 1)),
        [("rank", 1)],
        (8, 8),
    ),
    _replaced(
        "tensormap-elemtype",
        "Is element type 6 of 2 bytes and 7 of 4: does a coordinate count the new elements?",
        _PLANE,
        [("elemtype", 7), ("global_dim 0", 20), ("box_dim 0", 16)],
        (4, 1),
    ),
    _replaced(
        "tensormap-in-global",
        "May a map be changed where it lies in global memory?",
        _PLANE,
        [("global_address", "(other + 512)"), ("global_dim 0", 36)],
        (16, 3),
        in_global=True,
    ),
)
