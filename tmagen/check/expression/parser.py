# SPDX-License-Identifier: Apache-2.0
"""Tokens to trees, by recursive descent."""

from __future__ import annotations

from tmagen.check.expression.functions import FUNCTIONS
from tmagen.check.expression.tokens import ExpressionError, Token, tokens_of
from tmagen.check.expression.tree import Binary, Call, Expectation, Index, Name, Negative, Node, Number, Span, Transpose
from tmagen.words import nearest

MAX_DEPTH = 64
_SUMS, _PRODUCTS, _COMPARISONS = ("+", "-"), ("*", "/", "@"), ("==", "~=")
_LARGEST_INTEGER = (1 << 63) - 1


def parse_expectation(text: str) -> Expectation:
    """The tree of `left == right` or `left ~= right`. Raises ExpressionError with the column and what was expected."""
    return _Parser(text).expectation()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def error(self, message: str, column: int | None = None) -> ExpressionError:
        return ExpressionError(message, self.text, self.token.column if column is None else column)

    def next(self) -> Token:
        token = self.token
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def found(self, *marks: str) -> Token | None:
        """The token, consumed, if it is one of `marks`."""
        return self.next() if self.token.kind == "mark" and self.token.text in marks else None

    def need(self, mark: str) -> None:
        if self.found(mark) is None:
            raise self.error(f"expected '{mark}', not {self.token}")

    def expectation(self) -> Expectation:
        left = self.expression()
        sign = self.found(*_COMPARISONS)
        if sign is None:
            raise self.error(f"expected '==' or '~=', not {self.token}")
        right = self.expression()
        if self.token.kind != "end":
            raise self.error(f"expected an operator or the end, not {self.token}")
        return Expectation(self.text, left, right, sign.text == "==", sign.column)

    def expression(self) -> Node:
        self.deeper()
        node = self.term()
        while sign := self.found(*_SUMS):
            node = Binary(sign.text, node, self.term(), sign.column)
        self.depth -= 1
        return node

    def term(self) -> Node:
        node = self.unary()
        while sign := self.found(*_PRODUCTS):
            node = Binary(sign.text, node, self.unary(), sign.column)
        return node

    def unary(self) -> Node:
        if sign := self.found("-"):
            self.deeper()
            node: Node = Negative(self.unary(), sign.column)
            self.depth -= 1
            return node
        return self.postfix()

    def postfix(self) -> Node:
        node = self.primary()
        while mark := self.found(".T", "["):
            if mark.text == ".T":
                node = Transpose(node, mark.column)
                continue
            items = [self.index()]
            while self.found(","):
                items.append(self.index())
            self.need("]")
            node = Index(node, tuple(items), mark.column)
        return node

    def primary(self) -> Node:
        token = self.next()
        if token.kind == "number":
            return Number(self.number(token), token.column)
        if token.kind == "name":
            return self.call(token) if self.found("(") else Name(token.text, token.column)
        if token.kind == "mark" and token.text == "(":
            node = self.expression()
            self.need(")")
            return node
        raise self.error(f"expected a buffer, a number, a function or '(', not {token}", token.column)

    def call(self, name: Token) -> Call:
        function = FUNCTIONS.get(name.text)
        if function is None:
            meant = nearest(name.text, FUNCTIONS)
            hint = f"; did you mean {meant}?" if meant else f"; there are {', '.join(FUNCTIONS)}"
            raise self.error(f"{name.text} is no function{hint}", name.column)
        arguments = [self.expression()]
        while self.found(","):
            arguments.append(self.expression())
        self.need(")")
        if not function.least <= len(arguments) <= function.most:
            takes = "1 argument" if function.most == 1 else f"{function.least} or {function.most} arguments"
            raise self.error(f"{name.text} takes {takes}, not {len(arguments)}", name.column)
        return Call(name.text, tuple(arguments), name.column)

    def index(self) -> int | Span:
        start = self.bound()
        if not self.found(":"):
            if start is None:
                raise self.error(f"expected an integer or ':', not {self.token}")
            return start
        stop = self.bound()
        step = self.bound() if self.found(":") else None
        if step == 0:
            raise self.error("a step is not 0")
        return Span(start, stop, step)

    def bound(self) -> int | None:
        negative = self.found("-")
        if self.token.kind != "number":
            if negative:
                raise self.error(f"expected an integer, not {self.token}")
            return None
        token = self.next()
        value = self.number(token)
        if not isinstance(value, int):
            raise self.error("an index is an integer", token.column)
        return -value if negative else value

    def number(self, token: Token) -> int | float:
        if token.text.isdigit():
            # Longer ones are refused unread: Python itself takes time for them.
            if len(token.text) > 19 or int(token.text) > _LARGEST_INTEGER:
                raise self.error("an integer has at most 63 bits", token.column)
            return int(token.text)
        return float(token.text)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} deep")
