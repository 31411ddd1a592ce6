# SPDX-License-Identifier: Apache-2.0
"""Parameters of a launch file, in the order of the kernel's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmagen.check.elements import ELEMENTS, Element, narrowed
from tmagen.check.spec import MapValue, ParamSpec, Pointer, Raw, Struct
from tmagen.check.table import Table
from tmagen.errors import Diagnostic
from tmagen.words import nearest, toml_key

FORMS = ("pointer", "map", "map_pointer", "struct", "bytes")
_MODIFIERS = {"pointer": ("offset",), "bytes": ("align",)}
_MAX_BYTES = 32764  # of all parameters (PTX ISA, kernel function parameters)
_MAX_DEPTH = 8


def read_params(top: Table, buffers: set[str]) -> tuple[ParamSpec, ...]:
    """The parameters; what cannot be read is left out and complained of."""
    maps = set(top.value["maps"]) if isinstance(top.value.get("maps"), Mapping) else set()
    return _Reader(buffers, maps, top.problems).items(top.array("params"), "params", 0)


class _Reader:
    def __init__(self, buffers: set[str], maps: set[str], problems: list[Diagnostic]) -> None:
        self.buffers, self.maps, self.problems = buffers, maps, problems

    def items(self, items: list[Any], path: str, depth: int) -> tuple[ParamSpec, ...]:
        found = (self.item(item, f"{path}[{number}]", depth) for number, item in enumerate(items))
        return tuple(param for param in found if param is not None)

    def item(self, item: Any, path: str, depth: int) -> ParamSpec | None:
        known = (*FORMS, *ELEMENTS)
        if not isinstance(item, Mapping):
            self.problems.append(
                Diagnostic(f'{path} is no table: it takes one such as {{ s32 = 5 }} or {{ map = "a" }}')
            )
            return None
        table = Table(item, path, self.problems)
        modifiers = {modifier for form in item for modifier in _MODIFIERS.get(form, ())}
        forms = [key for key in item if key not in modifiers]
        if len(forms) == 1 and forms[0] in known:
            return self.read(forms[0], table, depth)
        unknown = [key for key in forms if key not in known]
        if unknown:
            detail = f"it takes one of {', '.join(known)}"
            hint = nearest(str(unknown[0]), known)
            self.problems.append(
                Diagnostic(f"{path}.{toml_key(str(unknown[0]))} is no kind of parameter", (detail,), hint)
            )
        else:
            said = f"says {' and '.join(forms)}" if forms else "is empty"
            self.problems.append(Diagnostic(f"{path} {said}; it takes one of {', '.join(known)}"))
        return None

    def read(self, form: str, table: Table, depth: int) -> ParamSpec | None:
        match form:
            case "pointer":
                name = self.named("pointer", table, self.buffers, "buffer")
                offset = table.integer("offset", 0)
                return None if name is None else Pointer(name, offset)
            case "map":
                name = self.named("map", table, self.maps, "map")
                return None if name is None else MapValue(name)
            case "map_pointer":
                name = self.named("map_pointer", table, self.maps, "map")
                return None if name is None else Pointer(name, is_map=True)
            case "struct":
                if depth >= _MAX_DEPTH:
                    table.wrong("struct", f": nested more than {_MAX_DEPTH} deep")
                    return None
                members = table.array("struct")
                if not members:
                    table.wrong("struct", " has no members")
                read = self.items(members, table.at("struct"), depth + 1)
                return Struct(read) if read and len(read) == len(members) else None
            case "bytes":
                return self.raw(table)
            case _:
                return self.scalar(ELEMENTS[form], table)

    def named(self, key: str, table: Table, known: set[str], what: str) -> str | None:
        name = table.text(key)
        if name is not None and name not in known:
            table.wrong(key, f" = {name!r}: there is no such {what}", hint=nearest(name, known))
            return None
        return name

    def raw(self, table: Table) -> Raw | None:
        text = table.text("bytes")
        align = table.integer("align", 1, 1, 128)
        if align & (align - 1):
            table.wrong("align", f" = {align} is no power of two")
        if text is None:
            return None
        try:
            data = bytes.fromhex(text)
        except ValueError:
            table.wrong("bytes", ' is no text of hexadecimal digits in pairs, such as "00ff 80"')
            return None
        if not 0 < len(data) <= _MAX_BYTES:
            table.wrong("bytes", f" has {len(data):,} bytes; it takes 1 to {_MAX_BYTES:,}")
            return None
        return Raw(data, align, f"{len(data)} bytes")

    def scalar(self, element: Element, table: Table) -> Raw | None:
        value = table.value[element.name]
        if element.is_float:
            if type(value) not in (int, float):
                table.wrong_kind(element.name, value, "a number")
                return None
            data = narrowed(np.asarray([value], np.float64), element).tobytes()
        else:
            low, high = element.limits
            if type(value) is not int:
                table.wrong_kind(element.name, value, "an integer")
                return None
            if not low <= value <= high:
                table.wrong(element.name, f" = {value} is out of range: {element.name} holds {low:,} to {high:,}")
                return None
            data = value.to_bytes(element.bytes, "little", signed=low < 0)
        return Raw(data, element.bytes, f"{element.name} ({element.bytes} byte{'s' if element.bytes > 1 else ''})")
