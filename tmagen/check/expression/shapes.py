# SPDX-License-Identifier: Apache-2.0
"""The shape of an expression, before anything is computed: what does not fit is told before the kernel runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tmagen.check.expression.tokens import ExpressionError
from tmagen.check.expression.tree import Binary, Call, Index, Name, Negative, Node, Number, Transpose
from tmagen.words import nearest

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]


def shape_of(node: Node, shapes: Shapes, text: str) -> Shape:
    """The shape of `node` over buffers of `shapes`. Raises ExpressionError where operands do not fit."""
    match node:
        case Number():
            return ()
        case Name(name, column):
            if name not in shapes:
                meant = nearest(name, shapes)
                hint = f"; did you mean {meant}?" if meant else ""
                raise ExpressionError(f"there is no buffer {name}{hint}", text, column)
            return shapes[name]
        case Negative(operand):
            return shape_of(operand, shapes, text)
        case Transpose(operand):
            return shape_of(operand, shapes, text)[::-1]
        case Index():
            return _indexed(node, shape_of(node.operand, shapes, text), text)
        case Call():
            return _called(node, shapes, text)
        case Binary():
            return _combined(node, shapes, text)


def _indexed(node: Index, shape: Shape, text: str) -> Shape:
    if len(node.items) > len(shape):
        raise ExpressionError(f"{len(node.items)} indices for shape {list(shape)}", text, node.column)
    kept: list[int] = []
    for dimension, (item, extent) in enumerate(zip(node.items, shape, strict=False)):
        if isinstance(item, int):
            if not -extent <= item < extent:
                message = f"index {item} is outside dimension {dimension} of {extent} elements"
                raise ExpressionError(message, text, node.column)
        else:
            kept.append(len(range(*item.as_slice.indices(extent))))
    return (*kept, *shape[len(node.items) :])


def _called(node: Call, shapes: Shapes, text: str) -> Shape:
    first = shape_of(node.arguments[0], shapes, text)
    if node.function in ("old", "new"):
        if not isinstance(node.arguments[0], Name):
            raise ExpressionError(f"{node.function} takes the name of a buffer", text, node.column)
        return first
    if node.function == "sum" and len(node.arguments) == 2:
        axis = node.arguments[1]
        if not (isinstance(axis, Number) and isinstance(axis.value, int) and axis.value < len(first)):
            message = f"sum's second argument is a dimension of {list(first)}, an integer from 0"
            raise ExpressionError(message, text, node.column)
        return first[: axis.value] + first[axis.value + 1 :]
    if node.function in ("max", "min") and len(node.arguments) == 2:
        return _broadcast(first, shape_of(node.arguments[1], shapes, text), node.function, text, node.column)
    if node.function in ("max", "min"):
        if 0 in first:
            raise ExpressionError(f"{node.function} of no elements", text, node.column)
        return ()
    return () if node.function == "sum" else first


def _combined(node: Binary, shapes: Shapes, text: str) -> Shape:
    left, right = shape_of(node.left, shapes, text), shape_of(node.right, shapes, text)
    if node.operator != "@":
        return _broadcast(left, right, node.operator, text, node.column)
    if not (left and right):
        raise ExpressionError("@ takes matrices or vectors, not a number", text, node.column)
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        message = f"@ of {list(left)} and {list(right)}: {left[-1]} columns meet {inner} rows"
        raise ExpressionError(message, text, node.column)
    batch = _broadcast(left[:-2], right[:-2], "@", text, node.column)
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _broadcast(left: Shape, right: Shape, operator: str, text: str, column: int) -> Shape:
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        raise ExpressionError(f"{operator} of shapes {list(left)} and {list(right)}", text, column) from None
