# SPDX-License-Identifier: Apache-2.0
"""Source lines in PTX: `.loc` directives, the calls that were inlined, and the names of functions.

`.loc FILE LINE COLUMN, function_name LABEL, inlined_at FILE LINE COLUMN` says which function the line is in and where
that was called (PTX ISA "Debugging Directives: .loc"); that place has a `.loc` of its own before it. The label stands
in section .debug_str before the function's mangled name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tmagen.emu.module import Frame, Source

_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?([^\n]*)")
_NAME = re.compile(r"function_name\s+([\w$]+)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)(?:\s+(\d+))?")
_STRINGS = re.compile(r"\.section\s+\.debug_str\s*\{([^}]*)\}")
_STRING = re.compile(r"([\w$]+)\s*:((?:\s*\.b8[\s\d,]+)+)")
_BYTE = re.compile(r"\d+(?=[\s,]|$)")
_IDENTIFIER = re.compile(r"L?(\d+)")

Place = tuple[str, str, str]


class SourceLines:
    """Reads the `.loc` directives of a kernel in their order."""

    def __init__(self, files: Mapping[int, str], names: Mapping[str, str]) -> None:
        self.files = files
        self.names = names
        self._frames: dict[Place, Source] = {}

    def read(self, text: str, at: int) -> tuple[Source, int] | None:
        """The line that the directive at `at` names, and where the directive ends; None for one that is no `.loc`."""
        found = _LOC.match(text, at)
        if found is None:
            return None
        place = (found[1], found[2], found[3] or "")
        inlined = _INLINED.search(found[4])
        callers: tuple[Frame, ...] = ()
        if inlined is not None:
            outer = (inlined[1], inlined[2], inlined[3] or "")
            caller = self._frames.get(outer)
            callers = (Frame(self._file(outer), int(outer[1])),) if caller is None else caller.frames
        name = _NAME.search(found[4])
        function = None if name is None else self.names.get(name[1])
        source = self._frames[place] = Source(self._file(place), int(place[1]), function, callers)
        return source, found.end()

    def _file(self, place: Place) -> str:
        return self.files.get(int(place[0]), place[0])


def function_names(text: str) -> dict[str, str]:
    """The function names that labels in section .debug_str stand before."""
    names: dict[str, str] = {}
    for section in _STRINGS.finditer(text):
        for label, values in _STRING.findall(section[1]):
            raw = bytes(int(value) & 255 for value in _BYTE.findall(values.replace(".b8", " ")))
            names[label] = readable(raw.split(b"\0")[0].decode("ascii", "replace"))
    return names


def readable(mangled: str) -> str:
    """A C++ function's name out of its mangled one, as :class:`Frame` has it (Itanium C++ ABI, "Mangling")."""
    if not mangled.startswith("_Z"):
        return mangled
    rest = re.sub(r"^_Z(?:N[rVK]*)?", "", mangled)
    parts: list[str] = []
    while found := _IDENTIFIER.match(rest):
        end = found.end() + int(found[1])
        parts.append(rest[found.end() : end])
        rest = rest[end:]
        if not mangled.startswith("_ZN"):
            break
    if not parts:
        return mangled
    if len(parts) > 1 and parts[0] != "ptx":
        parts = parts[1:]
    return "::".join(parts)
