# SPDX-License-Identifier: Apache-2.0
"""The functions of expressions: how many arguments they take, and what they do."""

from __future__ import annotations

from dataclasses import dataclass

CASTS = ("f16", "bf16", "f32", "f64", "tf32", "e4m3", "e5m2")
TIMES = ("old", "new")


@dataclass(frozen=True, slots=True)
class Function:
    """`least` and `most` count the arguments."""

    about: str
    least: int = 1
    most: int = 1


FUNCTIONS: dict[str, Function] = {
    **{name: Function(f"round to {name}, to nearest even") for name in CASTS},
    "old": Function("a buffer's contents before the launch"),
    "new": Function("a buffer's contents after the launch"),
    "abs": Function("magnitude"),
    "relu": Function("0 where negative"),
    "sum": Function("sum of all elements, or along the dimension that a second argument names", 1, 2),
    "max": Function("largest element, or the larger of two, element by element", 1, 2),
    "min": Function("least element, or the lesser of two, element by element", 1, 2),
}
