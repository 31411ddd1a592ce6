# SPDX-License-Identifier: Apache-2.0
"""mma.sync by the fragments of the PTX ISA, tcgen05.cp by its shapes, and accesses of 32 bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emu.ptx import LANE, execute
from tmagen.emu import EmulatorError, Fault, tmem_copy
from tmagen.emu.tmem import Tmem

TYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32,
}  # fmt: skip


def fragment_a(lane: int, i: int, per: int) -> tuple[int, int]:
    """(row, k) of element i of A; `per` elements of a register are side by side (PTX ISA, "mma.m16n8k16")."""
    register = i // per
    return lane // 4 + 8 * (register % 2), per * (lane % 4) + i % per + 4 * per * (register // 2)


def fragment_b(lane: int, i: int, per: int) -> tuple[int, int]:
    """(column of D, k) of element i of B."""
    return lane // 4, per * (lane % 4) + i % per + 4 * per * (i // per)


def fragment_d(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2


def packed(matrix: np.ndarray, fragment: Any, count: int) -> np.ndarray:
    """Registers [lane, register] of a matrix."""
    per = 4 // matrix.itemsize
    elements = np.empty((32, count * per), matrix.dtype)
    for lane in range(32):
        for i in range(count * per):
            where = fragment(lane, i, per) if fragment is not fragment_d else fragment(lane, i)
            elements[lane, i] = matrix[where]
    return np.ascontiguousarray(elements).view(np.uint32)


CASES = [
    ("m16n8k16", "f32", "f16", "f16", 9),
    ("m16n8k16", "f16", "f16", "f16", 5),
    ("m16n8k16", "f32", "bf16", "bf16", 9),
    ("m16n8k8", "f32", "tf32", "tf32", 9),
    ("m16n8k32", "f32", "e4m3", "e5m2", 4),
    ("m16n8k32", "s32", "s8", "u8", 100),
]


@pytest.mark.parametrize(("shape", "d", "a", "b", "largest"), CASES)
def test_mma_sync(shape: str, d: str, a: str, b: str, largest: int) -> None:
    k = int(shape.split("k")[1])
    rng = np.random.default_rng(k)
    left = rng.integers(-largest, largest + 1, (16, k))
    right = rng.integers(0 if b == "u8" else -largest, largest + 1, (8, k))
    start = rng.integers(-9, 10, (16, 8))
    count = 2 if d == "f16" else 4
    registers = [
        packed(left.astype(TYPES[a]), fragment_a, 4),
        packed(right.astype(TYPES[b]), fragment_b, 2),
        packed(start.astype(TYPES[d]), fragment_d, count),
    ]
    body, first = LANE, 10
    for i, words in enumerate(registers):
        for j in range(words.shape[1]):
            body += f"mul.wide.u32 %rd50, %r0, {4 * words.shape[1]};\nadd.s64 %rd51, %rd{i + 2}, %rd50;\n"
            body += f"ld.global.u32 %r{first}, [%rd51+{4 * j}];\n"
            first += 1
    results = ", ".join(f"%r{30 + i}" for i in range(count))
    starts = ", ".join(f"%r{16 + i}" for i in range(count))
    body += (
        f"mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{d} {{{results}}}, {{%r10, %r11, %r12, %r13}}, "
        f"{{%r14, %r15}}, {{{starts}}};\n"
    )
    body += f"mul.wide.u32 %rd50, %r0, {4 * count};\nadd.s64 %rd51, %rd1, %rd50;\n"
    body += "".join(f"st.global.u32 [%rd51+{4 * i}], %r{30 + i};\n" for i in range(count))
    got = execute(body, *registers).view(np.uint32)[: 32 * count].reshape(32, count)
    want = packed((left @ right.T + start).astype(TYPES[d]), fragment_d, count)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("suffix", "low", "high"), [("", 2**31 - 29, 29 - 2**31), (".satfinite", -(2**31), 2**31 - 1)])
def test_sums_of_s32_wrap_or_clamp(suffix: str, low: int, high: int) -> None:
    """32 products of 1 or -1 on an old D within 3 of either end."""
    left = np.where(np.arange(16)[:, None] < 8, -1, 1) * np.ones((16, 32), np.int8)
    start = np.where(np.arange(16)[:, None] < 8, 3 - 2**31, 2**31 - 3) * np.ones((16, 8), np.int64)
    registers = packed(left.astype(np.int8), fragment_a, 4), packed(start.astype(np.int32), fragment_d, 4)
    body = LANE + "shl.b32 %r1, %r0, 4;\ncvt.u64.u32 %rd50, %r1;\nadd.s64 %rd51, %rd2, %rd50;\n"
    body += "add.s64 %rd52, %rd3, %rd50;\nadd.s64 %rd53, %rd1, %rd50;\n"
    body += "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd51];\nld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd52];\n"
    body += "mov.b32 %r14, 0x01010101;\n"
    body += (
        f"mma.sync.aligned.m16n8k32.row.col{suffix}.s32.s8.s8.s32 {{%r20, %r21, %r22, %r23}}, "
        "{%r10, %r11, %r12, %r13}, {%r14, %r14}, {%r16, %r17, %r18, %r19};\n"
    )
    body += "st.global.v4.u32 [%rd53], {%r20, %r21, %r22, %r23};\n"
    got = execute(body, *registers).view(np.int32)[:128].reshape(32, 4)
    assert set(got[:, :2].ravel()) == {low}
    assert set(got[:, 2:].ravel()) == {high}


# --- tcgen05.cp -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "lanes_of_row"),
    [
        ("128x256b", lambda r: [r]),
        ("128x128b", lambda r: [r]),
        ("64x128b.warpx2::02_13", lambda r: [r, r + 64]),
        ("64x128b.warpx2::01_23", lambda r: [r, r + 32] if r < 32 else [r + 32, r + 64]),
        ("32x128b.warpx4", lambda r: [r, r + 32, r + 64, r + 96]),
        ("4x256b", lambda r: [32 * r]),
    ],
)
def test_copies_to_tensor_memory(shape: str, lanes_of_row: Any) -> None:
    rows, bits = (int(x) for x in shape.split("b")[0].split("x"))
    nbytes = bits // 8
    data = np.random.default_rng(1).integers(0, 256, (rows, nbytes), np.uint8)
    smem = np.full(16384, 0xFF, np.uint8)
    stride = 128 * (nbytes // 16)
    for row in range(rows):
        for column in range(nbytes // 16):
            at = 0x1000 + row // 8 * stride + column * 128 + row % 8 * 16
            smem[at : at + 16] = data[row, 16 * column : 16 * column + 16]
    descriptor = 0x1000 >> 4 | 128 >> 4 << 16 | stride >> 4 << 32 | 1 << 46
    tmem = Tmem()
    tmem.alloc(32)
    before = tmem.words.copy()
    tmem_copy.execute(shape, 3, descriptor, smem, tmem)
    want = before
    for row in range(rows):
        for lane in lanes_of_row(row):
            want[3 : 3 + nbytes // 4, lane] = data[row].view(np.uint32)
    np.testing.assert_array_equal(tmem.words, want)


@pytest.mark.parametrize(
    ("address", "descriptor", "message"),
    [
        (30, 1 << 46 | 0x100, "columns 30 to 33"),
        (16 << 16, 1 << 46 | 0x100, "lane 16"),
        (0, 0x100, "bits 46-48"),
        (0, 1 << 46 | 0x3F0, "reaches byte"),
    ],
)
def test_copies_that_cannot_be(address: int, descriptor: int, message: str) -> None:
    tmem = Tmem()
    tmem.alloc(32)
    with pytest.raises(EmulatorError, match=message):
        tmem_copy.execute("128x128b", address, descriptor | 8 << 32, np.zeros(16384, np.uint8), tmem)


# --- 32 bytes at once -------------------------------------------------------------------------------------------------

MOVE = LANE + "mul.wide.u32 %rd42, %r0, 32;\nadd.s64 %rd43, %rd1, %rd42;\nadd.s64 %rd44, %rd2, %rd42;\n"


def test_accesses_of_32_bytes() -> None:
    data = np.arange(256, dtype=np.uint32) * 7
    words = ", ".join(f"%r{i}" for i in range(10, 18))
    got = execute(MOVE + f"ld.global.v8.b32 {{{words}}}, [%rd44];\nst.global.v8.b32 [%rd43], {{{words}}};\n", data)
    assert got[:1024].view(np.uint32).tolist() == data.tolist()
    longs = ", ".join(f"%rd{i}" for i in range(10, 14))
    got = execute(MOVE + f"ld.global.v4.u64 {{{longs}}}, [%rd44];\nst.global.v4.u64 [%rd43], {{{longs}}};\n", data)
    assert got[:1024].view(np.uint32).tolist() == data.tolist()
    with pytest.raises(Fault, match="32 bytes that is not aligned"):
        execute(MOVE + f"ld.global.v8.b32 {{{words}}}, [%rd44+16];\n", data)
