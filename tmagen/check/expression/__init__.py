# SPDX-License-Identifier: Apache-2.0
"""Expectations about buffers, `D == relu(A @ B.T) + C`: read by a grammar of their own, computed in f64 or s64.

    expectation: expression ("==" | "~=") expression
    expression:  term (("+" | "-") term)*
    term:        unary (("*" | "/" | "@") unary)*
    unary:       "-" unary | postfix
    postfix:     primary (".T" | "[" index ("," index)* "]")*
    primary:     number | name | function "(" expression ("," expression)* ")" | "(" expression ")"
    index:       integer | [integer] ":" [integer] [":" integer]

Nothing is ever handed to Python's own evaluator.
"""

from __future__ import annotations

from tmagen.check.expression.evaluate import Contents, evaluate
from tmagen.check.expression.functions import FUNCTIONS
from tmagen.check.expression.parser import parse_expectation
from tmagen.check.expression.shapes import Shapes, shape_of
from tmagen.check.expression.tokens import ExpressionError
from tmagen.check.expression.tree import Binary, Call, Expectation, Index, Name, Negative, Node, Number, Span, Transpose

__all__ = [
    "FUNCTIONS",
    "Binary",
    "Call",
    "Contents",
    "Expectation",
    "ExpressionError",
    "Index",
    "Name",
    "Negative",
    "Node",
    "Number",
    "Shapes",
    "Span",
    "Transpose",
    "evaluate",
    "parse_expectation",
    "shape_of",
]
