# SPDX-License-Identifier: Apache-2.0
"""How every tool is run: output captured, language neutral, nothing left behind when it is interrupted."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tmagen.errors import Diagnostic
from tmagen.toolchain.errors import ToolchainError


@dataclass(frozen=True, slots=True)
class Finished:
    """A tool that ran to its end."""

    status: int  # exit status; negative: the signal that ended it
    output: str  # stdout, then stderr


def run(
    command: Sequence[str | Path], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Finished:
    """Runs `command` to its end, its temporary files in `cwd` where one is given, else where Python's own go: a TMPDIR
    that cannot be written to is passed over.

    Raises ToolchainError if the program cannot be started.
    """
    variables = {**os.environ, "LC_ALL": "C", **(environment or {})}
    variables["TMPDIR"] = _temporary() if cwd is None else str(cwd)
    try:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise ToolchainError(Diagnostic(f"cannot run {command[0]}: {reason}")) from error
    return Finished(done.returncode, done.stdout + done.stderr)


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        hint = "TMPDIR, set to one that can be written"
        raise ToolchainError(Diagnostic("there is no directory for temporary files", hint=hint)) from error
