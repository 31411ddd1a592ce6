# SPDX-License-Identifier: Apache-2.0
"""TMA loads and stores against an element-by-element reference.

The reference walks the box one element at a time, by the formulas of the PTX ISA ("Tensor access modes", "Swizzling
modes"): element e of the box is tensor element coord + e * element stride; its row lies at the row pitch, and the
swizzle moves its 16-byte chunk.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmagen.emu import tma
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.tensormap import DataType, Interleave, OobFill, SwizzleMode, TensorMap

SMEM_BYTES = 64 * 1024
PAD = 4096
# Span of a row, and address bits: bit `to + i` is XORed with bit `of + i` for i below `count`.
XOR = {
    SwizzleMode.NONE: (None, 4, 7, 0),
    SwizzleMode.B32: (32, 4, 7, 1),
    SwizzleMode.B64: (64, 4, 7, 2),
    SwizzleMode.B128: (128, 4, 7, 3),
    SwizzleMode.B128_ATOM_32B: (128, 5, 7, 2),
    SwizzleMode.B128_ATOM_32B_FLIP_8B: (128, 5, 7, 2),
    SwizzleMode.B128_ATOM_64B: (128, 6, 7, 1),
}
NAN = {DataType.FLOAT16: 0x7FF7, DataType.BFLOAT16: 0x7FF7, DataType.FLOAT32: 0x7FF77FF7}


def swizzled(mode, address):
    _, to, of, count = XOR[mode]
    for i in range(count):
        address ^= ((address >> (of + i)) & 1) << (to + i)
    if mode is SwizzleMode.B128_ATOM_32B_FLIP_8B and address >> 7 & 1:
        address ^= 8
    return address


def elements(tmap, base, coords, *, whole_chunks=False):
    """(shared address, byte offset in the tensor or None) of every element of the box at `coords`.

    With `whole_chunks` dimension 0 ends at the next multiple of 16 bytes, for a box that starts before its true end.
    """
    size = tmap.data_type.bits // 8
    steps = (1, *tmap.element_strides[1:])
    counts = [(box + step - 1) // step for box, step in zip(tmap.box, steps, strict=True)]
    pitch = XOR[tmap.swizzle][0] or counts[0] * size
    dims = list(tmap.dims)
    if whole_chunks and coords[0] < dims[0]:
        while dims[0] * size % 16:
            dims[0] += 1
    for e in product(*(range(n) for n in reversed(counts))):
        e = e[::-1]
        row = 0
        for i in range(tmap.rank - 1, 0, -1):
            row = row * counts[i] + e[i]
        where = [c + i * s for c, i, s in zip(coords, e, steps, strict=True)]
        inside = all(0 <= w < d for w, d in zip(where, dims, strict=True))
        offset = where[0] * size + sum(w * s for w, s in zip(where[1:], tmap.strides, strict=True))
        yield swizzled(tmap.swizzle, base + row * pitch + e[0] * size), offset if inside else None


def make(dtype, dims, box, swizzle=SwizzleMode.NONE, *, extra=0, steps=None, fill=OobFill.NONE, seed=0):
    """A tensor of random bytes in a guarded allocation, its map, and shared memory full of 0xEE."""
    size = dtype.bits // 8
    strides, extent = [], dims[0] * size
    for dim in dims[1:]:
        strides.append((extent + 15) // 16 * 16 + extra)
        extent = strides[-1] * dim
    memory = GlobalMemory()
    allocation = memory.allocate(extent + 2 * PAD)
    rng = np.random.default_rng(seed)
    allocation.data[:] = rng.integers(0, 256, allocation.nbytes, np.uint8)
    tmap = TensorMap(
        data_type=dtype,
        rank=len(dims),
        address=allocation.address + PAD,
        dims=tuple(dims),
        strides=tuple(strides),
        box=tuple(box),
        element_strides=tuple(steps or (1,) * len(dims)),
        swizzle=swizzle,
        oob_fill=fill,
    )
    assert tmap.validate() == ()
    return memory, allocation.data, tmap, np.full(SMEM_BYTES, 0xEE, np.uint8)


def check_load(memory, data, tmap, smem, base, coords):
    size = tmap.data_type.bits // 8
    want = smem.copy()
    if coords[0] * size % 16:
        with pytest.raises(Fault, match="starts inside a 16-byte chunk"):
            tma.load(tmap, memory, smem, base, coords)
        assert np.array_equal(smem, want)
        return
    fill = (NAN[tmap.data_type] if tmap.oob_fill else 0).to_bytes(size, "little")
    count = 0
    for where, offset in elements(tmap, base, coords):
        source = np.frombuffer(fill, np.uint8) if offset is None else data[PAD + offset : PAD + offset + size]
        want[where : where + size] = source
        count += 1
    before = data.copy()
    assert tma.load(tmap, memory, smem, base, coords) == count * size
    assert np.array_equal(smem, want)
    assert np.array_equal(data, before)


def check_store(memory, data, tmap, smem, base, coords):
    size = tmap.data_type.bits // 8
    if coords[0] * size % 16:
        with pytest.raises(Fault, match="starts inside a 16-byte chunk"):
            tma.store(tmap, memory, smem, base, coords)
        return
    smem[:] = np.random.default_rng(9).integers(0, 256, smem.size, np.uint8)
    want = data.copy()
    for where, offset in elements(tmap, base, coords, whole_chunks=True):
        if offset is not None:
            want[PAD + offset : PAD + offset + size] = smem[where : where + size]
    before = smem.copy()
    tma.store(tmap, memory, smem, base, coords)
    assert np.array_equal(data, want)
    assert np.array_equal(smem, before)


WIDTH = {SwizzleMode.NONE: 48, SwizzleMode.B32: 32, SwizzleMode.B64: 64}
EDGES = [(0, 0), (16, 5), (3, 5), (-16, 2), (-3, -1), (48, 28), (64, 31), (96, 3), (3, 32), (48, 5), (-32, -1)]
EDGES += [(-208, 0), (1008, 1000), (0, -300), (0, 32)]


@pytest.mark.parametrize("swizzle", list(SwizzleMode))
@pytest.mark.parametrize("dtype", [DataType.UINT8, DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64])
def test_rank_2_everywhere_around_the_tensor(swizzle, dtype):
    """Boxes inside, over every edge, aligned to 16 bytes or not, and wholly outside."""
    width = WIDTH.get(swizzle, 128) * 8 // dtype.bits
    case = make(dtype, (67, 33), (width, 10), swizzle, extra=32)
    for base in (1024, 2048 + 384):
        for coords in EDGES:
            check_load(*case, base, coords)
            if min(coords) >= 0:
                check_store(*case, base, coords)


@pytest.mark.parametrize(
    ("dims", "box"),
    [
        ((77,), (32,)),
        ((40, 9), (32, 4)),
        ((40, 5, 6), (16, 3, 2)),
        ((24, 3, 4, 5), (8, 2, 3, 2)),
        ((20, 3, 2, 4, 3), (8, 2, 2, 2, 2)),
    ],
)
@pytest.mark.parametrize("swizzle", [SwizzleMode.NONE, SwizzleMode.B64, SwizzleMode.B128_ATOM_32B_FLIP_8B])
def test_every_rank(dims, box, swizzle):
    case = make(DataType.BFLOAT16, dims, box, swizzle)
    rank = len(dims)
    corners = product(
        (0, 8, -8, (dims[0] - 8) // 8 * 8), *((-1, 0, dim - box[i + 1], dim - 1) for i, dim in enumerate(dims[1:]))
    )
    for coords in list(corners)[:: 1 if rank < 3 else 3 if rank < 4 else 37]:
        check_load(*case, 4096, coords)
        if min(coords) >= 0:
            check_store(*case, 4096, coords)


def test_a_store_writes_whole_chunks_of_a_row():
    """Ten halves end 4 bytes into their second chunk, whose other 12 bytes are written too; the third is not."""
    memory, data, tmap, smem = make(DataType.FLOAT16, (10, 2), (32, 4), extra=32)
    data[:] = 0xEE
    smem[1024 : 1024 + 4 * 64] = np.tile(np.arange(64, dtype=np.uint8), 4)
    row = [*range(32), *[0xEE] * 32]
    tma.store(tmap, memory, smem, 1024, (0, 0))
    assert tmap.strides == (64,)
    assert data[PAD : PAD + 128].tolist() == row * 2
    assert set(data[:PAD]) == set(data[PAD + 128 :]) == {0xEE}

    data[:] = 0xEE
    tma.store(tmap, memory, smem, 1024, (8, 1))  # starts at the second chunk of the second row
    assert data[PAD : PAD + 128].tolist() == [0xEE] * 80 + list(range(16)) + [0xEE] * 32

    data[:] = 0xEE
    for coords in ((16, 0), (24, 0), (0, 2)):
        tma.store(tmap, memory, smem, 1024, coords)
    assert set(data) == {0xEE}


@pytest.mark.parametrize(("dtype", "start"), [(DataType.UINT8, 5), (DataType.FLOAT16, 4), (DataType.FLOAT32, 2)])
@pytest.mark.parametrize("extent", [20, 4])
@pytest.mark.parametrize("copy", [tma.load, tma.store])
def test_a_copy_that_starts_inside_a_chunk_traps(copy, dtype, start, extent):
    """Whether or not anything of the box is in bounds: measured on an H200."""
    memory, data, tmap, smem = make(dtype, (extent, 1), (16, 1))
    before = data.copy(), smem.copy()
    with pytest.raises(Fault, match="starts inside a 16-byte chunk"):
        copy(tmap, memory, smem, 1024, (start, 0))
    assert np.array_equal(data, before[0])
    assert np.array_equal(smem, before[1])


def test_a_last_chunk_outside_the_allocation():
    memory = GlobalMemory()
    allocation = memory.allocate(20)
    tmap = TensorMap(DataType.FLOAT16, 1, allocation.address, (10,), (), (16,), (1,))
    smem = np.full(2048, 7, np.uint8)
    tma.load(tmap, memory, smem, 1024, (0,))
    with pytest.raises(Fault, match="outside every allocation"):
        tma.store(tmap, memory, smem, 1024, (0,))
    assert not allocation.data.any()


@pytest.mark.parametrize("steps", [(1, 2), (1, 3), (5, 8), (2, 1)])
def test_element_strides(steps):
    """Rows are taken at a stride, and fewer of them; dimension 0 has none without interleave."""
    case = make(DataType.FLOAT16, (64, 40), (32, 16), SwizzleMode.B64, steps=steps)
    for coords in ((0, 0), (16, 7), (40, 33), (8, -1), (8, -5), (0, 39), (0, 40), (0, -16)):
        check_load(*case, 1024, coords)
        if min(coords) >= 0:
            check_store(*case, 1024, coords)


@pytest.mark.parametrize("dtype", list(NAN))
def test_nan_fill(dtype):
    case = make(dtype, (67, 9), (16, 4), fill=OobFill.NAN_REQUEST_ZERO_FMA)
    for coords in ((56, 7), (-8, -2), (104, 0)):
        check_load(*case, 1024, coords)


@pytest.mark.parametrize("dtype", [DataType.TFLOAT32, DataType.TFLOAT32_FTZ])
@pytest.mark.parametrize("start", [0, 4])
def test_tf32_is_rounded_by_loads_alone(dtype, start):
    """What an H200 makes of these bits: ties go to even, subnormals are kept, and NaN is one pattern."""
    before = [0x3F801000, 0x3F803000, 0x3F801001, 0x807FFFFF, 0x00000001, 0x7F7FF000, 0xFF802000, 0xFF800000]
    after = [0x3F800000, 0x3F804000, 0x3F802000, 0x80800000, 0x00000000, 0x7F800000, 0x7FFFE000, 0xFF800000]
    memory, data, tmap, smem = make(dtype, (8,), (8,))
    data[PAD : PAD + 32] = np.array(before, np.uint32).view(np.uint8)
    tma.load(tmap, memory, smem, 1024, (start,))
    assert smem[1024 : 1024 + 32 - 4 * start].view(np.uint32).tolist() == after[start:]
    smem[1024 : 1024 + 32] = np.array(before, np.uint32).view(np.uint8)
    tma.store(tmap, memory, smem, 1024, (0,))
    assert data[PAD : PAD + 32].view(np.uint32).tolist() == before


def test_a_flushing_type_does_not_flush():
    check_load(*make(DataType.FLOAT32_FTZ, (64, 4), (16, 4)), 1024, (8, 1))


def test_padding_of_a_narrow_box_stays():
    memory, data, tmap, smem = make(DataType.FLOAT16, (64, 64), (16, 16), SwizzleMode.B128)
    check_load(memory, data, tmap, smem, 1024, (0, 0))
    assert np.count_nonzero(smem[1024 : 1024 + 2048] == 0xEE) >= 16 * 96
    assert tma.load(tmap, memory, smem, 1024, (0, 0)) == 16 * 32


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_box_anywhere(data):
    draw = data.draw
    rank = draw(st.integers(1, 5))
    swizzle = draw(st.sampled_from(SwizzleMode))
    dtype = draw(st.sampled_from([DataType.UINT8, DataType.FLOAT16, DataType.INT32, DataType.UINT64]))
    chunks = draw(st.integers(1, {SwizzleMode.NONE: 9, SwizzleMode.B32: 2, SwizzleMode.B64: 4}.get(swizzle, 8)))
    width = chunks * 128 // dtype.bits
    dims = [draw(st.integers(1, 80)), *(draw(st.integers(1, 6)) for _ in range(rank - 1))]
    box = [width, *(draw(st.integers(1, 4)) for _ in range(rank - 1))]
    steps = [draw(st.integers(1, 3)) for _ in range(rank)]
    case = make(dtype, dims, box, swizzle, extra=draw(st.sampled_from([0, 16, 64])), steps=steps)
    coords = tuple(draw(st.integers(-b, d + 2)) for b, d in zip(box, dims, strict=True))
    if draw(st.integers(0, 9)):
        coords = (coords[0] * dtype.bits // 128 * 128 // dtype.bits, *coords[1:])
    base = draw(st.integers(0, 12)) * 128
    check_load(*case, base, coords)
    if min(coords) >= 0:
        check_store(*case, base, coords)


def test_a_tensor_past_2_to_the_31_elements():
    """Five rows, 3 GiB apart, in sparse memory: offsets do not fit 32 bits."""
    memory = GlobalMemory()
    stride = 3 << 30
    allocation = memory.allocate(4 * stride + 256)
    for row in range(5):
        allocation.data[row * stride : row * stride + 256] = np.arange(256, dtype=np.uint8) ^ row
    swizzle = SwizzleMode.B128
    tmap = TensorMap(DataType.FLOAT16, 2, allocation.address, (128, 5), (stride,), (64, 4), (1, 1), swizzle=swizzle)
    smem = np.zeros(8192, np.uint8)
    for first in (0, 1, 3):
        tma.load(tmap, memory, smem, 1024, (64, first))
        for row in range(4):
            got = [smem[swizzled(swizzle, 1024 + 128 * row + byte)] for byte in range(128)]
            assert got == [(128 + byte) ^ (first + row) if first + row < 5 else 0 for byte in range(128)]
    smem[:] = 0x5A
    tma.store(tmap, memory, smem, 1024, (64, 3))
    assert set(allocation.data[4 * stride + 128 : 4 * stride + 256]) == {0x5A}
    assert allocation.data[4 * stride + 127] == 127 ^ 4
    assert not allocation.data[2 * stride + 256 : 2 * stride + 4096].any()


class TestOperandsThatCannotBe:
    def setup_method(self):
        self.memory, self.data, self.tmap, self.smem = make(DataType.FLOAT16, (64, 32), (64, 8), SwizzleMode.B128)

    def both(self, error, match, *, tmap=None, address=1024, coords=(0, 0)):
        before = self.data.copy(), self.smem.copy()
        for copy in (tma.load, tma.store):
            with pytest.raises(error, match=match):
                copy(tmap or self.tmap, self.memory, self.smem, address, coords)
        assert np.array_equal(self.data, before[0])
        assert np.array_equal(self.smem, before[1])

    @pytest.mark.parametrize("address", [1024 + 16, 1024 + 64, 1])
    def test_misaligned_shared_address(self, address):
        self.both(Fault, "not a multiple of 128", address=address)

    @pytest.mark.parametrize("address", [SMEM_BYTES, SMEM_BYTES - 896, -128])
    def test_outside_shared_memory(self, address):
        self.both(Fault, "leaves the 65,536 bytes", address=address)

    def test_the_last_place_fits(self):
        tma.load(self.tmap, self.memory, self.smem, SMEM_BYTES - 1024, (0, 0))

    @pytest.mark.parametrize("coords", [(0,), (0, 0, 0)])
    def test_wrong_number_of_coordinates(self, coords):
        self.both(Fault, "rank 2", coords=coords)

    @pytest.mark.parametrize("coords", [(-1, 0), (0, -1), (-64, 0), (0, -100)])
    def test_store_at_a_negative_coordinate(self, coords):
        with pytest.raises(Fault, match="negative start coordinate"):
            tma.store(self.tmap, self.memory, self.smem, 1024, coords)

    def test_invalid_map(self):
        broken = TensorMap(DataType.FLOAT16, 2, self.tmap.address + 2, (64, 32), (128,), (64, 8), (1, 1))
        self.both(Fault, "invalid tensor map: global address .* is not a multiple of 16", tmap=broken)

    def test_tensor_larger_than_its_buffer(self):
        """Only what a copy touches has to exist, and all of that."""
        grown = TensorMap(DataType.FLOAT16, 2, self.tmap.address, (64, 1000), (128,), (64, 8), (1, 1))
        tma.load(grown, self.memory, self.smem, 1024, (0, 0))
        self.both(Fault, r"box at \(0, 900\).*outside every allocation", tmap=grown, coords=(0, 900))
        self.both(Fault, r"box at \(8, 900\).*outside every allocation", tmap=grown, coords=(8, 900))

    @pytest.mark.parametrize(
        ("dtype", "interleave", "swizzle", "match"),
        [
            (DataType.U4_ALIGN16B, Interleave.NONE, SwizzleMode.NONE, "U4_ALIGN16B"),
            (DataType.FLOAT16, Interleave.B32, SwizzleMode.B32, "interleave B32"),
        ],
    )
    def test_what_is_not_judged(self, dtype, interleave, swizzle, match):
        inner = (64, 32) if dtype is DataType.FLOAT16 else (128, 128)
        dims, strides, box = (inner[0], 4, 4), (128, 512), (inner[1], 2, 2)
        tmap = TensorMap(dtype, 3, self.tmap.address, dims, strides, box, (1, 1, 1), interleave, swizzle)
        assert tmap.validate() == ()
        self.both(NotJudged, match, tmap=tmap, coords=(0, 0, 0))


class TestPackedElements:
    """4-bit elements that lie dense on both sides: 16 bytes are 32 of them."""

    def setup_method(self):
        self.memory = GlobalMemory()
        source = self.memory.allocate(64 * 40)
        source.data[:] = np.random.default_rng(5).integers(0, 256, source.data.size)
        self.rows = source.data.reshape(40, 64)
        self.tmap = TensorMap(
            DataType.U4_ALIGN8B, 2, source.address, (104, 40), (64,), (64, 8), (1, 1), swizzle=SwizzleMode.B32
        )
        self.smem = np.full(4096, 0xEE, np.uint8)

    def test_load_at_the_edges(self):
        assert self.tmap.validate() == () and self.tmap.box_bytes == 8 * 32
        assert tma.load(self.tmap, self.memory, self.smem, 1024, (64, 35)) == 8 * 32
        want = np.zeros((8, 32), np.uint8)
        want[:5, :20] = self.rows[35:, 32:52]  # 104 elements are 52 bytes
        flat = [self.smem[swizzled(SwizzleMode.B32, 1024 + 32 * row + at)] for row in range(8) for at in range(32)]
        assert np.array_equal(np.array(flat).reshape(8, 32), want)
        assert (self.smem[:1024] == 0xEE).all() and (self.smem[1024 + 256 :] == 0xEE).all()

    def test_a_load_and_a_store_of_it(self):
        tma.load(self.tmap, self.memory, self.smem, 1024, (32, 3))
        before = self.rows.copy()
        tma.store(self.tmap, self.memory, self.smem, 1024, (32, 20))
        changed = before.copy()
        changed[20:28, 16:48] = before[3:11, 16:48]
        assert np.array_equal(self.rows, changed)

    @pytest.mark.parametrize("x", [1, 2, 16, 33])
    def test_a_start_inside_a_chunk(self, x):
        with pytest.raises(Fault, match=f"coordinate 0 is {x} of 4-bit elements") as caught:
            tma.load(self.tmap, self.memory, self.smem, 1024, (x, 0))
        assert caught.value.rule == "TM-38"
