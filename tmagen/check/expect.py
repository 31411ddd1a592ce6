# SPDX-License-Identifier: Apache-2.0
"""Whether an expectation holds, and what kind of wrong it is where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.check.arena import Arena
from tmagen.check.elements import ELEMENTS, Array, Element, narrowed, widened
from tmagen.check.expression import Index, Name, Node, Transpose, evaluate
from tmagen.check.finding import Finding, Severity
from tmagen.check.spec import ExpectSpec

_SHOWN = 5


def judge(expect: ExpectSpec, arena: Arena, key: str) -> Finding | None:
    """None where the expectation holds.

    The right side is rounded once to the type of the left where that is a buffer or a part of one. `==` then compares
    values: 0 and -0 are one, and so are all NaNs. `~=` allows `atol + rtol * |right|`.
    """
    that = expect.that
    element = _element(that.left, arena)
    right = evaluate(that.right, arena.contents, "old")
    left = evaluate(that.left, arena.contents, "new")
    if element is not None and that.exact:
        rounded = widened(narrowed(right, element), element)
        wrong = _differ(left, np.broadcast_to(rounded, left.shape))
        right = rounded
    elif that.exact:
        wrong = _differ(left, np.broadcast_to(right, left.shape))
    else:
        wrong = _outside(left, np.broadcast_to(right, left.shape), expect, element or ELEMENTS["f64"])
    if not wrong.any():
        return None
    return _describe(expect, key, left, np.broadcast_to(right, left.shape), wrong, _unwritten(that.left, arena, wrong))


def _element(node: Node, arena: Arena) -> Element | None:
    """The type of a buffer or of a part of one; None for what is computed."""
    while isinstance(node, Transpose | Index):
        node = node.operand
    return arena.buffers[node.name].spec.element if isinstance(node, Name) else None


def _differ(left: Array, right: Array) -> npt.NDArray[np.bool_]:
    wrong: npt.NDArray[np.bool_] = np.asarray(left != right)
    if left.dtype.kind == right.dtype.kind == "f":
        wrong = wrong & ~(np.isnan(left) & np.isnan(right))
    return np.atleast_1d(wrong)


def _outside(left: Array, right: Array, expect: ExpectSpec, element: Element) -> npt.NDArray[np.bool_]:
    rtol = element.rtol if expect.rtol is None else expect.rtol
    atol = element.atol if expect.atol is None else expect.atol
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        inside = np.abs(a - b) <= atol + rtol * np.abs(b)  # false for NaN, and for infinities unless equal
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.atleast_1d(~(np.where(np.isfinite(b), inside, False) | same))


def _unwritten(node: Node, arena: Arena, wrong: npt.NDArray[np.bool_]) -> int:
    """How many wrong elements still hold the poison, where the left side is a whole buffer."""
    if not isinstance(node, Name) or arena.buffers[node.name].before is not None:
        return 0
    buffer = arena.buffers[node.name]
    return int(np.count_nonzero((buffer.bits() == buffer.spec.element.poison) & wrong.reshape(buffer.spec.shape)))


def _describe(
    expect: ExpectSpec, key: str, left: Array, right: Array, wrong: npt.NDArray[np.bool_], unwritten: int
) -> Finding:
    count, total = int(np.count_nonzero(wrong)), wrong.size
    missing = f", {unwritten:,} of them were never written" if unwritten else ""
    lines = [f"{count:,} of {total:,} elements are wrong{missing}"]
    if total > 1:
        lines.append(_where(wrong))
    name = expect.that.left.name if isinstance(expect.that.left, Name) else "left side"
    for place in _first_places(wrong):
        index = f"[{', '.join(map(str, place))}]" if left.ndim else ""
        got, want = left[place] if left.ndim else left[()], right[place] if left.ndim else right[()]
        lines.append(f"{name}{index} = {_number(got)}, expected {_number(want)}")
    return Finding("wrong-result", Severity.ERROR, f"not {expect.that.text}", tuple(lines), key=key)


def _first_places(wrong: npt.NDArray[np.bool_]) -> list[tuple[int, ...]]:
    flat = np.flatnonzero(wrong)[:_SHOWN]
    return [tuple(int(i) for i in np.unravel_index(place, wrong.shape)) for place in flat]


def _where(wrong: npt.NDArray[np.bool_]) -> str:
    """Which indices of each dimension are wrong, and whether the wrong ones fill them."""
    if wrong.all():
        return "all of them"
    marks = [wrong.any(axis=tuple(d for d in range(wrong.ndim) if d != dimension)) for dimension in range(wrong.ndim)]
    area = int(np.prod([int(mark.sum()) for mark in marks]))
    count = int(np.count_nonzero(wrong))
    density = "all" if count == area else f"{100 * count / area:.0f} %"
    return f"{density} in [{', '.join(_ranges(np.atleast_1d(mark)) for mark in marks)}]"


def _ranges(marked: npt.NDArray[np.bool_]) -> str:
    if marked.all():
        return ":"
    edges = np.flatnonzero(np.diff(np.concatenate(([0], marked.astype(np.int8), [0]))))
    spans = [f"{a}" if b - a == 1 else f"{a}:{b}" for a, b in edges.reshape(-1, 2).tolist()]
    return " ".join(spans[:4]) + (f" and {len(spans) - 4} more" if len(spans) > 4 else "")


def _number(value: Any) -> str:
    return str(int(value)) if np.asarray(value).dtype.kind == "i" else f"{float(value):.6g}"
