# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: the allocator's rules, and which word every register of every lane is.

Fragments are checked as linear maps: the PTX ISA's figures say by how many lanes and columns each bit of the thread
index and of the register index moves.
"""

from __future__ import annotations

import numpy as np
import pytest

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.policy import policy_of
from tmagen.emu.tmem import Tmem

# (lane, column) steps of bits 0..4 of the thread index, then of bits 0, 1, ... of the register index.
STEPS = {
    "32x32b": ([(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], [(0, 1 << i) for i in range(7)]),
    "16x64b": ([(8, 0), (0, 1), (1, 0), (2, 0), (4, 0)], [(0, 2 << i) for i in range(7)]),
    "16x128b": ([(0, 1), (0, 2), (1, 0), (2, 0), (4, 0)], [(8, 0), *((0, 4 << i) for i in range(6))]),
    "16x256b": ([(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)], [(0, 1), (8, 0), *((0, 8 << i) for i in range(5))]),
}
PER_REPEAT = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
MOST = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}
SHAPES = [(shape, 1 << i) for shape, most in MOST.items() for i in range(8) if 1 << i <= most]


def place(shape, thread, register, split):
    if shape == "16x32bx2":
        return thread % 16, register + (split if thread >= 16 else 0)
    lane = column = 0
    for index, steps in zip((thread, register), STEPS[shape], strict=True):
        for bit, (by_lane, by_column) in enumerate(steps):
            if index >> bit & 1:
                lane, column = lane + by_lane, column + by_column
    return lane, column


def numbered():
    """All columns allocated; word (lane, column) holds lane << 16 | column."""
    tmem = Tmem()
    assert tmem.alloc(512) == 0
    tmem.words[:] = np.arange(128, dtype=np.uint32) << 16 | np.arange(512, dtype=np.uint32)[:, None]
    return tmem


class TestAllocator:
    def test_first_fit_and_free(self):
        tmem = Tmem()
        assert [tmem.alloc(n) for n in (128, 128, 256)] == [0, 128, 256]
        assert tmem.alloc(32) is None
        tmem.dealloc(128, 128)
        assert tmem.alloc(256) is None
        assert tmem.alloc(64) == 128
        assert tmem.alloc(64) == 192
        assert tmem.allocations == {0: 128, 128: 64, 192: 64, 256: 256}

    def test_another_cta_may_have_come_first(self):
        tmem = Tmem(lambda columns: 3 * columns)
        assert tmem.alloc(64) == 192
        assert tmem.alloc(128) == 256
        tmem.dealloc(192, 64)
        assert tmem.alloc(64) == 192
        # 256 columns are free only when the other one has given its own back.
        assert tmem.alloc(256) is None
        tmem.dealloc(192, 64)
        assert tmem.alloc(256) == 0
        assert tmem.allocations == {0: 256, 256: 128}
        with pytest.raises(Fault, match="touches tensor memory columns 192"):
            Tmem(lambda columns: columns).check_columns(192, 1, "an access")

    def test_who_takes_all_columns_comes_first(self):
        assert Tmem(lambda columns: 512 - columns).alloc(512) == 0

    @pytest.mark.parametrize("columns", [32, 64, 128, 256])
    def test_starts_leave_room_and_agree_in_a_cluster(self, columns):
        def starts(completion, cluster=0, seed=0):
            start = policy_of(completion).tensor_memory(seed, cluster)
            return 0 if start is None else start(columns)

        assert (starts("eager"), starts("lazy"), starts("newest-first")) == (0, columns, 512 - columns)
        found = [starts("random", cluster, seed) for cluster in range(20) for seed in range(3)]
        assert found == [starts("random", cluster, seed) for cluster in range(20) for seed in range(3)]
        assert set(found) <= set(range(columns, 512, columns))
        assert columns == 256 or len(set(found)) > 1

    @pytest.mark.parametrize("columns", [0, 16, 24, 48, 96, 513, 1024, -32])
    def test_counts_that_cannot_be(self, columns):
        tmem = Tmem()
        with pytest.raises(Fault, match="power of two from 32 to 512"):
            tmem.alloc(columns)
        with pytest.raises(Fault, match="power of two from 32 to 512"):
            tmem.dealloc(0, columns)

    def test_wrong_and_double_frees(self):
        tmem = Tmem()
        tmem.alloc(64)
        for address, columns in ((0, 32), (0, 128), (32, 32), (64, 64), (1 << 16, 64)):
            with pytest.raises(Fault, match=r"allocated is 64 columns at 0x0"):
                tmem.dealloc(address, columns)
        tmem.dealloc(0, 64)
        with pytest.raises(Fault, match="allocated is nothing"):
            tmem.dealloc(0, 64)

    def test_no_alloc_without_the_permit(self):
        tmem = Tmem()
        tmem.alloc(32)
        tmem.relinquish()
        tmem.relinquish()
        with pytest.raises(Fault, match="relinquish_alloc_permit"):
            tmem.alloc(32)
        tmem.dealloc(0, 32)

    def test_a_leak_is_a_fault_at_exit(self):
        tmem = Tmem()
        tmem.check_exit()
        tmem.alloc(32)
        tmem.alloc(128)
        with pytest.raises(Fault, match="32 columns at 0x0, 128 columns at 0x80"):
            tmem.check_exit()
        tmem.dealloc(0, 32)
        tmem.dealloc(128, 128)
        tmem.check_exit()

    def test_new_and_freed_columns_are_nan(self):
        tmem = Tmem()
        tmem.alloc(32)
        assert np.isnan(tmem.floats).all()
        tmem.st("32x32b", 32, 0, 0, np.zeros((32, 32), np.uint32))
        assert not np.isnan(tmem.floats[:32, :32]).any()
        tmem.dealloc(0, 32)
        tmem.alloc(32)
        assert np.isnan(tmem.floats).all()


@pytest.mark.parametrize(("shape", "num"), SHAPES)
@pytest.mark.parametrize("warp", [0, 3, 6])
class TestFragments:
    def test_ld(self, shape, num, warp):
        tmem = numbered()
        column = 8
        for half in (0,) if shape == "32x32b" else (0, 16):
            for field in (half, 32 * (warp % 4) + half):
                got = tmem.ld(shape, num, field << 16 | column, warp, split=num + 2)
                assert got.shape == (num * PER_REPEAT[shape], 32)
                assert got.dtype == np.uint32
                for thread in range(32):
                    for register in range(got.shape[0]):
                        lane, col = place(shape, thread, register, num + 2)
                        assert got[register, thread] == (32 * (warp % 4) + half + lane) << 16 | (column + col)

    def test_st_is_the_inverse(self, shape, num, warp):
        tmem = numbered()
        before = tmem.words.copy()
        values = np.arange(num * PER_REPEAT[shape] * 32, dtype=np.uint32).reshape(-1, 32) | np.uint32(1 << 31)
        tmem.st(shape, num, 64, warp, values, split=num)
        assert np.array_equal(tmem.ld(shape, num, 64, warp, split=num), values)
        assert np.count_nonzero(tmem.words != before) == values.size

    def test_16_bit_halves(self, shape, num, warp):
        """Packed: one register takes the low halves of two adjacent columns, the first in bits 0 to 15. The second half
        of 16x32bx2 is immHalfSplitoff columns on, which packing does not double: kernels give 2 * num for columns side
        by side.
        """
        tmem = numbered()
        width = max(place(shape, 31, r, num)[1] for r in range(num * PER_REPEAT[shape])) + 1
        if 2 * width > 512:
            return
        got = tmem.ld(shape, num, 0, warp, pack=True, split=2 * num)
        for thread in (0, 1, 2, 5, 13, 31):
            for register in range(got.shape[0]):
                _, col = place(shape, thread, register, num)
                assert got[register, thread] == 2 * col | (2 * col + 1) << 16
        tmem.st(shape, num, 0, warp, got, unpack=True, split=2 * num)
        for thread in (0, 1, 2, 5, 13, 31):
            for register in range(got.shape[0]):
                lane, col = place(shape, thread, register, num)
                lane += 32 * (warp % 4)
                assert tmem.words[2 * col : 2 * col + 2, lane].tolist() == [2 * col, 2 * col + 1]


def test_a_load_is_a_copy():
    tmem = numbered()
    got = tmem.ld("32x32b", 4, 0, 0)
    tmem.words[:] = 0
    assert got[3, 31] == 31 << 16 | 3


class TestAccessRules:
    @pytest.mark.parametrize(
        ("warp", "lane"), [(0, 32), (1, 64), (1, 96), (2, 32), (5, 64), (3, 160), (3, 256), (0, 0xFFFF)]
    )
    def test_another_warps_quadrant(self, warp, lane):
        with pytest.raises(Fault, match=f"lane {lane} by warp {warp}, which may access lanes {32 * (warp % 4)} to"):
            numbered().ld("32x32b", 1, lane << 16, warp)

    @pytest.mark.parametrize(("shape", "lane"), [("32x32b", 16), ("32x32b", 1), ("16x64b", 8), ("16x256b", 31)])
    def test_a_lane_inside_the_quadrant(self, shape, lane):
        with pytest.raises(Fault, match=f"lane {lane}: the lane must be"):
            numbered().ld(shape, 1, lane << 16, 0)

    @pytest.mark.parametrize(
        ("shape", "num", "column", "split", "pack"),
        [
            ("32x32b", 32, 33, 0, False),
            ("32x32b", 128, 0, 0, False),
            ("32x32b", 1, 511, 0, False),
            ("32x32b", 32, 500, 0, False),
            ("32x32b", 1, 4096, 0, False),
            ("16x64b", 32, 8, 0, False),
            ("16x128b", 16, 8, 0, False),
            ("16x256b", 8, 8, 0, False),
            ("16x32bx2", 4, 0, 62, False),
            ("32x32b", 32, 2, 0, True),
            ("16x32bx2", 4, 0, 57, True),
        ],
    )
    def test_columns_that_are_not_allocated(self, shape, num, column, split, pack):
        tmem = Tmem()
        tmem.alloc(64)
        with pytest.raises(Fault, match=r"touches tensor memory columns .* allocated columns: 64 at 0"):
            tmem.ld(shape, num, column, 0, pack=pack, split=split)
        values = np.zeros((num * PER_REPEAT[shape], 32), np.uint32)
        with pytest.raises(Fault, match="touches tensor memory columns"):
            tmem.st(shape, num, column, 0, values, unpack=pack, split=split)

    def test_the_gap_between_the_halves_of_16x32bx2_is_not_touched(self):
        tmem = Tmem()
        for n in (32, 32, 32):
            tmem.alloc(n)
        tmem.dealloc(32, 32)
        assert tmem.ld("16x32bx2", 32, 0, 0, split=64).shape == (32, 32)

    @pytest.mark.parametrize(
        ("shape", "num"), [("8x8b", 1), ("32x32b", 3), ("32x32b", 256), ("16x256b", 64), ("16x64b", 0)]
    )
    def test_unknown_shapes(self, shape, num):
        with pytest.raises(NotJudged, match=r"tcgen05\.ld/st of shape"):
            numbered().ld(shape, num, 0, 0)
