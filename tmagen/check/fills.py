# SPDX-License-Identifier: Apache-2.0
"""What a buffer holds before the launch."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tmagen.check.elements import Array, Element, narrowed
from tmagen.check.table import Table
from tmagen.errors import Diagnostic, SpecError

WORDS = ("poison", "zeros", "ones", "iota", "integers", "normal")
_SEED = "seed"
_INTEGERS = (-4, 4)


@dataclass(frozen=True, slots=True)
class Fill:
    """`kind` is one of WORDS, "constant" or "file".

    `low` and `high` bound integers, both included; `scale` is the standard deviation of normal numbers, or the
    constant; `file` is an .npy file.
    """

    kind: str = "poison"
    low: int = _INTEGERS[0]
    high: int = _INTEGERS[1]
    scale: float = 1.0
    seed: int = 0
    file: str = ""

    @property
    def has_contents(self) -> bool:
        """Whether a kernel that writes here destroys something: poison and zeros wait for a result."""
        return self.kind not in ("poison", "zeros")


def read_fill(table: Table, element: Element) -> Fill:
    """The fill of a buffer's table."""
    value = table.value.get("fill", "poison")
    if isinstance(value, Mapping):
        return _read_table(Table(value, table.at("fill"), table.problems), element)
    kind = table.word("fill", {word: word for word in WORDS}, "poison")
    low, high = _INTEGERS if not element.is_float and element.limits[0] == 0 else (_INTEGERS[0], _INTEGERS[1])
    return Fill(kind, max(low, _least(element)), high)


def _least(element: Element) -> int:
    return _INTEGERS[0] if element.is_float else max(_INTEGERS[0], element.limits[0])


def _read_table(table: Table, element: Element) -> Fill:
    forms = ("integers", "normal", "constant", "file")
    table.only(*forms, _SEED)
    given = [form for form in forms if form in table.value]
    if len(given) != 1:
        takes = "it takes one of integers = [low, high], normal = scale, constant = value, file = path"
        table.problems.append(Diagnostic(f"{table.path} says {' and '.join(given) or 'nothing'}; {takes}"))
        return Fill()
    seed = table.integer(_SEED, 0)
    match given[0]:
        case "integers":
            least, most = (-(1 << 53), 1 << 53) if element.is_float else element.limits
            bounds = table.integers("integers", [2], least=least, most=most)
            if bounds is not None and bounds[0] > bounds[1]:
                table.wrong("integers", f" = {list(bounds)}: the lower bound comes first")
                bounds = None
            low, high = bounds or (0, 0)
            return Fill("integers", low, high, seed=seed)
        case "normal":
            if not element.is_float:
                table.wrong("normal", f": {element.name} holds integers", hint="integers = [-4, 4]")
            scale = table.number("normal", 1.0)
            return Fill("normal", scale=1.0 if scale is None else scale, seed=seed)
        case "constant":
            return Fill("constant", scale=_constant(table, element))
        case _:
            return Fill("file", file=table.text("file") or "")


def _constant(table: Table, element: Element) -> float:
    value = table.value["constant"]
    if type(value) not in (int, float) or (not element.is_float and type(value) is not int):
        table.wrong_kind("constant", value, "a number" if element.is_float else "an integer")
    elif not element.is_float and not element.limits[0] <= value <= element.limits[1]:
        table.wrong("constant", f" = {value} is no {element.name}")
    else:
        return value if isinstance(value, int) else float(value)
    return 0.0


def make(fill: Fill, name: str, shape: tuple[int, ...], element: Element, seed: int, folder: Path) -> Array | None:
    """The contents of a buffer, None for poison. `seed` and the buffer's name vary random ones.

    Raises SpecError for a file that cannot be read, or holds something else.
    """
    size = int(np.prod(shape, dtype=np.int64))
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence([fill.seed, seed, zlib.crc32(name.encode())])))
    match fill.kind:
        case "poison":
            return None
        case "zeros":
            return np.zeros(shape, element.dtype)
        case "ones":
            return narrowed(np.ones(shape, np.int64), element)
        case "iota":
            # Types with few integers start again before they run out of them.
            return narrowed((np.arange(size) % _period(element)).reshape(shape), element)
        case "integers":
            dtype = np.uint64 if fill.high > np.iinfo(np.int64).max else np.int64
            drawn = random.integers(fill.low, fill.high, shape, dtype=dtype, endpoint=True)
            return narrowed(drawn, element)
        case "normal":
            return narrowed(random.standard_normal(shape) * fill.scale, element)
        case "constant":
            if isinstance(fill.scale, int) and not element.is_float:
                return np.full(shape, fill.scale, element.dtype)
            return narrowed(np.full(shape, fill.scale, np.float64), element)
        case "file":
            return _load(fill.file, name, shape, element, folder)
    raise AssertionError(fill.kind)


_EXACT_INTEGERS = {"f16": 1 << 11, "bf16": 1 << 8, "tf32": 1 << 11, "e4m3": 1 << 4, "e5m2": 1 << 3, "e8m0": 1}


def _period(element: Element) -> int:
    """How many integers from 0 the type holds exactly."""
    if element.is_float:
        return _EXACT_INTEGERS.get(element.name, 1 << (24 if element.name == "f32" else 53))
    return min(element.limits[1] + 1, 1 << 62)


def _load(file: str, name: str, shape: tuple[int, ...], element: Element, folder: Path) -> Array:
    def refused(why: Any, *detail: str) -> SpecError:
        return SpecError(Diagnostic(f"buffers.{name}.fill.file = {file!r}: {why}", detail))

    try:
        loaded = np.load(folder / file, allow_pickle=False)
    except OSError as error:
        raise refused(f"cannot read it: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise refused(f"it is no .npy file of numbers: {error}") from None
    if not isinstance(loaded, np.ndarray):
        loaded.close()
        raise refused("it is an archive of arrays; a fill is one .npy file")
    if loaded.shape != shape:
        raise refused(f"its shape is {list(loaded.shape)}; the buffer's is {list(shape)}")
    as_bits = loaded.dtype == element.bits_dtype or (
        loaded.dtype.kind == "V" and loaded.dtype.itemsize == element.bytes
    )
    if loaded.dtype != element.dtype and not as_bits:
        raise refused(
            f"it holds {loaded.dtype}; the buffer holds {element.name}",
            f"it takes {element.dtype}, or {element.bits_dtype} for the bits",
        )
    same = loaded if loaded.dtype == element.dtype else np.ascontiguousarray(loaded).view(element.dtype)
    if element.name == "tf32":
        return narrowed(same.astype(np.float64), element)
    return same
