# SPDX-License-Identifier: Apache-2.0
"""Kernels broken on purpose, and which rule tells of it.

    python -m tools.mutants                      every row of the table, and false alarms on the kernels as they are
    python -m tools.mutants --only pair          those of the kernels whose name holds a text
    python -m tools.mutants random --seeds 200   changes of single synchronisation instructions of every kernel

A mutant counts as caught when one of the rules that its row names fires, or, where the row names none, when the run
ends as the row says. False alarms are findings of severity E, and wrong results, of kernels as they are, over shapes,
completions and seeds. The exit status is 1 where a mutant is missed, a false alarm is given, a change that survives has
no explanation, or an explanation is of a change that is caught.
"""

from __future__ import annotations

import argparse
import os
import sys

from tools.mutants.campaign import campaign
from tools.mutants.judge import whole


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "random"), default="table")
    parser.add_argument("--only", default="", metavar="TEXT", help="the kernel TEXT, or those whose name holds it")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), metavar="N", help="processes")
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="of random: changes of each kernel")
    parser.add_argument("--all", action="store_true", help="of random: print every change, not survivors alone")
    parser.add_argument("--record", action="store_true", help="of random: write the counts down for docs/mutants.md")
    arguments = parser.parse_args()
    if arguments.what == "random":
        jobs, every, record = max(1, arguments.jobs), arguments.all, arguments.record
        return campaign(arguments.seeds, jobs, arguments.only, every=every, record=record)
    return whole(max(1, arguments.jobs), arguments.only)


if __name__ == "__main__":
    sys.exit(main())
