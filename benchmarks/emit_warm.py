# SPDX-License-Identifier: Apache-2.0
"""Emitting specs that were not emitted before, in a warm process.

python -m benchmarks.emit_warm
"""

from __future__ import annotations

import itertools
import time

from benchmarks.measure import Timing, machine, report
from tmagen.emit import emit
from tmagen.ir import Gemm, Pipeline, Policy, Schedule, Tile
from tmagen.plan import plan

LIMIT_SECONDS = 0.005


def main() -> None:
    """The command."""
    emit(plan(Gemm(tile=Tile(128, 16, 32))))  # the templates are compiled once per process
    seconds = []
    for n, k, depth in itertools.product(range(32, 257, 16), (32, 64, 128), (1, 2, 3)):
        policy = Policy.SERIAL if depth == 1 else Policy.PREFETCH
        spec = Gemm(tile=Tile(128, n, k), pipeline=Pipeline(depth, policy), schedule=Schedule(depth > 1))
        if depth * (128 + n) * k * 2 > 190_000:
            continue
        start = time.perf_counter()
        emit(plan(spec))
        seconds.append(time.perf_counter() - start)
    timing = Timing(tuple(seconds))
    print(machine())
    report(f"plan and emit, warm process, {len(seconds)} new specs", str(timing), LIMIT_SECONDS, timing.median)


if __name__ == "__main__":
    main()
