# SPDX-License-Identifier: Apache-2.0
"""How messages put values into words."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN_CHARACTERS = 60


def one_of(values: Iterable[object]) -> str:
    """`a`, `a or b`, `a, b or c`; many integers in equal steps as `16 to 256 in steps of 16`."""
    found = list(values)
    numbers = [value for value in found if isinstance(value, int)]
    if len(numbers) == len(found) > 4:
        step = numbers[1] - numbers[0]
        if numbers == list(range(numbers[0], numbers[-1] + 1, step)):
            return f"{numbers[0]} to {numbers[-1]} in steps of {step}"
    *most, last = map(str, found)
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """``value`` as a message shows it: its own repr, cut to a readable length."""
    try:
        text = repr(value)
    except Exception:  # a repr that fails is the caller's, and must not hide what is wrong
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that a user most likely meant by ``word``, if any is near."""
    from difflib import get_close_matches  # slow to import, and needed for mistakes alone

    return next(iter(get_close_matches(word[:_SHOWN_CHARACTERS], list(known), n=1, cutoff=0.5)), None)
