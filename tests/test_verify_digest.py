# SPDX-License-Identifier: Apache-2.0
"""The report's text: each fault once."""

from __future__ import annotations

from tmagen.bind import LeadingDims
from tmagen.emu.checks.finding import Finding, Place
from tmagen.ir import Shape
from tmagen.verify import CaseReport, Verdict
from tmagen.verify.compare import Mismatch, WrongElement
from tmagen.verify.digest import Digest, shortened

SHAPES = (Shape(256, 256, 256), Shape(129, 141, 71))
WAYS = [(kind, order) for kind in ("integer", "normal") for order in ("eager", "lazy")]


def case(shape: Shape, way: tuple[str, str], *message: str, mismatch: Mismatch | None = None) -> CaseReport:
    wrong = Verdict.FAILED if message or mismatch else Verdict.PASSED
    return CaseReport(shape, LeadingDims(8, 8, 8), *way, wrong, 0.0, message=message, mismatch=mismatch)


def hung(cta: int, line: int = 12) -> tuple[str, str]:
    return f"deadlock: {cta + 1} groups of threads wait", f"  at CTA ({cta}, 0, 0), PTX line {line}, k.cu:{line + 5}"


def test_same_fault_is_told_once_and_counted() -> None:
    digest = Digest()
    first, *more = (
        digest.add(case(shape, way, *hung(number)))
        for number, (shape, way) in enumerate((shape, way) for shape in SHAPES for way in WAYS)
    )
    assert first[0].endswith("failed [1]")
    assert first[1:] == (
        "    [1] deadlock: 1 groups of threads wait",
        "          at CTA (0, 0, 0), PTX line 12, k.cu:17",
    )
    assert all(len(lines) == 1 and lines[0].endswith("failed [1]") for lines in more)
    assert digest.rest() == ("[1] the same in 7 other cases: 256 x 256 x 256 (the other 3), 129 x 141 x 71 (all 4)",)


def test_cases_are_named_where_others_of_the_shape_are_right() -> None:
    digest = Digest()
    for shape in SHAPES:
        for way in WAYS:
            digest.add(case(shape, way, *(hung(0) if way[1] == "lazy" or way == WAYS[0] else ())))
    assert digest.rest() == (
        "[1] the same in 5 other cases: 256 x 256 x 256 (integer lazy; normal lazy), "
        "129 x 141 x 71 (integer eager, lazy; normal lazy)",
    )


def test_another_place_is_another_fault() -> None:
    digest = Digest()
    digest.add(case(SHAPES[0], WAYS[0], *hung(0)))
    second = digest.add(case(SHAPES[0], WAYS[1], *hung(0, line=13)))
    assert second[0].endswith("failed [2]")
    assert "k.cu:18" in second[2]
    assert digest.rest() == ()


def mismatch(wrong: int, *hints: str) -> Mismatch:
    return Mismatch(wrong, 1000, 0, (WrongElement(0, wrong, 1.0, 2.0),), (f"all in rows 0-{wrong}", *hints))


def test_wrong_elements_are_one_fault_wherever_they_are() -> None:
    digest = Digest()
    first = digest.add(case(SHAPES[0], WAYS[0], mismatch=mismatch(5)))
    assert first[1] == "    [1] 5 of 1,000 elements of D are wrong"
    assert len(digest.add(case(SHAPES[1], WAYS[0], mismatch=mismatch(7)))) == 1
    told = "column {} holds what belongs in column {}"
    assert digest.add(case(SHAPES[1], WAYS[1], mismatch=mismatch(7, told.format(1, 2))))[0].endswith("[2]")
    assert digest.add(case(SHAPES[1], WAYS[2], mismatch=mismatch(8, told.format(3, 41))))[0].endswith("[2]")
    assert len(digest.rest()) == 2


def test_findings_and_message_of_one_case_have_their_own_numbers() -> None:
    digest = Digest()
    place = Place("ld.shared.b32 %r1, [%r2];", 40, ("k.cu", 7), "CTA (0, 0, 0) warp 1")
    race = Finding("RC-01", "E", "a race", place)
    found = CaseReport(
        SHAPES[0], LeadingDims(8, 8, 8), *WAYS[0], Verdict.FAILED, 0.0, message=hung(0), checked=True, findings=(race,)
    )
    lines = digest.add(found)
    assert lines[0].endswith("failed [1] [2]")
    assert any(line.startswith("    [2] RC-01 error: a race") for line in lines)
    assert digest.add(case(SHAPES[0], WAYS[1], *hung(3)))[0].endswith("failed [1]")


def test_long_instructions_lose_their_middle() -> None:
    registers = ", ".join(f"%r{number}" for number in range(64))
    line = f"  instruction: tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{registers}}}, [%r99];"
    assert shortened(line) == (
        "  instruction: tcgen05.ld.sync.aligned.32x32b.x64.b32 {%r0, %r1, %r2, ... 60 more ..., %r63}, [%r99];"
    )
    assert shortened("mov.b32 {%r1, %r2}, %r3;") == "mov.b32 {%r1, %r2}, %r3;"
    assert len(shortened("x" * 10_000)) < 400
