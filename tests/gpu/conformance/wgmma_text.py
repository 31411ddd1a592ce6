# SPDX-License-Identifier: Apache-2.0
"""Kernels around wgmma: operands laid out in shared memory, instructions, and the registers that come of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.emu.warpgroup import BASE, Image, a_words, d_words, size_of
from tests.gpu.conformance.question import Buffer, Question, out

Array = npt.NDArray[Any]
FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
SHAPES = "wgmma.mma_async; Register Fragments and Shared Memory Matrix Layouts"

# The image lies in dynamic shared memory, whose first byte has this address on sm_90.
assert BASE == 1024


def wait(count: int = 0) -> str:
    return f"wgmma.wait_group.sync.aligned {count};"


def mma(shape: str, a: int | str, b: int, *, scale: int = 1, tail: str = "1, 1, 0, 0", d: str = "{d}") -> str:
    """One wgmma.mma_async. `a` is a descriptor, or "{a}" for registers; `d` the set of accumulator registers."""
    lines = ""
    if isinstance(a, int):
        lines += f"mov.b64 left, {a:#x}; "
        a = "left"
    lines += f"mov.b64 right, {b:#x}; mov.b32 scale, {scale}; setp.ne.b32 p, scale, 0;\n"
    end = f", {tail}" if tail else ""
    return f"{lines}wgmma.mma_async.sync.aligned.{shape} {d}, {a}, right, p{end};"


def wgmma(
    id: str,
    asks: str,
    image: Image,
    lines: Sequence[str],
    *,
    words: int,
    sets: str = "d",
    a: Array | None = None,
    d: Array | None = None,
    threads: int = 128,
    ptx: str = SHAPES,
    **options: Any,
) -> Question:
    """Instructions on shared memory that holds `image`; the answer is each thread's registers.

    `lines` are instructions, with `{d}` for a set of `words` accumulator registers; `sets` names the sets, which
    start as zeros, or the first one as `d` [threads, words] says. `{a}` are registers of `a` [threads, 4].
    """
    used = -(-(image.end - BASE) // 256) * 256
    total = words * len(sets)
    vectors = {
        name: _vector(range(words * i, words * (i + 1))) for i, name in enumerate(sets)
    } | {"a": _vector(range(total, total + 4))}  # fmt: skip
    text = "\n".join(["{ .reg .pred p; .reg .b64 left, right; .reg .b32 scale;", *lines, "}"])
    for name, vector in vectors.items():
        text = text.replace("{" + name + "}", vector)
    body = "\n".join(f'      "{line}\\n"' for line in text.split("\n"))
    outputs = ", ".join(f'"+r"(d[{i}])' for i in range(total))
    inputs = "" if a is None else ", ".join(f'"r"(a[{i}])' for i in range(4))
    start = "{}" if d is None else "{" + ", ".join(f"start[threadIdx.x * {words} + {i}]" for i in range(words)) + "}"
    loads = ", ".join(f"left[threadIdx.x * 4 + {i}]" for i in range(4))
    left = "" if a is None else f"  const u32 a[] = {{{loads}}};\n"
    extra = ("" if a is None else ", const u32* left") + ("" if d is None else ", const u32* start")
    source = f"""
extern "C" __global__ void __launch_bounds__({threads}) question(u32* out, const u32* image{extra}) {{
  for (u32 i = threadIdx.x; i < {used // 4}; i += blockDim.x)
    reinterpret_cast<u32*>(dynamic_smem)[i] = image[i];
  u32 d[{total}] = {start};
{left}  fence_async();
  __syncthreads();
  asm volatile(
{body}
      : {outputs} : {inputs} : "memory");
#pragma unroll
  for (u32 i = 0; i < {total}; ++i) out[threadIdx.x * {total} + i] = d[i];
}}
"""
    parameters = [out(total * threads), Buffer("image", "u4", used // 4, _words(image.data[:used]))]
    if a is not None:
        parameters.append(Buffer("left", "u4", a.size, _words(a)))
    if d is not None:
        parameters.append(Buffer("start", "u4", d.size, _words(d)))
    return Question(id, asks, ptx, source, tuple(parameters), block=(threads, 1, 1), smem=used, **options)


def product(
    id: str,
    asks: str,
    kinds: tuple[str, str],
    a: Array,
    b: Array,
    *,
    d: str = "f32",
    start: Array | None = None,
    spans: tuple[int, int] = (128, 128),
    major: tuple[bool, bool] = (False, False),
    in_registers: bool = False,
    signs: str = "1, 1",
    suffix: str = "",
    scale: int = 1,
    **options: Any,
) -> Question:
    """D = A * B transposed + D, of as many instructions as K = a.shape[1] needs, one after another.

    `major` says which operands are MN-major. `start` is D before, [64, N].
    """
    image = Image()
    k = 32 // size_of(kinds[0])
    n, steps = b.shape[0], a.shape[1] // k
    words = n // 4 if d == "f16" else n // 2
    lines = [FENCE]
    sixteen = kinds[0] in ("f16", "bf16")
    for i in range(steps):
        part = slice(i * k, (i + 1) * k)
        left: int | str = "{a}" if in_registers else image.put(kinds[0], a[:, part], spans[0], major[0])
        right = image.put(kinds[1], b[:, part], spans[1], major[1])
        tail = "" if d == "s32" else signs
        if sixteen:
            tail += f", {int(major[1])}" if in_registers else f", {int(major[0])}, {int(major[1])}"
        lines.append(mma(f"m64n{n}k{k}.{d}.{kinds[0]}.{kinds[1]}{suffix}", left, right, scale=scale, tail=tail))
    lines += [COMMIT, wait()]
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d]
    return wgmma(
        id,
        asks,
        image,
        lines,
        words=words,
        a=a_words(kinds[0], a) if in_registers else None,
        d=None if start is None else d_words(start, dtype),
        **options,
    )


def _vector(numbers: range) -> str:
    return "{" + ", ".join(f"%{i}" for i in numbers) + "}"


def _words(array: Array) -> tuple[int, ...]:
    return tuple(np.ascontiguousarray(array).view(np.uint32).ravel().tolist())
