# SPDX-License-Identifier: Apache-2.0
# Annotations would be part of Triton's language, not of Python's.
# mypy: ignore-errors
"""Matrix products for Triton to compile: D = A * B, B as N x K rows (or K x N where named so).

Only the process that compiles imports this; see `triton_compile`.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def host_maps(a, b, d, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """One tile per program; tensor maps are parameters. `roles`: warps take roles."""
    row, col = tl.program_id(0) * tm, tl.program_id(1) * tn
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for at in tl.range(0, k, tk, num_stages=depth, warp_specialize=roles):
        total = tl.dot(a.load([row, at]), b.load([col, at]).T, total)
    d.store([row, col], total.to(d.dtype))


@triton.jit
def host_maps_kn(a, b, d, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """B is K x N: its tiles are MN-major operands."""
    row, col = tl.program_id(0) * tm, tl.program_id(1) * tn
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for at in tl.range(0, k, tk, num_stages=depth, warp_specialize=roles):
        total = tl.dot(a.load([row, at]), b.load([at, col]), total)
    d.store([row, col], total.to(d.dtype))


@triton.jit
def converted_a(a, b, d, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """A has a narrower type than B and is converted on the way, through registers."""
    row, col = tl.program_id(0) * tm, tl.program_id(1) * tn
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for at in tl.range(0, k, tk, num_stages=depth, warp_specialize=roles):
        total = tl.dot(a.load([row, at]).to(b.dtype), b.load([col, at]).T, total)
    d.store([row, col], total.to(d.dtype))


@triton.jit
def device_maps(a_ptr, b_ptr, d_ptr, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """Tensor maps are made by the kernel."""
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [tm, tk])
    b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [tn, tk])
    d = tl.make_tensor_descriptor(d_ptr, [m, n], [n, 1], [tm, tn])
    row, col = tl.program_id(0) * tm, tl.program_id(1) * tn
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for at in tl.range(0, k, tk, num_stages=depth, warp_specialize=roles):
        total = tl.dot(a.load([row, at]), b.load([col, at]).T, total)
    d.store([row, col], total.to(d.dtype))


@triton.jit
def persistent(a_ptr, b_ptr, d_ptr, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """Few programs take all tiles, with tensor maps made by the kernel."""
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [tm, tk])
    b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [tn, tk])
    d = tl.make_tensor_descriptor(d_ptr, [m, n], [n, 1], [tm, tn])
    across = tl.cdiv(n, tn)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, tm) * across, tl.num_programs(0), flatten=True, warp_specialize=roles):  # fmt: skip  # noqa: E501
        row, col = tile // across * tm, tile % across * tn
        total = tl.zeros((tm, tn), dtype=tl.float32)
        for at in tl.range(0, k, tk, num_stages=depth):
            total = tl.dot(a.load([row, at]), b.load([col, at]).T, total)
        d.store([row, col], total.to(d.dtype))


@triton.jit
def pointers(a_ptr, b_ptr, d_ptr, m, n, k, tm: tl.constexpr, tn: tl.constexpr, tk: tl.constexpr, depth: tl.constexpr, roles: tl.constexpr):  # fmt: skip  # noqa: E501
    """No tensor maps: masked loads through pointers, any size."""
    rows = tl.program_id(0) * tm + tl.arange(0, tm)
    cols = tl.program_id(1) * tn + tl.arange(0, tn)
    total = tl.zeros((tm, tn), dtype=tl.float32)
    for at in tl.range(0, k, tk, num_stages=depth):
        ks = at + tl.arange(0, tk)
        x = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=(rows[:, None] < m) & (ks[None, :] < k), other=0.0)
        y = tl.load(b_ptr + cols[:, None] * k + ks[None, :], mask=(cols[:, None] < n) & (ks[None, :] < k), other=0.0)
        total = tl.dot(x, y.T, total)
    where = d_ptr + rows[:, None] * n + cols[None, :]
    tl.store(where, total.to(d_ptr.dtype.element_ty), mask=(rows[:, None] < m) & (cols[None, :] < n))
