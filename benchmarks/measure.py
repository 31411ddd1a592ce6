# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the machine's name, repeated timing, and one form of table."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of several runs."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle run."""
        return statistics.median(self.runs)

    def __str__(self) -> str:
        return f"{self.median:.4f} s (of {len(self.runs)}: {min(self.runs):.4f} to {max(self.runs):.4f})"


def machine() -> str:
    """Processor, cores and Python, in a line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def timed(action: Callable[[], object], runs: int, warmup: int = 1) -> Timing:
    """Runs `action` and says how long each run took, the first `warmup` ones left out."""
    seconds = []
    for _ in range(warmup + runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return Timing(tuple(seconds[warmup:]))


def timed_pair(ours: Sequence[str], peer: Sequence[str], runs: int) -> tuple[Timing, Timing]:
    """Two commands as whole processes, in turn, so that the machine's drift meets both."""
    mine, theirs = [], []
    for round_number in range(runs + 1):
        for command, seconds in ((ours, mine), (peer, theirs)):
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if round_number:  # the first round fills the file cache
                seconds.append(time.perf_counter() - start)
    return Timing(tuple(mine)), Timing(tuple(theirs))


def report(title: str, figure: str, limit_seconds: float, seconds: float) -> None:
    """Prints one result and whether it is within what was asked."""
    verdict = "within" if seconds <= limit_seconds else "OVER"
    print(f"{title}: {figure}; {verdict} {limit_seconds:g} s")
