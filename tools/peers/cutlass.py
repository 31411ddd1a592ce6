# SPDX-License-Identifier: Apache-2.0
"""CUTLASS's kernels, launched by their own host code on the stand-in runtime. nvcc takes most of a minute for each."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tmagen.check import Severity, Verdict, run_host
from tmagen.errors import TmagenError
from tools.peers.outcome import Outcome, Ways
from tools.peers.triton_runs import FOLDER

VERSION = "4.2.0.0"
PACKAGES = FOLDER / f"cutlass-{VERSION}"
HEADERS = PACKAGES / "cutlass_library" / "source"
SOURCE = Path(__file__).with_name("cutlass_gemm.cu")


@dataclass(frozen=True)
class CutlassCase:
    """One instance of the builders: schedules, tile and cluster, and the shape that it runs for."""

    name: str
    target: str
    mainloop: str
    epilogue: str
    tile: tuple[int, int]
    cluster: tuple[int, int]
    shape: tuple[int, int, int]

    @property
    def flags(self) -> tuple[str, ...]:
        arch = "Sm100" if self.target == "sm_100a" else "Sm90"
        return (
            "-std=c++17",
            "-O3",
            "--expt-relaxed-constexpr",
            f"-I{HEADERS / 'include'}",
            f"-I{HEADERS / 'tools' / 'util' / 'include'}",
            f"-DARCH={arch}",
            f"-DMAINLOOP=cutlass::gemm::{self.mainloop}",
            f"-DEPILOGUE=cutlass::epilogue::{self.epilogue}",
            f"-DTILE_M={self.tile[0]}",
            f"-DTILE_N={self.tile[1]}",
            f"-DCLUSTER_M={self.cluster[0]}",
            f"-DCLUSTER_N={self.cluster[1]}",
            f"-DSMS={148 if arch == 'Sm100' else 4}",
        )


CASES = (
    CutlassCase(
        "pair_2x2_clc_sm_100a", "sm_100a", "collective::KernelScheduleAuto", "collective::EpilogueScheduleAuto",
        (256, 128), (2, 2), (1024, 512, 256),
    ),
    CutlassCase(
        "cooperative_2x1_sm_90a", "sm_90a", "KernelTmaWarpSpecializedCooperative", "TmaWarpSpecializedCooperative",
        (128, 128), (2, 1), (512, 384, 256),
    ),
    CutlassCase(
        "pingpong_1x2_sm_90a", "sm_90a", "KernelTmaWarpSpecializedPingpong", "TmaWarpSpecialized",
        (64, 128), (1, 2), (512, 384, 256),
    ),
)  # fmt: skip


def install() -> None:
    """Fetch the headers, where nothing else sees them."""
    if HEADERS.is_dir():
        return
    print(f"fetching CUTLASS {VERSION} into {PACKAGES}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", PACKAGES, f"nvidia-cutlass=={VERSION}"], check=True)


def run_all(pattern: str, ways: Ways) -> Iterator[Outcome]:
    """Every case whose name holds `pattern`; the host program compares, so an exit status is the verdict on values."""
    cases = [case for case in CASES if pattern in case.name]
    if cases:
        install()
    for case in cases:
        outcome = Outcome(f"CUTLASS {VERSION}", case.name)
        start = time.perf_counter()
        try:
            report = run_host(
                [SOURCE],
                arguments=list(map(str, case.shape)),
                target=case.target,
                nvcc_flags=case.flags,
                jobs=1,
                thorough=ways.thorough,
            )
        except TmagenError as error:
            outcome.problems.append(str(error))
        else:
            outcome.runs = sum(run.runs for run in report.cases)
            for run in report.cases:
                alarms = [finding for finding in run.findings if finding.severity is Severity.ERROR]
                outcome.findings += len(alarms)
                if run.verdict is not Verdict.PASSED:
                    outcome.problems += [f"{run.completion}: {finding.message}" for finding in run.findings]
            outcome.problems += ["no run passed"] if not outcome.runs else []
        outcome.seconds = time.perf_counter() - start
        yield outcome
