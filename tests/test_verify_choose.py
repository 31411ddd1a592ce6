# SPDX-License-Identifier: Apache-2.0
"""What is tried where nobody says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tmagen.bind import LeadingDims
from tmagen.emu.policy import THOROUGH, USUAL
from tmagen.errors import TmagenError
from tmagen.ir import DType, Shape
from tmagen.verify.choose import INPUTS, asked_ways, choose
from tmagen.verify.host import Host

LARGE = (4096, 4096, 4096)


def host(*static: int | None) -> Host:
    program = SimpleNamespace(static_mnk=static or (None, None, None), elements=(DType.F16, DType.F16, DType.F16))
    fake: Any = SimpleNamespace(program=program, ctas_of=lambda shape: shape.m * shape.n)
    return cast(Host, fake)


def test_everything_by_default() -> None:
    choice = choose(host(), None, None, asked_ways(None, None))
    assert (choice.completions, choice.inputs) == (USUAL, INPUTS)
    assert "129 x 203 x 71: rows lie apart: lda = 80, ldb = 96, ldd = 224" in choice.notes


def test_a_large_baked_in_shape_is_tried_in_few_ways() -> None:
    choice = choose(host(*LARGE), None, None, asked_ways(None, None))
    assert (choice.completions, choice.inputs) == (("eager", "random"), ("integer",))
    assert choice.notes[-1] == (
        "a large shape is baked in: input integer, completion eager and random alone "
        "(--completion and --input choose others)"
    )
    assert choose(host(256, 256, 256), None, None, asked_ways(None, None)).completions == USUAL


@pytest.mark.parametrize(
    ("completion", "inputs", "expected", "noted"),
    [
        ("all", None, (THOROUGH, ("integer",)), "(--input chooses others)"),
        ("usual", None, (USUAL, ("integer",)), "(--input chooses others)"),
        (None, "both", (("eager", "random"), INPUTS), "(--completion chooses others)"),
        ("lazy", "normal", (("lazy",), ("normal",)), None),
    ],
)
def test_what_is_asked_for_is_done(
    completion: str | None, inputs: str | None, expected: tuple[tuple[str, ...], ...], noted: str | None
) -> None:
    choice = choose(host(*LARGE), None, None, asked_ways(completion, inputs))
    assert (choice.completions, choice.inputs) == expected
    assert any(noted in note for note in choice.notes) if noted else not any("large" in note for note in choice.notes)


def test_a_shape_that_is_asked_for_is_tried_in_every_way_with_packed_rows() -> None:
    choice = choose(host(*LARGE), [Shape(*LARGE)], None, asked_ways(None, None))
    assert (choice.completions, choice.inputs, choice.notes) == (USUAL, INPUTS, ())
    assert choice.problems[0].lds == LeadingDims(4096, 4096, 4096)
    wide = LeadingDims(5000, 5008, 5016)
    assert choose(host(), None, LeadingDims(5000, 5008, 5016), asked_ways(None, None)).problems[0].lds == wide


def test_unknown_words() -> None:
    with pytest.raises(TmagenError, match="completion late"):
        asked_ways("late", None)
    with pytest.raises(TmagenError, match="of no kind"):
        asked_ways([], None)
    with pytest.raises(TmagenError, match="input zeros"):
        asked_ways(None, "zeros")
