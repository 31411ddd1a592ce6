# SPDX-License-Identifier: Apache-2.0
"""What compilers and TVM made of a text, kept for later tests of the process: they always make the same of it.

For tests of what happens to a kernel afterwards; those of `build` and of the toolchain call the originals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from tmagen import hostrun
from tmagen.hostrun import HostProgram
from tmagen.tirx import TirxKernel
from tmagen.tirx import build as tirx_build

P = ParamSpec("P")
R = TypeVar("R")

FILES = ExitStack()
"""What is to be removed in the end."""
_BUILT: dict[tuple[object, ...], tuple[HostProgram, Path]] = {}


def _key(text: str, name: str, options: dict[str, object]) -> tuple[object, ...]:
    return (text, name, *sorted(options.items()))


def keep(program: HostProgram, text: str, path: Path, **options: object) -> None:
    """Keeps what :func:`tmagen.hostrun.build` would make of a text, which was at `path`, with these options."""
    _BUILT[_key(text, path.name, options)] = program, path


def build(source: Path, **options: object) -> AbstractContextManager[HostProgram]:
    """As :func:`tmagen.hostrun.build`, once for each text and set of options; the program outlives its user."""
    text = source.read_text(encoding="utf-8", errors="replace")
    if re.search(r'#\s*include\s*"', text) or re.search(r"[^\w/.-]", str(source)):
        return hostrun.build(source, **options)  # type: ignore[arg-type]
    key = _key(text, source.name, options)
    if key not in _BUILT:
        program = hostrun.build(source, **options)  # type: ignore[arg-type]
        FILES.callback(program.close)
        keep(program, text, source, **options)
    program, first = _BUILT[key]
    return nullcontext(replace(program, ptx=program.ptx.replace(str(first.absolute()), str(source.absolute()))))


def close() -> None:
    """Removes what is kept."""
    _BUILT.clear()
    FILES.close()


def once(function: Callable[P, R]) -> Callable[P, R]:
    """The function, called once for each set of arguments; what it raises is not kept."""
    results: dict[object, R] = {}

    @wraps(function)
    def kept(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, tuple(sorted(kwargs.items())))
        if key not in results:
            results[key] = function(*args, **kwargs)
        return results[key]

    return kept


def build_scripts(scripts: Sequence[str]) -> tuple[TirxKernel, ...]:
    """As :func:`tmagen.tirx.build.build_scripts`, once for each set of scripts."""
    return _kernels(tuple(scripts))


@once
def _kernels(scripts: tuple[str, ...]) -> tuple[TirxKernel, ...]:
    return tirx_build.build_scripts(scripts)
