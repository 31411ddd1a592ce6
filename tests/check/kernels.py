# SPDX-License-Identifier: Apache-2.0
"""Hand-written kernels for the checker's tests, and launch files for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tmagen.check import Report, Subject, load, run

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"

# c[i * stride_c] = a[i] + b[i] for i < n, one thread each, elements of 4 bytes.
ADD = (
    HEAD
    + """
.visible .entry add(.param .u64 .ptr .align 1 add_param_0, .param .u64 .ptr .align 1 add_param_1,
                    .param .u64 .ptr .align 1 add_param_2, .param .u32 add_param_3)
{
.reg .pred %p<2>;
.reg .b32 %r<10>;
.reg .b64 %rd<10>;
ld.param.u64 %rd1, [add_param_0];
ld.param.u64 %rd2, [add_param_1];
ld.param.u64 %rd3, [add_param_2];
ld.param.u32 %r1, [add_param_3];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4;
setp.ge.s32 %p1, %r5, %r1;
@%p1 bra DONE;
mul.wide.s32 %rd4, %r5, 4;
add.s64 %rd5, %rd1, %rd4;
add.s64 %rd6, %rd2, %rd4;
add.s64 %rd7, %rd3, %rd4;
ld.global.OP %r6, [%rd5];
ld.global.OP %r7, [%rd6];
add.s32 %r8, %r6, %r7;
st.global.u32 [%rd7], %r8;
DONE:
ret;
}
"""
)
ADD_S32 = ADD.replace("ld.global.OP", "ld.global.u32")

# Writes its parameters' bytes, one thread a byte, to the buffer that the first one points to.
PARAMETERS = (
    HEAD
    + """
.visible .entry dump(.param .u64 dump_param_0, .param .align 8 .b8 dump_param_1[48])
{
.reg .b32 %r<4>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [dump_param_0];
mov.u32 %r1, %tid.x;
cvt.u64.u32 %rd2, %r1;
mov.b64 %rd3, dump_param_1;
add.s64 %rd4, %rd3, %rd2;
ld.param.u8 %r2, [%rd4];
add.s64 %rd5, %rd1, %rd2;
st.global.u8 [%rd5], %r2;
ret;
}
"""
)


def add_launch(n: int = 100, **changes: Any) -> dict[str, Any]:
    """A launch file for ADD over `n` elements."""
    launch: dict[str, Any] = {
        "grid": -(-n // 32),
        "block": 32,
        "params": [{"pointer": "a"}, {"pointer": "b"}, {"pointer": "c"}, {"s32": n}],
        "expect": "c == a + b",
        "buffers": {
            "a": {"dtype": "s32", "shape": [n], "fill": "integers"},
            "b": {"dtype": "s32", "shape": [n], "fill": "iota"},
            "c": {"dtype": "s32", "shape": [n]},
        },
    }
    return {**launch, **changes}


def subject(text: str, name: str = "kernel.ptx") -> Subject:
    """PTX text as something to check."""
    return load(Path(name), ptx=text)


def check_add(launch: dict[str, Any], text: str = ADD_S32, **options: Any) -> Report:
    """ADD by a launch file, in one order unless `options` say otherwise."""
    return run(subject(text), launch, **{"completion": "eager", **options})
