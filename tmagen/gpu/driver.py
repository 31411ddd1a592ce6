# SPDX-License-Identifier: Apache-2.0
"""The functions of the CUDA driver that PyCUDA does not have: tensor maps and graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tmagen.gpu.errors import WITHOUT, DriverError, MissingError

_LIBRARIES = ("libcuda.so.1", "libcuda.so")
_SUCCESS = 0
_CAPTURE_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may go on allocating


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """libcuda. Raises MissingError where there is none."""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise MissingError(
        "no NVIDIA driver on this machine: libcuda.so.1 cannot be loaded",
        hint=WITHOUT,
    )


def error_name(status: int) -> str:
    """The name of a CUresult: CUDA_ERROR_INVALID_VALUE."""
    name = ctypes.c_char_p()
    known = library().cuGetErrorName(ctypes.c_int(status), ctypes.byref(name)) == _SUCCESS
    return name.value.decode() if known and name.value else f"CUresult {status}"


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver. Raises DriverError, which names it, where it fails or does not exist."""
    try:
        function = getattr(library(), name)
    except AttributeError:
        raise DriverError(f"{name}: this driver does not have it", hint="a driver of CUDA 12.0 or later") from None
    function.restype = ctypes.c_int
    check(name, function(*arguments))


def check(name: str, status: int) -> None:
    """Raises DriverError for a status other than CUDA_SUCCESS."""
    if status != _SUCCESS:
        raise DriverError(f"{name} failed: {error_name(status)}")


class Graph:
    """The work that was put on a stream while it was captured, to be launched as one.

    >>> graph = Graph.capture(stream_handle, launch_twenty_times)
    >>> graph.launch(stream_handle); graph.close()
    """

    def __init__(self, executable: ctypes.c_void_p) -> None:
        self._executable = executable

    @classmethod
    def capture(cls, stream: int, work: Callable[[], None]) -> Graph:
        """What `work()` puts on the stream with this handle; nothing of it runs. Raises DriverError."""
        handle = ctypes.c_void_p(stream)
        graph = ctypes.c_void_p()
        call("cuStreamBeginCapture_v2", handle, ctypes.c_int(_CAPTURE_THREAD_LOCAL))
        try:
            work()
        except BaseException:
            library().cuStreamEndCapture(handle, ctypes.byref(graph))  # or the stream stays unusable
            raise
        call("cuStreamEndCapture", handle, ctypes.byref(graph))
        executable = ctypes.c_void_p()
        try:
            call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        finally:
            library().cuGraphDestroy(graph)
        return cls(executable)

    def launch(self, stream: int) -> None:
        """Starts it on a stream. Raises DriverError."""
        call("cuGraphLaunch", self._executable, ctypes.c_void_p(stream))

    def close(self) -> None:
        library().cuGraphExecDestroy(self._executable)
