# SPDX-License-Identifier: Apache-2.0
"""ldmatrix and stmatrix against the element formulas of the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import execute
from tmagen.emu.errors import Fault, NotJudged

BASE = 1024
BYTES = 4096
IMAGE = np.random.default_rng(1).integers(0, 1 << 16, BYTES // 2, np.uint16)
ROWS = np.random.default_rng(2).permutation(BYTES // 16)[:32] * 16  # every lane's row, anywhere

# %r0 = thread, %r1 = its row's address (from input 2), shared memory filled from input 1.
START = """
mov.u32 %r0, %tid.x;
mov.u32 %r2, 0;
$fill:
shl.b32 %r3, %r0, 2;
add.u32 %r3, %r3, %r2;
cvt.u64.u32 %rd10, %r3;
add.s64 %rd10, %rd2, %rd10;
ld.global.b32 %r4, [%rd10];
st.shared.b32 [%r3+1024], %r4;
add.u32 %r2, %r2, 128;
setp.lt.u32 %p1, %r2, 4096;
@%p1 bra $fill;
mul.wide.u32 %rd11, %r0, 4;
add.s64 %rd12, %rd3, %rd11;
ld.global.b32 %r1, [%rd12];
bar.warp.sync -1;
mul.wide.u32 %rd13, %r0, 16;
add.s64 %rd14, %rd1, %rd13;
"""
REGISTERS = ["%r10", "%r11", "%r12", "%r13"]


def vector(count):
    return "{" + ", ".join(REGISTERS[:count]) + "}" if count > 1 else "{%r10}"


def run(body, rows=ROWS, out_bytes=512):
    return execute(START + body, IMAGE, (rows + BASE).astype(np.uint32), smem=BYTES, out_bytes=out_bytes)


def element(matrix, lane, half, transposed):
    """The element of a matrix that a lane's register holds in its low or high half."""
    row, column = lane // 4, 2 * (lane % 4) + half
    if transposed:
        row, column = column, row
    return IMAGE[ROWS[8 * matrix + row] // 2 + column]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix(count, transposed):
    trans = ".trans" if transposed else ""
    body = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {vector(count)}, [%r1];\n"
    body += "".join(f"st.global.b32 [%rd14+{4 * i}], {REGISTERS[i]};\n" for i in range(count))
    got = run(body).view(np.uint16).reshape(32, 4, 2)
    want = [[[element(i, t, h, transposed) for h in (0, 1)] for i in range(count)] for t in range(32)]
    assert np.array_equal(got[:, :count], want)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(("load", "store"), [("", ""), (".trans", ".trans"), ("", ".trans"), (".trans", "")])
def test_stmatrix(count, load, store):
    """What ldmatrix read goes to other rows, as it was or transposed; nothing else changes."""
    body = f"ldmatrix.sync.aligned.m8n8.x{count}{load}.shared::cta.b16 {vector(count)}, [%r1];\n"
    body += "sub.u32 %r5, %r1, 1024;\nxor.b32 %r5, %r5, 2048;\nadd.u32 %r5, %r5, 1024;\n"
    body += f"stmatrix.sync.aligned.m8n8.x{count}{store}.shared.b16 [%r5], {vector(count)};\n"
    body += "mov.u32 %r2, 0;\n$copy:\nshl.b32 %r3, %r0, 2;\nadd.u32 %r3, %r3, %r2;\ncvt.u64.u32 %rd10, %r3;\n"
    body += "add.s64 %rd10, %rd1, %rd10;\nld.shared.b32 %r4, [%r3+1024];\nst.global.b32 [%rd10], %r4;\n"
    body += "add.u32 %r2, %r2, 128;\nsetp.lt.u32 %p1, %r2, 4096;\n@%p1 bra $copy;\n"
    rows = np.random.default_rng(3).permutation(BYTES // 32)[:32] * 16  # in the lower half
    rows[::3] += 2048
    got = run(body, rows, BYTES).view(np.uint16)
    want = IMAGE.copy()
    for lane in range(8 * count):
        to = rows[lane] ^ 2048
        for c in range(8):
            source = rows[lane] // 2 + c if load == store else rows[lane // 8 * 8 + c] // 2 + lane % 8
            want[to // 2 + c] = IMAGE[source]
    assert np.array_equal(got, want)


def test_qualifiers_in_the_order_that_deepgemm_writes() -> None:
    usual = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {v}, [%r1];\n"
    other = "ldmatrix.sync.aligned.x4.m8n8.shared.b16.trans {v}, [%r1];\n"
    body = "".join(f"st.global.b32 [%rd14+{4 * i}], {REGISTERS[i]};\n" for i in range(4))
    assert np.array_equal(*(run(text.format(v=vector(4)) + body) for text in (usual, other)))


@pytest.mark.parametrize(
    "text",
    ["ldmatrix.sync.aligned.m8n8.x4.shared.b16 {v}, [%r1];", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {v};"],
)
def test_bad_addresses(text):
    text = text.format(v=vector(4)) + "\n"
    rows = ROWS.copy()
    rows[31] += 8
    with pytest.raises(Fault, match="not aligned"):
        run(text, rows)
    rows[31] = BYTES
    with pytest.raises(Fault, match="outside the CTA's shared memory"):
        run(text, rows)
    run(text.replace("x4", "x1").replace(vector(4), "{%r10}"), rows)  # nobody looks at lane 31


def test_stmatrix_over_a_barrier():
    body = "setp.ne.u32 %p2, %r0, 0;\n@%p2 bra $rest;\nmov.u32 %r6, 1032;\nmbarrier.init.shared.b64 [%r6], 1;\n$rest:\n"
    store = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], " + vector(4) + ";\n"
    with pytest.raises(Fault, match="overwrites the live mbarrier"):
        run(body + store, np.arange(32) * 16)
    run(body + store, 16 + np.arange(32) * 16)


def test_a_part_of_a_warp():
    with pytest.raises(Fault, match="threads that have exited"):
        run("setp.eq.u32 %p2, %r0, 3;\n@%p2 exit;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1];\n")


@pytest.mark.parametrize(
    "text",
    [
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r10}, [%r1];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10}, [%r1];",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r1], {%r10};",
    ],
)
def test_what_is_not_judged(text):
    with pytest.raises(NotJudged):
        run(text + "\n")
