# SPDX-License-Identifier: Apache-2.0
"""Which kernel of a module is meant, and whether the launch file's parameters are its own."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

from tmagen.check.spec import LaunchSpec, MapValue, ParamSpec, Pointer, Raw, Struct
from tmagen.emu import Entry, Module
from tmagen.emu.tensormap import NBYTES
from tmagen.errors import Diagnostic, SpecError
from tmagen.words import nearest

_MAP_ALIGN = 64
_POINTER_BYTES = 8


def plain_name(symbol: str) -> str:
    """`ns::kernel` for `_ZN2ns6kernelEPf`, without arguments and template parameters; other symbols as they are."""
    rest = symbol[2:] if symbol.startswith("_Z") else ""
    nested = rest.startswith("N")
    rest = rest[1:] if nested else rest
    parts: list[str] = []
    while rest:
        rest = rest.removeprefix("L")  # internal linkage
        digits = len(rest) - len(rest.lstrip("0123456789"))
        if not digits:
            break
        length = int(rest[:digits])
        part, rest = rest[digits : digits + length], rest[digits + length :]
        if part.startswith("_GLOBAL__N_"):
            part = "(anonymous namespace)"
        parts.append(part)
        if not nested:
            break
    return "::".join(parts) or symbol


def choose(module: Module, name: str | None) -> Entry:
    """The entry with this symbol or plain name, or the only one. Raises SpecError, listing what there is."""
    entries = module.entries
    if not entries:
        raise SpecError(Diagnostic(f"{module.filename} has no kernel: no .entry"))
    listed = tuple(f"  {symbol}" for symbol in entries)
    if name is None:
        if len(entries) > 1:
            message = f"{module.filename} has {len(entries)} kernels: say which one"
            first = plain_name(next(iter(entries)))
            raise SpecError(Diagnostic(message, listed, hint=f'kernel = "{first}"'))
        return next(iter(entries.values()))
    if name in entries:
        return entries[name]
    plain = {symbol: plain_name(symbol) for symbol in entries}
    found = [symbol for symbol, full in plain.items() if full == name or full.split("::")[-1] == name]
    if len(found) == 1:
        return entries[found[0]]
    if found:
        listed = tuple(f"  {symbol}" for symbol in found)
        raise SpecError(Diagnostic(f"kernel = {name!r} may be each of {len(found)} kernels: take a symbol", listed))
    meant = nearest(name, [*entries, *plain.values(), *(full.split("::")[-1] for full in plain.values())])
    raise SpecError(Diagnostic(f"kernel = {name!r} is not in {module.filename}, which has", listed, hint=meant))


def extent(param: ParamSpec) -> tuple[int, int]:
    """Size and alignment, bytes."""
    match param:
        case Raw():
            return len(param.data), param.align
        case Pointer():
            return _POINTER_BYTES, _POINTER_BYTES
        case MapValue():
            return NBYTES, _MAP_ALIGN
        case Struct():
            end, largest = 0, 1
            for member in param.members:
                size, align = extent(member)
                end = -(-end // align) * align + size
                largest = max(largest, align)
            return -(-end // largest) * largest, largest


def check_params(params: Sequence[ParamSpec], entry: Entry) -> list[Diagnostic]:
    """What of the parameters does not fit the kernel, with all that it takes where their number is wrong."""
    if len(params) != len(entry.params):
        takes = tuple(
            f"  {number}: {param.size} bytes, aligned to {param.align}" for number, param in enumerate(entry.params)
        )
        name = plain_name(entry.name)
        return [Diagnostic(f"params has {len(params)} entries; {name} takes {len(entry.params)}", takes)]
    found = []
    for number, (param, place) in enumerate(zip(params, entry.params, strict=True)):
        size, align = extent(param)
        if size != place.size:
            what = f"params[{number}] is {param.what}" + ("" if isinstance(param, Raw) else f" of {size} bytes")
            found.append(Diagnostic(f"{what}; parameter {number} of {plain_name(entry.name)} has {place.size} bytes"))
        elif align > place.align and isinstance(param, Struct):
            message = f"params[{number}] is aligned to {align} bytes, the kernel's parameter {number} to {place.align}"
            found.append(Diagnostic(message, detail=("a member is wider than the kernel's own",)))
    return found


class Placed(Protocol):
    """Where the buffers and tensor maps of a launch are."""

    @property
    def maps(self) -> Mapping[str, bytes]:
        """Tensor maps by name, encoded."""

    def address(self, name: str) -> int:
        """Of a buffer."""

    def map_address(self, name: str) -> int:
        """Of a tensor map in global memory."""


def parameter_block(spec: LaunchSpec, entry: Entry, arena: Placed) -> bytes:
    """The parameters where the kernel looks for them."""
    block = bytearray(entry.param_bytes)
    for param, place in zip(spec.params, entry.params, strict=True):
        block[place.offset : place.offset + place.size] = _encoded(param, arena)
    return bytes(block)


def _encoded(param: ParamSpec, arena: Placed) -> bytes:
    match param:
        case Raw():
            return param.data
        case MapValue():
            return arena.maps[param.name]
        case Pointer():
            base = arena.map_address(param.to) if param.is_map else arena.address(param.to)
            return struct.pack("<Q", base + param.offset)
        case Struct():
            out = bytearray(extent(param)[0])
            end = 0
            for member in param.members:
                size, align = extent(member)
                end = -(-end // align) * align
                out[end : end + size] = _encoded(member, arena)
                end += size
            return bytes(out)
