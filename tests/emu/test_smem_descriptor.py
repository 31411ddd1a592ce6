# SPDX-License-Identifier: Apache-2.0
"""SMEM descriptors: fields, and the address of every element against the canonical layouts of the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.smem_descriptor import Major, SmemDescriptor, locate, operand_addresses
from tmagen.emu.swizzle import Swizzle

CODE = {Swizzle.NONE: 0, Swizzle.B128_ATOM_32B: 1, Swizzle.B128: 2, Swizzle.B64: 4, Swizzle.B32: 6}
WIDTH = {Swizzle.NONE: 16, Swizzle.B32: 32, Swizzle.B64: 64, Swizzle.B128: 128, Swizzle.B128_ATOM_32B: 128}


def encode(start, leading, stride, swizzle, base_offset=0):
    """Bit fields as the PTX ISA tables them ("Shared memory descriptor" of tcgen05)."""
    fields = ((start >> 4, 0), (leading >> 4, 16), (stride >> 4, 32), (1, 46), (base_offset, 49), (CODE[swizzle], 61))
    return sum(value << low for value, low in fields)


def xor(swizzle, address, line):
    """Move the chunk of `address` by the pattern of 128-byte line `line`."""
    if swizzle is Swizzle.NONE:
        return address
    if swizzle is Swizzle.B128_ATOM_32B:
        return address ^ (line % 4 << 5)
    return address ^ (line % (WIDTH[swizzle] // 16) << 4)


def element_address(start, leading, stride, swizzle, mn, k, size, major, base_offset=0):
    """Address of one element by the canonical layout's strides."""
    width, per16 = WIDTH[swizzle], 16 // size
    if major is Major.K:
        group, row = divmod(mn, 8)
        byte = k * size
        along_k = byte // 16 * leading + byte % 16 if swizzle is Swizzle.NONE else byte
        logical = start + row * width + group * stride + along_k
    elif swizzle is Swizzle.NONE:
        block, within = divmod(mn, per16)
        logical = start + block * stride + within * size + k % 8 * 16 + k // 8 * leading
    else:
        depth = 4 if swizzle is Swizzle.B128_ATOM_32B else 8
        block, within = divmod(mn, width // size)
        logical = start + block * leading + within * size + k % depth * width + k // depth * stride
    return xor(swizzle, logical, (logical >> 7) - base_offset)


def test_fields():
    desc = SmemDescriptor.decode(encode(0x1F400, 0x1230, 0x0400, Swizzle.B64, 5))
    assert desc == SmemDescriptor(start=0x1F400, leading=0x1230, stride=0x400, base_offset=5, swizzle=Swizzle.B64)


def test_a_descriptor_of_a_real_kernel():
    """Start 0x1000, no leading offset, 1024-byte stride, version 1, 128-byte swizzle."""
    desc = SmemDescriptor.decode(0x4000_4040_0000_0100)
    assert desc == SmemDescriptor(start=0x1000, leading=0, stride=1024, base_offset=0, swizzle=Swizzle.B128)


@pytest.mark.parametrize(
    ("flip", "message"),
    [
        (1 << 46, "bits 46-48"),
        (1 << 47, "bits 46-48"),
        (1 << 48, "bits 46-48"),
        (1 << 52, "leading-dimension mode"),
        (1 << 14, "reserved bits 14-15"),
        (1 << 15, "reserved bits 14-15"),
        (1 << 30, "reserved bits 30-31"),
        (1 << 31, "reserved bits 30-31"),
        (1 << 53, "reserved bits 53-60"),
        (1 << 60, "reserved bits 53-60"),
        (1 << 61, "swizzle mode .* 3 "),
    ],
)
def test_forbidden_bits_fault(flip, message):
    good = encode(0x1000, 0, 1024, Swizzle.B128)
    with pytest.raises(Fault, match=message):
        SmemDescriptor.decode(good ^ flip)


@pytest.mark.parametrize("code", [3, 5, 7])
def test_unknown_swizzle_codes_fault(code):
    with pytest.raises(Fault, match=f"swizzle mode .* {code} "):
        SmemDescriptor.decode(1 << 46 | code << 61)


CASES = [
    (Major.K, Swizzle.NONE, 2, 2048, 128),
    (Major.K, Swizzle.NONE, 1, 160, 4096),
    (Major.K, Swizzle.B32, 2, 16, 256),
    (Major.K, Swizzle.B64, 2, 0, 512),
    (Major.K, Swizzle.B128, 2, 16, 1024),
    (Major.K, Swizzle.B128, 1, 0, 1024),
    (Major.K, Swizzle.B128, 4, 0, 2048),
    (Major.MN, Swizzle.NONE, 2, 128, 256),
    (Major.MN, Swizzle.B32, 2, 1024, 256),
    (Major.MN, Swizzle.B64, 2, 4096, 512),
    (Major.MN, Swizzle.B128, 2, 8192, 1024),
    (Major.MN, Swizzle.B128, 1, 4096, 1024),
    (Major.MN, Swizzle.B128_ATOM_32B, 4, 1024, 512),
]


@pytest.mark.parametrize(("major", "swizzle", "size", "leading", "stride"), CASES)
@pytest.mark.parametrize("start", [0x400, 0x2000, 0x2020, 0x2180, 0x23E0])
@pytest.mark.parametrize("rows", [8, 24, 64])
@pytest.mark.parametrize("base_offset", [0, 3])
def test_every_element(major, swizzle, size, leading, stride, start, rows, base_offset):
    k = 32 // size
    bits = encode(start, leading, stride, swizzle, base_offset)
    want = [
        [element_address(start, leading, stride, swizzle, mn, kk, size, major, base_offset) for kk in range(k)]
        for mn in range(rows)
    ]
    assert operand_addresses(SmemDescriptor.decode(bits), rows, k, size, major).tolist() == want
    operand = locate(bits, rows, k, size, major)
    assert operand.base % 1024 == 0
    byte = operand.base + operand.units[:, :, None] * 16 + np.arange(0, 16, size)
    elements = byte.reshape(rows, k) if major is Major.K else byte.reshape(k, -1)[:, :rows].T
    assert elements.tolist() == want
    assert operand.first <= np.min(want)
    assert operand.end >= np.max(want) + size
    assert operand.units.min() >= 0


@pytest.mark.parametrize(("swizzle", "width"), [(Swizzle.B128, 128), (Swizzle.B64, 64), (Swizzle.B32, 32)])
def test_a_step_along_k_adds_32_bytes_to_the_start(swizzle, width):
    """Each step's bytes are where TMA put them: row r, byte b of a tile at the swizzle of tile + r * width + b."""
    tile = 0x6000
    for step in range(width // 32):
        desc = SmemDescriptor.decode(encode(tile + 32 * step, 0, 8 * width, swizzle))
        operand = operand_addresses(desc, 128, 16, 2, Major.K)
        for row in range(128):
            for k in range(16):
                logical = tile + row * width + step * 32 + 2 * k
                assert operand[row, k] == xor(swizzle, logical, logical >> 7)


def test_a_swizzled_k_major_operand_ignores_the_leading_offset():
    units = [locate(encode(0x2000, leading, 1024, Swizzle.B128), 64, 16, 2, Major.K).units for leading in (0, 16, 4096)]
    assert np.array_equal(units[0], units[1])
    assert np.array_equal(units[0], units[2])


def test_an_operand_past_256_kib_faults():
    locate(encode(0x3C000, 0, 1024, Swizzle.B128), 128, 16, 2, Major.K)
    with pytest.raises(Fault, match="256 KiB"):
        locate(encode(0x3C400, 0, 1024, Swizzle.B128), 128, 16, 2, Major.K)


@pytest.mark.parametrize(
    ("major", "swizzle", "size"),
    [(Major.K, Swizzle.B128_ATOM_32B, 2), (Major.MN, Swizzle.B128_ATOM_32B, 2), (Major.MN, Swizzle.B128, 4)],
)
def test_layouts_that_are_not_judged(major, swizzle, size):
    with pytest.raises(NotJudged):
        locate(encode(0x2000, 512, 1024, swizzle), 64, 32 // size, size, major)
