# SPDX-License-Identifier: Apache-2.0
# Annotations would be part of Triton's language, not of Python's.
# mypy: ignore-errors
# ruff: noqa: E501
"""Programs other than matrix products for Triton to compile: what a model is made of besides.

Only the process that compiles imports this; see `triton_compile`.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, width: tl.constexpr):
    """A row per program."""
    row = tl.program_id(0)
    column = tl.arange(0, width)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * n + column, power / tl.sum(power, 0), mask=inside)


@triton.jit
def layer_norm(x, y, n, width: tl.constexpr):
    """A row per program, to mean 0 and variance 1."""
    row = tl.program_id(0)
    column = tl.arange(0, width)
    inside = column < n
    value = tl.load(x + row * n + column, mask=inside, other=0.0)
    centred = tl.where(inside, value - tl.sum(value, 0) / n, 0.0)
    tl.store(y + row * n + column, centred * tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5), mask=inside)


@triton.jit
def functions(x, y, n, width: tl.constexpr):
    """Library functions, all of them in one sum."""
    at = tl.program_id(0) * width + tl.arange(0, width)
    v = tl.load(x + at)
    waves = tl.sin(v) + tl.cos(v) + tl.sigmoid(v) + tl.erf(v)
    tl.store(y + at, waves + tl.log(tl.abs(v) + 1) + tl.sqrt(tl.abs(v)) + tl.floor(v) + tl.ceil(v))


@triton.jit
def scan(x, y, n, width: tl.constexpr):
    """Running sums."""
    at = tl.program_id(0) * width + tl.arange(0, width)
    tl.store(y + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def sort(x, y, n, width: tl.constexpr):
    """Ascending order, by exchanges between lanes."""
    at = tl.program_id(0) * width + tl.arange(0, width)
    tl.store(y + at, tl.sort(tl.load(x + at)))


@triton.jit
def histogram(x, y, n, width: tl.constexpr):
    """Counts of 64 values, by atomics in shared and in global memory."""
    value = tl.load(x + tl.program_id(0) * width + tl.arange(0, width))
    tl.atomic_add(y + tl.arange(0, 64), tl.histogram(value, 64))


@triton.jit
def gather(x, index, y, n, width: tl.constexpr):
    """Elements by index."""
    at = tl.arange(0, width)
    tl.store(y + at, tl.gather(tl.load(x + at), tl.load(index + at), 0))


@triton.jit
def transpose(x, y, n, width: tl.constexpr):
    """A square, by way of shared memory."""
    at = tl.arange(0, width)
    tl.store(y + at[:, None] * width + at[None, :], tl.trans(tl.load(x + at[:, None] * width + at[None, :])))


@triton.jit
def locked_sum(x, y, lock, n, width: tl.constexpr):
    """Programs add to one row, one after the other, by a lock."""
    at = tl.arange(0, width)
    value = tl.load(x + tl.program_id(0) * width + at)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y + at, tl.load(y + at) + value)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_sums(x, parts, y, counter, n, width: tl.constexpr, programs: tl.constexpr):
    """Every program leaves its sum; the one that comes last adds them."""
    program = tl.program_id(0)
    tl.store(parts + program, tl.sum(tl.load(x + program * width + tl.arange(0, width)), 0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == programs - 1:
        tl.store(y, tl.sum(tl.load(parts + tl.arange(0, programs)), 0))


@triton.jit
def split_k(a, b, d, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, parts: tl.constexpr):
    """A matrix product of which programs compute parts of the sums and add them by atomics."""
    row = tl.program_id(0) * tm + tl.arange(0, tm)
    column = tl.program_id(1) * tn + tl.arange(0, tn)
    depth = tl.program_id(2) * tk + tl.arange(0, tk)
    total = tl.zeros((tm, tn), tl.float32)
    for _ in range(0, tl.cdiv(k, tk * parts)):
        left = tl.load(a + row[:, None] * k + depth[None, :], mask=(row[:, None] < m) & (depth[None, :] < k), other=0.0)
        right = tl.load(b + column[None, :] * k + depth[:, None], mask=(column[None, :] < n) & (depth[:, None] < k), other=0.0)
        total = tl.dot(left, right, total)
        depth += tk * parts
    tl.atomic_add(d + row[:, None] * n + column[None, :], total, mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def attention(q, k, v, o, n, depth: tl.constexpr, tm: tl.constexpr, tn: tl.constexpr):
    """softmax(Q K^T) V in one pass: A of the second product comes from the first."""
    row, at = tl.program_id(0) * tm + tl.arange(0, tm), tl.arange(0, depth)
    query = tl.load(q + row[:, None] * depth + at[None, :])
    most = tl.full((tm,), -float("inf"), tl.float32)
    weight = tl.zeros((tm,), tl.float32)
    total = tl.zeros((tm, depth), tl.float32)
    for start in range(0, n, tn):
        key = start + tl.arange(0, tn)
        score = tl.dot(query, tl.load(k + key[None, :] * depth + at[:, None])) * 0.18033688
        larger = tl.maximum(most, tl.max(score, 1))
        power, less = tl.exp2(score - larger[:, None]), tl.exp2(most - larger)
        weight, most = weight * less + tl.sum(power, 1), larger
        total = tl.dot(power.to(tl.float16), tl.load(v + key[:, None] * depth + at[None, :]), total * less[:, None])
    tl.store(o + row[:, None] * depth + at[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def scaled(a, a_scale, b, b_scale, d, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, kind: tl.constexpr):
    """A matrix product with a factor for each 32 elements of a row."""
    row, column = tl.arange(0, tm), tl.program_id(0) * tn + tl.arange(0, tn)
    bytes_of_k: tl.constexpr = tk // 2 if kind == "e2m1" else tk
    pitch = k // 2 if kind == "e2m1" else k
    at, block = tl.arange(0, bytes_of_k), tl.arange(0, tk // 32)
    total = tl.zeros((tm, tn), tl.float32)
    for i in range(0, k // tk):
        left = tl.load(a + row[:, None] * pitch + (at + i * bytes_of_k)[None, :])
        right = tl.load(b + column[None, :] * pitch + (at + i * bytes_of_k)[:, None])
        of_left = tl.load(a_scale + row[:, None] * (k // 32) + (block + i * (tk // 32))[None, :])
        of_right = tl.load(b_scale + column[:, None] * (k // 32) + (block + i * (tk // 32))[None, :])
        total = tl.dot_scaled(left, of_left, kind, right, of_right, kind, total)
    tl.store(d + row[:, None] * n + column[None, :], total)


@triton.jit
def integers(a, b, d, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr):
    """A matrix product of 8-bit integers."""
    row, column, at = tl.arange(0, tm), tl.arange(0, tn), tl.arange(0, tk)
    total = tl.zeros((tm, tn), tl.int32)
    for _ in range(0, k // tk):
        total = tl.dot(tl.load(a + row[:, None] * k + at[None, :]), tl.load(b + column[None, :] * k + at[:, None]), total)
        at += tk
    tl.store(d + row[:, None] * tn + column[None, :], total)
