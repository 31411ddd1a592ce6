# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a host part."""

from __future__ import annotations

from typing import ClassVar

from tmagen.errors import Diagnostic, TmagenError


class HostError(TmagenError):
    """Something about the host part of a kernel file, with what is known about it."""

    def __init__(self, message: str, detail: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, detail, hint)

    def report(self) -> str:
        return str(self.diagnostic)


class SourceFormError(HostError):
    """The file is not of the form that can be run: no namespace, no launch(), no GemmArgs."""


class NotModelledError(HostError):
    """The host part uses something that the stand-in runtime does not have: it is not judged."""


class HostCrashError(HostError):
    """The host part ended its process, or did not come back."""

    exit_code: ClassVar[int] = 1
