# SPDX-License-Identifier: Apache-2.0
"""Reading tables of a launch file, key by key, and keeping a diagnostic of each that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tmagen.errors import Diagnostic
from tmagen.words import nearest, one_of, shown, toml_key

V = TypeVar("V")

_KINDS = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table"}
_LARGEST = (1 << 63) - 1
_MISSING = object()


class Table:
    """One table at `path` ("buffers.A"). Every reader returns a default where the key is absent or wrong."""

    def __init__(self, value: Mapping[str, Any], path: str, problems: list[Diagnostic]) -> None:
        self.value, self.path, self.problems = value, path, problems

    def at(self, *keys: str) -> str:
        return ".".join((*([self.path] if self.path else []), *map(toml_key, keys)))

    def wrong(self, key: str, message: str, *detail: str, hint: str | None = None) -> None:
        """Keeps a diagnostic about a key."""
        self.problems.append(Diagnostic(f"{self.at(key)}{message}", tuple(detail), hint))

    def wrong_kind(self, key: str, value: Any, takes: str) -> None:
        article = _KINDS.get(type(value), f"a {type(value).__name__}")
        text = str(value).lower() if isinstance(value, bool) else shown(value)
        self.wrong(key, f" = {text} is {article}; it takes {takes}")

    def only(self, *known: str) -> None:
        """Complains of every other key, with the one that was probably meant."""
        for key in self.value:
            if key not in known:
                where = f" of {self.path}" if self.path else " of a launch file"
                self.problems.append(
                    Diagnostic(
                        f"{self.at(str(key))} is no key{where}",
                        detail=(f"it takes {one_of(known)}",),
                        hint=nearest(str(key), known),
                    )
                )

    def need(self, key: str, what: str) -> bool:
        """Whether the key is there; complains if it is not."""
        if key in self.value:
            return True
        self.wrong(key, f" is missing: {what}")
        return False

    def integer(self, key: str, default: int, least: int = 0, most: int = _LARGEST) -> int:
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return default
        if type(value) is not int:
            self.wrong_kind(key, value, "an integer")
        elif not least <= value <= most:
            self.wrong(key, f" = {value} is out of range: it takes {least:,} to {most:,}")
        else:
            return value
        return default

    def number(self, key: str, default: float | None) -> float | None:
        """A number that is not negative."""
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return default
        if type(value) not in (int, float):
            self.wrong_kind(key, value, "a number")
        elif not 0 <= value < float("inf"):
            self.wrong(key, f" = {value} is out of range: it takes a number from 0")
        else:
            return float(value)
        return default

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return default
        if isinstance(value, str):
            return value
        self.wrong_kind(key, value, "a string")
        return default

    def boolean(self, key: str, default: bool) -> bool:
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return default
        if isinstance(value, bool):
            return value
        self.wrong_kind(key, value, "true or false")
        return default

    def word(self, key: str, words: Mapping[str, V], default: V) -> V:
        """One of `words`, by its meaning."""
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return default
        if isinstance(value, str) and value in words:
            return words[value]
        takes = one_of(f'"{word}"' for word in words)
        if isinstance(value, str):
            self.wrong(key, f" = {shown(value)} is unknown", f"it takes {takes}", hint=nearest(value, words))
        else:
            self.wrong_kind(key, value, takes)
        return default

    def integers(
        self, key: str, lengths: Iterable[int], *, least: int = 0, most: int = _LARGEST
    ) -> tuple[int, ...] | None:
        """An array of so many integers; a single integer stands for an array of one."""
        value = self.value.get(key, _MISSING)
        if value is _MISSING:
            return None
        items = [value] if type(value) is int else value
        allowed = tuple(lengths)
        if not (isinstance(items, list | tuple) and all(type(item) is int for item in items)):
            self.wrong_kind(key, value, "an array of integers")
        elif len(items) not in allowed:
            self.wrong(key, f" has {len(items)} integers; it takes {one_of(allowed)}")
        elif not all(least <= item <= most for item in items):
            self.wrong(key, f" = {list(items)} is out of range: each is {least:,} to {most:,}")
        else:
            return tuple(items)
        return None

    def tables(self, key: str) -> dict[str, Table]:
        """The tables in a table, by name."""
        value = self.value.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong_kind(key, value, f"tables: [{self.at(key)}.NAME]")
            return {}
        found = {}
        for name, member in value.items():
            if isinstance(member, Mapping):
                found[str(name)] = Table(member, self.at(key, str(name)), self.problems)
            else:
                Table(value, self.at(key), self.problems).wrong_kind(str(name), member, "a table")
        return found

    def array(self, key: str) -> list[Any]:
        value = self.value.get(key, [])
        if isinstance(value, list | tuple):
            return list(value)
        self.wrong_kind(key, value, "an array")
        return []
