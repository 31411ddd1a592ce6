# SPDX-License-Identifier: Apache-2.0
"""The emulator on the step-6 kernel with integer input; nvcc and the making of inputs are not counted.

    python -m benchmarks.emulate            256^3 under every completion
    python -m benchmarks.emulate --large    4096^3, eager, and the memory that it takes
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from benchmarks.measure import machine, report
from tmagen.ir import Shape
from tmagen.presets import PRESETS
from tmagen.verify import CaseReport, Verdict, verify

SMALL_LIMIT_SECONDS = 0.2
LARGE_LIMIT_SECONDS = 10.0
LARGE_LIMIT_BYTES = 4 << 30


def cases_of(size: int, completion: str, *, checks: bool = False) -> tuple[CaseReport, ...]:
    """The cases of one cube, all of which must have passed."""
    shape = Shape(size, size, size)
    spec = PRESETS["step6"].spec
    cases = verify(spec, [shape], completion=completion, inputs="integer", checks=checks).cases
    if not all(case.verdict is Verdict.PASSED for case in cases):
        raise SystemExit("\n".join(line for case in cases for line in case.lines()))
    return cases


def sgemm_seconds(size: int) -> float:
    """One plain float32 product of that size: the floor."""
    a = np.ones((size, size), np.float32)
    start = time.perf_counter()
    a @ a
    return time.perf_counter() - start


def peak_bytes() -> int:
    """The largest resident set of this process and of any child so far."""
    return 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="4096^3 instead of 256^3")
    arguments = parser.parse_args()
    print(machine())
    if arguments.large:
        seconds = sum(case.seconds for case in cases_of(4096, "eager"))
        floor = sgemm_seconds(4096)
        memory = peak_bytes()
        print(f"float32 sgemm of that size: {floor:.2f} s; ratio {seconds / floor:.1f}")
        print(f"peak memory of a process: {memory / 2**30:.2f} GiB of {LARGE_LIMIT_BYTES >> 30} GiB")
        report("emulate 4096^3, eager", f"{seconds:.2f} s", LARGE_LIMIT_SECONDS, seconds)
        return
    rounds = [sum(case.seconds for case in cases_of(256, "usual")) for _ in range(5)]
    middle = sorted(rounds)[2]
    figure = f"{middle:.3f} s (of 5: {min(rounds):.3f} to {max(rounds):.3f})"
    report("emulate 256^3, the usual policies", figure, SMALL_LIMIT_SECONDS, middle)


if __name__ == "__main__":
    main()
