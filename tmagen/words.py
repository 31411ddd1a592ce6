# SPDX-License-Identifier: Apache-2.0
"""How messages put values into words."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

_SHOWN_CHARACTERS = 60


def one_of(values: Iterable[object]) -> str:
    """`a`, `a or b`, `a, b or c`; many integers in equal steps as `16 to 256 in steps of 16`."""
    found = list(values)
    numbers = [value for value in found if isinstance(value, int)]
    if len(numbers) == len(found) > 4:
        step = numbers[1] - numbers[0]
        if numbers == list(range(numbers[0], numbers[-1] + 1, step)):
            return f"{numbers[0]} to {numbers[-1]} in steps of {step}"
    *most, last = map(str, found)
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: object) -> str:
    """``value`` as a message shows it: its own repr, cut to a readable length."""
    try:
        text = repr(value)
    except Exception:  # a repr that fails is the caller's, and must not hide what is wrong
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def named(path: str) -> str:
    """A path or another name as a message shows it: as it is, or its repr where that would not be told from text."""
    return path if path.isprintable() and path.strip() == path != "" else repr(path)


def toml_key(key: str) -> str:
    """One part of a dotted key of TOML, cut to a readable length: bare, or in quotes, with an escape for what no line
    of text holds.
    """
    if key and key.isascii() and all(c.isalnum() or c in "_-" for c in key):
        return key[:_SHOWN_CHARACTERS]
    quoted = key[:_SHOWN_CHARACTERS].replace("\\", "\\\\").replace('"', '\\"')
    quoted = "".join(
        c if c.isprintable() else f"\\u{ord(c):04X}" if ord(c) < 0x10000 else f"\\U{ord(c):08X}" for c in quoted
    )
    return f'"{quoted}"'


def unreadable(path: str) -> str | None:
    """Why a path leads to no file that has something in it and can be read; None if it does."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return "there is no such file"
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    if stat.S_ISDIR(found.st_mode):
        return "it is a directory"
    if os.path.samefile(path, os.devnull) or (stat.S_ISREG(found.st_mode) and not found.st_size):
        return "it is empty"
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    return None if os.access(path, os.R_OK) else "permission denied"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that a user most likely meant by ``word``, if any is near: case is the first thing to be
    wrong.
    """
    from difflib import get_close_matches  # slow to import, and needed for mistakes alone

    folded = {candidate.casefold(): candidate for candidate in known}
    meant = word[:_SHOWN_CHARACTERS].casefold()
    if meant in folded:
        return folded[meant]
    return next((folded[near] for near in get_close_matches(meant, folded, n=1, cutoff=0.5)), None)
