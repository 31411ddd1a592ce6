# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on the way to a GPU, and on it."""

from __future__ import annotations

from typing import ClassVar

from tmagen.errors import Diagnostic, TmagenError

WITHOUT = "tmagen verify, which needs no GPU"
"""What to do where there is none."""


class GpuError(TmagenError):
    """Something about the GPU, its driver or a launch, with what is known about it."""

    def __init__(self, message: str, detail: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, detail, hint)

    def report(self) -> str:
        return str(self.diagnostic)


class MissingError(GpuError):
    """No GPU, no driver, or a package that is not installed."""


class WrongDeviceError(GpuError):
    """The kernel is for another GPU than the one at hand."""


class DriverError(GpuError):
    """A call of the driver failed; the message names it."""


class KernelFaultError(DriverError):
    """The kernel ended in an error of its own: a bad address, an illegal instruction. Its context is lost."""

    exit_code: ClassVar[int] = 1


class HangError(GpuError):
    """The kernel did not end in time. Only the end of the process ends it."""

    exit_code: ClassVar[int] = 1
