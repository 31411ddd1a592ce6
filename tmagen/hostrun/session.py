# SPDX-License-Identifier: Apache-2.0
"""A running host program: requests in, outcomes out."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tmagen.arch import ARCHES
from tmagen.hostrun.errors import HostCrashError, HostError, NotModelledError
from tmagen.hostrun.record import Outcome, outcome_from_json
from tmagen.ir import Target

_PATIENCE_SECONDS = 30.0  # a host part that takes longer for one launch hangs


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU that the stand-in runtime presents. The defaults are a B200's."""

    major: int = 10
    minor: int = 0
    sm_count: int = 148
    smem_optin_bytes: int = 232448  # shared memory per block at most


def device_of(target: Target) -> Device:
    """The GPU that a target is named for."""
    arch = ARCHES[target]
    major, minor = arch.compute_capability
    return Device(major, minor, arch.sm_count, arch.smem_per_block_bytes)


class StreamKind(Enum):
    """Which stream is passed to launch()."""

    NULL = 0
    NON_BLOCKING = 1
    BLOCKING = 2


@dataclass(frozen=True, slots=True)
class Arguments:
    """The fields of GemmArgs: addresses as numbers, sizes and leading dimensions in elements."""

    a: int
    b: int
    d: int
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldd: int


class HostSession:
    """One process of a host program. What it keeps between launches, a real program would keep too."""

    def __init__(self, program: Path, configuration: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        self._pending = b""
        try:
            self.introduction = self._read()
            self._write(configuration)
        except BaseException:
            self.close()
            raise

    def launch(
        self,
        arguments: Arguments,
        *,
        device: int = 0,
        stream: StreamKind = StreamKind.NON_BLOCKING,
        threads: int = 1,
        capture: bool = False,
    ) -> Outcome:
        """Calls launch() with `arguments` on `device`, from `threads` host threads at once, maybe inside a capture.

        Raises HostCrashError if the program ends or hangs, NotModelledError if it asks for what the stand-in lacks.
        """
        a = arguments
        values = (device, stream.value, threads, int(capture), a.a, a.b, a.d, a.m, a.n, a.k, a.lda, a.ldb, a.ldd)
        self._write(["launch " + " ".join(map(str, values))])
        return outcome_from_json(self._read())

    def close(self) -> None:
        """Ends the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, lines: Sequence[str]) -> None:
        assert self._process.stdin is not None
        # A program that has ended is told about when its answer is read.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("".join(line + "\n" for line in lines).encode())

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while b"\n" not in self._pending:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                raise HostCrashError(f"launch() has not returned after {_PATIENCE_SECONDS:.0f} s")
            received = os.read(descriptor, 1 << 16)
            if not received:
                raise self._ended()
            self._pending += received
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "not_modelled" in answer:
            raise NotModelledError(f"the host part uses {answer['not_modelled']}, which the stand-in runtime lacks")
        return answer

    def _ended(self) -> HostError:
        status = self._process.wait()
        self._errors.seek(0)
        said = tuple(self._errors.read().decode(errors="replace").splitlines()[-10:])
        if status < 0:
            return HostCrashError(f"launch() ended its process with {signal.Signals(-status).name}", said)
        return HostCrashError(f"launch() ended its process with exit status {status}", said)
