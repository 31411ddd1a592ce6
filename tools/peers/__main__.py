# SPDX-License-Identifier: Apache-2.0
"""Kernels that other compilers make, on the emulator: matrix products bit by bit against exact results, what else there
is (softmax, attention, sorting, locks) against NumPy.

    python -m tools.peers                 all of them
    python -m tools.peers --only sm90     those whose name holds a text
    python -m tools.peers --cutlass       CUTLASS's too, with checks; nvcc takes most of a minute for each
    python -m tools.peers --no-checks     values alone, without the checks for races and broken rules
    python -m tools.peers --thorough      under all execution policies, each with all its seeds

Triton is installed below build/peers, apart from the project's environment. The last line is `passed N/N`; the exit
status is 1 where that is not all.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from tools.peers import cutlass, gluon, own, tirx, triton, triton_others
from tools.peers.outcome import Outcome, Ways, table


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name holds TEXT")
    parser.add_argument("--no-checks", action="store_true", help="compare values alone")
    parser.add_argument("--cutlass", action="store_true", help="CUTLASS's kernels too: minutes of nvcc")
    parser.add_argument("--thorough", action="store_true", help="all execution policies and seeds: 15 minutes")
    arguments = parser.parse_args()
    ways = Ways(not arguments.no_checks, arguments.thorough)
    outcomes: list[Outcome] = []
    found = [source.run_all(arguments.only, ways) for source in (own, tirx, triton, triton_others, gluon)]
    found += [cutlass.run_all(arguments.only, ways)] if arguments.cutlass else []
    for outcome in chain.from_iterable(found):
        print(f"{outcome.source} {outcome.kernel}: {outcome.verdict}", flush=True)
        outcomes.append(outcome)
    print()
    print("\n".join(table(outcomes)))
    for outcome in outcomes:
        if outcome.refused is not None:
            print(f"\n{outcome.source} {outcome.kernel} was not tried: {outcome.refused}")
        for problem in outcome.problems[:3]:
            print(f"\n{outcome.source} {outcome.kernel}: {problem}")
        if outcome.known:
            first = outcome.known[0]
            print(f"\n{outcome.source} {outcome.kernel}, known in {len(outcome.known)} runs, such as: {first}")
    judged = [outcome for outcome in outcomes if outcome.refused is None]
    runs = sum(outcome.runs for outcome in outcomes)
    passed = sum(outcome.passed for outcome in judged)
    print(f"\n{runs} runs\npassed {passed}/{len(judged)}")
    return 0 if judged and passed == len(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
