# SPDX-License-Identifier: Apache-2.0
"""What is tried: the problems and ways that a user asked for, or those that suit the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tmagen.bind import LeadingDims
from tmagen.emu.policy import POLICIES, THOROUGH, USUAL
from tmagen.errors import TmagenError
from tmagen.ir import Shape
from tmagen.verify.cases import Problem
from tmagen.verify.host import Host
from tmagen.verify.shapes import (
    check_leading_dims,
    check_shapes,
    chosen_leading_dims,
    default_leading_dims,
    default_shapes,
    layout_note,
)

COMPLETIONS = tuple(POLICIES)
"""The execution policies, by name."""

INPUTS = ("integer", "normal")

# A baked-in shape of more multiply-adds is tried in the ways that tell most for their time, where none are asked for.
_LARGE = 1 << 33
_FEW_COMPLETIONS = ("eager", "random")
_FEW_INPUTS = ("integer",)


@dataclass(frozen=True, slots=True)
class Ways:
    """Under which policies and on which inputs; None: what suits the shape. `thorough`: with all seeds."""

    completions: tuple[str, ...] | None
    inputs: tuple[str, ...] | None
    thorough: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """What is tried, and what the user should know of it."""

    problems: tuple[Problem, ...]
    completions: tuple[str, ...]
    inputs: tuple[str, ...]
    notes: tuple[str, ...]


def asked_ways(completion: str | Sequence[str] | None, inputs: str | None, thorough: bool = False) -> Ways:
    """The ways by their names. Raises TmagenError for names that do not exist."""
    return Ways(
        named_policies(completion) if completion is not None else THOROUGH if thorough else None,
        None if inputs is None else _inputs(inputs),
        thorough,
    )


def choose(host: Host, shapes: Sequence[Shape] | None, lds: LeadingDims | None, ways: Ways) -> Choice:
    """The problems to try on a kernel: those of `shapes`, or a set that suits it.

    Raises SpecError for shapes that it cannot compute, and for leading dimensions that do not fit a shape.
    """
    program = host.program
    static, elements = program.static_mnk, program.elements
    chosen = default_shapes(static, host.ctas_of) if shapes is None else check_shapes(shapes, static)
    problems: list[Problem] = []
    notes: list[str] = []
    for shape in chosen:
        if lds is not None:
            dims = lds
        elif shapes is None:
            dims = chosen_leading_dims(shape, elements, static)
        else:
            dims = default_leading_dims(shape, elements)
        check_leading_dims(shape, dims, elements)
        note = None if lds else layout_note(shape, elements, dims)
        if note:
            notes.append(f"{shape.m} x {shape.n} x {shape.k}: {note}")
        problems.append(Problem(shape, dims, elements))
    completions, inputs = ways.completions or USUAL, ways.inputs or INPUTS
    if shapes is None and None not in static and any(s.m * s.n * s.k > _LARGE for s in chosen):
        completions, inputs = ways.completions or _FEW_COMPLETIONS, ways.inputs or _FEW_INPUTS
        left = [name for name, asked in (("--completion", ways.completions), ("--input", ways.inputs)) if asked is None]
        if left:
            notes.append(
                f"a large shape is baked in: input {' and '.join(inputs)}, completion {' and '.join(completions)} alone"
                f" ({' and '.join(left)} choose{'s' if len(left) == 1 else ''} others)"
            )
    return Choice(tuple(problems), completions, inputs, tuple(notes))


def named_policies(asked: str | Sequence[str]) -> tuple[str, ...]:
    """The policies of a name, or of several. Raises TmagenError for names that do not exist."""
    groups = {"usual": USUAL, "all": THOROUGH}
    chosen = groups.get(asked, (asked,)) if isinstance(asked, str) else tuple(dict.fromkeys(asked))
    unknown = [name for name in chosen if name not in COMPLETIONS]
    if unknown or not chosen:
        names = ", ".join((*COMPLETIONS, *groups))
        raise TmagenError(f"completion {', '.join(unknown) or 'of no kind'}: choose from {names}")
    return chosen


def _inputs(asked: str) -> tuple[str, ...]:
    if asked == "both":
        return INPUTS
    if asked not in INPUTS:
        raise TmagenError(f"input {asked}: choose from {', '.join(INPUTS)}, both")
    return (asked,)
