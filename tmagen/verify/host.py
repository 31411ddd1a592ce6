# SPDX-License-Identifier: Apache-2.0
"""The host part under test: called with one problem at a time, and held to what a caller may expect of it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from tmagen.bind import LeadingDims
from tmagen.hostrun import Arguments, HostCrashError, HostProgram, HostSession, Outcome, StreamKind
from tmagen.hostrun.refusal import reasons
from tmagen.ir import DType, Shape
from tmagen.verify.shapes import default_leading_dims

_SUCCESS = "cudaSuccess"
_REFUSED = "cudaErrorInvalidValue"


class Host:
    """A running host program that is started again after a crash."""

    def __init__(self, program: HostProgram) -> None:
        self.program = program
        self._session: HostSession | None = None

    def launch(self, arguments: Arguments) -> Outcome:
        """Calls launch() on a stream of its own. Raises HostCrashError, NotModelledError."""
        if self._session is None:
            self._session = self.program.start()
        try:
            return self._session.launch(arguments, stream=StreamKind.NON_BLOCKING)
        except HostCrashError:
            self._close()
            raise

    def ctas_of(self, shape: Shape) -> int | None:
        """The CTAs that are launched for a shape; None where nothing is."""
        lds = default_leading_dims(shape, self.program.elements)
        # Any aligned addresses serve: nothing runs.
        arguments = Arguments(1 << 30, 2 << 30, 3 << 30, shape.m, shape.n, shape.k, lds.a, lds.b, lds.d)
        try:
            launches = self.launch(arguments).launches
        except HostCrashError:
            return None
        x, y, z = launches[0].grid if launches else (0, 0, 0)
        return x * y * z or None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


_LEAST_LIMIT = 1 << 19  # elements: 65,535 tiles of grid.y, of 8 each, are more
_LEAST_AREA = 1 << 38  # elements: 2^31 tiles of 64 x 8 elements are more
_LEAST_PITCH = 1 << 39  # bytes: rows 2^40 bytes apart are more than a tensor map can say


def beyond_limits(outcome: Outcome, shape: Shape, lds: LeadingDims, elements: tuple[DType, DType, DType]) -> str | None:
    """What launch() says of a problem that it refuses and may refuse, being so large that a grid, a tile index or a
    tensor map need not hold it; None where it is not refused, or has to be computed.
    """
    result = outcome.result
    if result.ok or result.error != _REFUSED or outcome.launches:
        return None
    pitches = (ld * of.bytes for ld, of in zip((lds.a, lds.b, lds.d), elements, strict=True))
    if max(shape.m, shape.n) >= _LEAST_LIMIT or shape.m * shape.n >= _LEAST_AREA or max(pitches) >= _LEAST_PITCH:
        return f"launch() refuses the problem with {result.error}: {result.last_error}"
    return None


def complaints(outcome: Outcome, shape: Shape) -> tuple[str, ...]:
    """What the host part did wrong, one line each; empty if it did its part."""
    result = outcome.result
    if not result.ok:
        return (f"launch() returned {result.error}: {result.last_error}", *reasons(outcome))
    found: list[str] = []
    if result.pending != _SUCCESS:
        found.append(f"launch() returned success and left {result.pending} behind as the runtime's last error")
    if result.device_after != 0:
        found.append(f"launch() left the calling thread on device {result.device_after}; it was on device 0")
    found.extend(
        f"launch() returned success though cuTensorMapEncodeTiled rejected a map of {call.map.dims} elements"
        for call in outcome.encodes
        if not call.accepted
    )
    found.extend(
        f"launch() returned success though the launch failed with {call.error}"
        for call in outcome.launches
        if call.error != _SUCCESS
    )
    found.extend(reasons(outcome))
    if any(call.stream != outcome.stream for call in outcome.launches):
        found.append("the kernel was launched on another stream than the one passed to launch()")
    if shape.m == 0 or shape.n == 0:
        if outcome.launches or outcome.encodes:
            found.append("D has no elements, but launch() encoded tensor maps or launched a kernel")
    elif not outcome.launches:
        found.append("launch() returned success and launched nothing")
    if shape.k == 0 and any(call.map.address == 0 for call in outcome.encodes):
        found.append("K is 0 and A and B are null, but launch() encoded a tensor map of a null matrix")
    return tuple(found)
