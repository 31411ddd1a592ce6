# SPDX-License-Identifier: Apache-2.0
"""Why a tensor map or a launch was refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tmagen.hostrun import TensorMapFields
from tmagen.hostrun.refusal import why_launch, why_map

MAP = TensorMapFields(
    address=0x1000,
    data_type="FLOAT16",
    dims=(72, 128),
    strides=(144,),
    box=(64, 128),
    element_strides=(1, 1),
    interleave="NONE",
    swizzle="128B",
    l2_promotion="NONE",
    oob_fill="NONE",
)
SMEM, NON_PORTABLE = 8, 14  # cudaFuncAttribute


def test_a_map_that_breaks_no_rule() -> None:
    assert why_map(MAP) is None
    assert why_map(replace(MAP, swizzle="NONE", box=(256, 8))) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"address": 0x1002}, "the address 0x1002 is not a multiple of 16"),
        ({"address": 0x1010, "interleave": "32B"}, "is not a multiple of 32"),
        ({"strides": (154,)}, "the stride of dimension 1, 154 bytes, is not a multiple of 16"),
        ({"strides": (1 << 40,)}, "is not below 2^40"),
        ({"dims": (72, 0)}, "the extent of dimension 1 is 0"),
        ({"box": (64, 257)}, "257 elements along dimension 1"),
        ({"element_strides": (1, 9)}, "the element stride of dimension 1 is 9"),
        ({"box": (65, 128)}, "a row of the box has 130 bytes, which is not a multiple of 16"),
        ({"box": (72, 128)}, "a row of the box has 144 bytes: swizzle 128B takes at most 128"),
        ({"swizzle": "32B"}, "a row of the box has 128 bytes: swizzle 32B takes at most 32"),
        ({"data_type": "FLOAT32"}, "a row of the box has 256 bytes"),
        ({"data_type": "UINT8", "box": (72, 128)}, "a row of the box has 72 bytes"),
        ({"data_type": "16U4_ALIGN16B", "address": 0x1010}, "is not a multiple of 32"),
        ({"data_type": "16U4_ALIGN16B", "strides": (192,)}, "the extent of dimension 0, 72, is not a multiple of 128"),
        ({"data_type": "16U6_ALIGN16B", "strides": (192,), "dims": (256, 128)}, "64 elements along dimension 0"),
    ],
)
def test_a_map_that_breaks_a_rule(changes: dict[str, Any], words: str) -> None:
    told = why_map(replace(MAP, **changes))
    assert told is not None
    assert words in told


def test_a_map_that_lies_where_no_map_may() -> None:
    assert why_map(MAP, 0x7FFE0040) is None
    told = why_map(MAP, 0x7FFE0060)
    assert told is not None and "0x7ffe0060, which is not a multiple of 64" in told


ONE = (1, 1, 1)


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "smem", "allowed", "words"),
    [
        ((2, 1, 1), (128, 1, 1), ONE, 49152, {}, None),
        ((2, 1, 1), (128, 1, 1), ONE, 99328, {SMEM: 99328}, None),
        ((2, 1, 1), (128, 1, 1), ONE, 99328, {}, "was not called for it"),
        ((2, 1, 1), (128, 1, 1), ONE, 99328, {SMEM: 65536}, "asked for 65,536 bytes"),
        ((3, 1, 1), (128, 1, 1), (2, 1, 1), 0, {}, "a grid of 3x1x1 CTAs cannot be divided into clusters of 2x1x1"),
        ((16, 1, 1), (128, 1, 1), (16, 1, 1), 0, {}, "cudaFuncAttributeNonPortableClusterSizeAllowed"),
        ((16, 1, 1), (128, 1, 1), (16, 1, 1), 0, {NON_PORTABLE: 1}, None),
        ((32, 1, 1), (128, 1, 1), (32, 1, 1), 0, {NON_PORTABLE: 1}, "a cluster of 32 CTAs: at most 8"),
        ((1, 65536, 1), (128, 1, 1), ONE, 0, {}, "a grid of 1x65536x1 CTAs: at most 2147483647x65535x65535"),
        ((1, 1, 1), (1024, 2, 1), ONE, 0, {}, "a block of 2,048 threads"),
    ],
)
def test_launches(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    cluster: tuple[int, ...],
    smem: int,
    allowed: dict[int, int],
    words: str | None,
) -> None:
    told = why_launch(grid, block, cluster, smem, allowed)
    if words is None:
        assert told is None
    else:
        assert told is not None
        assert words in told
