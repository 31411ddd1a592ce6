# SPDX-License-Identifier: Apache-2.0
"""Where output goes: stdout, stderr, and files that are whole or not there."""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from tmagen.errors import Diagnostic, SpecError, printable

MAX_INPUT_BYTES = 1 << 20
"""A spec of more than this is something else: a device, or the wrong file."""


_NAMES = ("stdin", "stdout", "stderr")


class Terminated(BaseException):
    """A signal asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raises :class:`Terminated` where SIGTERM or SIGHUP would end the process: what is half done is removed then."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated(number)

    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What nohup ignores stays ignored. Only the main thread can have handlers.
        if signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def open_closed_streams() -> None:
    """Gives a stream to each of stdin, stdout and stderr that the process was started without.

    Using it fails as a closed one does in C; and no file that is opened later gets its number, to be written over by
    whoever writes to stdout. A stderr that is closed loses what is written.
    """
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is not None:
            continue
        with suppress(OSError):
            os.fstat(number)
            continue
        # The wrong way round on purpose.
        nowhere = os.open(os.devnull, (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)[number])
        if nowhere == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(nowhere, number)
            os.close(nowhere)
        mode = "w" if number else "r"
        stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)


def reason_of(error: OSError, stream: str = "stdout") -> str:
    """What the system says of an error while a stream was used."""
    return f"{stream} is closed" if error.errno == errno.EBADF else error.strerror or str(error)


def print_error(text: str) -> None:
    """Writes ``text`` to stderr, whatever its encoding, with escapes for control characters; a stderr that is gone
    loses it.
    """
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(printable(text).rstrip("\n") + "\n")
        sys.stderr.flush()


def say(text: str) -> None:
    """Writes a line of a report to stdout at once, with escapes for control characters: paths are quoted in it."""
    sys.stdout.write(printable(text) + "\n")
    sys.stdout.flush()


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
        if path == "-" and isinstance(error, OSError):
            raise SpecError(Diagnostic(f"cannot read stdin: {reason_of(error, 'stdin')}")) from None
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
    write_bytes(path, text.encode())


def write_bytes(path: str, data: bytes) -> None:
    """Writes ``data`` to a file, as :func:`write_text` does."""
    if not path:
        raise cannot("write", path, "the name is empty")
    try:
        _write_file(path, data)
    except (OSError, ValueError) as error:
        raise cannot("write", path, error if isinstance(error, OSError) else str(error)) from None


def check_can_write(path: str) -> None:
    """Raises :class:`SpecError` where :func:`write_text` would: before what there is to write takes its time."""
    if not path:
        raise cannot("write", path, "the name is empty")
    try:
        mode = _mode_of(path)
        folder = os.path.dirname(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise cannot("write", path, error if isinstance(error, OSError) else str(error)) from None
    if (mode is not None and stat.S_ISDIR(mode)) or os.path.basename(path) in ("", ".", ".."):
        raise cannot("write", path, "it is a directory")
    if not os.path.isdir(folder):
        raise cannot("write", path, f"there is no directory {folder!r}")
    if not os.access(folder if mode is None else path, os.W_OK):
        raise cannot("write", path, "it is write-protected")


def _write_file(path: str, data: bytes) -> None:
    mode = _mode_of(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise ValueError("it is a directory")
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device: nothing to replace
        with open(path, "wb") as file:
            file.write(data)
        return
    if os.path.basename(path) in ("", ".", ".."):
        raise ValueError("it names a directory, which there is not")
    path = os.path.realpath(path)  # a link stays, and what it points to is replaced
    if mode is not None and not os.access(path, os.W_OK):  # a rename would replace what its owner protected
        raise ValueError("it is write-protected")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise ValueError(f"there is no directory {folder!r}")
    # A name that nobody can have taken, or left behind: so it is this process's to remove.
    beside = os.path.join(folder, f".tmagen-{os.urandom(12).hex()}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
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
