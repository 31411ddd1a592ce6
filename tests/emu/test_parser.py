# SPDX-License-Identifier: Apache-2.0
"""PTX text to modules: what nvcc and inline asm write, and errors that say what was expected where."""

from __future__ import annotations

import pytest

from tmagen.emu import NotJudged, ParseError, parse
from tmagen.emu.module import Addr, FloatImm, Frame, Imm, Not, Pair, Reg, Sink, Special, Sym, Vec

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def body(text: str, registers: str = ".reg .b32 %r<9>;\n.reg .pred %p<4>;\n.reg .b64 %rd<9>;") -> list:
    module = parse(f"{HEAD}.visible .entry k()\n{{\n{registers}\n{text}\n}}\n")
    return list(module.entries["k"].body)


def test_header_and_kernels() -> None:
    module = parse(
        HEAD
        + """
        // .globl a
        .extern .shared .align 1024 .b8 dyn[];
        .shared .align 8 .b8 bars[24];
        .global .align 4 .u32 table[3] = {1, 0x10, 3};
        .const .align 8 .f64 half = 0d3FE0000000000000;
        .extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b) ;
        .func helper(.param .b32 x) { .reg .b32 %r<2>; { ret; } }
        .visible .entry a(
            .param .align 64 .b8 map[128],
            .param .u32 n,
            .param .u64 .ptr .global .align 16 p
        )
        .maxntid 128, 1, 1
        .minnctapersm 2
        { ret; }
        .entry b() .reqntid 32 { ret; }
        """
    )
    assert (module.version, module.target) == ("9.0", "sm_100a")
    assert list(module.entries) == ["a", "b"]
    a = module.entries["a"]
    assert [(p.name, p.offset, p.size, p.align) for p in a.params] == [
        ("map", 0, 128, 64),
        ("n", 128, 4, 4),
        ("p", 136, 8, 8),
    ]
    assert a.param_bytes == 144
    assert a.directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,)}
    assert module.entries["b"].directives == {"reqntid": (32,)}
    assert module.functions == ("vprintf", "helper")
    by_name = {v.name: v for v in module.variables}
    assert by_name["dyn"].nbytes is None and by_name["dyn"].align == 1024 and by_name["dyn"].extern
    assert by_name["bars"].nbytes == 24
    assert by_name["table"].initial == bytes.fromhex("010000001000000003000000")
    assert by_name["half"].initial == bytes.fromhex("000000000000e03f")


def test_operands() -> None:
    ins = body(
        "mov.b64 {%r1, %r2}, %rd1;\nsetp.lt.s32 %p1|%p2, %r1, -5;\nld.global.v2.u32 {%r1, _}, [%rd1+16];\n"
        "mov.u32 %r1, %tid.x;\nmov.f32 %r2, 0fBF800000;\nst.shared.u32 [%r1 + -4], %r2;\nand.pred %p1, %p2, !%p3;\n"
        "mov.u64 %rd2, sym+8;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r1], [%rd1, {%r2, %r3}], [%r4];\n"
        "@!%p1 add.s32 %r1, %r1, 0x10;"
    )
    assert ins[0].operands == (Vec((Reg("%r1"), Reg("%r2"))), Reg("%rd1"))
    assert ins[1].operands == (Pair(Reg("%p1"), Reg("%p2")), Reg("%r1"), Imm(-5))
    assert ins[2].operands == (Vec((Reg("%r1"), Sink())), Addr(Reg("%rd1"), 16))
    assert ins[3].operands[1] == Special("tid.x")
    assert ins[4].operands[1] == FloatImm(0xBF800000, 32)
    assert ins[5].operands[0] == Addr(Reg("%r1"), -4)
    assert ins[6].operands[2] == Not(Reg("%p3"))
    assert ins[7].operands[1] == Sym("sym", 8)
    assert ins[8].operands[1] == Addr(Reg("%rd1"), 0, (Vec((Reg("%r2"), Reg("%r3"))),))
    assert ins[9].guard == Not(Reg("%p1")) and ins[9].operands[2] == Imm(16)


def test_qualifiers_that_stand_apart() -> None:
    """As ptxas takes them; TileLang writes a cache hint so."""
    first, second, *_ = body("@%p1 add .u32 %r1, %r2, %r3;\nadd\n .sat\t.s32 %r1, %r2, 4;\nret;")
    assert (first.opcode, first.guard, len(first.operands)) == ("add.u32", Reg("%p1"), 3)
    assert (second.opcode, second.text, len(second.operands)) == ("add.sat.s32", "add .sat .s32 %r1, %r2, 4", 3)


def test_nested_scopes_reuse_names() -> None:
    text = """
        // begin inline asm
        {
        .reg .pred                P1;
        LAB_WAIT:
        mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], 0;
        @P1                       bra.uni DONE;
        bra.uni                   LAB_WAIT;
        DONE:
        }
        // end inline asm
        { .reg .pred P1; setp.eq.s32 P1, %r1, 0; LAB_WAIT: @P1 bra DONE; DONE: }
        { { cvt.rn.f16x2.f32 %r1, %r2, %r3; } }
    """
    module = parse(f"{HEAD}.visible .entry k() {{ .reg .b32 %r<4>;\n{text}\nret; }}")
    entry = module.entries["k"]
    first, second = entry.body[0].operands[0], entry.body[3].operands[0]
    assert isinstance(first, Reg) and isinstance(second, Reg) and first != second
    targets = [i.operands[0].name for i in entry.body if i.parts[0] == "bra"]
    assert [entry.labels[t] for t in targets] == [3, 0, 5]
    assert len(set(targets)) == 3


def test_source_lines_with_inlining_and_files_after_the_kernel() -> None:
    module = parse(
        HEAD
        + ".visible .entry k() {\n.reg .b32 %r<3>;\n.loc 1 10 3\nmov.u32 %r1, 1;\n"
        + ".loc 2 373 9, function_name $L__info_string0, inlined_at 1 353 3\nmov.u32 %r2, 2;\n"
        + '.pragma "nounroll";\nret;\n}\n'
        + '.file 1 "/dir//k.cu"\n.file 2 "inc.h", 123, 45\n.section .debug_str\n{\n$L__info_string0:\n.b8 116, 0\n}\n'
    )
    one, two, _ = module.entries["k"].body
    assert (one.line, one.source.file, one.source.line, one.source.callers) == (7, "/dir//k.cu", 10, ())
    assert (two.line, two.source.file, two.source.line, two.source.function) == (9, "inc.h", 373, "t")
    assert two.source.callers == (Frame("/dir//k.cu", 353),)
    assert two.text == "mov.u32 %r2, 2"


def test_variables_of_a_body_and_comments() -> None:
    module = parse(
        HEAD
        + ".visible .entry k() { .shared .align 16 .f32 tile[4][8]; /* two\nlines */ .local .align 8 .b8 depot[32];"
        + ' ret; // end "\n}'
    )
    assert [(v.name, v.space, v.align, v.nbytes) for v in module.entries["k"].variables] == [
        ("tile", "shared", 16, 128),
        ("depot", "local", 8, 32),
    ]


ERRORS = [
    ("mov.u32 %r1, %r99;", "register %r99 is not declared", 7),
    ("\n\nmov.u32 %r1, ;", "an operand is missing", 9),
    ("ld.u32 %r1, [%r1;", "closing bracket is missing", 7),
    ("bra NOWHERE;", "expected a label that exists, not 'NOWHERE'", 7),
    ("mov.u32 %r1, 1", "expected ';'", 7),
    ("A: A: ret;", "defined twice", 7),
    ("mov.u32 %r1, 1$;", "expected a register, a literal", 7),
    ("ld.u32 %r1, [%r1*4];", "expected", 7),
    (".nonsense 1;", "expected a directive of a kernel body", 7),
    ("123;", "expected an instruction", 7),
    ("@ret; ret;", "expected an instruction", 7),
    ("{ ret;", "expected '}'", None),
]


@pytest.mark.parametrize(("text", "message", "line"), ERRORS, ids=[e[0].strip() for e in ERRORS])
def test_errors_say_what_was_expected_and_where(text: str, message: str, line: int | None) -> None:
    with pytest.raises(ParseError, match=message.replace("(", r"\(")) as caught:
        body(text, ".reg .b32 %r<9>;")
    if line is not None:
        assert caught.value.ptx_line == line
        assert f":{line}:" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "text", ["", ".version 9.0\n", ".target sm_90\n", HEAD + "nonsense", HEAD + ".visible .entry {", HEAD + ".shared;"]
)
def test_broken_modules(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("add", "the address of function 'add': indirect calls are not modelled"),
        ("other", "initial value 'other' of a variable"),
    ],
)
def test_an_initial_value_that_is_not_known(item: str, why: str) -> None:
    """The line is that of the value, not of the declaration."""
    text = f"{HEAD}.func add() {{ ret; }}\n.global .u32 other;\n.global .u64 f[2] = {{\n  0,\n  {item}\n}};\n"
    with pytest.raises(NotJudged, match=why) as caught:
        parse(text)
    assert caught.value.ptx_line == 8
