# SPDX-License-Identifier: Apache-2.0
"""What is asked: a GEMM kernel as a tree of small frozen values.

D = A · Bᵀ with A of M x K, B of N x K and D of M x N elements. The tree holds what a user decides; what follows from it
is computed in :mod:`tmagen.plan`. A value may hold anything: :func:`tmagen.legality.check` says whether it may exist.

Every value is hashable and prints as one would type it: ``eval(repr(x)) == x``.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from enum import Enum


class _Choice(Enum):
    """An enum whose members print as one types them, and whose values are the words of the command line."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class DType(_Choice):
    """An element type."""

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"

    @property
    def bytes(self) -> int:
        """Size of one element, bytes."""
        return 4 if self is DType.F32 else 2


class Policy(_Choice):
    """How loads and MMAs of one output tile follow each other."""

    SERIAL = "serial"  # load, wait, MMA, wait: one stage
    PREFETCH = "prefetch"  # a ring of stages, each refilled as soon as the MMA has read it


class Target(_Choice):
    """The GPU architecture that a kernel is for; the `a` means that it runs on no other."""

    SM_90A = "sm_90a"
    SM_100A = "sm_100a"


class Layout(_Choice):
    """The order of a matrix in global memory."""

    K_MAJOR = "k-major"  # an operand's row of K elements is contiguous
    ROW_MAJOR = "row-major"  # a row of N elements of D is contiguous


def _repr_without_defaults(value: object) -> str:
    """Prints the fields that differ from their defaults: what one would have typed."""
    shown = [
        f"{field.name}={getattr(value, field.name)!r}"
        for field in fields(value)  # type: ignore[arg-type]
        if field.default is MISSING or getattr(value, field.name) != field.default
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a problem."""

    m: int  # rows of A and D, elements: 0 .. 2^31 - 1
    n: int  # rows of B and columns of D, elements: 0 .. 2^31 - 1
    k: int  # columns of A and B, elements: 0 .. 2^31 - 1


@dataclass(frozen=True, slots=True, repr=False)
class Problem:
    """What is multiplied."""

    a: DType = DType.F16  # element of A: f16 or bf16
    b: DType = DType.F16  # element of B: as A
    d: DType = DType.F16  # element of D: f16, bf16 or f32
    acc: DType = DType.F32  # accumulator: f32
    layout_a: Layout = Layout.K_MAJOR  # k-major
    layout_b: Layout = Layout.K_MAJOR  # k-major
    layout_d: Layout = Layout.ROW_MAJOR  # row-major
    shape: Shape | None = None  # a shape that is baked in, or None: M, N and K are run-time arguments

    __repr__ = _repr_without_defaults


@dataclass(frozen=True, slots=True)
class Tile:
    """The output tile of one CTA, and the depth of one stage."""

    m: int = 128  # rows of D, elements: 128; on sm_90a 64 too
    n: int = 128  # columns of D, elements: 16 .. 256 in steps of 16; on sm_90a 8 .. 256 in steps of 8
    k: int = 64  # K elements of one stage: 32, 64 or 128


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The ring of shared-memory stages between TMA and MMA."""

    depth: int = 2  # stages: 1 with serial, 2 or more with prefetch, as many as shared memory holds
    policy: Policy = None  # type: ignore[assignment]  # left out: serial with one stage, prefetch with more

    def __post_init__(self) -> None:
        if self.policy is None:
            object.__setattr__(self, "policy", Policy.SERIAL if self.depth == 1 else Policy.PREFETCH)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which CTA computes which output tiles."""

    persistent: bool = False  # False: one output tile per CTA. True: a fixed grid, tile after tile
    ctas: int | None = None  # CTAs of a persistent grid: 1 .. 2^31 - 1, None = as many as the target has SMs
    l2_group: int = 8  # tile rows that a persistent grid finishes together, tiles: 1 .. 2^31 - 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """CTAs that are scheduled together."""

    m: int = 1  # CTAs along M: 1
    n: int = 1  # CTAs along N: 1


@dataclass(frozen=True, slots=True, repr=False)
class Gemm:
    """One kernel, as it is asked for."""

    problem: Problem = Problem()
    tile: Tile = Tile()
    pipeline: Pipeline = Pipeline()
    schedule: Schedule = Schedule()
    cluster: Cluster = Cluster()
    target: Target = Target.SM_100A
    name: str | None = None  # the kernel's identifier, at most 64 characters; None = derived from the rest

    __repr__ = _repr_without_defaults
