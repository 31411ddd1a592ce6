# SPDX-License-Identifier: Apache-2.0
"""Whether the expectations of a launch file fit its buffers."""

from __future__ import annotations

from collections.abc import Iterator

from tmagen.check.expression import Binary, Call, ExpressionError, Index, Name, Negative, Node, Transpose, shape_of
from tmagen.check.spec import ExpectSpec, LaunchSpec
from tmagen.errors import Diagnostic


def check_expects(spec: LaunchSpec, problems: list[Diagnostic]) -> None:
    """Names, shapes, and the right side's need of something that was there before."""
    shapes = {buffer.name: buffer.shape for buffer in spec.buffers}
    for number, expect in enumerate(spec.expects):
        key = "expect" if len(spec.expects) == 1 else f"expect[{number}]"
        text = expect.that.text
        try:
            left, right = (shape_of(side, shapes, text) for side in (expect.that.left, expect.that.right))
            if right not in ((), left):
                message = f"the left side has shape {list(left)}, the right side {list(right)}"
                raise ExpressionError(message, text, expect.that.column)
        except ExpressionError as error:
            problems.append(error.diagnostic(f"{key}: "))
            continue
        problems += _poisoned(key, expect, spec)


def _poisoned(key: str, expect: ExpectSpec, spec: LaunchSpec) -> Iterator[Diagnostic]:
    """A name whose contents before the launch are asked for, and that has none."""
    for name, time in (*names(expect.that.left, "new"), *names(expect.that.right, "old")):
        if time == "old" and spec.buffer(name.name).fill.kind == "poison":
            error = ExpressionError(f"{name.name} holds nothing before the launch", expect.that.text, name.column)
            found = error.diagnostic(f"{key}: ")
            rule = "the left side is what the launch leaves behind, the right side what was there before"
            yield Diagnostic(found.message, (*found.detail, rule), f"new({name.name}), or another fill")


def names(node: Node, time: str) -> Iterator[tuple[Name, str]]:
    """The buffers that an expression names, each with the time that is meant: "old" or "new"."""
    match node:
        case Name():
            yield node, time
        case Call(function, arguments):
            for argument in arguments:
                yield from names(argument, function if function in ("old", "new") else time)
        case Binary(_, left, right):
            yield from names(left, time)
            yield from names(right, time)
        case Negative(operand) | Transpose(operand) | Index(operand):
            yield from names(operand, time)
