# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma with factors of blocks, of integers, and of elements of 6 and 4 bits, against sums of plain numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.emu.ptx import execute
from tmagen.emu import mma, mma_pair
from tmagen.emu.block_scale import BLOCKS, Scales
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.mma import Mma
from tmagen.emu.mma_pair import PairMma
from tmagen.emu.tmem import Tmem

A_AT, B_AT, SMEM_BYTES = 0x1000, 0x9000, 0x11000
D, SFA, SFB = 16, 300, 310
Bytes = npt.NDArray[np.uint8]
Matrix = npt.NDArray[np.float64]


def put(smem: Bytes, at: int, raw: Bytes) -> int:
    """Rows of bytes, K-major without swizzle; their descriptor."""
    rows, nbytes = raw.shape
    columns = nbytes // 16
    for row in range(rows):
        for column in range(columns):
            start = at + row // 8 * 128 * columns + column * 128 + row % 8 * 16
            smem[start : start + 16] = raw[row, 16 * column : 16 * column + 16]
    return at >> 4 | 128 >> 4 << 16 | 128 * columns >> 4 << 32 | 1 << 46


def put_transposed(smem: Bytes, at: int, raw: Bytes) -> int:
    """[k, rows] bytes, MN-major without swizzle: 8 rows of K of 16 bytes are 128 bytes."""
    k, nbytes = raw.shape
    for depth in range(k):
        for unit in range(nbytes // 16):
            start = at + unit * 128 * (k // 8) + depth // 8 * 128 + depth % 8 * 16
            smem[start : start + 16] = raw[depth, 16 * unit : 16 * unit + 16]
    return at >> 4 | 128 >> 4 << 16 | 128 * (k // 8) >> 4 << 32 | 1 << 46


FORMATS: dict[str, tuple[int, Any]] = {
    "e4m3": (0, ml_dtypes.float8_e4m3fn),
    "e5m2": (1, ml_dtypes.float8_e5m2),
    "e2m3": (3, ml_dtypes.float6_e2m3fn),
    "e3m2": (4, ml_dtypes.float6_e3m2fn),
    "e2m1": (5, ml_dtypes.float4_e2m1fn),
}
SMALL = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -0.5, -1.0, -1.5, -2.0, -3.0, 4.0)
"""All of these are numbers of every format."""


def numbers(rows: int, k: int, seed: int) -> Matrix:
    return np.random.default_rng(seed).choice(SMALL, (rows, k))


def units(values: Matrix, name: str) -> Bytes:
    """16 elements to 16 bytes: the bits of one after the other from the lowest on, then padding."""
    codes = values.astype(FORMATS[name][1]).view(np.uint8)
    bits = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}[name]
    out = np.full(values.shape, 0xA5, np.uint8)
    for row in range(values.shape[0]):
        for start in range(0, values.shape[1], 16):
            word = sum(int(code) << bits * i for i, code in enumerate(codes[row, start : start + 16]))
            out[row, start : start + 2 * bits] = list(word.to_bytes(2 * bits, "little"))
    return out


def packed(values: Matrix) -> Bytes:
    """Two e2m1 to a byte."""
    codes = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4


def put_factors(tmem: Tmem, column: int, first: int, codes: Bytes) -> None:
    """Row r's factors: bytes `first` and on of the word at lane r % 32, column r / 32, in all four quarters."""
    raw = tmem.words.view(np.uint8).reshape(*tmem.words.shape, 4)
    for row in range(codes.shape[0]):
        for quarter in range(4):
            for i in range(codes.shape[1]):
                raw[column + row // 32, row % 32 + 32 * quarter, first + i] = codes[row, i]


def fresh() -> Tmem:
    tmem = Tmem()
    tmem.alloc(512)
    return tmem


@pytest.mark.parametrize("formats", [("e2m3", "e2m3"), ("e3m2", "e4m3"), ("e5m2", "e2m1"), ("e2m1", "e2m1")])
@pytest.mark.parametrize("transposed", [False, True])
def test_elements_of_fewer_bits(formats: tuple[str, str], transposed: bool) -> None:
    a, b = numbers(128, 32, 1), numbers(48, 32, 2)
    smem = np.full(SMEM_BYTES, 0xFF, np.uint8)
    place = put_transposed if transposed else put
    one = place(smem, A_AT, units(a.T if transposed else a, formats[0]))
    other = place(smem, B_AT, units(b.T if transposed else b, formats[1]))
    codes = [FORMATS[name][0] for name in formats]
    word = 1 << 4 | codes[0] << 7 | codes[1] << 10 | transposed << 15 | transposed << 16 | 48 >> 3 << 17 | 8 << 24
    tmem = fresh()
    mma.execute(Mma("f8f6f4", D, one, other, word, False), smem, tmem)
    np.testing.assert_array_equal(tmem.floats[D : D + 48].T, a @ b.T)


def scaled_word(kind: str, n: int, codes: tuple[int, int], ids: tuple[int, int], ue4m3: bool, m: int = 128) -> int:
    word = ids[1] << 4 | codes[0] << 7 | codes[1] << 10 | n >> 3 << 17 | m >> 7 << 27 | ids[0] << 29
    return word | (not ue4m3) << 23


class Scaled:
    """Operands and factors of one product. Factors are powers of two, or small numbers where they are ue4m3."""

    def __init__(self, kind: str, block: int, ids: tuple[int, int], ue4m3: bool = False, n: int = 80) -> None:
        k = 32 if kind == "mxf8f6f4" else 64
        self.n, self.block = n, block
        self.a, self.b = numbers(128, k, 1), numbers(n, k, 2)
        rng = np.random.default_rng(3)
        dtype = ml_dtypes.float8_e4m3fn if ue4m3 else ml_dtypes.float8_e8m0fnu
        choices = (0.5, 1.0, 1.5, 2.0, 5.0) if ue4m3 else (0.25, 0.5, 1.0, 2.0, 8.0)
        self.sfa, self.sfb = (rng.choice(choices, (rows, k // block)) for rows in (128, n))
        self.smem, self.tmem = np.full(SMEM_BYTES, 0xFF, np.uint8), fresh()
        code = 0 if kind == "mxf8f6f4" else 1
        raw = (units(self.a, "e4m3"), units(self.b, "e4m3")) if not code else (packed(self.a), packed(self.b))
        put_factors(self.tmem, SFA, ids[0], self.sfa.astype(dtype).view(np.uint8))
        put_factors(self.tmem, SFB, ids[1], self.sfb.astype(dtype).view(np.uint8))
        word = scaled_word(kind, n, (code, code), ids, ue4m3)
        one, other = put(self.smem, A_AT, raw[0]), put(self.smem, B_AT, raw[1])
        self.op = Mma(kind, D, one, other, word, False, scales=Scales(SFA, SFB, block))

    def want(self) -> Matrix:
        return (self.a * self.sfa.repeat(self.block, 1)) @ (self.b * self.sfb.repeat(self.block, 1)).T

    def got(self) -> Any:
        return self.tmem.floats[D : D + self.n].T


CASES = [
    ("mxf8f6f4", 32, (0, 0), False),
    ("mxf8f6f4", 32, (3, 1), False),
    ("mxf4", 32, (0, 2), False),
    ("mxf4nvf4", 32, (2, 0), False),
    ("mxf4nvf4", 16, (0, 0), False),
    ("mxf4nvf4", 16, (0, 0), True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_blocks_are_scaled(case: Any) -> None:
    scaled = Scaled(*case)
    mma.execute(scaled.op, scaled.smem, scaled.tmem)
    np.testing.assert_array_equal(scaled.got(), scaled.want())
    again = scaled.op._replace(accumulate=True)
    mma.execute_chain([scaled.op, again, again], scaled.smem, scaled.tmem)
    np.testing.assert_array_equal(scaled.got(), 3 * scaled.want())


def test_each_quarter_of_the_lanes_reads_its_own_copy() -> None:
    scaled = Scaled("mxf8f6f4", 32, (0, 0))
    for column in (SFA, SFB):
        scaled.tmem.words[column : column + 4, 64:96] = 127 * 0x01010101
    mma.execute(scaled.op, scaled.smem, scaled.tmem)
    want = scaled.want()
    want[64:96] = scaled.a[64:96] @ scaled.b.T
    np.testing.assert_array_equal(scaled.got(), want)


def test_the_byte_in_an_address_is_passed_over_and_a_nan_factor_is_nan() -> None:
    scaled = Scaled("mxf8f6f4", 32, (3, 1))
    op = scaled.op._replace(scales=Scales(SFA | 3 << 30, SFB | 1 << 30, 32))
    scaled.tmem.words[SFA, [5, 37, 69, 101]] = 0xFFFFFFFF
    mma.execute(op, scaled.smem, scaled.tmem)
    got, want = scaled.got(), scaled.want()
    assert np.isnan(got[5]).all()
    np.testing.assert_array_equal(np.delete(got, 5, 0), np.delete(want, 5, 0))


@pytest.mark.parametrize(
    ("scales", "first", "message"),
    [
        (Scales(SFA | 1 << 16, SFB, 32), 0, "factors of A at lane 1"),
        (Scales(SFA, 511, 32), 0, "factors of B"),
        (Scales(SFA, SFB, 16), 3, "more than a word holds"),
    ],
)
def test_factors_that_cannot_be(scales: Scales, first: int, message: str) -> None:
    scaled = Scaled("mxf8f6f4", 32, (first, 0))
    with pytest.raises(Fault, match=message):
        mma.execute(scaled.op._replace(scales=scales), scaled.smem, scaled.tmem)


def test_factors_of_type_ue4m3_need_blocks_of_16() -> None:
    scaled = Scaled("mxf4nvf4", 16, (0, 0), True)
    with pytest.raises(Fault, match="ue4m3 needs blocks of 16"):
        mma.execute(scaled.op._replace(scales=Scales(SFA, SFB, 32)), scaled.smem, scaled.tmem)


def test_a_pair_of_ctas() -> None:
    n = 160
    whole = Scaled("mxf4", 32, (2, 0), n=n)
    a = numbers(256, 64, 5)
    sfa = np.random.default_rng(6).choice((0.5, 1.0, 2.0), (256, 2))
    smems, tmems = [], []
    for rank in range(2):
        smem, tmem = np.full(SMEM_BYTES, 0xFF, np.uint8), fresh()
        rows = slice(128 * rank, 128 * (rank + 1))
        one = put(smem, A_AT, packed(a[rows]))
        other = put(smem, B_AT, packed(whole.b[n // 2 * rank : n // 2 * (rank + 1)]))
        put_factors(tmem, SFA, 2, sfa[rows].astype(ml_dtypes.float8_e8m0fnu).view(np.uint8))
        put_factors(tmem, SFB, 0, whole.sfb.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8))
        smems.append(smem)
        tmems.append(tmem)
    word = scaled_word("mxf4", n, (1, 1), (2, 0), False, m=256)
    op = Mma("mxf4", D, one, other, word, False, scales=Scales(SFA, SFB, 32))
    mma_pair.execute([PairMma(op)], (smems[0], smems[1]), (tmems[0], tmems[1]))
    want = (a * sfa.repeat(32, 1)) @ (whole.b * whole.sfb.repeat(32, 1)).T
    got = np.concatenate([tmem.floats[D : D + n].T for tmem in tmems])
    np.testing.assert_array_equal(got, want)
    narrow = op._replace(idesc=scaled_word("mxf4", n, (1, 1), (2, 0), False, m=128))
    with pytest.raises(NotJudged, match="M = 128"):
        mma_pair.execute([PairMma(narrow)], (smems[0], smems[1]), (tmems[0], tmems[1]))


@pytest.mark.parametrize("signed", [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("saturate", [False, True])
def test_integers(signed: tuple[bool, bool], saturate: bool) -> None:
    rng = np.random.default_rng(7)
    dtypes = [np.int8 if s else np.uint8 for s in signed]
    a, b = (rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, (r, 32)) for t, r in zip(dtypes, (128, 48), strict=True))
    smem, tmem = np.full(SMEM_BYTES, 0xFF, np.uint8), fresh()
    one, other = (put(smem, at, x.astype(np.uint8)) for at, x in ((A_AT, a), (B_AT, b)))
    word = 2 << 4 | saturate << 3 | signed[0] << 7 | signed[1] << 10 | 48 >> 3 << 17 | 8 << 24
    start = rng.choice([(1 << 31) - 5, -(1 << 31) + 5, 7], (48, 128)).astype(np.int32)
    tmem.words[D : D + 48] = start.view(np.uint32)
    op = Mma("i8", D, one, other, word, True)
    mma.execute_chain([op, op], smem, tmem)
    want = start.T.astype(object)
    for _ in range(2):
        want = want + (a @ b.T)
        if saturate:
            want = np.clip(want, -(1 << 31), (1 << 31) - 1)
    wrapped = ((want + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int64)
    np.testing.assert_array_equal(tmem.words[D : D + 48].T.view(np.int32), wrapped)


def test_all_forms_are_blocks_of_16_or_32() -> None:
    assert set(BLOCKS.values()) == {16, 32}


KERNEL = """
mov.u32 %r0, %tid.x;
setp.lt.u32 %p1, %r0, 32;
@!%p1 bra $allocated;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [13312], 128;
$allocated:
setp.eq.u32 %p2, %r0, 0;
@%p2 mbarrier.init.shared.b64 [13320], 1;
mov.u32 %r1, 0x38383838;
mad.lo.u32 %r2, %r0, 96, 1024;
mov.u32 %r3, 0;
$fill:
add.u32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;
add.u32 %r3, %r3, 4;
setp.lt.u32 %p3, %r3, 96;
@%p3 bra $fill;
fence.proxy.async.shared::cta;
bar.sync 0;
ld.shared.u32 %r5, [13312];
add.u32 %r6, %r5, 64;
mov.u32 %r7, 0x81818181;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6], {%r7, %r7, %r7, %r7, %r7, %r7, %r7, %r7};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
@!%p2 bra $issued;
mov.u64 %rd10, 0x0000400000080080;
mov.u64 %rd11, 0x0000400000080100;
or.b64 %rd10, %rd10, 0x1000000000;
or.b64 %rd11, %rd11, 0x1000000000;
mov.u32 %r8, 0x08900000;
setp.ne.u32 %p4, %r0, 0;
add.u32 %r9, %r6, 4;
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r5], %rd10, %rd11, %r8, [%r6], [%r9], %p4;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [13320];
$issued:
mbarrier.try_wait.parity.shared.b64 %p5, [13320], 0;
@!%p5 bra $issued;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r10}, [%r5];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd13, %r0, 4;
add.s64 %rd14, %rd1, %rd13;
st.global.u32 [%rd14], %r10;
bar.sync 0;
@!%p1 bra $end;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 128;
$end:
"""


@pytest.mark.parametrize("completion", ["eager", "lazy"])
def test_the_instruction(completion: str) -> None:
    """Ones, and factors of 4: 32 * 16."""
    got = execute(KERNEL, threads=128, smem=12304, completion=completion).view(np.float32)[:128]
    np.testing.assert_array_equal(got, np.full(128, 512, np.float32))


@pytest.mark.parametrize(
    "opcode",
    [
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale",
        "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X",
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4",
        "tcgen05.mma.cta_group::1.kind::f16.block_scale",
    ],
)
def test_forms_that_do_not_exist(opcode: str) -> None:
    with pytest.raises(NotJudged):
        execute(f"{opcode} [%r5], %rd10, %rd11, %r8, [%r6], [%r9], %p4;")
