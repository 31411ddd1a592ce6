# SPDX-License-Identifier: Apache-2.0
"""How the text of a flag is read, and what is said of text that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tmagen.errors import Diagnostic
from tmagen.ir import Shape
from tmagen.words import one_of, shown

T = TypeVar("T")

_LARGEST = 2**63 - 1
"""Of either sign: no field is near it."""


class UnreadableError(Exception):
    """A flag's text that cannot be read; the text says what it takes."""


class OutOfRangeError(UnreadableError):
    """An integer, but of a size that nothing takes."""


class FlagReader:
    """Reads flags one by one, and keeps a diagnostic of each that cannot be read."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []

    def read(self, flag: str, text: str | None, reader: Callable[[str], T]) -> T | None:
        """What ``text`` means; None for a flag that was not given, or cannot be read."""
        if text is None:
            return None
        try:
            return reader(text)
        except UnreadableError as unreadable:
            self.diagnostics.append(Diagnostic(f"--{flag} {shown(text)} cannot be read: {unreadable}"))
            return None


def integer(text: str) -> int:
    """A decimal integer."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise UnreadableError("it takes an integer")
    # The length first: reading thousands of digits is refused by Python.
    significant = digits.lstrip("0") or "0"
    value = int(significant) if len(significant) < 20 else _LARGEST + 1
    if value > _LARGEST:
        raise OutOfRangeError(f"it takes an integer from {-_LARGEST:,} to {_LARGEST:,}")
    return -value if text[0] == "-" else value


def architecture(text: str) -> str:
    """A name such as sm_100a."""
    if not re.fullmatch(r"sm_\d{2,3}[af]?", text):
        raise UnreadableError("it takes an architecture such as sm_100a or sm_90a")
    return text


def integer_between(lowest: int, highest: int) -> Callable[[str], int]:
    """A reader of integers from ``lowest`` to ``highest``."""

    def read(text: str) -> int:
        try:
            value = integer(text)
        except OutOfRangeError:
            value = highest + 1
        if not lowest <= value <= highest:
            raise UnreadableError(f"it takes {lowest:,} to {highest:,}")
        return value

    return read


def three_integers(text: str, names: str = "M,N,K") -> tuple[int, int, int]:
    """Three integers with commas between them."""
    try:
        first, second, third = (integer(part.strip()) for part in text.split(","))
    except OutOfRangeError as error:
        raise UnreadableError(f"{error} for each of {names}") from None
    except (ValueError, UnreadableError):
        raise UnreadableError(f"it takes three integers {names}") from None
    return first, second, third


def shape(text: str) -> Shape:
    """`M,N,K`, of any sign: :mod:`tmagen.legality` says which sizes may be."""
    return Shape(*three_integers(text))


def word_of(words: Mapping[str, T]) -> Callable[[str], T]:
    """A reader of one of ``words``."""

    def read(text: str) -> T:
        if text not in words:
            raise UnreadableError(f"it is {one_of(words)}")
        return words[text]

    return read
