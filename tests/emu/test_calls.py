# SPDX-License-Identifier: Apache-2.0
"""Calls of device functions run as if the function stood there."""

from __future__ import annotations

import pytest

from tests.emu.ptx import LANE, lanes, words
from tmagen.emu import Fault, NotJudged

STORE = "st.global.u32 [%rd41], %r5;\n"
TWICE = """
.func (.param .b32 result) twice(.param .b32 x)
{
.reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u32 %r1, [x];
setp.gt.u32 %p1, %r1, 20;
@%p1 bra $big;
shl.b32 %r2, %r1, 1;
st.param.b32 [result], %r2;
ret;
$big:
st.param.b32 [result+0], 7;
ret;
}
"""
FOURFOLD = """
.func (.param .b32 result) fourfold(.param .b32 x)
{
.reg .b32 %r<9>;
ld.param.u32 %r1, [x];
{ .param .b32 p0; st.param.b32 [p0], %r1; .param .b32 q0; call.uni (q0), twice, (p0); ld.param.b32 %r1, [q0]; }
{ .param .b32 p0; st.param.b32 [p0], %r1; .param .b32 q0; call.uni (q0), twice, (p0); ld.param.b32 %r1, [q0]; }
st.param.b32 [result], %r1;
ret;
}
"""


def call(name: str, register: str = "%r0", guard: str = "") -> str:
    return (
        f"{{\n.param .b32 param0;\nst.param.b32 [param0], {register};\n.param .b32 retval0;\n"
        f"st.param.b32 [retval0], 5;\n{guard}call.uni (retval0), {name}, (param0);\nld.param.b32 %r5, [retval0];\n}}\n"
    )


def twice(x: int) -> int:
    return 7 if x > 20 else 2 * x


def test_a_function_that_returns_early_in_some_lanes() -> None:
    assert words(LANE + call("twice") + STORE, declarations=TWICE) == lanes(twice)


def test_a_function_calls_a_function_that_is_defined_later() -> None:
    body = LANE + "mov.u32 %r1, 77;\n" + call("fourfold") + "add.u32 %r5, %r5, %r1;\n" + STORE
    declared = ".func (.param .b32 r) twice(.param .b32 a);\n"
    assert words(body, declarations=declared + FOURFOLD + TWICE) == lanes(lambda i: twice(twice(i)) + 77)


@pytest.mark.parametrize(("guard", "called"), [("@%p1 ", lambda i: i < 9), ("@!%p1 ", lambda i: i >= 9)])
def test_a_guarded_call(guard: str, called) -> None:  # type: ignore[no-untyped-def]
    body = LANE + "setp.lt.u32 %p1, %r0, 9;\n" + call("twice", guard=guard) + STORE
    assert words(body, declarations=TWICE) == lanes(lambda i: twice(i) if called(i) else 5)


def test_a_call_in_a_loop_has_memory_of_its_own_lane() -> None:
    loop = (
        "mov.u32 %r7, 0;\nmov.u32 %r8, %r0;\n$again:\n"
        + call("twice", "%r8")
        + ("mov.u32 %r8, %r5;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p1, %r7, 3;\n@%p1 bra $again;\n")
    )
    assert words(LANE + loop + STORE, declarations=TWICE) == lanes(lambda i: twice(twice(twice(i))))


PRINTF = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
ASSERT = ".extern .func __assertfail(.param .b64 a);\n"


def test_printf_prints_nothing() -> None:
    body = LANE + "{ .param .b64 p0; .param .b64 p1; .param .b32 q;\ncall.uni (q), vprintf, (p0, p1); }\n"
    assert words(body + "mov.u32 %r5, 3;\n" + STORE, declarations=PRINTF) == [3] * 32


@pytest.mark.parametrize("lane", [3, 40])
def test_a_failed_assertion_is_a_fault(lane: int) -> None:
    body = LANE + f"setp.ne.u32 %p1, %r0, {lane};\n@%p1 bra $fine;\n"
    body += "{ .param .b64 p0;\ncall.uni __assertfail, (p0); }\n$fine:\nmov.u32 %r5, 3;\n" + STORE
    if lane == 40:
        assert words(body, declarations=ASSERT) == [3] * 32
        return
    with pytest.raises(Fault, match="assertion of the kernel failed"):
        words(body, declarations=ASSERT)


RECURSIVE = """
.func (.param .b32 result) twice(.param .b32 x)
{
{ .param .b32 p0; .param .b32 q0; call.uni (q0), twice, (p0); }
ret;
}
"""


@pytest.mark.parametrize(
    ("declarations", "why"),
    [
        (RECURSIVE, "call of twice, which is recursive"),
        (".extern .func (.param .b32 r) twice(.param .b32 a);\n", "call of twice"),
        (".func (.reg .b32 r) twice(.reg .b32 a) { ret; }\n", "whose parameters are not those of the call"),
        (".func (.param .b32 r) twice(.param .b32 a, .param .b32 b) { ret; }\n", "whose parameters are not"),
    ],
)
def test_what_cannot_be_called_says_why(declarations: str, why: str) -> None:
    with pytest.raises(NotJudged, match=why):
        words(LANE + call("twice") + STORE, declarations=declarations)


def test_an_address_is_not_called() -> None:
    body = LANE + "{ .param .b32 q;\ncall (q), %rd3, (), prototype_0; }\n" + STORE
    with pytest.raises(NotJudged, match="call of an address"):
        words(body)
