# SPDX-License-Identifier: Apache-2.0
"""Reordering the instructions of a block: what may move, and that nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import execute
from tmagen.emu import parse
from tmagen.emu.compile_order import ordered
from tmagen.emu.errors import Fault

REGISTERS = ".reg .pred %p<9>;\n.reg .b32 %r<99>;\n.reg .f32 %f<99>;\n.reg .b64 %rd<9>;\n.shared .b32 s[64];\n"


def order(text):
    """The instructions after reordering, as their texts."""
    module = parse(f".version 8.8\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n{REGISTERS}{text}}}\n")
    return [instruction.text + ";" for instruction in ordered(list(module.entries["k"].body))]


def test_an_epilogue_comes_apart_into_values_and_stores():
    text = ""
    for i in range(3):
        text += f"add.s32 %r{10 + i}, %r1, {16 * i};\ncvt.rn.f16x2.f32 %r{20 + i}, %f{2 * i}, %f{2 * i + 1};\n"
        text += f"st.shared.b32 [%r{10 + i}], %r{20 + i};\n"
    heads = [line.split(".")[0] for line in order(text)]
    assert heads == ["add", "cvt", "cvt", "cvt", "add", "add", "st", "st", "st"]


@pytest.mark.parametrize(
    "text",
    [
        "st.shared.b32 [%r1], %r2;\nadd.s32 %r2, %r2, 1;\nst.shared.b32 [%r1+4], %r2;\n",  # the value changes
        "st.shared.b32 [%r1], %r2;\nadd.s32 %r1, %r1, 4;\nst.shared.b32 [%r1], %r2;\n",  # the address changes
        "st.shared.b32 [%r1], %r2;\nld.shared.b32 %r3, [%r1];\nst.shared.b32 [%r1+4], %r3;\n",  # memory is read
        "st.shared.b32 [%r1], %r2;\n@%p1 add.s32 %r3, %r3, 1;\nst.shared.b32 [%r1+4], %r3;\n",  # a guard
        "st.shared.b32 [%r1], %r2;\nfence.proxy.async;\nmov.b32 %r3, 0;\nst.shared.b32 [%r1+4], %r3;\n",
    ],
)
def test_what_stays(text):
    assert order(text) == [line for line in text.splitlines() if line]


@pytest.mark.parametrize(
    "between",
    ["add.f32 %f4, %f4, %f4;", "mov.b32 %f4, %r30;", "cvt.rn.f16x2.f32 %f4, %f6, %f7;", "mov.b32 %r30, %r20;"],
)
def test_a_conversion_does_not_pass_what_it_depends_on(between):
    first, last = "cvt.rn.f16x2.f32 %r20, %f0, %f1;", "cvt.rn.f16x2.f32 %r20, %f4, %f5;"
    lines = [first, between, last, "st.shared.b32 [%r1], %r20;"]
    assert order("\n".join(lines) + "\n") == lines


STORES = """
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, {shift};
add.s32 %r1, %r1, 1024;
mul.lo.s32 %r2, %r0, 3;
st.shared.b32 [%r1], %r2;
add.s32 %r3, %r2, 1000;
st.shared.b32 [%r1+128], %r3;
mov.b32 %r4, 77;
st.shared.b32 [%r1+256], %r4;
st.shared.b32 [%r1+{last}], %r3;
"""
BACK = """
bar.sync 0;
shl.b32 %r8, %r0, 2;
ld.shared.b32 %r5, [%r8+1024];
ld.shared.b32 %r6, [%r8+1152];
ld.shared.b32 %r7, [%r8+1280];
mul.wide.u32 %rd2, %r0, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.b32 [%rd3], %r5;
st.global.b32 [%rd3+128], %r6;
st.global.b32 [%rd3+256], %r7;
"""
ONE_BARRIER = """
mov.u32 %r0, %tid.x;
setp.ne.u32 %p1, %r0, 0;
mov.u32 %r9, 1536;
@%p1 bra $rest;
mbarrier.init.shared.b64 [%r9], 1;
$rest:
"""


def run(shift=2, last=0, smem=1024, before=""):
    text = before + STORES.format(shift=shift, last=last) + BACK
    return execute(text, smem=smem, out_bytes=384).view(np.uint32).reshape(3, 32)


def test_stores_together():
    """The last of several stores to one place stays."""
    got = run()
    lane = np.arange(32)
    assert np.array_equal(got, [3 * lane + 1000, 3 * lane + 1000, np.full(32, 77)])


def test_a_bad_store_among_others_is_named():
    with pytest.raises(Fault, match="not aligned") as caught:
        run(last=130)
    assert caught.value.instruction == "st.shared.b32 [%r1+130], %r3"
    with pytest.raises(Fault, match="outside the CTA's shared memory") as caught:
        run(last=1024)
    assert caught.value.instruction == "st.shared.b32 [%r1+1024], %r3"
    with pytest.raises(Fault, match="overwrites the live mbarrier") as caught:
        run(before=ONE_BARRIER, last=512)
    assert caught.value.instruction == "st.shared.b32 [%r1+512], %r3"


def test_stores_of_some_lanes():
    text = "mov.u32 %r0, %tid.x;\nsetp.gt.u32 %p1, %r0, 3;\n@%p1 bra $end;\n" + STORES.format(shift=2, last=0)
    got = execute(text + "$end:\n" + BACK, smem=1024, out_bytes=384).view(np.uint32).reshape(3, 32)
    assert got[1, :4].tolist() == [1000, 1003, 1006, 1009]
    assert set(got[:, 4:].ravel()) == {0xFFFFFFFF}
