# SPDX-License-Identifier: Apache-2.0
"""Kernels for Triton's Gluon: roles by warp_specialize, clusters whose CTAs share operands by multicast, tcgen05.mma of
CTA pairs, and tiles taken over by clusterlaunchcontrol. This file is read by Triton's process alone.

D[m, n] = A[m, k] * B[k, n]. A tile of a cluster is tile_m x tile_n; `cluster` says which of its parts a CTA makes.
"""

# Annotations would be part of Gluon's language, not of Python's.
# mypy: ignore-errors
# ruff: noqa: RUF005 - Gluon knows no starred expressions

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    clc,
    tcgen05_commit,
    tcgen05_mma,
    tcgen05_mma_barrier_count,
    tensor_memory_descriptor,
)
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@gluon.aggregate
class Shared:
    """What the roles have in common: operands, stages, accumulators, and the barriers between them."""

    a: tma.tensor_descriptor
    b: tma.tensor_descriptor
    d: tma.tensor_descriptor
    a_stages: gl.shared_memory_descriptor
    b_stages: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor
    full: gl.shared_memory_descriptor
    sums: tensor_memory_descriptor
    summed: gl.shared_memory_descriptor
    stored: gl.shared_memory_descriptor
    answers: gl.shared_memory_descriptor
    answered: gl.shared_memory_descriptor
    read: gl.shared_memory_descriptor


@gluon.jit
def slot_of(count, slots: gl.constexpr):
    """The slot of a ring, and the parity of its phase."""
    return count % slots, (count // slots) & 1


@gluon.jit
def origin_of(shared, tile):
    """Row and column where a tile begins: tiles in rows."""
    tile_m: gl.constexpr = shared.a.block_shape[0]
    tile_n: gl.constexpr = shared.b.block_shape[1]
    across = gl.cdiv(shared.b.shape[1], tile_n)
    return (tile // across) * tile_m, (tile % across) * tile_n


@gluon.jit
def next_tile(shared, count, tile):
    """(whether there is another tile, which) of the answer number `count`."""
    slot, parity = slot_of(count, shared.answered.shape[0])
    mbarrier.wait(shared.answered.index(slot), parity)
    answer = clc.load_result(shared.answers.index(slot))
    mbarrier.arrive(shared.read.index(slot))
    more = answer.is_canceled()
    if more:
        tile = answer.program_id(0)
    return more, tile


@gluon.jit
def ask(shared):
    """Role: ask for a tile to take over, until there is none."""
    slots: gl.constexpr = shared.answered.shape[0]
    more = gl.to_tensor(True)
    count = 0
    while more:
        slot, parity = slot_of(count, slots)
        mbarrier.wait(shared.read.index(slot), parity ^ 1, pred=count >= slots)
        mbarrier.expect(shared.answered.index(slot), 16)
        clc.try_cancel(shared.answers.index(slot), shared.answered.index(slot))
        mbarrier.wait(shared.answered.index(slot), parity)
        more = clc.load_result(shared.answers.index(slot)).is_canceled()
        mbarrier.arrive(shared.read.index(slot))
        count += 1


@gluon.jit
def load(shared):
    """Role: bring operands."""
    stages: gl.constexpr = shared.full.shape[0]
    step: gl.constexpr = shared.a.block_shape[1]
    more = gl.to_tensor(True)
    tile = gl.program_id(0)
    tiles = 0
    count = 0
    while more:
        row, column = origin_of(shared, tile)
        for k in range(0, shared.a.shape[1], step):
            slot, parity = slot_of(count, stages)
            mbarrier.wait(shared.empty.index(slot), parity ^ 1, pred=count >= stages)
            full = shared.full.index(slot)
            mbarrier.expect(full, shared.a.nbytes_per_cta + shared.b.nbytes_per_cta)
            tma.async_load(shared.a, [row, k], full, shared.a_stages.index(slot), multicast=True)
            tma.async_load(shared.b, [k, column], full, shared.b_stages.index(slot), multicast=True)
            count += 1
        more, tile = next_tile(shared, tiles, tile)
        tiles += 1


@gluon.jit
def multiply(shared):
    """Role: issue the MMAs."""
    stages: gl.constexpr = shared.full.shape[0]
    accumulators: gl.constexpr = shared.summed.shape[0]
    step: gl.constexpr = shared.a.block_shape[1]
    more = gl.to_tensor(True)
    tile = gl.program_id(0)
    tiles = 0
    count = 0
    while more:
        into, turn = slot_of(tiles, accumulators)
        mbarrier.wait(shared.stored.index(into), turn ^ 1, pred=tiles >= accumulators)
        add = False
        for _ in range(0, shared.a.shape[1], step):
            slot, parity = slot_of(count, stages)
            mbarrier.wait(shared.full.index(slot), parity)
            tcgen05_mma(
                shared.a_stages.index(slot), shared.b_stages.index(slot), shared.sums.index(into), use_acc=add,
                multicast=True, mbarriers=[shared.empty.index(slot)],
            )  # fmt: skip
            add = True
            count += 1
        tcgen05_commit(shared.summed.index(into), descs=[shared.a_stages.index(0), shared.b_stages.index(0)])
        more, tile = next_tile(shared, tiles, tile)
        tiles += 1


@gluon.jit
def store(shared):
    """Role: accumulators to D."""
    accumulators: gl.constexpr = shared.summed.shape[0]
    tile_n: gl.constexpr = shared.b.block_shape[1]
    width: gl.constexpr = shared.d.block_shape[1]
    part = gl.allocate_shared_memory(shared.d.dtype, shared.d.block_shape, shared.d.layout)
    more = gl.to_tensor(True)
    tile = gl.program_id(0)
    tiles = 0
    while more:
        row, column = origin_of(shared, tile)
        of, turn = slot_of(tiles, accumulators)
        mbarrier.wait(shared.summed.index(of), turn)
        for i in gl.static_range(tile_n // width):
            values = shared.sums.index(of).slice(width * i, width).load().to(shared.d.dtype)
            tma.store_wait(pendings=0)
            part.store(values)
            tma.async_store(shared.d, [row, column + width * i], part)
        mbarrier.arrive(shared.stored.index(of))
        more, tile = next_tile(shared, tiles, tile)
        tiles += 1
    tma.store_wait(pendings=0)


@gluon.jit
def product(a, b, d, mma_m: gl.constexpr, mma_n: gl.constexpr, stages: gl.constexpr, cluster: gl.constexpr):
    pair: gl.constexpr = gl.num_ctas() > 1
    ring: gl.constexpr = 2  # of accumulators and of answers
    a_stages = gl.allocate_shared_memory(a.dtype, [stages] + a.block_shape, a.layout)
    b_stages = gl.allocate_shared_memory(b.dtype, [stages] + b.block_shape, b.layout)
    layout: gl.constexpr = TensorMemoryLayout([mma_m, mma_n], col_stride=1, cga_layout=cluster, two_ctas=pair)
    sums = allocate_tensor_memory(gl.float32, [ring, a.block_shape[0], b.block_shape[1]], layout)
    commits: gl.constexpr = tcgen05_mma_barrier_count(
        [a_stages.index(0), b_stages.index(0)], multicast=True, two_ctas=pair
    )
    empty = mbarrier.allocate_mbarrier(batch=stages)
    full = mbarrier.allocate_mbarrier(batch=stages, two_ctas=pair)
    for i in gl.static_range(stages):
        mbarrier.init(empty.index(i), count=commits)
        mbarrier.init(full.index(i), count=1)
    summed = mbarrier.allocate_mbarrier(batch=ring)
    stored = mbarrier.allocate_mbarrier(batch=ring, two_ctas=pair)
    answered = mbarrier.allocate_mbarrier(batch=ring)
    # the CTA that asks waits for all four roles of all CTAs: its request writes to each
    everywhere: gl.constexpr = mbarrier.MBarrierLayout([[0]] * (gl.num_ctas().bit_length() - 1))
    read = gl.allocate_shared_memory(gl.int64, [ring, 1], everywhere)
    for i in gl.static_range(ring):
        mbarrier.init(summed.index(i), count=commits)
        mbarrier.init(stored.index(i), count=1)
        mbarrier.init(answered.index(i), count=1)
        mbarrier.init(read.index(i), count=4)
    same: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0], cga_layout=[[0]] * (gl.num_ctas().bit_length() - 1))
    answers = gl.allocate_shared_memory(gl.int64, [ring, 2], same)
    shared = Shared(a, b, d, a_stages, b_stages, empty, full, sums, summed, stored, answers, answered, read)
    gl.warp_specialize(
        [(store, (shared,)), (load, (shared,)), (multiply, (shared,)), (ask, (shared,))], [1, 1, 1], [24, 24, 24]
    )
