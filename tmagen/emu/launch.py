# SPDX-License-Identifier: Apache-2.0
"""What is run: a kernel, its grid, its parameters; and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmagen.emu.checks import Finding

Dim3 = tuple[int, int, int]


Ranges = tuple[tuple[int, int], ...]
"""Global memory: (address, bytes) of each part."""


@dataclass(frozen=True)
class Predecessor:
    """The grid before a launch with programmatic dependent launch: until griddepcontrol.wait it may still run (PTX ISA,
    "griddepcontrol"). `writes` and `reads` are what it touches; None: any memory.
    """

    writes: Ranges | None = None
    reads: Ranges | None = None


MAX_GRID = ((1 << 31) - 1, 65_535, 65_535)
"""CTAs in x, y and z (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
MAX_CTAS = 1 << 24
"""Of a launch that is run: CTAs run one after the other, and so many take tens of minutes if they do nothing."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `params` is the parameter block, laid out as `Entry.params` says.

    `registers` are those of each thread when the CTA starts, as ptxas reports them; None: what it is seen to choose.
    `predecessor` is the grid before this one where it may still run when this one starts.
    """

    kernel: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    dynamic_smem_bytes: int = 0
    params: bytes = b""
    registers: int | None = None
    predecessor: Predecessor | None = None


@dataclass(frozen=True)
class RunResult:
    """Figures of a run that reached its end, and what the checks found where there were any."""

    ctas: int
    seconds: float
    completion: str
    jobs: int
    findings: tuple[Finding, ...] = ()
    hints: tuple[Finding, ...] = ()  # what may be why a result is wrong, where it is
    cycles: tuple[int, int] | None = None  # the fewest and the most of a CTA, of a timed run
