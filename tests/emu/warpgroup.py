# SPDX-License-Identifier: Apache-2.0
"""Small kernels around wgmma, and where the PTX ISA says that operands and results lie.

The formulas are those of "Shared Memory Matrix Layout", "Matrix-descriptor Format" and "Register Fragments" of wgmma,
one element at a time.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import GlobalMemory, Launch, parse, run

BASE = 1024
"""Where dynamic shared memory starts."""

CODE = {0: 0, 128: 1, 64: 2, 32: 3}
DTYPE: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
}


def size_of(kind: str) -> int:
    return int(np.dtype(DTYPE[kind]).itemsize)


def descriptor(start: int, leading: int, stride: int, span: int, base_offset: int = 0) -> int:
    return (
        (start & 0x3FFFF) >> 4
        | (leading >> 4) << 16
        | (stride >> 4) << 32
        | base_offset << 49
        | CODE[span] << 62
    )  # fmt: skip


def place(start: int, leading: int, stride: int, span: int, mn_major: bool, mn: int, k: int, size: int) -> int:
    """The byte address of element (mn, k)."""
    if not mn_major:
        if not span:
            kb = k * size
            return start + mn % 8 * 16 + mn // 8 * stride + kb // 16 * leading + kb % 16
        at = start + mn % 8 * span + mn // 8 * stride + k * size
    elif not span:
        per = 16 // size
        return start + mn // per * stride + mn % per * size + k % 8 * 16 + k // 8 * leading
    else:
        per = span // size
        at = start + mn % per * size + mn // per * leading + k % 8 * span + k // 8 * stride
    chunks = {128: 7, 64: 3, 32: 1}[span]
    return at ^ (at >> 7 & chunks) << 4


def strides(span: int, mn_major: bool, rows: int, k: int, size: int) -> tuple[int, int]:
    """(leading, stride) of a dense operand."""
    if not mn_major:
        return (rows * 16, 128) if not span else (16, 8 * span)
    if not span:
        return rows * size * 8, 128
    return span * k, span * 8


class Image:
    """What shared memory holds; operands are put into it one after another."""

    def __init__(self) -> None:
        self.data = np.full(48 * 1024, 0x7B, np.uint8)
        self.end = BASE

    def put(self, kind: str, matrix: npt.NDArray[Any], span: int = 128, mn_major: bool = False, **other: int) -> int:
        """Lay out `matrix` [rows, k]; its descriptor."""
        size = size_of(kind)
        rows, k = matrix.shape
        leading, stride = strides(span, mn_major, rows, k, size)
        leading, stride = other.get("leading", leading), other.get("stride", stride)
        start = -(-self.end // 1024) * 1024 + other.get("shift", 0)
        values = matrix.astype(DTYPE[kind])
        for mn in range(rows):
            for c in range(k):
                at = place(start, leading, stride, span, mn_major, mn, c, size) - BASE
                self.data[at : at + size] = np.frombuffer(values[mn, c].tobytes(), np.uint8)
                self.end = max(self.end, BASE + at + 16)
        return descriptor(start, leading, stride, span)


def d_fragment(n: int) -> list[list[tuple[int, int]]]:
    """Per thread, the (row, column) of each element of D that it holds."""
    return [
        [
            (16 * (t // 32) + t % 32 // 4 + 8 * ((i >> 1) & 1), 8 * (i >> 2) + 2 * (t % 4) + (i & 1))
            for i in range(n // 2)
        ]
        for t in range(128)
    ]


def a_fragment(size: int) -> list[list[tuple[int, int]]]:
    """Per thread, the (row, k) of each element of A."""

    def one(t: int, i: int) -> tuple[int, int]:
        row = 16 * (t // 32) + t % 32 // 4
        if size == 2:
            return row + 8 * ((i >> 1) & 1), 2 * (t % 4) + (i & 1) + 8 * (i >> 2)
        if size == 1:
            return row + 8 * ((i >> 2) & 1), 4 * (t % 4) + (i & 3) + 16 * (i >> 3)
        return row + 8 * (i & 1), t % 4 + 4 * (i >> 1)

    return [[one(t, i) for i in range(16 // size)] for t in range(128)]


def a_words(kind: str, matrix: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """The four registers of each thread that hold A."""
    values = matrix.astype(DTYPE[kind])
    raw = b"".join(values[place].tobytes() for thread in a_fragment(size_of(kind)) for place in thread)
    return np.frombuffer(raw, np.uint32).reshape(128, 4)


def d_words(matrix: npt.NDArray[Any], dtype: Any = np.float32) -> npt.NDArray[np.uint32]:
    """The registers of each thread that hold D."""
    values = matrix.astype(dtype)
    raw = b"".join(values[place].tobytes() for thread in d_fragment(matrix.shape[1]) for place in thread)
    return np.frombuffer(raw, np.uint32).reshape(128, -1)


def vector(prefix: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(first, first + count)) + "}"


def mma(shape: str, d: str, a: int | str, b: int | str, scale: str = "1", tail: str = "1, 1, 0, 0") -> str:
    """One wgmma.mma_async. `shape` is "m64n8k16.f32.f16.f16", `a` and `b` descriptors or registers."""
    tail = f", {tail}" if tail else ""
    lines = ""
    if isinstance(a, int):
        lines += f"mov.b64 %rd20, {a};\n"
        a = "%rd20"
    if isinstance(b, int):
        lines += f"mov.b64 %rd21, {b};\n"
        b = "%rd21"
    return f"{lines}setp.ne.b32 %p9, {scale}, 0;\nwgmma.mma_async.sync.aligned.{shape} {d}, {a}, {b}, %p9{tail};\n"


FENCE = "wgmma.fence.sync.aligned;\n"
COMMIT = "wgmma.commit_group.sync.aligned;\n"


def wait(count: int = 0) -> str:
    return f"wgmma.wait_group.sync.aligned {count};\n"


def zeros(count: int, prefix: str = "d") -> str:
    return "".join(f"mov.b32 %{prefix}{i}, 0;\n" for i in range(count))


def load(prefix: str, count: int, pointer: str = "%rd3") -> str:
    """`count` words of each thread from an input."""
    lines = f"mul.wide.u32 %rd30, %r0, {4 * count};\nadd.s64 %rd31, {pointer}, %rd30;\n"
    return lines + "".join(f"ld.global.b32 %{prefix}{i}, [%rd31+{4 * i}];\n" for i in range(count))


def store(count: int, prefix: str = "d", first: int = 0) -> str:
    """Registers of each thread to the output."""
    lines = f"mul.wide.u32 %rd30, %r0, {4 * count};\nadd.s64 %rd31, %rd1, %rd30;\n"
    return lines + "".join(f"st.global.b32 [%rd31+{4 * i}], %{prefix}{first + i};\n" for i in range(count))


_COPY = """
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd10, %r0, 16;
add.s64 %rd11, %rd2, %rd10;
shl.b32 %r1, %r0, 4;
mov.u32 %r2, smem;
add.s32 %r1, %r1, %r2;
mov.u32 %r3, 0;
$copy:
ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd11];
st.shared.v4.b32 [%r1], {%r4, %r5, %r6, %r7};
mov.u32 %r8, %ntid.x;
mul.wide.u32 %rd12, %r8, 16;
add.s64 %rd11, %rd11, %rd12;
shl.b32 %r9, %r8, 4;
add.s32 %r1, %r1, %r9;
add.s32 %r3, %r3, %r9;
setp.lt.u32 %p1, %r3, 49152;
@%p1 bra $copy;
fence.proxy.async.shared::cta;
bar.sync 0;
"""


def execute(
    body: str,
    image: Image,
    *inputs: npt.NDArray[Any],
    words: int,
    threads: int = 128,
    completion: str = "eager",
    seed: int = 0,
) -> npt.NDArray[np.uint32]:
    """Run `body` with shared memory as `image` says; the output as [threads, words].

    %rd1 is the output, %rd3 on are the inputs, %r0 the thread; %d0 to %d255, %e0 to %e127 and %a0 to %a15 are free.
    """
    memory = GlobalMemory()
    out = memory.allocate(4 * words * threads)
    addresses = [out.address]
    for array in (image.data, *inputs):
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        allocation = memory.allocate(raw.size)
        allocation.data[:] = raw
        addresses.append(allocation.address)
    params = ", ".join(f".param .u64 k_{i}" for i in range(len(addresses)))
    loads = "".join(f"ld.param.u64 %rd{i + 1}, [k_{i}];\n" for i in range(len(addresses)))
    text = (
        ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
        f".visible .entry k({params})\n{{\n.reg .pred %p<10>;\n.reg .b32 %r<40>;\n.reg .b32 %d<256>;\n"
        f".reg .b32 %e<128>;\n.reg .b32 %a<16>;\n.reg .b64 %rd<40>;\n{loads}{_COPY}{body}\nret;\n}}\n"
    )
    launch = Launch(
        "k",
        (1, 1, 1),
        (threads, 1, 1),
        dynamic_smem_bytes=48 * 1024,
        params=b"".join(a.to_bytes(8, "little") for a in addresses),
    )
    run(parse(text), launch, memory, completion=completion, seed=seed)
    return out.data.view(np.uint32).reshape(threads, words)


def integers(seed: int, *shape: int, low: int = -3, high: int = 4) -> npt.NDArray[np.int64]:
    return np.random.default_rng(seed).integers(low, high, shape)


def same(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> bool:
    return bool(np.array_equal(got, want))
