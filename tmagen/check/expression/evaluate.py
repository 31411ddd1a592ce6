# SPDX-License-Identifier: Apache-2.0
"""The values of an expression: f64 where any floating-point number is involved, else s64 that wraps, as PTX's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.check.elements import ELEMENTS, narrowed, widened
from tmagen.check.expression.functions import CASTS
from tmagen.check.expression.tree import Binary, Call, Index, Name, Negative, Node, Number, Transpose

Values = npt.NDArray[Any]
Contents = Callable[[str, str], Values]
"""The f64 or s64 values of a buffer, by its name and "old" or "new"."""

_EXACT_LIMIT = 2.0**53  # integers below this are exact in f64


def evaluate(node: Node, contents: Contents, time: str) -> Values:
    """The values of `node`, whose shapes fit. Names mean what is there at `time`: "old" or "new"."""
    with np.errstate(all="ignore"):  # infinities and NaNs are values here
        return _Evaluator(contents, time).value(node)


class _Evaluator:
    def __init__(self, contents: Contents, time: str) -> None:
        self.contents = contents
        self.time = time

    def value(self, node: Node) -> Values:
        match node:
            case Number(value):
                return np.asarray(value, np.int64 if isinstance(value, int) else np.float64)
            case Name(name):
                return self.contents(name, self.time)
            case Negative(operand):
                return np.asarray(-self.value(operand))
            case Transpose(operand):
                return self.value(operand).T
            case Index():
                return np.asarray(self.value(node.operand)[node.key])
            case Call():
                return np.asarray(self.call(node))
            case Binary():
                return np.asarray(_combine(node.operator, self.value(node.left), self.value(node.right)))

    def call(self, node: Call) -> Any:
        name, first = node.function, node.arguments[0]
        if name in ("old", "new"):
            assert isinstance(first, Name)
            return self.contents(first.name, name)
        value = self.value(first)
        if name in CASTS:
            return widened(narrowed(value, ELEMENTS[name]), ELEMENTS[name])
        match name, node.arguments[1:]:
            case "abs", ():
                return np.abs(value)
            case "relu", ():
                return np.maximum(value, 0)
            case "sum", ():
                return value.sum()
            case "sum", (Number(axis), *_):
                return value.sum(axis=int(axis))
            case "max", ():
                return value.max()
            case "min", ():
                return value.min()
            case "max", (other, *_):
                return np.maximum(value, self.value(other))
            case "min", (other, *_):
                return np.minimum(value, self.value(other))
        raise AssertionError(name)


def _combine(operator: str, left: Values, right: Values) -> Any:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left.astype(np.float64) / right.astype(np.float64)
        case "@":
            return _product(left, right)
    raise AssertionError(operator)


def _product(left: Values, right: Values) -> Any:
    if left.dtype.kind == right.dtype.kind == "i":
        # NumPy has a fast product for floating-point numbers alone.
        bound = float(left.shape[-1]) * _magnitude(left) * _magnitude(right)
        if bound >= _EXACT_LIMIT:
            return left @ right
        return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int64)
    return left.astype(np.float64) @ right.astype(np.float64)


def _magnitude(values: Values) -> float:
    return float(np.abs(values.astype(np.float64)).max(initial=0.0))
