# SPDX-License-Identifier: Apache-2.0
"""Where output goes: stdout, stderr, and files that are whole or not there."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import NoReturn

from tmagen.errors import Diagnostic, SpecError

MAX_INPUT_BYTES = 1 << 20
"""A spec of more than this is something else: a device, or the wrong file."""


def print_error(text: str) -> None:
    """Writes ``text`` to stderr, whatever its encoding; a stderr that is gone loses it."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text.rstrip("\n") + "\n")
        sys.stderr.flush()


def drop_stdout() -> None:
    """Points stdout to nowhere, so that the flush at exit does not fail again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def leave(code: int) -> NoReturn:
    """Ends the process at once: an orderly end would wait for a kernel that hangs, or fail in a lost context."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def cannot(what: str, path: str, error: OSError | str) -> SpecError:
    """The error for a file that cannot be read or written."""
    reason = error if isinstance(error, str) else error.strerror or str(error)
    return SpecError(Diagnostic(f"cannot {what} {path!r}: {reason}"))


def read_text(path: str) -> str:
    """The UTF-8 text of a file, or of stdin for `-`. Raises :class:`SpecError` if it cannot be read."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise cannot("read", path, error if isinstance(error, OSError) else str(error)) from None
    if len(data) > MAX_INPUT_BYTES:
        raise cannot("read", path, f"it has more than {MAX_INPUT_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise cannot("read", path, f"byte {error.start} is no UTF-8") from None


def write_text(path: str, text: str) -> None:
    """Writes ``text`` to a file, or to stdout for `-`.

    The text is written beside the file, which is then replaced: at no time is there half a file, and what was there
    before stays if anything fails. Raises :class:`SpecError` if the file cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    if not path:
        raise cannot("write", path, "the name is empty")
    try:
        _write_file(path, text.encode())
    except (OSError, ValueError) as error:
        raise cannot("write", path, error if isinstance(error, OSError) else str(error)) from None


def _write_file(path: str, data: bytes) -> None:
    mode = _mode_of(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise ValueError("it is a directory")
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device: nothing to replace
        with open(path, "wb") as file:
            file.write(data)
        return
    path = os.path.realpath(path)  # a link stays, and what it points to is replaced
    if mode is not None and not os.access(path, os.W_OK):  # a rename would replace what its owner protected
        raise ValueError("it is write-protected")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise ValueError(f"there is no directory {folder!r}")
    beside = os.path.join(folder, f".tmagen-{os.getpid()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _mode_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None
