# SPDX-License-Identifier: Apache-2.0
"""A launch file as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.check.elements import Element
from tmagen.check.expression import Expectation
from tmagen.check.fills import Fill
from tmagen.emu.tensormap import DataType, Interleave, L2Promotion, OobFill, SwizzleMode

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """An array in global memory. `strides` are in elements, one for each dimension of `shape`, outermost first."""

    name: str
    element: Element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    fill: Fill
    align: int = 256  # bytes; the address is a multiple of this and of no more
    writable: bool = False  # may be written though it has contents and no expectation names it

    @property
    def span_bytes(self) -> int:
        """From the first element to the end of the last."""
        if 0 in self.shape:
            return 0
        return (sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + 1) * self.element.bytes


@dataclass(frozen=True, slots=True)
class MapSpec:
    """The arguments of cuTensorMapEncodeTiled over a buffer: dimension 0 is the innermost, strides are in bytes."""

    name: str
    buffer: str
    offset: int  # bytes from the buffer's first element
    data_type: DataType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: SwizzleMode
    interleave: Interleave
    l2_promotion: L2Promotion
    oob_fill: OobFill


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes by value: a scalar, or whatever somebody packed. `what` names it in messages."""

    data: bytes
    align: int
    what: str


@dataclass(frozen=True, slots=True)
class Pointer:
    """The address of a buffer, or of a tensor map in global memory, plus `offset` bytes."""

    to: str
    offset: int = 0
    is_map: bool = False

    @property
    def what(self) -> str:
        return f"a pointer to {self.to}"


@dataclass(frozen=True, slots=True)
class MapValue:
    """A tensor map by value."""

    name: str

    @property
    def what(self) -> str:
        return f"tensor map {self.name}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Members with C layout: each at the next multiple of its alignment, the whole padded to the largest."""

    members: tuple[ParamSpec, ...]

    @property
    def what(self) -> str:
        return f"a struct of {len(self.members)} members"


ParamSpec = Raw | Pointer | MapValue | Struct


@dataclass(frozen=True, slots=True)
class ExpectSpec:
    """What must hold afterwards. `rtol` and `atol` are for `~=`; None: those of the element type."""

    that: Expectation
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True, slots=True)
class PredecessorSpec:
    """Names of the buffers that the grid before a dependent launch writes and reads; None: any memory."""

    writes: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One launch and all that it needs."""

    kernel: str | None
    grid: Dim3
    block: Dim3 | None  # None: what the kernel requires (.reqntid)
    cluster: Dim3 | None  # None: what the kernel requires (.reqnctapercluster), else 1
    dynamic_smem_bytes: int
    buffers: tuple[BufferSpec, ...]
    maps: tuple[MapSpec, ...]
    params: tuple[ParamSpec, ...]
    expects: tuple[ExpectSpec, ...]
    registers: int | None = None  # of each thread at launch; None: what ptxas is seen to choose
    predecessor: PredecessorSpec | None = None  # of a programmatic dependent launch

    def buffer(self, name: str) -> BufferSpec:
        return next(buffer for buffer in self.buffers if buffer.name == name)
