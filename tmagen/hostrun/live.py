# SPDX-License-Identifier: Apache-2.0
"""A host program that runs while somebody else runs its kernels: it waits at each launch until that is done.

Device memory is a file in memory that both sides map. What the program does arrives as events, in order: "allocate" and
"free" with an address, "encode", "set_attribute", "launch"; after a launch that is neither refused nor captured the
program waits for :meth:`LiveProgram.go` or :meth:`LiveProgram.stop`.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tmagen.hostrun.program import Program

_MEMORY_BYTES = 1 << 40  # of addresses; pages exist once they are touched
_SHOWN_BYTES = 1 << 16  # of the program's output


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended: `status` negative for a signal; `output` is what it printed, stdout before stderr."""

    status: int
    stdout: str
    stderr: str


class LiveProgram:
    """One run of a program. Iterate over :meth:`events` to its end, then ask :meth:`ended`."""

    def __init__(self, program: Program, arguments: Sequence[str] = ()) -> None:
        self._stack = contextlib.ExitStack()
        try:
            self._start(program, arguments)
        except BaseException:
            self._stack.close()
            raise

    def _start(self, program: Program, arguments: Sequence[str]) -> None:
        self._memory = os.memfd_create("tmagen-device-memory", os.MFD_CLOEXEC)
        self._stack.callback(os.close, self._memory)
        os.ftruncate(self._memory, _MEMORY_BYTES)
        record, record_end = os.pipe()
        self._record = self._stack.enter_context(os.fdopen(record, "r", encoding="utf-8"))
        reply_end, reply = os.pipe()
        self._reply = self._stack.enter_context(os.fdopen(reply, "w", encoding="utf-8"))
        self._out = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._err = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        config = program.folder / "config"
        config.write_text("".join(line + "\n" for line in program.configuration))
        environment = {
            **os.environ,
            "TMAGEN_HOSTRUN_CONFIG": str(config),
            "TMAGEN_HOSTRUN_RECORD": f"/proc/self/fd/{record_end}",
            "TMAGEN_HOSTRUN_REPLY": f"/proc/self/fd/{reply_end}",
            "TMAGEN_HOSTRUN_MEMORY": f"/proc/self/fd/{self._memory}",
        }
        try:
            self._process = subprocess.Popen(
                [program.path, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                pass_fds=(record_end, reply_end, self._memory),
            )
        finally:
            os.close(record_end)
            os.close(reply_end)

    def events(self) -> Iterator[dict[str, Any]]:
        """What the program does, until it ends."""
        for line in self._record:
            event: dict[str, Any] = json.loads(line)
            yield event

    def map(self, offset: int, nbytes: int) -> mmap.mmap:
        """Device memory from the start of the page that holds `offset`, through the next `nbytes` bytes."""
        first = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        return mmap.mmap(self._memory, offset - first + nbytes, flags=mmap.MAP_SHARED, offset=first)

    def go(self) -> None:
        """The launch is done."""
        self._answer("go\n")

    def stop(self) -> None:
        """The launch failed: the program ends here."""
        self._answer("no\n")

    def ended(self) -> Ended:
        """Waits for the end."""
        status = self._process.wait()
        return Ended(status, self._read(self._out), self._read(self._err))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._stack.close()

    def _answer(self, text: str) -> None:
        # A program that has ended is told about when its status is read.
        with contextlib.suppress(BrokenPipeError):
            self._reply.write(text)
            self._reply.flush()

    @staticmethod
    def _read(file: Any) -> str:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _SHOWN_BYTES))
        data: bytes = file.read()
        return data.decode(errors="replace")
