# SPDX-License-Identifier: Apache-2.0
"""From a TIRx script to CUDA, by TVM in a process of its own: TVM is large, and none of it belongs into this one."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tmagen.errors import Diagnostic, TmagenError
from tmagen.tirx.lower import TVM_VERSION
from tmagen.tirx.result import TirxKernel, kernel_from_json

_WORKER = Path(__file__).with_name("worker.py")
_INSTALL = 'pip install "tmagen[tirx]"'
_SHOWN_LINES = 12


class TirxError(TmagenError):
    """TVM is missing, of another release, or rejects a script."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic

    def report(self) -> str:
        return str(self.diagnostic)


def require_tvm() -> None:
    """Raises TirxError, with the command that installs it, where TVM is not there or is another release."""
    if importlib.util.find_spec("tvm") is None:
        raise TirxError(Diagnostic("TVM is not installed: it makes the CUDA of a TIRx script", hint=_INSTALL))
    try:
        version = metadata.version("apache-tvm")
    except metadata.PackageNotFoundError:
        return  # built from source: it may serve, and says so itself if it does not
    if version != TVM_VERSION:
        raise TirxError(
            Diagnostic(f"apache-tvm {version} is installed: the scripts are for {TVM_VERSION}", hint=_INSTALL)
        )


def tvm_version() -> str:
    """The release that is installed."""
    try:
        return f"apache-tvm {metadata.version('apache-tvm')}"
    except metadata.PackageNotFoundError:
        return "TVM built from source"


def build_script(script: str) -> TirxKernel:
    """What TVM makes of one script. The same script always gives the same text. Raises TirxError."""
    (kernel,) = build_scripts([script])
    return kernel


def build_scripts(scripts: Sequence[str]) -> tuple[TirxKernel, ...]:
    """The same for several, TVM started once."""
    require_tvm()
    with tempfile.TemporaryDirectory(prefix="tmagen-") as folder:
        paths = [Path(folder) / f"script{number}.py" for number in range(len(scripts))]
        for path, script in zip(paths, scripts, strict=True):
            path.write_text(script, encoding="utf-8")
        # -P: the folder of the worker holds modules whose names others have too.
        command = [sys.executable, "-P", str(_WORKER), *map(str, paths)]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode:
        raise TirxError(Diagnostic("TVM rejects the TIRx script", detail=_last_lines(done.stderr)))
    return tuple(map(kernel_from_json, json.loads(done.stdout)))


def _last_lines(text: str) -> tuple[str, ...]:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(lines[-_SHOWN_LINES:])
