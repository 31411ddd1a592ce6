# SPDX-License-Identifier: Apache-2.0
"""Whether the fields of a spec hold what their annotations say: the ground that every other rule stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, get_args, get_type_hints

from tmagen.errors import Diagnostic
from tmagen.words import shown

INT_BITS = 63
"""Integers of more bits than this are refused unread: no field is near it, and printing one could take minutes."""


_KINDS: dict[type, dict[str, tuple[type, ...]]] = {}


def _kinds(cls: type) -> dict[str, tuple[type, ...]]:
    """The types that each field of ``cls`` takes: ``int | None`` is (int, NoneType)."""
    if cls not in _KINDS:
        _KINDS[cls] = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(cls).items()}
    return _KINDS[cls]


def _described(kind: type) -> str:
    if kind is type(None):
        return "None"
    if issubclass(kind, Enum):
        return f"{kind.__name__} ({', '.join(repr(member) for member in kind)})"
    return kind.__name__


def wrong_type(path: str, value: object, kinds: tuple[type, ...]) -> Diagnostic:
    """The diagnostic for a field that holds something of another type."""
    return Diagnostic(
        f"{path} = {shown(value)} is of type {type(value).__name__}",
        detail=(f"it takes {' or '.join(_described(kind) for kind in kinds)}",),
    )


def wrong_types(value: Any, prefix: str = "") -> Iterator[Diagnostic]:
    """One diagnostic for each field, at any depth of the dataclass ``value``, that its annotation does not cover.

    A bool is no int, and an int has at most 63 bits.
    """
    for name, kinds in _kinds(type(value)).items():
        field, path = getattr(value, name), f"{prefix}{name}"
        if isinstance(field, int) and field.bit_length() > INT_BITS:
            yield Diagnostic(f"{path} is an integer of {field.bit_length():,} bits, which is out of every range")
        elif type(field) not in kinds:
            yield wrong_type(path, field, kinds)
        elif is_dataclass(field):
            yield from wrong_types(field, f"{path}.")
