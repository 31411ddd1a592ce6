# SPDX-License-Identifier: Apache-2.0
"""What a run on the GPU found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tmagen.bind import LeadingDims
from tmagen.gpu.device import DeviceInfo, Dim3
from tmagen.ir import Shape
from tmagen.toolchain import KernelResources
from tmagen.verify import Verdict
from tmagen.verify.compare import Mismatch
from tmagen.verify.compare import to_dict as mismatch_to_dict


@dataclass(frozen=True, slots=True)
class RunCase:
    """One problem with one set of inputs."""

    shape: Shape
    lds: LeadingDims
    inputs: str  # "integer", "normal", or "none" where nothing is read
    seed: int
    grid: Dim3 | None  # None where nothing is launched, or where the host part keeps it to itself
    verdict: Verdict
    references: tuple[str, ...]  # what D was compared with: "numpy", "torch"
    repeated: int  # launches after the first that were compared with it
    seconds: float  # all that the case took
    mismatch: Mismatch | None = None
    error_ratio: float | None = None  # of normal inputs: the largest error over its bound
    message: tuple[str, ...] = ()  # what went wrong, other than values

    def line(self) -> str:
        """The case in one line, of fixed columns."""
        shape = f"{self.shape.m} x {self.shape.n} x {self.shape.k}"
        grid = "-" if self.grid is None else "x".join(map(str, self.grid))
        times = f"x{1 + self.repeated}" if self.repeated else ""
        against = "+".join(self.references) or "-"
        how = f"{self.inputs:<8} seed {self.seed:<3} {times:<7} {against:<12} {self.seconds:6.2f} s"
        return f"{shape:<22} grid {grid:<11} {how}  {self.verdict.value}"

    def lines(self) -> tuple[str, ...]:
        """The case, with what went wrong under it."""
        wrong = self.mismatch.lines() if self.mismatch else ()
        return (self.line(), *(f"    {line}" for line in (*self.message, *wrong)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "shape": [self.shape.m, self.shape.n, self.shape.k],
            "leading_dims": [self.lds.a, self.lds.b, self.lds.d],
            "inputs": self.inputs,
            "seed": self.seed,
            "grid": None if self.grid is None else list(self.grid),
            "verdict": self.verdict.value,
            "references": list(self.references),
            "repeated": self.repeated,
            "seconds": round(self.seconds, 4),
            "error_ratio": self.error_ratio,
            "message": list(self.message),
            "mismatch": None if self.mismatch is None else mismatch_to_dict(self.mismatch),
        }


@dataclass(frozen=True, slots=True)
class RunReport:
    """All cases of one kernel on one device."""

    subject: str
    target: str
    device: DeviceInfo
    built_with: str
    elements: tuple[str, str, str]  # of A, B and D
    resources: tuple[KernelResources, ...]
    notes: tuple[str, ...]
    cases: tuple[RunCase, ...]
    lost: bool = False  # a kernel faulted or still runs: the process has to end without cleaning up

    @property
    def exit_code(self) -> int:
        """0: every case passed; 1: one failed; 2: there was none."""
        if any(case.verdict is Verdict.FAILED for case in self.cases):
            return 1
        return 0 if self.cases else 2

    def text(self) -> str:
        """The whole report."""
        a, b, d = self.elements
        kernels = [
            f"{k.registers} registers, {k.spill_store_bytes + k.spill_load_bytes} bytes spilled" for k in self.resources
        ]
        heading = (
            f"{self.subject}: {self.target}, A {a}, B {b}, D {d}",
            f"on {self.device}",
            f"built with {self.built_with}" + (f": {'; '.join(kernels)}" if kernels else ""),
            *self.notes,
        )
        return "\n".join([*heading, *(line for case in self.cases for line in case.lines()), self.summary()])

    def summary(self) -> str:
        """The last line."""
        counts = Counter(case.verdict for case in self.cases)
        parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
        launches = sum(1 + case.repeated for case in self.cases)
        return f"{', '.join(parts) or 'no cases'} ({len(self.cases)} cases, {launches} launches)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "subject": self.subject,
            "target": self.target,
            "device": device_dict(self.device),
            "built_with": self.built_with,
            "elements": list(self.elements),
            "kernels": [
                {
                    "name": k.name,
                    "registers": k.registers,
                    "spill_store_bytes": k.spill_store_bytes,
                    "spill_load_bytes": k.spill_load_bytes,
                    "static_smem_bytes": k.static_smem_bytes,
                }
                for k in self.resources
            ],
            "notes": list(self.notes),
            "cases": [case.to_dict() for case in self.cases],
            "exit_code": self.exit_code,
        }


def device_dict(info: DeviceInfo) -> dict[str, Any]:
    """Plain data, for JSON."""
    return {
        "name": info.name,
        "compute_capability": list(info.compute_capability),
        "sm_count": info.sm_count,
        "smem_optin_bytes": info.smem_optin_bytes,
        "l2_bytes": info.l2_bytes,
        "memory_bytes": info.memory_bytes,
        "driver_version": info.driver_version,
    }
