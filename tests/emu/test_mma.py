# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma on tiles that TMA has written, against an exact integer product of the matrices in global memory."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tmagen.emu import mma, tma
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.mma import Mma
from tmagen.emu.tensormap import DataType, SwizzleMode, TensorMap
from tmagen.emu.tmem import Tmem

A_TILE, B_TILE, SMEM_BYTES = 0x2000, 0x12000, 0x22000
CODE = {SwizzleMode.NONE: 0, SwizzleMode.B128_ATOM_32B: 1, SwizzleMode.B128: 2, SwizzleMode.B64: 4, SwizzleMode.B32: 6}
SPAN = {SwizzleMode.B128: 128, SwizzleMode.B64: 64, SwizzleMode.B32: 32, SwizzleMode.B128_ATOM_32B: 128}
SWIZZLES = [SwizzleMode.NONE, SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128]


@dataclass(frozen=True)
class Kind:
    name: str
    numpy: object
    code: int
    tensor: DataType
    largest: int  # integers up to here are exact, and products of a few hundred sum exactly in float32

    @property
    def size(self):
        return np.dtype(self.numpy).itemsize

    @property
    def step(self):
        return 32 // self.size


F16 = Kind("f16", np.float16, 0, DataType.FLOAT16, 120)
BF16 = Kind("f16", ml_dtypes.bfloat16, 1, DataType.BFLOAT16, 120)
TF32 = Kind("tf32", np.float32, 2, DataType.FLOAT32, 120)
E4M3 = Kind("f8f6f4", ml_dtypes.float8_e4m3fn, 0, DataType.UINT8, 16)
E5M2 = Kind("f8f6f4", ml_dtypes.float8_e5m2, 1, DataType.UINT8, 8)
KINDS = {"f16": F16, "bf16": BF16, "tf32": TF32, "e4m3": E4M3, "e5m2": E5M2}


def integers(kind, rows, k, seed):
    """Values that differ from place to place, so that no swap goes unseen."""
    return np.random.default_rng(seed).integers(-kind.largest, kind.largest + 1, (rows, k))


def descriptor(start, leading, stride, swizzle):
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | CODE[swizzle] << 61


def idesc(kind, m, n, *, d=1, mn_a=False, mn_b=False, negate_a=False, negate_b=False, b_code=None):
    b = kind.code if b_code is None else b_code
    word = d << 4 | kind.code << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    return word | negate_a << 13 | negate_b << 14 | mn_a << 15 | mn_b << 16


def tile(smem, base, kind, values, swizzle, mn_major):
    """Write `values` [rows, k] to shared memory by TMA in the canonical layout; the descriptors of its K steps."""
    k = values.shape[1]
    stored = values.T if mn_major else values
    raw = np.ascontiguousarray(stored.astype(np.float32).astype(kind.numpy)).view(np.uint8)
    outer, inner = stored.shape
    memory = GlobalMemory()
    allocation = memory.allocate(raw.size)
    allocation.data[:] = raw.reshape(-1)
    span = SPAN.get(swizzle, 16)
    width = min(span // kind.size, inner)
    # One box per span of the inner dimension, stacked; without a swizzle a span is a column of core matrices.
    dims, strides, box = (inner, outer), (inner * kind.size,), (width, outer)
    tmap = TensorMap(kind.tensor, 2, allocation.address, dims, strides, box, (1, 1), swizzle=swizzle)
    assert tmap.validate() == ()
    block = -(-outer * span // 1024) * 1024 if swizzle is not SwizzleMode.NONE else outer * 16
    for i in range(-(-inner // width)):
        tma.load(tmap, memory, smem, base + i * block, (i * width, 0))
    starts = []
    for step in range(k // kind.step):
        if not mn_major and swizzle is SwizzleMode.NONE:  # 16 bytes of K: the next column of core matrices
            starts.append(descriptor(base + 2 * step * block, block, 128, swizzle))
        elif not mn_major:
            starts.append(descriptor(base + step * 32 // span * block + step * 32 % span, 0, 8 * span, swizzle))
        elif swizzle is SwizzleMode.NONE:
            # Roles swapped: `leading` is the next 8 of K, `stride` the next 16 bytes of M or N.
            starts.append(descriptor(base + step * kind.step * 16, 128, block, swizzle))
        else:
            depth = 4 if swizzle is SwizzleMode.B128_ATOM_32B else 8
            starts.append(descriptor(base + step * kind.step * span, block, depth * span, swizzle))
    return starts


def fresh(columns=256):
    tmem = Tmem()
    tmem.alloc(columns)
    return tmem


def run(kind, a, b, swizzles, *, mn=(False, False), m=None, n=None, chain=True, d=0):
    """D of all K steps as [m, n] float32, and the tensor memory."""
    smem = np.full(SMEM_BYTES, 0xFF, np.uint8)
    tmem = fresh()
    one = tile(smem, A_TILE, kind, a, swizzles[0], mn[0])
    other = tile(smem, B_TILE, kind, b, swizzles[1], mn[1])
    word = idesc(kind, m or len(a), n or len(b), mn_a=mn[0], mn_b=mn[1])
    ops = [Mma(kind.name, d, one[i], other[i], word, i > 0) for i in range(len(one))]
    if chain:
        mma.execute_chain(ops, smem, tmem)
    else:
        for op in ops:
            mma.execute(op, smem, tmem)
    return tmem.floats[d & 0xFFFF :][: len(b)].T, tmem


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("chain", [True, False])
def test_k_major(name, swizzle, chain):
    kind = KINDS[name]
    k = 4 * kind.step
    a, b = integers(kind, 128, k, 1), integers(kind, 96, k, 2)
    got, _ = run(kind, a, b, (swizzle, swizzle), chain=chain)
    assert np.array_equal(got, a @ b.T)


@pytest.mark.parametrize("name", ["f16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("chain", [True, False])
@pytest.mark.parametrize("mn", [(True, False), (False, True), (True, True)])
def test_mn_major(name, swizzle, chain, mn):
    kind = KINDS[name]
    k = 4 * kind.step
    a, b = integers(kind, 128, k, 1), integers(kind, 64, k, 2)
    got, _ = run(kind, a, b, (swizzle, swizzle), mn=mn, chain=chain)
    assert np.array_equal(got, a @ b.T)


@pytest.mark.parametrize("chain", [True, False])
def test_mn_major_tf32_has_atoms_of_32_bytes(chain):
    a, b = integers(TF32, 128, 32, 1), integers(TF32, 64, 32, 2)
    both = (SwizzleMode.B128_ATOM_32B, SwizzleMode.B128_ATOM_32B)
    got, _ = run(TF32, a, b, both, mn=(True, True), chain=chain)
    assert np.array_equal(got, a @ b.T)


def test_operands_of_different_layouts():
    a, b = integers(F16, 128, 64, 1), integers(F16, 128, 64, 2)
    got, _ = run(F16, a, b, (SwizzleMode.B32, SwizzleMode.B128), mn=(False, True))
    assert np.array_equal(got, a @ b.T)


def test_a_chain_over_two_swizzle_atoms():
    """128 columns of K: two tiles of 64 per operand, and the descriptor steps from one to the next."""
    a, b = integers(F16, 128, 128, 1), integers(F16, 128, 128, 2)
    got, _ = run(F16, a, b, (SwizzleMode.B128, SwizzleMode.B128))
    assert np.array_equal(got, a @ b.T)


@pytest.mark.parametrize("n", [8, 16, 24, 136, 256])
def test_every_width_touches_only_its_columns(n):
    a, b = integers(BF16, 128, 64, 1), integers(BF16, n, 64, 2)
    got, tmem = run(BF16, a, b, (SwizzleMode.B128, SwizzleMode.B128))
    assert np.array_equal(got, a @ b.T)
    assert (tmem.words[n:] == 0xFFFFFFFF).all()


@pytest.mark.parametrize("lane", [0, 16])
def test_m_64_uses_half_of_every_quadrant(lane):
    """Row m is lane m % 16 + 32 * (m / 16), from lane 0 or 16 (PTX ISA, layout F)."""
    a, b = integers(F16, 64, 64, 1), integers(F16, 40, 64, 2)
    _, tmem = run(F16, a, b, (SwizzleMode.B128, SwizzleMode.B128), d=lane << 16 | 24)
    want = np.full((128, 256), np.nan)
    for row in range(64):
        want[row % 16 + 32 * (row // 16) + lane, 24:64] = a[row] @ b.T
    assert np.array_equal(tmem.floats[:256].T, want, equal_nan=True)


class Setup:
    """One K step of f16, A and B in shared memory, D preset to integers."""

    def __init__(self, kind=F16, m=128, n=32):
        self.kind, self.m, self.n = kind, m, n
        self.smem = np.full(SMEM_BYTES, 0xFF, np.uint8)
        self.a, self.b = integers(kind, m, kind.step, 1), integers(kind, n, kind.step, 2)
        (self.desc_a,) = tile(self.smem, A_TILE, kind, self.a, SwizzleMode.B32, False)
        (self.desc_b,) = tile(self.smem, B_TILE, kind, self.b, SwizzleMode.B32, False)
        self.tmem = fresh()
        self.old = np.random.default_rng(3).integers(-1000, 1000, (128, n))
        self.tmem.floats[:n] = self.old.T
        self.product = self.a @ self.b.T

    def op(self, *, word=None, **change):
        fields = {"d": 0, "a": self.desc_a, "b": self.desc_b, "accumulate": True}
        word = idesc(self.kind, self.m, self.n) if word is None else word
        return Mma(self.kind.name, idesc=word, **(fields | change))

    def run(self, **change):
        mma.execute(self.op(**change), self.smem, self.tmem)
        return self.tmem.floats[: self.n].T[: self.m]


def test_accumulate():
    setup = Setup()
    assert np.array_equal(setup.run(), setup.old + setup.product)
    assert np.array_equal(setup.run(), setup.old + 2 * setup.product)


def test_without_accumulate_the_old_d_does_not_matter():
    setup = Setup()
    setup.tmem.floats[:] = np.nan
    assert np.array_equal(setup.run(accumulate=False), setup.product)


def test_nan_propagates():
    setup = Setup()
    setup.tmem.floats[3, 5] = np.nan
    setup.smem[A_TILE : A_TILE + 2] = (0x00, 0x7E)
    got = setup.run()
    assert np.isnan(got[5, 3])
    assert np.isnan(got[0]).all()
    assert np.count_nonzero(np.isnan(got)) == 1 + setup.n


@pytest.mark.parametrize(("negate_a", "negate_b"), [(True, False), (False, True), (True, True)])
def test_negate(negate_a, negate_b):
    setup = Setup()
    got = setup.run(word=idesc(F16, 128, 32, negate_a=negate_a, negate_b=negate_b))
    assert np.array_equal(got, setup.old + (setup.product if negate_a == negate_b else -setup.product))


@pytest.mark.parametrize("scale", [1, 3, 15])
def test_scale_input_d(scale):
    setup = Setup()
    assert np.array_equal(setup.run(scale_d=scale), (setup.old * 2.0**-scale + setup.product).astype(np.float32))


@pytest.mark.parametrize("m", [128, 64])
def test_disabled_lanes_keep_their_d(m):
    setup = Setup(m=m)
    mask = (0xDEADBEEF, 0x0, 0xFFFFFFFF, 0x80000001)
    before = setup.tmem.floats[: setup.n].T.copy()
    setup.run(disable_lanes=mask)
    after = setup.tmem.floats[: setup.n].T
    for row in range(m):
        lane = row if m == 128 else row % 16 + 32 * (row // 16)
        change = 0 if mask[lane // 32] >> lane % 32 & 1 else setup.product[row]
        assert np.array_equal(after[lane], before[lane] + change)


def test_an_empty_lane_mask_changes_nothing():
    setup = Setup()
    assert np.array_equal(setup.run(disable_lanes=(0, 0, 0, 0)), setup.old + setup.product)


def test_f16_accumulator_is_the_low_half_of_a_word():
    setup = Setup()
    old = np.arange(setup.n * 128).reshape(setup.n, 128) % 512
    setup.tmem.words[: setup.n] = old.astype(np.float16).view(np.uint16).astype(np.uint32) | 0xABCD0000
    setup.run(word=idesc(F16, 128, 32, d=0))
    want = (old + setup.product.T).astype(np.float32)
    with np.errstate(over="ignore"):
        assert np.array_equal(setup.tmem.words[: setup.n] & 0xFFFF, want.astype(np.float16).view(np.uint16))
    low = setup.tmem.ld("32x32b", setup.n // 2, 0, 1, pack=True)
    assert low[1, 4] & 0xFFFF == setup.tmem.words[2, 36] & 0xFFFF


def test_f16_with_bf16():
    """The types of A and B are independent fields."""
    setup = Setup()
    (setup.desc_b,) = tile(setup.smem, B_TILE, BF16, setup.b, SwizzleMode.B32, False)
    assert np.array_equal(setup.run(word=idesc(F16, 128, 32, b_code=1)), setup.old + setup.product)


def test_tf32_ignores_the_low_13_bits():
    setup = Setup(TF32)
    # A's tile of 128 rows of 32 bytes: noise below the significand of tf32.
    setup.smem[A_TILE : A_TILE + 4096].view(np.uint32)[:] |= np.uint32(0x1FFF)
    assert np.array_equal(setup.run(), setup.old + setup.product)


@pytest.mark.parametrize("kind", [F16, BF16, TF32, E4M3])
@pytest.mark.parametrize("m", [128, 64])
def test_a_in_tmem(kind, m):
    """Row = lane as for D; a column holds 4 bytes of K."""
    setup = Setup(kind, m=m)
    words = np.ascontiguousarray(setup.a.astype(np.float32).astype(kind.numpy)).view(np.uint32)
    for row in range(m):
        setup.tmem.words[100:108, row if m == 128 else row % 16 + 32 * (row // 16)] = words[row]
    setup.run(a=100, a_in_tmem=True)
    rows = [row if m == 128 else row % 16 + 32 * (row // 16) for row in range(m)]
    got = setup.tmem.floats[: setup.n].T[rows]
    assert np.array_equal(got, setup.old[rows] + setup.product)


def test_a_in_tmem_may_be_the_result_before():
    """An A in TMEM is read when its instruction executes, not when the chain starts."""
    setup = Setup()
    columns = setup.tmem.words[:8]
    columns[:] = 0
    first = setup.op(word=idesc(F16, 128, 8, d=0), accumulate=False)
    # Its eight float16 results, one in the low half of each of columns 0 to 7, are 16 elements of K: every other one.
    second = setup.op(a=0, a_in_tmem=True, d=64, accumulate=False, word=idesc(F16, 128, 32))
    with np.errstate(over="ignore"):
        product = (setup.a @ setup.b[:8].T).astype(np.float32).astype(np.float16)
    mma.execute(first, setup.smem, setup.tmem)
    columns &= np.uint32(0xFFFF)
    mma.execute(second, setup.smem, setup.tmem)
    want = product.astype(np.float32) @ setup.b[:, ::2].T.astype(np.float32)
    assert np.array_equal(setup.tmem.floats[64:96].T, want)


def test_a_chain_runs_in_order_whatever_it_mixes():
    """Two accumulators in turn, a restart, a mask and a scale in between: as one by one."""
    one, other = Setup(), Setup()
    word = idesc(F16, 128, 32)
    for setup in (one, other):
        setup.tmem.floats[:64] = 1
        setup.ops = [
            setup.op(word=word),
            setup.op(word=word, d=32),
            setup.op(word=word, d=32),
            setup.op(word=word, accumulate=False),
            setup.op(word=word),
            setup.op(word=word, accumulate=False),
            setup.op(word=word),
            setup.op(word=word, scale_d=1),
            setup.op(word=word),
            setup.op(word=word, disable_lanes=(1, 2, 3, 4)),
            setup.op(word=word, disable_lanes=(1, 2, 3, 4)),
            setup.op(word=word),
            setup.op(word=idesc(F16, 128, 16)),
            setup.op(word=idesc(F16, 128, 16, negate_a=True)),
        ]
    mma.execute_chain(one.ops, one.smem, one.tmem)
    for op in other.ops:
        mma.execute(op, other.smem, other.tmem)
    assert np.array_equal(one.tmem.words, other.tmem.words)
    mma.execute_chain([], one.smem, one.tmem)


class TestFaults:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"d": 240}, "columns 240 to 271"),
            ({"d": 500}, "columns 500 to 531"),
            ({"d": 16 << 16}, "M = 128: D at lane 16 must be at lane 0"),
            ({"scale_d": 16}, "scale-input-d 16"),
            ({"a": 0}, "bits 46-48"),
            ({"b": 1 << 46 | 3 << 61}, "swizzle mode"),
            ({"word": 0x08200010 | 1 << 23}, "reserved bit 23"),
            ({"a": descriptor(SMEM_BYTES - 1024, 0, 256, SwizzleMode.B32)}, "reaches byte 142,335 of shared memory"),
            ({"a": 250, "a_in_tmem": True}, "A touches tensor memory columns 250 to 257"),
            ({"a": 16 << 16, "a_in_tmem": True}, "A at TMEM lane 16 and D at lane 0"),
            ({"a": 0, "a_in_tmem": True, "word": idesc(F16, 128, 32, mn_a=True)}, "MN-major"),
        ],
    )
    def test_operands(self, change, message):
        setup = Setup()
        before = setup.tmem.words.copy()
        with pytest.raises(Fault, match=message):
            setup.run(**change)
        assert np.array_equal(setup.tmem.words, before)

    def test_the_end_of_shared_memory(self):
        """The last operand that fits, and one that starts 16 bytes later."""
        setup = Setup()
        last = SMEM_BYTES - 128 * 32
        setup.run(a=descriptor(last, 2048, 128, SwizzleMode.NONE))
        with pytest.raises(Fault, match=f"reaches byte {SMEM_BYTES + 15:,}"):
            setup.run(a=descriptor(last + 16, 2048, 128, SwizzleMode.NONE))

    def test_m_64_at_another_lane(self):
        with pytest.raises(Fault, match="M = 64: D at lane 32 must be at lane 0 or 16"):
            Setup(m=64).run(d=32 << 16)

    def test_scale_of_another_kind(self):
        with pytest.raises(Fault, match="scale-input-d"):
            Setup(E4M3).run(scale_d=1)

    @pytest.mark.parametrize(
        ("kind", "word"), [("f16", idesc(F16, 128, 32) | 1 << 2), ("mxf4", 1 << 2), ("f64", 0)]
    )
    def test_not_judged(self, kind, word):
        setup = Setup()
        with pytest.raises(NotJudged):
            mma.execute(setup.op(word=word)._replace(kind=kind), setup.smem, setup.tmem)
