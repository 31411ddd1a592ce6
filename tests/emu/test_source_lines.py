# SPDX-License-Identifier: Apache-2.0
"""The whole chain of inlined calls, and which line of it is shown."""

from __future__ import annotations

import pytest

from tmagen.emu import parse
from tmagen.emu.module import Frame, Instruction
from tmagen.emu.report import instruction_place
from tmagen.emu.source_lines import readable

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"
NAMES = {"$L0": "_ZN6kernel9main_loopERNS_3smE", "$L1": "_ZN6kernel3ptx4waitEPmj", "$L2": "_ZN6kernel3ptx3tryEPmj"}


def section(names: dict[str, str]) -> str:
    lines = [f"{label}:\n" + "\n".join(f".b8 {byte}" for byte in (*text.encode(), 0)) for label, text in names.items()]
    return ".section .debug_str\n{\n" + "\n".join(lines) + "\n}\n"


def instruction_after(locs: str, names: dict[str, str] = NAMES) -> Instruction:
    body = f".visible .entry k() {{\n.reg .b32 %r<3>;\n{locs}\nmov.u32 %r1, 1;\nret;\n}}\n"
    module = parse(HEAD + body + '.file 1 "k.cu"\n.file 2 "ptx.h"\n' + section(names))
    return module.entries["k"].body[0]


CHAIN = """.loc 1 80 3
.loc 1 50 5, function_name $L0, inlined_at 1 80 3
.loc 2 20 7, function_name $L1, inlined_at 1 50 5
.loc 2 10 9, function_name $L2, inlined_at 2 20 7"""


def test_whole_chain() -> None:
    source = instruction_after(CHAIN).source
    assert source is not None
    assert source.frames == (
        Frame("ptx.h", 10, "ptx::try"),
        Frame("ptx.h", 20, "ptx::wait"),
        Frame("k.cu", 50, "main_loop"),
        Frame("k.cu", 80),
    )
    assert source.told == Frame("k.cu", 50, "main_loop")
    assert source.place == ("k.cu", 50)


def test_the_line_outside_the_wrappers_comes_first() -> None:
    assert instruction_place(instruction_after(CHAIN)) == (
        "PTX line 10, k.cu:50 in main_loop (ptx::wait at ptx.h:20, ptx::try at ptx.h:10), called at line 80"
    )
    assert instruction_place(instruction_after(".loc 1 80 3")) == "PTX line 7, k.cu:80"
    straight = ".loc 1 80 3\n.loc 2 20 7, function_name $L1, inlined_at 1 80 3"
    assert instruction_place(instruction_after(straight)) == "PTX line 8, k.cu:80 (ptx::wait at ptx.h:20)"


def test_same_wrapper_in_two_places() -> None:
    again = CHAIN + "\n.loc 1 60 5, function_name $L0, inlined_at 1 80 3\n"
    source = instruction_after(again + ".loc 2 20 7, function_name $L1, inlined_at 1 60 5").source
    assert source is not None
    assert [frame.line for frame in source.frames] == [20, 60, 80]


def test_functions_without_a_known_name_are_no_wrappers() -> None:
    source = instruction_after(CHAIN, {}).source
    assert source is not None
    assert source.place == ("ptx.h", 10)
    assert [frame.function for frame in source.frames] == [None] * 4


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZN6kernel9main_loopEv", "main_loop"),
        ("_ZN6kernel9Scheduler4nextERNS_4TileE", "Scheduler::next"),
        ("_ZNK6kernel9Scheduler4nextEv", "Scheduler::next"),
        ("_ZN4cuda3ptx4waitEv", "ptx::wait"),
        ("_ZN3ptx4waitEv", "ptx::wait"),
        ("_ZN37_INTERNAL_9769a13f_4_k_cu_f774829f_1810__syncwarpEj", "__syncwarp"),
        ("_Z5plaini", "plain"),
        ("_ZL5plaini", "plain"),
        ("_ZN2ns4loadILi3EEEvv", "load"),
        ("c_function", "c_function"),
        ("_ZTV", "_ZTV"),
    ],
)
def test_readable_names(mangled: str, name: str) -> None:
    assert readable(mangled) == name
