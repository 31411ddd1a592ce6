# SPDX-License-Identifier: Apache-2.0
"""How soon a broken kernel is told: step 6 at 256^3 with a race put in, and with a deadlock, from the compiled kernel
to the written report. nvcc is not counted; the host part, the making of inputs and the checks are.

    python -m benchmarks.report
"""

from __future__ import annotations

import time

from benchmarks.measure import Timing, machine, report
from tmagen.emit import emit
from tmagen.ir import Shape
from tmagen.plan import plan
from tmagen.presets import PRESETS
from tmagen.verify import verify

LIMIT_SECONDS = 1.0
RUNS = 5
SHAPE = Shape(256, 256, 256)
BEFORE_STORE = "TMEM has been read: the next tile may overwrite it\n"
BARRIER = "  ptx::barrier_sync(kEpilogueBarrier, kThreads);\n"
FAULTS = {
    "race": (BEFORE_STORE + BARRIER, BEFORE_STORE, "RC-01"),
    "deadlock": ("(full, kTxBytes)", "(full, 2 * kTxBytes)", "deadlock"),
}
"""What is replaced in the emitted text, by what, and a word that the report must have."""


def seconds_to_report(text: str, word: str) -> float:
    """Verifies a kernel whose report must have `word`, and says how long that took without nvcc."""
    start = time.perf_counter()
    found = verify(text, [SHAPE], inputs="integer")
    told = found.text()
    seconds = time.perf_counter() - start - found.build_seconds
    if found.exit_code != 1 or word not in told:
        raise SystemExit(f"the report lacks {word}:\n{told}")
    return seconds


def main() -> None:
    """The command."""
    kernel = emit(plan(PRESETS["step6"].spec))
    print(machine())
    for name, (old, new, word) in FAULTS.items():
        if kernel.count(old) != 1:
            raise SystemExit(f"the emitted text has no place for a {name}")
        broken = kernel.replace(old, new)
        timing = Timing(tuple(seconds_to_report(broken, word) for _ in range(RUNS)))
        report(f"report of a {name} at 256^3, the usual policies", str(timing), LIMIT_SECONDS, timing.median)


if __name__ == "__main__":
    main()
