# SPDX-License-Identifier: Apache-2.0
"""Ordinary CUDA code, as nvcc compiles it: loops, switches, 64-bit division, local arrays, half floats, atomics."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tmagen.emu import GlobalMemory, Launch, Module, parse, run

Arrays = list[npt.NDArray[Any]]
HERE = Path(__file__).parent / "compiled"


@cache
def module() -> Module:
    return parse((HERE / "kernels.ptx").read_text(), "kernels.ptx")


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def execute(
    name: str,
    *arrays: npt.NDArray[Any],
    block: int = 32,
    grid: int = 1,
    smem: int = 0,
    before: bytes = b"",
    after: bytes = b"",
) -> Arrays:
    """Run a kernel on pointers to copies of the arrays, `before` and `after` around them; the arrays afterwards."""
    memory = GlobalMemory()
    allocations = []
    for array in arrays:
        raw = np.ascontiguousarray(array).view(np.uint8).ravel()
        allocations.append(memory.allocate(raw.size))
        allocations[-1].data[:] = raw
    params = before + b"".join(a.address.to_bytes(8, "little") for a in allocations) + after
    run(module(), Launch(name, (grid, 1, 1), (block, 1, 1), dynamic_smem_bytes=smem, params=params), memory)
    return [
        allocation.data.view(array.dtype).reshape(array.shape)
        for allocation, array in zip(allocations, arrays, strict=True)
    ]


def test_block_reduction() -> None:
    x = rng().integers(-5, 6, 1000).astype(np.float32)
    _, out = execute("reduce", x, np.zeros(4, np.float32), block=256, grid=4, after=struct.pack("<i", 1000))
    parts = [sum(x[i] for i in range(1000) if i // 256 == cta) for cta in range(4)]
    assert out.tolist() == parts


def test_warp_collectives() -> None:
    x = rng().integers(-1000, 1000, 32).astype(np.int32)
    _, out = execute("warpsum", x, np.zeros(32, np.int32))
    total = int(x.sum())
    assert out.tolist() == [total + 32 * (total & 1) + 31 * 16] * 32


def test_switch() -> None:
    x = rng().integers(0, 9, 32).astype(np.int32)
    cases = {0: 5, 1: 77, 2: 2 ^ 123, 3: -2, 4: 4 << 7, 5: int(x[0]), 6: 3 * int(x[1]), 7: 9}
    _, out = execute("sw", x, np.zeros(32, np.int32))
    assert out.tolist() == [cases.get(v, -1) for v in x.tolist()]


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def test_64_bit_division() -> None:
    a = rng().integers(-(2**62), 2**62, 32)
    b = rng().integers(1, 2**40, 32) * rng().choice([-1, 1], 32)
    out = execute("div64", a, b, np.zeros(128, np.int64))[2].reshape(32, 4)
    for x, y, row in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        low = (x + 2**31) % 2**32 - 2**31
        assert row[0] == quotient(x, y)
        assert row[1] == x - y * quotient(x, y)
        assert row[2] % 2**64 == (x % 2**64) // (y % 2**64)
        assert row[3] % 2**32 == (quotient(low, 148) + y % 2**32 % 37) % 2**32


def test_local_arrays_with_computed_indices() -> None:
    x = rng().integers(-1000, 1000, 32).astype(np.int32)

    def expected(v: int) -> int:
        return sum(v * ((v + i * i) & 15) for i in range(16)) + v * (v & 15)

    _, out = execute("localarr", x, np.zeros(32, np.int32))
    assert out.tolist() == [expected(v) for v in x.tolist()]


def test_half_precision() -> None:
    a, b = (rng().normal(size=(2, 32))).astype(np.float16)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    _, _, halves, brains, floats = execute(
        "halfs", a, b, np.zeros(64, np.float16), np.zeros(32, ml_dtypes.bfloat16), np.zeros(128, np.float32)
    )
    exact = a.astype(np.float64)
    np.testing.assert_array_equal(halves[0::2], (exact * exact + exact).astype(np.float16))
    np.testing.assert_array_equal(halves[1::2], a * b)
    np.testing.assert_array_equal(brains, (wide_a * np.float32(3.3)).astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(floats[:32], wide_a / wide_b)
    np.testing.assert_array_equal(floats[32:64], (exact * wide_b + 1.25).astype(np.float32))
    np.testing.assert_array_equal(floats[64:96], np.sqrt(np.abs(wide_a)))
    np.testing.assert_array_equal(floats[96:], np.trunc(wide_a * np.float32(100)) + np.floor(wide_b) + np.rint(wide_a))


def test_trip_counts_that_differ_by_lane() -> None:
    x = np.arange(1, 33, dtype=np.uint32) * 7 + 3

    def steps(v: int) -> int:
        n = 0
        while v != 1:
            v, n = (3 * v + 1 if v & 1 else v >> 1), n + 1
        return n

    _, out = execute("collatz", x, np.zeros(32, np.uint32))
    assert out.tolist() == [steps(v) for v in x.tolist()]


def test_scan_in_dynamic_shared_memory() -> None:
    x = rng().integers(-9, 9, 128).astype(np.int32)
    _, out = execute("scan", x, np.zeros(128, np.int32), block=128, smem=512)
    np.testing.assert_array_equal(out, np.cumsum(x))


def test_histogram_with_atomics() -> None:
    x = rng().integers(0, 256, 1000).astype(np.uint8)
    _, out = execute("hist", x, np.zeros(16, np.uint32), block=128, grid=3, after=struct.pack("<i", 1000))
    np.testing.assert_array_equal(out, 3 * np.bincount(x & 15, minlength=16))


def test_vectors_and_narrow_integers() -> None:
    v = rng().integers(-100, 100, (32, 4)).astype(np.int32)
    s = rng().integers(-3000, 3000, 32).astype(np.int16)
    c = rng().integers(0, 256, 32).astype(np.uint8)
    out = execute("vec", v, np.zeros((32, 4), np.int32), s, np.zeros(32, np.int16), c, np.zeros(32, np.int8))
    x = v[:, 0] + v[:, 3]
    want = np.stack([x, np.maximum(v[:, 1], v[:, 2]), np.minimum(x, -v[:, 2]), np.abs(v[:, 3])], 1)
    np.testing.assert_array_equal(out[1], want)
    np.testing.assert_array_equal(out[3], s * 3 + 1)
    np.testing.assert_array_equal(out[5], (c.astype(int) - 100).astype(np.int8))


def test_doubles_and_bit_intrinsics() -> None:
    d = rng().normal(size=32) * 50
    _, out, longs = execute("mt", d, np.zeros(32), np.zeros(32, np.int64))
    np.testing.assert_allclose(out, d * d + 1.5, rtol=1e-15)
    for i, (x, got) in enumerate(zip(d.tolist(), longs.tolist(), strict=True)):
        source = [(i | 0x12345678 << 32) >> 8 * j & 255 for j in range(8)]
        permuted = sum(source[0x3175 >> 4 * j & 7] << 8 * j for j in range(4))
        bits = 64 - i.bit_length() + int(f"{i:032b}"[::-1], 2) + (i & -i).bit_length() + permuted
        assert got == int(x * 1000.0) + round(x) + bits


def test_structures_by_value_constants_and_device_variables() -> None:
    value = struct.pack("<ih5b", 7, -3, 1, 2, 3, 4, 5).ljust(16, b"\0") + struct.pack("<d", 9.7)
    (out,) = execute("byval", np.zeros(32, np.int32), before=value)
    assert out.tolist() == [7 - 3 + (i % 5 + 1) + 9 for i in range(32)]
    (out,) = execute("consts", np.zeros(64, np.int32), grid=2)
    assert out.tolist() == [[1, 1, 2, 3, 5, 8, 13, 21][i * 3 & 7] for i in range(32)] * 2


def test_nested_loops_with_breaks_per_lane() -> None:
    def expected(t: int) -> int:
        r = 0
        for i in range(8):
            if (t + i) % 5 == 0:
                continue
            for j in range(t):
                if j * i > 40:
                    break
                r += j ^ i
                if r > 5000:
                    return r
        return r

    (out,) = execute("rec", np.zeros(32, np.int32))
    assert out.tolist() == [expected(t) for t in range(32)]
