# SPDX-License-Identifier: Apache-2.0
"""Instruction descriptors: fields, shapes and what is refused, by the tables of the PTX ISA."""

from __future__ import annotations

import pytest

from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.instr_descriptor import Format, InstrDescriptor, Kind, decode
from tmagen.emu.smem_descriptor import Major


def encode(m=128, n=128, d=1, a=0, b=0, **bits):
    """Bit fields by the PTX ISA ("Instruction descriptor"); keyword `bNN` sets bit NN."""
    word = d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    for name, value in bits.items():
        word |= value << int(name[1:])
    return word


def test_the_word_of_a_real_kernel():
    assert decode("f16", 0x08200010) == InstrDescriptor(
        Kind.F16, 128, 128, 16, Format.F16, Format.F16, Format.F32, Major.K, Major.K, negate_a=False, negate_b=False
    )


@pytest.mark.parametrize(
    ("kind", "k", "inputs", "outputs"),
    [
        ("f16", 16, {0: Format.F16, 1: Format.BF16}, {0: Format.F16, 1: Format.F32}),
        ("tf32", 8, {2: Format.TF32}, {1: Format.F32}),
        (
            "f8f6f4",
            32,
            {0: Format.E4M3, 1: Format.E5M2, 3: Format.E2M3, 4: Format.E3M2, 5: Format.E2M1},
            {0: Format.F16, 1: Format.F32},
        ),
        ("i8", 32, {0: Format.U8, 1: Format.S8}, {2: Format.S32}),
    ],
)
def test_types(kind, k, inputs, outputs):
    good_in, good_out = next(iter(inputs)), max(outputs)
    for code in range(8):
        for field in ("a", "b"):
            word = encode(d=good_out, **({"a": good_in, "b": good_in} | {field: code}))
            if code in inputs:
                assert getattr(decode(kind, word), field) is inputs[code]
                assert decode(kind, word).k == k
            else:
                with pytest.raises(Fault, match=f"{field.upper()} type .* is {code}"):
                    decode(kind, word)
    for code in range(4):
        word = encode(d=code, a=good_in, b=good_in)
        if code in outputs:
            assert decode(kind, word).d is outputs[code]
        else:
            with pytest.raises(Fault, match=f"D type .* is {code}"):
                decode(kind, word)


@pytest.mark.parametrize("m", range(0, 512, 16))
def test_m(m):
    if m in (64, 128):
        assert decode("f16", encode(m=m)).m == m
    else:
        with pytest.raises(Fault, match=f"M .* is {m};"):
            decode("f16", encode(m=m))


@pytest.mark.parametrize("kind", ["f16", "i8"])
def test_n(kind):
    """Every multiple of 8 to 256; integers from 32 on only multiples of 16."""
    for n in range(0, 512, 8):
        word = encode(n=n, d=2) if kind == "i8" else encode(n=n)
        if 8 <= n <= 256 and (kind == "f16" or n <= 24 or n % 16 == 0):
            assert decode(kind, word).n == n
        else:
            with pytest.raises(Fault, match=f"N .* is {n},"):
                decode(kind, word)


def test_major_and_negate():
    desc = decode("f16", encode(b13=1, b16=1))
    assert (desc.negate_a, desc.negate_b, desc.a_major, desc.b_major) == (True, False, Major.K, Major.MN)
    desc = decode("f16", encode(b14=1, b15=1))
    assert (desc.negate_a, desc.negate_b, desc.a_major, desc.b_major) == (False, True, Major.MN, Major.K)


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("f16", encode(b6=1), "reserved bit 6"),
        ("f16", encode(b23=1), "reserved bit 23"),
        ("f16", encode(b29=1), "reserved bit 29"),
        ("f16", encode(b30=1), "maximum shift"),
        ("f16", encode(b31=1), "maximum shift"),
        ("f16", encode(b0=1), "sparsity selector"),
        ("f16", encode(b3=1), "saturate"),
        ("f16", encode(d=0, a=1), "D type f16 does not go with bf16"),
        ("f16", encode(d=0, b=1), "D type f16 does not go with bf16"),
        ("i8", encode(d=2, b13=1), "negate"),
    ],
)
def test_faults(kind, word, message):
    with pytest.raises(Fault, match=message):
        decode(kind, word)


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("f64", encode(), "kind f64"),
        ("f16", encode(b2=1), "sparse"),
        ("mxf4", encode(b2=1), "sparse"),
    ],
)
def test_not_judged(kind, word, message):
    with pytest.raises(NotJudged, match=message):
        decode(kind, word)


def test_f16_with_bf16_is_accepted():
    desc = decode("f16", encode(a=0, b=1))
    assert (desc.a, desc.b) == (Format.F16, Format.BF16)


def scaled(m=128, n=64, a=0, b=0, sfa=0, sfb=0, ue8m0=1, **bits):
    """The layout of the kinds with block scaling."""
    return encode(0, n, sfb, a, b, **bits) | ue8m0 << 23 | m >> 7 << 27 | sfa << 29


def test_a_word_of_a_scaled_kind():
    desc = decode("mxf8f6f4", scaled(a=0, b=1, sfa=3, sfb=1))
    assert (desc.m, desc.n, desc.k, desc.a, desc.b, desc.d) == (128, 64, 32, Format.E4M3, Format.E5M2, Format.F32)
    assert (desc.a_scale, desc.b_scale, desc.ue4m3) == (3, 1, False)
    desc = decode("mxf4nvf4", scaled(a=1, b=1, sfa=2, ue8m0=0))
    assert (desc.a, desc.k * 2, desc.a_scale, desc.ue4m3) == (Format.E2M1X2, 64, 2, True)
    assert decode("mxf4", scaled(256, 256, 1, 1), 2).m == 256


@pytest.mark.parametrize(
    ("kind", "word", "ctas", "message"),
    [
        ("mxf8f6f4", scaled(b24=1), 1, "reserved bit 24"),
        ("mxf8f6f4", scaled(b31=1), 1, "reserved bit 31"),
        ("mxf4", scaled(a=1, b=1, b31=1), 1, "K .bit 31. is 96"),
        ("mxf4", scaled(a=1, b=5), 1, "reserved bit 12"),
        ("mxf4", scaled(a=0, b=1), 1, "A type"),
        ("mxf8f6f4", scaled(a=2), 1, "A type"),
        ("mxf8f6f4", scaled(m=256), 1, "M .bits 27-28. is 256"),
        ("mxf8f6f4", scaled(m=0), 1, "M .bits 27-28. is 0"),
        ("mxf8f6f4", scaled(n=24), 2, "N .bits 17-22. is 24"),
        ("mxf8f6f4", scaled(ue8m0=0), 1, "ue4m3"),
        ("mxf4", scaled(a=1, b=1, sfa=1), 1, "scale factor ids"),
        ("mxf4nvf4", scaled(a=1, b=1, b15=1), 1, "transposition"),
    ],
)
def test_faults_of_scaled_kinds(kind, word, ctas, message):
    with pytest.raises(Fault, match=message):
        decode(kind, word, ctas)
