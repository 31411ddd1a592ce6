# SPDX-License-Identifier: Apache-2.0
"""The 128-byte format and every rule of cuTensorMapEncodeTiled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmagen.emu.errors import Fault
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode, TensorMap

GOOD = TensorMap(
    data_type=DataType.FLOAT16,
    rank=3,
    address=0x7_0000_0000,
    dims=(100, 50, 7),
    strides=(208, 10400),
    box=(64, 8, 2),
    element_strides=(1, 1, 1),
    swizzle=SwizzleMode.B128,
    l2_promotion=L2Promotion.B128,
)
PACKED = replace(GOOD, data_type=DataType.U6_ALIGN16B, dims=(256, 50, 7), strides=(224, 11200), box=(128, 8, 2))

FLAT = {"rank": 2, "dims": (8, 8), "strides": (16,), "box": (8, 8), "element_strides": (1, 1)}


def test_layout_of_the_bytes():
    """Field by field, at the offsets that the launcher writes."""
    raw = replace(GOOD, oob_fill=OobFill.NAN_REQUEST_ZERO_FMA).encode()

    def field(offset, size):
        return int.from_bytes(raw[offset : offset + size], "little")

    assert len(raw) == 128
    assert raw[0:4] == b"TMAP"
    assert [field(o, 1) for o in (4, 5, 6, 7)] == [1, 6, 3, 0]
    assert field(8, 8) == 0x7_0000_0000
    assert [field(16 + 8 * i, 8) for i in range(5)] == [100, 50, 7, 0, 0]
    assert [field(56 + 8 * i, 8) for i in range(4)] == [208, 10400, 0, 0]
    assert [field(88 + 2 * i, 2) for i in range(5)] == [64, 8, 2, 0, 0]
    assert list(raw[98:103]) == [1, 1, 1, 0, 0]
    assert list(raw[103:106]) == [3, 2, 1]
    assert raw[106:] == bytes(22)


@st.composite
def maps(draw):
    rank = draw(st.integers(1, 5))

    def some(low, high, n):
        return tuple(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))

    return TensorMap(
        data_type=draw(st.sampled_from(DataType)),
        rank=rank,
        address=draw(st.integers(0, 2**64 - 1)),
        dims=some(0, 2**64 - 1, rank),
        strides=some(0, 2**64 - 1, rank - 1),
        box=some(0, 2**16 - 1, rank),
        element_strides=some(0, 255, rank),
        interleave=draw(st.sampled_from(Interleave)),
        swizzle=draw(st.sampled_from(SwizzleMode)),
        l2_promotion=draw(st.sampled_from(L2Promotion)),
        oob_fill=draw(st.sampled_from(OobFill)),
    )


@given(maps())
def test_round_trip(tmap):
    assert TensorMap.decode(tmap.encode()) == tmap


def test_fields_of_dimensions_that_there_are_not_are_ignored():
    """An H200 takes a map whose rank tensormap.replace has lowered."""
    raw = bytearray(GOOD.encode())
    assert raw[6] == GOOD.rank == 3
    raw[6] = 2
    lowered = TensorMap.decode(bytes(raw))
    assert (lowered.rank, lowered.dims, lowered.strides) == (2, GOOD.dims[:2], GOOD.strides[:1])


@pytest.mark.parametrize(
    ("offset", "byte", "message"),
    [
        (0, 0, "no tensor map here"),
        (4, 2, "version 2"),
        (5, 16, "unknown code"),
        (6, 0, "rank 0"),
        (6, 6, "rank 6"),
        (7, 3, "unknown code"),
        (103, 7, "unknown code"),
        (104, 4, "unknown code"),
        (105, 2, "unknown code"),
        (106, 1, "not zero where"),
        (127, 1, "not zero where"),
    ],
)
def test_bytes_that_are_no_map_fault(offset, byte, message):
    raw = bytearray(GOOD.encode())
    raw[offset] = byte
    with pytest.raises(Fault, match=message):
        TensorMap.decode(bytes(raw))


def test_a_wrong_length_faults_and_a_field_that_does_not_fit_is_refused():
    with pytest.raises(Fault, match="128 bytes"):
        TensorMap.decode(bytes(64))
    with pytest.raises(ValueError, match="does not fit"):
        replace(GOOD, box=(64, 8, 1 << 16)).encode()
    with pytest.raises(ValueError, match="rank 6"):
        replace(GOOD, rank=6).encode()


def test_valid_maps_have_no_problems():
    interleaved = replace(GOOD, interleave=Interleave.B32, swizzle=SwizzleMode.B32, strides=(224, 11200))
    assert GOOD.validate() == PACKED.validate() == interleaved.validate() == ()
    # Overlapping and zero strides are used on purpose by correct kernels.
    assert replace(GOOD, strides=(16, 0)).validate() == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 0}, "rank 0 is not 1 to 5"),
        ({"rank": 6}, "rank 6 is not 1 to 5"),
        ({"dims": (1, 2)}, "dims has 2 entries; rank 3 needs 3"),
        ({"strides": (16,)}, "strides has 1 entries; rank 3 needs 2"),
        ({"box": (8,)}, "box has 1 entries"),
        ({"element_strides": ()}, "element_strides has 0 entries"),
        ({"address": 0x1008}, "not a multiple of 16"),
        ({"address": 1 << 64}, "64-bit"),
        ({"strides": (200, 10400)}, "stride 200 of dimension 1 is not a multiple of 16"),
        ({"strides": (208, 1 << 40)}, "dimension 2 is not below 2^40"),
        ({"strides": (-16, 16)}, "not below 2^40"),
        ({"dims": (0, 50, 7)}, "dimension 0 of 0 elements"),
        ({"dims": (100, (1 << 32) + 1, 7)}, "dimension 1 of 4,294,967,297 elements"),
        ({"box": (64, 257, 2)}, "box extent 257 of dimension 1"),
        ({"box": (64, 8, 0)}, "box extent 0 of dimension 2"),
        ({"box": (60, 8, 2)}, "120 bytes is not a multiple of 16"),
        ({"element_strides": (1, 9, 1)}, "element stride 9 of dimension 1"),
        ({"element_strides": (0, 1, 1)}, "element stride 0 of dimension 0"),
        ({"box": (72, 8, 2)}, "144 bytes is wider than the 128 bytes of swizzle B128"),
        ({"swizzle": SwizzleMode.B64}, "128 bytes is wider than the 64 bytes of swizzle B64"),
        ({"swizzle": SwizzleMode.B32}, "128 bytes is wider than the 32 bytes of swizzle B32"),
        ({"box": (72, 8, 2), "swizzle": SwizzleMode.B128_ATOM_64B}, "wider than the 128 bytes"),
        ({"interleave": Interleave.B32}, "needs swizzle B32, not B128"),
        ({"interleave": Interleave.B32, "swizzle": SwizzleMode.B32, "address": 0x1010}, "not a multiple of 32"),
        (
            {"interleave": Interleave.B32, "swizzle": SwizzleMode.B32},
            "stride 208 of dimension 1 is not a multiple of 32",
        ),
        (FLAT | {"interleave": Interleave.B16}, "interleave needs rank 3"),
        (
            {"data_type": DataType.UINT16, "oob_fill": OobFill.NAN_REQUEST_ZERO_FMA},
            "NaN fill needs a floating-point type",
        ),
        ({"data_type": DataType.U4_ALIGN8B, "dims": (101, 50, 7)}, "odd"),
    ],
)
def test_each_rule(change, message):
    assert any(message in problem for problem in replace(GOOD, **change).validate())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dims": (200, 50, 7)}, "not a multiple of 128"),
        ({"box": (64, 8, 2)}, "is not 128"),
        ({"address": 0x1010}, "not a multiple of 32"),
        ({"strides": (208, 11200)}, "not a multiple of 32"),
        ({"swizzle": SwizzleMode.B64}, "allows no swizzle B64"),
        ({"interleave": Interleave.B16}, "allows no interleave"),
        ({"data_type": DataType.U4_ALIGN16B, "swizzle": SwizzleMode.B128_ATOM_64B}, "allows no swizzle B128_ATOM_64B"),
        ({"oob_fill": OobFill.NAN_REQUEST_ZERO_FMA}, "NaN fill"),
    ],
)
def test_rules_of_packed_types(change, message):
    assert any(message in problem for problem in replace(PACKED, **change).validate())


def test_all_problems_at_once():
    broken = replace(GOOD, address=1, dims=(0, 50, 7), box=(64, 300, 2), swizzle=SwizzleMode.B32)
    assert len(broken.validate()) == 4


@pytest.mark.parametrize(
    ("change", "counts", "pitch", "box_bytes", "footprint"),
    [
        ({}, (64, 8, 2), 128, 2048, 2048),
        ({"swizzle": SwizzleMode.NONE}, (64, 8, 2), 128, 2048, 2048),
        ({"swizzle": SwizzleMode.NONE, "box": (24, 8, 2)}, (24, 8, 2), 48, 768, 768),
        ({"box": (24, 8, 2)}, (24, 8, 2), 128, 768, 2048),
        ({"swizzle": SwizzleMode.B64, "box": (8, 3, 1)}, (8, 3, 1), 64, 48, 192),
        ({"element_strides": (4, 3, 2)}, (64, 3, 1), 128, 384, 384),
        ({"data_type": DataType.FLOAT32, "box": (32, 8, 2)}, (32, 8, 2), 128, 2048, 2048),
    ],
)
def test_box_geometry(change, counts, pitch, box_bytes, footprint):
    tmap = replace(GOOD, **change)
    assert tmap.validate() == ()
    assert (tmap.counts, tmap.pitch, tmap.box_bytes, tmap.footprint) == (counts, pitch, box_bytes, footprint)
