# SPDX-License-Identifier: Apache-2.0
"""A question to the hardware: a kernel, how it is launched, and how its answer is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from tmagen.emu.tensormap import DataType, Interleave, OobFill, SwizzleMode

Array = npt.NDArray[Any]
Dim3 = tuple[int, int, int]
Fill = str | tuple[int, ...] | tuple[float, ...]
Outputs = Mapping[str, Array]

POISON = 0xA5
"""The byte that an output buffer holds before the launch."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Global memory of `count` elements of a NumPy type, aligned to 256 bytes; the kernel gets its address.

    `fill` is "poison", "zeros", "iota" (element i is i), "bytes" (byte i is i modulo 251), "random" (bits from a fixed
    seed, where floating-point types get normal numbers), or the elements themselves, repeated up to `count`.
    """

    name: str
    dtype: str
    count: int
    fill: Fill = "poison"
    is_output: bool = False

    def initial(self) -> Array:
        """What it holds before the launch."""
        dtype = np.dtype(self.dtype)
        nbytes = self.count * dtype.itemsize
        if not isinstance(self.fill, str):
            return np.resize(np.array(self.fill, dtype), self.count)
        if self.fill == "poison":
            return np.full(nbytes, POISON, np.uint8).view(dtype)
        if self.fill == "zeros":
            return np.zeros(self.count, dtype)
        if self.fill == "iota":
            return np.arange(self.count).astype(dtype)
        if self.fill == "bytes":
            return (np.arange(nbytes) % 251).astype(np.uint8).view(dtype)
        if self.fill == "random":
            chance = np.random.default_rng(20_240_229)
            if dtype.kind == "f":
                return chance.standard_normal(self.count).astype(dtype)
            return chance.integers(0, 256, nbytes, np.uint8).view(dtype)
        raise ValueError(f"buffer {self.name}: no fill is called {self.fill!r}")


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map over the buffer `over`, passed as `const __grid_constant__ CUtensorMap`.

    `dims`, `box` and `element_strides` are elements, dimension 0 innermost; `strides` are bytes of dimensions 1 and up;
    `offset` is where in the buffer the tensor begins, bytes.
    """

    over: str
    data_type: DataType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = Interleave.NONE
    swizzle: SwizzleMode = SwizzleMode.NONE
    oob_fill: OobFill = OobFill.NONE
    offset: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return self.element_strides or (1,) * len(self.dims)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter by value."""

    value: int | float
    dtype: str = "u4"


Parameter = Buffer | Map | Scalar


def out(count: int, dtype: str = "u4", name: str = "out", fill: Fill = "poison") -> Buffer:
    """A buffer whose bytes after the launch are the answer."""
    return Buffer(name, dtype, count, fill, is_output=True)


def data(count: int, dtype: str = "u4", name: str = "in", fill: Fill = "iota") -> Buffer:
    """A buffer that the kernel reads."""
    return Buffer(name, dtype, count, fill)


@dataclass(frozen=True)
class Question:
    """One question that hardware answers.

    `source` is CUDA C++ after `prelude.cuh`: an `extern "C" __global__ void question(...)` whose parameters are
    `parameters` in their order. The answer is what the output buffers hold, or the trap that ends the kernel. A kernel
    ends by itself in any case: it counts its looks at what may never come, and writes that it did not.

    `shows` says an answer in words: a format string over `w`, the first output's elements, and over the outputs by
    name. `fault` is a pattern that the emulator's message has where the kernel traps, or where `explained` says that
    the emulator refuses what the hardware lets pass. `may_trap` has the launch made in a process of its own.
    With `rule`, the emulator's checks are to name that rule, and that is its answer: what the hardware does where an
    order is missing, the emulator need not do. `varies` reduces outputs that are not determined to what is; then that
    is compared. `policies` are the completion policies of the emulator under which the answer has to hold, `registers`
    those of a thread at launch.
    """

    id: str
    asks: str
    ptx: str
    source: str
    parameters: tuple[Parameter, ...]
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (32, 1, 1)
    cluster: Dim3 = (1, 1, 1)
    smem: int = 0
    registers: int | None = None
    may_trap: bool = False
    fault: str = ""
    explained: str = ""
    shows: str = ""
    rule: str = ""
    varies: Callable[[Outputs], str] | None = None
    policies: tuple[str, ...] = ("eager", "lazy", "newest-first", "random")

    def __post_init__(self) -> None:
        if not self.id.replace("-", "a").isalnum() or self.id != self.id.lower():
            raise ValueError(f"question {self.id!r}: an id is of small letters, digits and hyphens")
        if not self.outputs:
            raise ValueError(f"question {self.id}: no output buffer")
        buffers = [p.name for p in self.parameters if isinstance(p, Buffer)]
        if len(buffers) != len(set(buffers)):
            raise ValueError(f"question {self.id}: two buffers of one name")
        if missing := {p.over for p in self.parameters if isinstance(p, Map)} - set(buffers):
            raise ValueError(f"question {self.id}: maps over {sorted(missing)}, which are no buffers")

    @property
    def kernel(self) -> str:
        """The kernel's name in a module of many questions."""
        return "q_" + self.id.replace("-", "_")

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that hold the answer."""
        return tuple(p for p in self.parameters if isinstance(p, Buffer) and p.is_output)

    @property
    def digest(self) -> str:
        """Of everything that the hardware's answer depends on, but the compiler and the prelude."""
        names = ("source", "parameters", "grid", "block", "cluster", "smem")
        assert set(names) <= {field.name for field in fields(self)}
        return hashlib.sha256(repr([getattr(self, name) for name in names]).encode()).hexdigest()[:16]
