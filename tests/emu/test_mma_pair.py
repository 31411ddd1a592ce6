# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma.cta_group::2, by itself and in a whole kernel, against an exact integer product."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.emu.ptx import HEADER
from tmagen.emu import EmulatorError, Fault, GlobalMemory, Launch, TensorMap, mma_pair, parse, run
from tmagen.emu.mma import Mma
from tmagen.emu.mma_pair import PairMma
from tmagen.emu.policy import THOROUGH
from tmagen.emu.tensormap import DataType, SwizzleMode
from tmagen.emu.tmem import Tmem

POLICIES = [*THOROUGH, "timed"]
# name -> (kind, NumPy type, type code, largest integer)
KINDS = {
    "f16": ("f16", np.float16, 0, 60),
    "bf16": ("f16", ml_dtypes.bfloat16, 1, 60),
    "tf32": ("tf32", np.float32, 2, 60),
    "e4m3": ("f8f6f4", ml_dtypes.float8_e4m3fn, 0, 8),
}
A_AT, B_AT, SMEM_BYTES = 0x1000, 0x9000, 0x11000


def put(smem, at, matrix):
    """K-major without swizzle: 8 rows of 16 bytes are 128 bytes; 16-byte columns follow, then the next 8 rows."""
    raw = np.ascontiguousarray(matrix).view(np.uint8).reshape(matrix.shape[0], -1)
    rows, nbytes = raw.shape
    columns = nbytes // 16
    for row in range(rows):
        for column in range(columns):
            start = at + row // 8 * 128 * columns + column * 128 + row % 8 * 16
            smem[start : start + 16] = raw[row, 16 * column : 16 * column + 16]
    return at >> 4 | 128 >> 4 << 16 | 128 * columns >> 4 << 32 | 1 << 46


def idesc(code, m, n, *, d=1):
    return d << 4 | code << 7 | code << 10 | n >> 3 << 17 | m >> 4 << 24


class Pair:
    """Both CTAs' memories with a product's operands in them."""

    def __init__(self, name, m, n, seed=1):
        self.kind, dtype, code, largest = KINDS[name]
        k = 32 // np.dtype(dtype).itemsize
        rng = np.random.default_rng(seed)
        self.m, self.n = m, n
        self.a = rng.integers(-largest, largest + 1, (m, k))
        self.b = rng.integers(-largest, largest + 1, (n, k))
        self.smems = (np.full(SMEM_BYTES, 0xFF, np.uint8), np.full(SMEM_BYTES, 0xFF, np.uint8))
        self.tmems = (Tmem(), Tmem())
        for tmem in self.tmems:
            tmem.alloc(512)
        for rank, smem in enumerate(self.smems):
            desc_a = put(smem, A_AT, self.a[m // 2 * rank : m // 2 * (rank + 1)].astype(dtype))
            desc_b = put(smem, B_AT, self.b[n // 2 * rank : n // 2 * (rank + 1)].astype(dtype))
        self.op = Mma(self.kind, 16, desc_a, desc_b, idesc(code, m, n), False)

    def execute(self, *ops):
        mma_pair.execute([PairMma(op) for op in ops or (self.op,)], self.smems, self.tmems)

    def result(self):
        """D by rows, from where each CTA has it."""
        m, n = self.m, self.n
        out = np.empty((m, n), np.float32)
        for row in range(m):
            rank, r = divmod(row, m // 2)
            floats = self.tmems[rank].floats
            if m == 256:
                out[row] = floats[16 : 16 + n, r]
            else:
                out[row, : n // 2] = floats[16 : 16 + n // 2, r]
                out[row, n // 2 :] = floats[16 : 16 + n // 2, r + 64]
        return out


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(("m", "n"), [(256, 256), (256, 16), (256, 48), (128, 128), (128, 32), (128, 256)])
def test_product(kind, m, n):
    pair = Pair(kind, m, n)
    pair.execute()
    assert (pair.result() == pair.a @ pair.b.T).all()
    pair.execute(replace_op(pair.op, accumulate=True))
    assert (pair.result() == 2 * (pair.a @ pair.b.T)).all()


def replace_op(op, **fields):
    return op._replace(**fields)


@pytest.mark.parametrize("m", [256, 128])
def test_a_chain_is_a_sum(m):
    pair = Pair("f16", m, 64)
    more = replace_op(pair.op, accumulate=True)
    ops = [PairMma(pair.op), PairMma(more), PairMma(more), PairMma(pair.op)]
    assert mma_pair.chains(ops) == [(0, 3), (3, 4)]
    pair.execute(pair.op, more, more)
    assert (pair.result() == 3 * (pair.a @ pair.b.T)).all()


@pytest.mark.parametrize("m", [256, 128])
def test_a_in_tensor_memory(m):
    """Two halves in a column; with M = 128 each half of the lanes reads the rows that it has itself."""
    pair = Pair("f16", m, 32)
    for rank, tmem in enumerate(pair.tmems):
        rows = pair.a[m // 2 * rank : m // 2 * (rank + 1)].astype(np.float16)
        words = np.ascontiguousarray(rows).view(np.uint32)
        tmem.words[200:208, : m // 2] = words.T
        if m == 128:
            tmem.words[200:208, 64:] = words.T
    pair.execute(replace_op(pair.op, a=200, a_in_tmem=True))
    assert (pair.result() == pair.a @ pair.b.T).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"idesc": idesc(0, 64, 32)}, "M .* 64; cta_group::2 allows 128 and 256"),
        ({"idesc": idesc(0, 256, 24)}, "N .* 24"),
        ({"d": 400, "idesc": idesc(0, 256, 128)}, "columns 400 to 527"),
        ({"d": 16 << 16 | 16}, "lane 16"),
        ({"b": B_AT >> 4}, "bits 46-48"),
        ({"disable_lanes": (1, 0, 0, 0, 0, 0, 0, 0)}, "disable-output-lane"),
    ],
)
def test_misuse(fields, message):
    pair = Pair("f16", 256, 32)
    with pytest.raises(EmulatorError, match=message):
        pair.execute(replace_op(pair.op, **fields))


# --- a kernel ---------------------------------------------------------------------------------------------------------

M, N, K = 256, 64, 128
KERNEL = (
    HEADER
    + """
.shared .align 1024 .b8 tile_a[16384]; .shared .align 1024 .b8 tile_b[4096];
.shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 8 .b64 done; .shared .align 4 .b32 taddr;
.visible .entry k(.param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 d)
{{
.reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<40>; .reg .b16 %rs<9>;
ld.param.u64 %rd3, [d]; mov.b64 %rd1, map_a; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, map_b; cvta.param.u64 %rd2, %rd2;
mov.u32 %r0, %tid.x; mov.u32 %r80, %cluster_ctarank; mov.u32 %r90, tile_a; mov.u32 %r91, tile_b; mov.u32 %r92, full;
mov.u32 %r93, empty;
mov.u32 %r94, taddr; mov.u32 %r96, done; shr.u32 %r1, %r0, 5; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r0, 0;
@%p1 bra $alloced;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r94], 64;
tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
$alloced:
@%p2 bra $made;
mbarrier.init.shared::cta.b64 [%r92], 1; mbarrier.init.shared::cta.b64 [%r93], 1;
mbarrier.init.shared::cta.b64 [%r96], 1;
fence.mbarrier_init.release.cluster;
$made:
bar.sync 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.u32 %r10, [%r94];
and.b32 %r95, %r92, 0xFEFFFFFF;
mul.lo.u32 %r20, %r80, 128; mul.lo.u32 %r21, %r80, 32;
mov.u32 %r30, 0; mov.u32 %r31, 0; mov.u32 %r32, 1;
$stage:
@%p2 bra $loaded;
$we: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r93], %r32;
@!%p3 bra $we;
setp.ne.u32 %p6, %r80, 0;
@%p6 bra $expected;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r92], 40960;
$expected:
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r90], [%rd1, {{%r30, %r20}}], [%r95];
cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r91], [%rd2, {{%r30, %r21}}], [%r95];
@%p6 bra $loaded;
$wf: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r92], %r31;
@!%p3 bra $wf;
shr.u32 %r40, %r90, 4; and.b32 %r40, %r40, 0x3FFF; cvt.u64.u32 %rd10, %r40; or.b64 %rd10, %rd10, {desc};
shr.u32 %r40, %r91, 4; and.b32 %r40, %r40, 0x3FFF; cvt.u64.u32 %rd11, %r40; or.b64 %rd11, %rd11, {desc};
mov.u32 %r12, 0;
$next:
or.b32 %r13, %r12, %r30;
setp.ne.u32 %p4, %r13, 0;
tcgen05.mma.cta_group::2.kind::f16 [%r10], %rd10, %rd11, {idesc}, %p4;
add.s64 %rd10, %rd10, 2; add.s64 %rd11, %rd11, 2;
add.u32 %r12, %r12, 1;
setp.lt.u32 %p5, %r12, 4;
@%p5 bra $next;
mov.u16 %rs1, {mask};
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r93], %rs1;
$loaded:
xor.b32 %r31, %r31, 1; xor.b32 %r32, %r32, 1;
add.u32 %r30, %r30, 64;
setp.lt.u32 %p5, %r30, 128;
@%p5 bra $stage;
@%p2 bra $issued;
setp.ne.u32 %p6, %r80, 0;
@%p6 bra $issued;
mov.u16 %rs1, 3;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r96], %rs1;
$issued:
$wd: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r96], 0;
@!%p3 bra $wd;
tcgen05.fence::after_thread_sync;
shl.b32 %r13, %r1, 21; add.u32 %r14, %r10, %r13;
add.u32 %r15, %r0, %r20; mul.wide.u32 %rd20, %r15, 256; add.s64 %rd21, %rd3, %rd20;
mov.u32 %r16, 0;
$column:
tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r50, %r51, %r52, %r53}}, [%r14];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%rd21], {{%r50, %r51, %r52, %r53}};
add.u32 %r14, %r14, 4; add.s64 %rd21, %rd21, 16; add.u32 %r16, %r16, 4;
setp.lt.u32 %p5, %r16, 64;
@%p5 bra $column;
bar.sync 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%p1 bra $end;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 64;
$end:
ret;
}}
"""
)
DESC = (1024 >> 4 << 32) | 1 << 46 | 2 << 61


def product(completion, *, seed=0, text=KERNEL, grid=2, cluster=2, **fields):
    rng = np.random.default_rng(4)
    a, b = rng.integers(-9, 10, (M, K)), rng.integers(-9, 10, (N, K))
    memory = GlobalMemory()
    places = []
    for matrix in (a.astype(np.float16), b.astype(np.float16)):
        place = memory.allocate(matrix.nbytes)
        place.data[:] = matrix.reshape(-1).view(np.uint8)
        places.append(place)
    d = memory.allocate(4 * M * N)
    box = {0: (64, 128), 1: (64, 32)}
    maps = [
        TensorMap(DataType.FLOAT16, 2, place.address, (K, rows), (2 * K,), box[i], (1, 1), swizzle=SwizzleMode.B128)
        for i, (place, rows) in enumerate(zip(places, (M, N), strict=True))
    ]
    params = b"".join(m.encode() for m in maps) + d.address.to_bytes(8, "little")
    source = text.format(**{"desc": DESC, "idesc": idesc(0, M, N), "mask": 3, **fields})
    launch = Launch("k", (grid, 1, 1), (128, 1, 1), (cluster, 1, 1), params=params)
    run(parse(source), launch, memory, completion=completion, seed=seed)
    return d.data.view(np.float32).reshape(M, N), a @ b.T


@pytest.mark.parametrize("completion", POLICIES)
def test_kernel(completion):
    for seed in range(4 if completion == "random" else 1):
        got, want = product(completion, seed=seed)
        assert (got == want).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": 1}, "parity"),
        ({"text": KERNEL.replace("40960", "20480")}, "phase|tx"),
        ({"text": KERNEL.replace("@%p6 bra $loaded;", "")}, "parity|tx|arrive"),
        ({"text": KERNEL.replace("and.b32 %r95, %r92, 0xFEFFFFFF;", "mov.u32 %r95, %r92;")}, "parity|tx"),
        ({"text": KERNEL.replace("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r10, 64;", "")}, "tensor memory"),
        ({"cluster": 1}, "in a launch without clusters"),
    ],
)
def test_faults_of_the_kernel(change, message):
    with pytest.raises(EmulatorError, match=message):
        product("eager", **change)


def test_a_cluster_without_pairs():
    with pytest.raises(Fault, match="no pairs"):
        product("eager", grid=3, cluster=3)


def test_half_of_the_columns_of_128_rows_go_to_the_upper_lanes():
    part = mma_pair.whole(replace(mma_pair.decode("f16", idesc(0, 128, 64), 2)))
    assert (part.m, part.n) == (128, 32)
