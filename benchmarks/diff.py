# SPDX-License-Identifier: Apache-2.0
"""`tmagen diff --preset step6` as a whole process: TVM, nvcc for both sides, and both on the emulator at 512^3.

    python -m benchmarks.diff
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.measure import machine, report, timed

LIMIT_SECONDS = 6.0


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "tmagen", "diff", "--preset", "step6"]
    print(machine())
    timing = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), arguments.runs)
    report("tmagen diff, against TIRx", str(timing), LIMIT_SECONDS, timing.median)


if __name__ == "__main__":
    main()
