# SPDX-License-Identifier: Apache-2.0
"""Checked runs of the step-6 kernel on integer input; nvcc and the making of inputs are not counted.

    python -m benchmarks.check            256^3: the checked eager run and the other completions
    python -m benchmarks.check --large    4096^3: the checked eager run, and the memory that it takes
"""

from __future__ import annotations

import argparse

from benchmarks.emulate import cases_of, peak_bytes
from benchmarks.measure import machine, report

SMALL_LIMIT_SECONDS = 0.5
LARGE_LIMIT_SECONDS = 20.0
LARGE_LIMIT_BYTES = 6 << 30


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="4096^3 instead of 256^3")
    arguments = parser.parse_args()
    print(machine())
    if arguments.large:
        seconds = sum(case.seconds for case in cases_of(4096, "eager", checks=True))
        print(f"peak memory of a process: {peak_bytes() / 2**30:.2f} GiB of {LARGE_LIMIT_BYTES >> 30} GiB")
        report("check 4096^3, eager", f"{seconds:.2f} s", LARGE_LIMIT_SECONDS, seconds)
        return
    rounds = [sum(case.seconds for case in cases_of(256, "usual", checks=True)) for _ in range(5)]
    middle = sorted(rounds)[2]
    figure = f"{middle:.3f} s (of 5: {min(rounds):.3f} to {max(rounds):.3f})"
    report("check 256^3, the usual policies", figure, SMALL_LIMIT_SECONDS, middle)


if __name__ == "__main__":
    main()
