# SPDX-License-Identifier: Apache-2.0
"""The packed descriptors against values worked out by hand from the bit tables of the PTX ISA."""

from __future__ import annotations

import pytest

from tmagen.descriptors import Descriptor, Field, instr_descriptor, smem_descriptor, wgmma_smem_descriptor
from tmagen.ir import DType


@pytest.mark.parametrize(
    ("swizzle_bytes", "stride_units", "code"),
    [(128, 64, 2), (64, 32, 4), (32, 16, 6)],
)
def test_smem_descriptor(swizzle_bytes: int, stride_units: int, code: int) -> None:
    expected = (1 << 16) | (stride_units << 32) | (0b001 << 46) | (code << 61)
    assert smem_descriptor(swizzle_bytes).value == expected


@pytest.mark.parametrize(("swizzle_bytes", "stride_units", "code"), [(128, 64, 1), (64, 32, 2), (32, 16, 3)])
def test_wgmma_smem_descriptor(swizzle_bytes: int, stride_units: int, code: int) -> None:
    assert wgmma_smem_descriptor(swizzle_bytes).value == (1 << 16) | (stride_units << 32) | (code << 62)


def test_instr_descriptor_of_the_course() -> None:
    # f32 accumulator at bit 4, N / 8 = 16 at bit 17, M / 16 = 8 at bit 24; f16 and K-major are zeros.
    assert instr_descriptor(DType.F16, DType.F16, DType.F32, 128, 128).value == 0x08200010


@pytest.mark.parametrize("n", range(16, 257, 16))
def test_instr_descriptor_bf16(n: int) -> None:
    expected = (1 << 4) | (1 << 7) | (1 << 10) | (n // 8 << 17) | (8 << 24)
    assert instr_descriptor(DType.BF16, DType.BF16, DType.F32, 128, n).value == expected


@pytest.mark.parametrize(
    "descriptor", [smem_descriptor(128), instr_descriptor(DType.BF16, DType.BF16, DType.F32, 128, 256)]
)
def test_fields_do_not_overlap(descriptor: Descriptor) -> None:
    taken = 0
    for field in descriptor.fields:
        mask = ((1 << field.bits) - 1) << field.shift
        assert not taken & mask
        taken |= mask
    assert taken < 1 << descriptor.bits


def test_a_value_that_does_not_fit_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        Field("N >> 3", "kInstrN", 17, 6, 64, "")
