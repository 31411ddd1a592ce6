# SPDX-License-Identifier: Apache-2.0
"""`tmagen emit` as a whole process, beside TVM making CUDA text of the same kernel.

    python -m benchmarks.emit_cold [--peer SCRIPT]

SCRIPT is a Python file that prints TVM's CUDA text of a step-6 kernel; without it our own figure stands alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import machine, report, timed, timed_pair

LIMIT_SECONDS = 0.20


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="a script that prints TVM's text")
    parser.add_argument("--runs", type=int, default=11)
    arguments = parser.parse_args()
    ours = [sys.executable, "-m", "tmagen", "emit", "--pipe-depth", "2", "--persistent"]
    print(machine())
    if arguments.peer is None:
        timing = timed(lambda: subprocess.run(ours, check=True, stdout=subprocess.DEVNULL), arguments.runs)
    else:
        timing, peer = timed_pair(ours, [sys.executable, str(arguments.peer)], arguments.runs)
        print(f"TVM, cold process: {peer}; ratio {peer.median / timing.median:.1f}")
    report("tmagen emit, cold process", str(timing), LIMIT_SECONDS, timing.median)


if __name__ == "__main__":
    main()
