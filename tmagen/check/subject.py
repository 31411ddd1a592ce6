# SPDX-License-Identifier: Apache-2.0
"""The kernel under check: PTX as it stands, or a .cu that nvcc compiles first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tmagen.emu import Module, NotJudged, ParseError, parse
from tmagen.errors import Diagnostic, SpecError, TmagenError
from tmagen.toolchain import Nvcc, compile_ptx, find_nvcc

SUFFIXES = (".ptx", ".cu")
_MAX_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Subject:
    """A parsed module, with the text that its PTX lines count in."""

    label: str
    ptx: str = field(repr=False)
    module: Module = field(repr=False)
    compiler: str | None = None  # which nvcc, from where; None for PTX
    build_seconds: float = 0.0


class UnparsableError(TmagenError):
    """Text that is no PTX, or not PTX that is known. The message names the file and the line."""

    def __init__(self, error: ParseError | NotJudged, label: str, compiled: bool) -> None:
        super().__init__(error.message)
        message = " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in error.message).split())
        if compiled and error.ptx_line is not None:
            message = message.removeprefix(f"{label}:{error.ptx_line}: ")
            message = f"{label}: line {error.ptx_line} of the PTX that nvcc makes of it: {message}"
        elif not message.startswith(f"{label}:"):
            place = "" if error.ptx_line is None else f":{error.ptx_line}"
            message = f"{label}{place}: {message}"
        detail = () if error.instruction is None else (f"instruction: {error.instruction}",)
        self.diagnostic = Diagnostic(message, (*detail, *error.detail))

    def report(self) -> str:
        return str(self.diagnostic)


def load(
    path: Path,
    *,
    target: str = "sm_100a",
    nvcc: Nvcc | Path | str | None = None,
    flags: Sequence[str] = (),
    ptx: str | None = None,
) -> Subject:
    """The module in `path`; `ptx` is its text where the caller has it already.

    Raises SpecError for a file that cannot be read or is of another kind, ToolchainError and CompileError for a .cu
    that cannot be compiled, UnparsableError for what is no PTX.
    """
    label, compiler = str(path), None
    started = time.perf_counter()
    if ptx is None and path.suffix == ".cu":
        _read(path)
        compiler = nvcc if isinstance(nvcc, Nvcc) else find_nvcc(nvcc, arch=target)
        ptx = compile_ptx(compiler, path, arch=target, flags=flags)
    elif ptx is None and path.suffix == ".ptx":
        if flags:
            raise SpecError(Diagnostic(f"{label} is PTX already: nvcc's flags are for a .cu"))
        ptx = _read(path)
    elif ptx is None:
        raise SpecError(Diagnostic(f"{label}: a kernel is a .ptx or a .cu file"))
    try:
        module = parse(ptx, filename=label)
    except (ParseError, NotJudged) as error:
        raise UnparsableError(error, label, compiler is not None) from None
    seconds = time.perf_counter() - started
    return Subject(label, ptx, module, None if compiler is None else str(compiler), seconds)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SpecError(Diagnostic(f"cannot read {str(path)!r}: {reason}")) from None
    if len(data) > _MAX_BYTES:
        raise SpecError(Diagnostic(f"cannot read {str(path)!r}: it has more than {_MAX_BYTES:,} bytes"))
    # Comments and names of files may hold anything; PTX itself is ASCII.
    return data.decode("utf-8", errors="replace")
