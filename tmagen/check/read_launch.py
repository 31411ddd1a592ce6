# SPDX-License-Identifier: Apache-2.0
"""From TOML, or from a mapping of the same form, to a :class:`LaunchSpec`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from tmagen.check.elements import ELEMENTS
from tmagen.check.expression import ExpressionError, parse_expectation
from tmagen.check.fills import read_fill
from tmagen.check.read_expects import check_expects
from tmagen.check.read_maps import read_maps
from tmagen.check.read_params import read_params
from tmagen.check.spec import BufferSpec, Dim3, ExpectSpec, LaunchSpec, PredecessorSpec
from tmagen.check.table import Table
from tmagen.emu.launch import MAX_CTAS, MAX_GRID
from tmagen.errors import Diagnostic, SpecError
from tmagen.words import named, nearest

KEYS = (
    "kernel",
    "grid",
    "block",
    "cluster",
    "dynamic_smem_bytes",
    "registers",
    "programmatic_dependent_launch",
    "buffers",
    "maps",
    "params",
    "expect",
)
BUFFER_KEYS = ("dtype", "shape", "ld", "strides", "fill", "align", "writable")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_RANK = 8
_MAX_SPAN_BYTES = 1 << 38
_LARGEST_THREADS = 1024


def from_toml(text: str, source: str = "launch file") -> LaunchSpec:
    """What `text` says. Raises SpecError with everything that is wrong, each with `source` and the key."""
    from tomllib import loads

    try:
        document = loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a plain ValueError
        reason = "tables or arrays are nested too deep" if isinstance(error, RecursionError) else str(error)
        said = " ".join(reason[:200].split())
        raise SpecError(Diagnostic(f"{named(source)} is no TOML: {said}")) from None
    return from_mapping(document, source)


def from_mapping(document: Mapping[str, Any], source: str = "launch") -> LaunchSpec:
    """What a mapping of the form of a launch file says. Raises SpecError with everything that is wrong."""
    problems: list[Diagnostic] = []
    top = Table(document, "", problems)
    top.only(*KEYS)
    buffers = tuple(
        buffer for name, table in top.tables("buffers").items() if (buffer := _buffer(name, table)) is not None
    )
    declared = set(top.value["buffers"]) if isinstance(top.value.get("buffers"), Mapping) else set()
    maps = read_maps(top, {buffer.name: buffer for buffer in buffers}, declared)
    spec = LaunchSpec(
        kernel=top.text("kernel"),
        grid=_grid(top) or (1, 1, 1),
        block=_extents(top, "block", _LARGEST_THREADS),
        cluster=_extents(top, "cluster", 16),
        dynamic_smem_bytes=top.integer("dynamic_smem_bytes", 0, most=1 << 20),
        buffers=buffers,
        maps=maps,
        params=read_params(top, declared),
        expects=_expects(top),
        registers=top.integer("registers", 0, 1, 255) or None,
        predecessor=_predecessor(top, declared),
    )
    top.need("grid", "CTAs in x, y and z, such as grid = [4, 1, 1]")
    if not problems:
        check_expects(spec, problems)
    if problems:
        raise SpecError(*(Diagnostic(f"{named(source)}: {d.message}", d.detail, d.hint) for d in problems))
    return spec


def _grid(top: Table) -> Dim3 | None:
    grid = _extents(top, "grid", MAX_GRID[0])
    if grid is None:
        return None
    if any(n > most for n, most in zip(grid, MAX_GRID, strict=True)):
        limits = " and ".join(f"{most:,} in {axis}" for most, axis in zip(MAX_GRID[1:], "yz", strict=True))
        top.wrong("grid", f" = {list(grid)} is out of range: a grid has at most {MAX_GRID[0]:,} CTAs in x, {limits}")
    elif (ctas := math.prod(grid)) > MAX_CTAS:
        top.wrong("grid", f" = {list(grid)} is {ctas:,} CTAs: at most {MAX_CTAS:,} are emulated")
    return grid


def _extents(table: Table, key: str, most: int) -> Dim3 | None:
    found = table.integers(key, (1, 2, 3), least=1, most=most)
    if found is None:
        return None
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _predecessor(top: Table, declared: set[str]) -> PredecessorSpec | None:
    """Whether the launch is a dependent one, and which buffers the grid before it has to do with."""
    key = "programmatic_dependent_launch"
    value = top.value.get(key, False)
    if isinstance(value, bool):
        return PredecessorSpec() if value else None
    if not isinstance(value, Mapping):
        top.wrong_kind(key, value, 'true, false or a table such as { writes = ["A"], reads = ["D"] }')
        return None
    table = Table(value, top.at(key), top.problems)
    table.only("writes", "reads")
    return PredecessorSpec(_names(table, "writes", declared), _names(table, "reads", declared))


def _names(table: Table, key: str, declared: set[str]) -> tuple[str, ...] | None:
    """Names of buffers; None where the key is absent."""
    if key not in table.value:
        return None
    value = table.value[key]
    if not (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)):
        table.wrong_kind(key, value, 'an array of names of buffers, such as ["A"]')
        return None
    for name in value:
        if name not in declared:
            table.problems.append(unknown_name(table.at(key), name, declared))
    return tuple(value)


def _buffer(name: str, table: Table) -> BufferSpec | None:
    table.only(*BUFFER_KEYS)
    if not _NAME.fullmatch(name):
        table.problems.append(Diagnostic(f"{table.path}: a buffer's name is letters, digits and _, to stand in expect"))
        return None
    known = table.need("dtype", f'such as dtype = "f16"; there are {", ".join(ELEMENTS)}')
    element = table.word("dtype", ELEMENTS, None) if known else None
    given = table.need("shape", "extents, outermost first, such as shape = [128, 64]")
    shape = table.integers("shape", range(1, _MAX_RANK + 1), most=1 << 40) if given else None
    align = table.integer("align", 256, 16, 4096)
    if align & (align - 1):
        table.wrong("align", f" = {align} is no power of two")
    if element is None or shape is None:
        return None
    strides = _strides(table, shape)
    if strides is None:
        return None
    writable = table.boolean("writable", False)
    buffer = BufferSpec(name, element, shape, strides, read_fill(table, element), align, writable)
    if buffer.span_bytes > _MAX_SPAN_BYTES:
        table.problems.append(
            Diagnostic(f"{table.path} spans {buffer.span_bytes:,} bytes; {_MAX_SPAN_BYTES:,} at most")
        )
        return None
    return buffer


def _strides(table: Table, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """In elements. Rows may be longer than what they hold, and elements never overlap."""
    if "ld" in table.value and "strides" in table.value:
        table.wrong("ld", " and strides both say where rows begin: it takes one of them")
        return None
    given = table.integers("strides", [len(shape)], least=1, most=1 << 40)
    if "strides" in table.value and given is None:
        return None
    if given is None:
        inner = shape[-1]
        if "ld" in table.value:
            if len(shape) < 2:
                table.wrong("ld", ": one dimension has no rows")
                return None
            inner = table.integer("ld", inner, 1)
            if inner < shape[-1]:
                table.wrong("ld", f" = {inner} is shorter than a row of {shape[-1]} elements", hint=str(shape[-1]))
                return None
        found = [1]
        for extent in (inner, *reversed(shape[1:-1]))[: len(shape) - 1]:
            found.insert(0, found[0] * max(extent, 1))
        return tuple(found)
    reach = 1
    for stride, extent in sorted(zip(given, shape, strict=True)):
        if extent > 1 and stride < reach:
            table.wrong("strides", f" = {list(given)}: elements of shape {list(shape)} overlap")
            return None
        reach = max(reach, stride * extent)
    return given


def _expects(top: Table) -> tuple[ExpectSpec, ...]:
    value = top.value.get("expect", [])
    items = list(value) if isinstance(value, list | tuple) else [value]
    found = []
    for number, item in enumerate(items):
        key = "expect" if len(items) == 1 else f"expect[{number}]"
        if isinstance(item, Mapping):
            table = Table(item, key, top.problems)
            table.only("that", "rtol", "atol")
            that = table.text("that") if table.need("that", 'such as that = "D ~= A @ B.T"') else None
            rtol, atol = table.number("rtol", None), table.number("atol", None)
        elif isinstance(item, str):
            that, rtol, atol = item, None, None
        else:
            top.wrong_kind(key, item, 'a string such as "D == A @ B.T", or a table with that, rtol and atol')
            continue
        if that is None:
            continue
        try:
            expectation = parse_expectation(that)
        except ExpressionError as error:
            top.problems.append(error.diagnostic(f"{key}: "))
            continue
        if expectation.exact and (rtol is not None or atol is not None):
            message = f"{key}: == is exact and takes no tolerance"
            top.problems.append(Diagnostic(message, hint=that.replace("==", "~=")))
            continue
        found.append(ExpectSpec(expectation, rtol, atol))
    return tuple(found)


def unknown_name(what: str, name: str, known: set[str]) -> Diagnostic:
    """A name that nothing has."""
    return Diagnostic(f"{what}: there is no {name!r}", hint=nearest(name, known))
