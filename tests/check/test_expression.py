# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmagen.check.expression import (
    Binary,
    Call,
    ExpressionError,
    Index,
    Name,
    Negative,
    Node,
    Number,
    Span,
    Transpose,
    evaluate,
    parse_expectation,
    shape_of,
)

RANDOM = np.random.default_rng(0)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "A": RANDOM.integers(-9, 9, (6, 4)),
    "B": RANDOM.integers(-9, 9, (5, 4)),
    "C": RANDOM.standard_normal((6, 5)),
    "v": RANDOM.integers(-9, 9, (4,)),
}
SHAPES = {name: array.shape for name, array in ARRAYS.items()}


def value(text: str, time: str = "old") -> Any:
    """The right side of `0 == text`."""
    expectation = parse_expectation(f"0 == {text}")
    got = evaluate(expectation.right, lambda name, when: ARRAYS[name] if when == "old" else -ARRAYS[name], time)
    assert got.shape == shape_of(expectation.right, SHAPES, expectation.text)
    return got


A, B, C, V = ARRAYS["A"], ARRAYS["B"], ARRAYS["C"], ARRAYS["v"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("A @ B.T", A @ B.T),
        ("A @ B.T + C", A @ B.T + C),
        ("-A + 2 * A", A),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("7 - 2 - 1", 4),
        ("8 / 2 / 2", 2.0),
        ("7 / 2", 3.5),
        ("1e3", 1000.0),
        ("--3", 3),
        ("-A @ B.T", -A @ B.T),
        ("relu(A)", np.maximum(A, 0)),
        ("abs(A)", abs(A)),
        ("max(A, 0)", np.maximum(A, 0)),
        ("min(A, v)", np.minimum(A, V)),
        ("max(A)", A.max()),
        ("min(A)", A.min()),
        ("sum(A)", A.sum()),
        ("sum(A, 1)", A.sum(axis=1)),
        ("A[1:3, ::2]", A[1:3, ::2]),
        ("A[-1]", A[-1]),
        ("A[2, 3]", A[2, 3]),
        ("A[::-1]", A[::-1]),
        ("A.T[0:2].T", A[:, 0:2]),
        ("A @ v", A @ V),
        ("v @ v", V @ V),
        ("new(A) + old(A)", 0 * A),
        ("f16(C)", C.astype(np.float16).astype(np.float64)),
        ("f32(1) / 3", 1 / 3),
    ],
)
def test_values_are_numpys(text: str, want: Any) -> None:
    np.testing.assert_array_equal(value(text), want)


def test_names_mean_the_side_that_they_are_on() -> None:
    np.testing.assert_array_equal(value("A", "new"), -A)
    np.testing.assert_array_equal(value("old(A)", "new"), A)


def test_integers_beyond_f64_are_exact() -> None:
    big = np.full((2, 2), (1 << 40) + 1)
    product = evaluate(parse_expectation("0 == X @ X").right, lambda name, when: big, "old")
    assert product.dtype == np.int64
    assert product.tolist() == (big @ big).tolist()


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 0, "expected a buffer, a number, a function or '(', not the end"),
        ("D", 1, "expected '==' or '~=', not the end"),
        ("D =", 2, "expected a name, a number or an operator, not '='"),
        ("D == ", 5, "not the end"),
        ("D == A @@ B", 8, "not '@'"),
        ("D == A B", 7, "expected an operator or the end, not 'B'"),
        ("D == (A", 7, "expected ')', not the end"),
        ("D == A[", 7, "expected an integer or ':'"),
        ("D == A[1.5]", 7, "an index is an integer"),
        ("D == A[0:4:0]", 12, "a step is not 0"),
        ("D == A[-]", 8, "expected an integer, not ']'"),
        ("D == relu(A, A)", 5, "relu takes 1 argument, not 2"),
        ("D == rellu(A)", 5, "rellu is no function; did you mean relu?"),
        ("D == __import__('os')", 5, None),
        ("D == A == A", 7, "expected an operator or the end, not '=='"),
        ("D == 99999999999999999999", 5, "an integer has at most 63 bits"),
        ("D == A;", 6, "expected a name, a number or an operator, not ';'"),
        ("D == " + "(" * 100, None, "nested more than 64 deep"),
        ("D == " + "-" * 100 + "1", None, "nested more than 64 deep"),
    ],
)
def test_what_is_no_expectation(text: str, column: int | None, message: str | None) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_expectation(text)
    if message is not None:
        assert message in raised.value.message
        assert column is None or raised.value.column == column
    assert f"column {raised.value.column + 1}" in raised.value.report()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A + B", "+ of shapes [6, 4] and [5, 4]"),
        ("A @ B", "@ of [6, 4] and [5, 4]: 4 columns meet 5 rows"),
        ("A @ 2", "@ takes matrices or vectors, not a number"),
        ("A[9]", "index 9 is outside dimension 0 of 6 elements"),
        ("A[0, 0, 0]", "3 indices for shape [6, 4]"),
        ("Aa", "there is no buffer Aa; did you mean A?"),
        ("old(A + A)", "old takes the name of a buffer"),
        ("sum(A, 2)", "sum's second argument is a dimension of [6, 4]"),
    ],
)
def test_what_does_not_fit(text: str, message: str) -> None:
    expectation = parse_expectation(f"A == {text}")
    with pytest.raises(ExpressionError) as raised:
        shape_of(expectation.right, SHAPES, expectation.text)
    assert message in raised.value.message


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    refused: ExpressionError | None = None
    try:
        parse_expectation(text)
    except ExpressionError as error:
        refused = error
    if refused is not None:
        assert 0 <= refused.column <= len(text)
        assert refused.report().startswith("error: ")


@given(st.text(alphabet="ABT ()[]:,.-+*/@=~12efrlu", max_size=40))
def test_near_misses_are_read_or_refused(text: str) -> None:
    test_any_text_is_read_or_refused.hypothesis.inner_test(text)  # type: ignore[attr-defined]


def written(node: Node) -> str:
    """A tree as text, with every parenthesis."""
    match node:
        case Number(number):
            return str(number)
        case Name(name):
            return name
        case Negative(operand):
            return f"(-{written(operand)})"
        case Binary(operator, left, right):
            return f"({written(left)} {operator} {written(right)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(written, arguments))})"
        case Transpose(operand):
            return f"{written(operand)}.T"
        case Index(operand, items):
            return f"{written(operand)}[{', '.join(map(_item, items))}]"


def _item(item: int | Span) -> str:
    if isinstance(item, int):
        return str(item)
    return ":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step))


bounds = st.none() | st.integers(-20, 20)
items = st.integers(-20, 20) | st.builds(Span, bounds, bounds, st.none() | st.integers(1, 5))
trees = st.recursive(
    st.builds(Number, st.integers(0, 1000), st.just(0)) | st.builds(Name, st.sampled_from("ABCv"), st.just(0)),
    lambda inner: st.one_of(
        st.builds(Negative, inner, st.just(0)),
        st.builds(Binary, st.sampled_from("+-*/@"), inner, inner, st.just(0)),
        st.builds(Call, st.sampled_from(("relu", "abs", "bf16")), st.tuples(inner), st.just(0)),
        st.builds(Transpose, inner, st.just(0)),
        st.builds(Index, inner, st.lists(items, min_size=1, max_size=3).map(tuple), st.just(0)),
    ),
    max_leaves=12,
)


@given(trees)
def test_a_tree_survives_being_written(tree: Node) -> None:
    again = parse_expectation(f"{written(tree)} ~= 0")
    assert written(again.left) == written(tree)
    assert not again.exact
