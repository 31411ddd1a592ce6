# SPDX-License-Identifier: Apache-2.0
"""Atomics of floating-point types, of half-words and of vectors, as an H200 does them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emu.ptx import execute, words
from tmagen.emu import Fault, NotJudged

ONE = "setp.ne.u32 %p1, %tid.x, 0;\n@%p1 bra $end;\n"
SHARED = ".shared .align 16 .b8 cell[64];\n"


def atomic(form: str, old: int, new: int, nbytes: int, space: str = "global") -> int:
    """What `form` leaves in memory that held `old`."""
    kind, register = {2: ("u16", "%rs"), 4: ("u32", "%r"), 8: ("u64", "%rd")}[nbytes]
    place = "%rd1" if space == "global" else "cell"
    same = f", {register}5" if form.startswith("cas") else ""
    back = (
        "" if space == "global" else f"ld.shared.{kind} {register}7, [cell];\nst.global.{kind} [%rd1], {register}7;\n"
    )
    body = (
        ONE
        + f"ld.global.{kind} {register}5, [%rd2];\nld.global.{kind} {register}6, [%rd3];\n"
        + f"st.{space}.{kind} [{place}], {register}5;\n"
        + f"atom.{space}.{form} {register}8, [{place}]{same}, {register}6;\n{back}$end:\n"
    )
    first, second = (np.array([value], f"u{nbytes}") for value in (old, new))
    return int(execute(body, first, second, declarations=SHARED).view(f"u{nbytes}")[0])


def test_only_global_memory_flushes_sums_of_f32() -> None:
    assert atomic("add.f32", 1, 1, 4) == 0
    assert atomic("add.f32", 0x00800000, 0x80800001, 4) == 0x80000000
    assert atomic("add.f32", 1, 1, 4, "shared") == 2
    assert atomic("add.f32", 0x00800000, 0x80800001, 4, "shared") == 0x80000001


def test_sums_of_other_types() -> None:
    assert atomic("add.f64", 0x3FF0000000000000, 0x3CA0000000000001, 8) == 0x3FF0000000000001
    assert atomic("add.f64", 0x7FF8000000000001, 0x3FF0000000000000, 8) == 0x7FF8000000000001
    assert atomic("add.noftz.f16", 1, 0x3FF, 2) == 0x400
    assert atomic("add.noftz.bf16", 0x3F80, 0x3B81, 2) == 0x3F81
    assert atomic("add.noftz.f16x2", 0x3C007C00, 0x3C00FC00, 4) == 0x40007FFF
    assert atomic("add.noftz.bf16x2", 0x3F800001, 0x3F800001, 4, "shared") == 0x40000002


def test_a_half_word_is_swapped_alone() -> None:
    assert atomic("cas.b16", 7, 9, 2) == 9
    with pytest.raises(NotJudged):
        atomic("exch.b16", 7, 9, 2)


def test_a_vector_is_added_element_by_element() -> None:
    red = "red.global.v4.f32.add [%rd1+{}], {{%r5, %r6, %r7, %r8}};\n"
    body = ONE + "mov.b32 %r5, 0f3F800000;\nmov.b32 %r6, 0f40000000;\nmov.b32 %r7, 1;\nmov.b32 %r8, 0;\n"
    got = words(body + 2 * red.format(16) + "$end:\n", count=8)
    assert got == [0, 0, 0, 0, 0x40000000, 0x40800000, 0, 0]
    with pytest.raises(Fault, match="not aligned to its size"):
        words(body + red.format(8) + "$end:\n")
