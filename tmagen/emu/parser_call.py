# SPDX-License-Identifier: Apache-2.0
"""Device functions and calls of them (PTX ISA, "call", "Parameter State Space").

A call is laid open where it stands: the body of the function is parsed once more, with registers, labels and variables
of its own, and its formal parameters are other names for the caller's variables of the parameter space, which are
memory of the thread. What cannot be laid open stays a `call`, and says so when it is reached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FUNCTION = re.compile(
    r"\.func\s*(?:\((?P<results>[^)]*)\))?\s*(?:\.noreturn\s*)?(?P<name>[\w$]+)\s*(?:\((?P<params>[^)]*)\))?(?P<rest>[^;{]*)"
)
_FORMAL = re.compile(r"\.param\b.*?([\w$]+)\s*(?:\[\s*\d*\s*\])?\s*$", re.S)
_CALL = re.compile(
    r"(?:\(\s*(?P<results>[^)]*?)\s*\)\s*,)?\s*(?P<name>[\w$%]+)\s*(?:,\s*\(\s*(?P<arguments>[^)]*?)\s*\))?\s*(?:,.*)?$",
    re.S,
)


@dataclass(frozen=True)
class Function:
    """A `.func`. `formals` are the names of its results, then of its parameters; None where one of them is a register
    or has no name. `body` is where its brace opens in the text; None where it is declared alone.
    """

    name: str
    formals: tuple[str, ...] | None
    body: int | None
    end: int


@dataclass(frozen=True)
class Call:
    """What a call names. `actuals` are its results, then its arguments."""

    name: str
    actuals: tuple[str, ...]


def function_at(text: str, at: int) -> Function | None:
    """The function that is declared or defined at `at`, where `.func` stands."""
    found = _FUNCTION.match(text, at)
    if found is None:
        return None
    matches = [_FORMAL.match(part) for part in (*_split(found["results"]), *_split(found["params"]))]
    names = tuple(match[1] for match in matches if match)
    opens = text[found.end() : found.end() + 1] == "{"
    formals = names if len(names) == len(matches) else None
    return Function(found["name"], formals, found.end() if opens else None, found.end())


def functions_of(text: str) -> dict[str, Function]:
    """All functions of a module, by name; a definition wins over its declarations."""
    found: dict[str, Function] = {}
    for match in re.finditer(r"\.func\b", text):
        function = function_at(text, match.start())
        if function is not None and (function.body is not None or function.name not in found):
            found[function.name] = function
    return found


def read_call(text: str) -> Call | None:
    """What follows `call` or `call.uni`; None for a form that is not known, as variadic ones."""
    found = _CALL.match(text.strip())
    if found is None:
        return None
    return Call(found["name"], (*_split(found["results"]), *_split(found["arguments"])))


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
