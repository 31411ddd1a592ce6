# SPDX-License-Identifier: Apache-2.0
"""The table of mutants and the kernels as they are, run by several processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tools.mutants.base import Base
from tools.mutants.bases import BASES, present
from tools.mutants.mutant import Mutant, caught
from tools.mutants.outcome import Outcome
from tools.mutants.table import MUTANTS

RUNS = (
    *(("eager", 0), ("lazy", 0), ("newest-first", 0), ("random", 1), ("adversarial", 1)),
    *(("starve", victim) for victim in range(4)),
)
RIGHT_RUNS = (
    *(("eager", 0), ("lazy", 0), ("newest-first", 0), ("random", 0), ("random", 1), ("adversarial", 0)),
    *(("split", 0), ("late-read", 0), ("starve", 0), ("starve", 1)),
)


@dataclass(frozen=True)
class Right:
    """One run of a kernel as it is."""

    base: str
    case: int
    completion: str
    seed: int


def judge(mutant: Mutant) -> tuple[bool, Outcome]:
    """Whether a mutant is what its row says, and the outcome that shows it: of the first completion that does, or, for
    an equivalent one, that does not.
    """
    base = BASES[mutant.base]
    text = mutant.edit(base.ptx)
    for completion, seed in RUNS:
        outcome = base.run(text, completion=completion, seed=seed)
        if caught(mutant, outcome) != bool(mutant.equivalent):
            return not mutant.equivalent, outcome
    return bool(mutant.equivalent), outcome


def right_runs(bases: dict[str, Base]) -> list[Right]:
    """Kernels as they are, over cases, completions and seeds."""
    return [
        Right(name, case, completion, seed)
        for name, base in bases.items()
        for case in range(base.cases)
        for completion, seed in RIGHT_RUNS
    ]


_TASKS: list[Mutant | Right] = []  # by number: an edit is a closure, which does not travel between processes


def _run(number: int) -> tuple[bool, Outcome]:
    task = _TASKS[number]
    if isinstance(task, Mutant):
        return judge(task)
    base = BASES[task.base]
    outcome = base.run(base.text(task.case), task.case, completion=task.completion, seed=task.seed, strict=False)
    return outcome.clean, outcome


def _results(tasks: list[Mutant | Right], jobs: int) -> Iterator[tuple[Mutant | Right, bool, Outcome]]:
    _TASKS[:] = tasks
    with get_context("fork").Pool(jobs) as pool:
        results = pool.imap(_run, range(len(tasks)))
        for done, (task, (good, outcome)) in enumerate(zip(tasks, results, strict=True), 1):
            if sys.stderr.isatty():
                print(f"\r{done}/{len(tasks)} ", end="", file=sys.stderr, flush=True)
            yield task, good, outcome


def build(bases: dict[str, Base], jobs: int) -> None:
    """Compile all kernels, and find out how each is launched, before the processes part."""
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda base: base.ptx, bases.values()))
    for base in bases.values():
        for case in range(base.cases):
            base.prepare(case, 0)


def whole(jobs: int, only: str) -> int:
    """Print a line for each mutant, and the counts; the exit status."""
    bases = {name: base for name, base in present().items() if only in name}
    mutants = [mutant for mutant in MUTANTS if mutant.base in bases]
    for name in BASES.keys() - present().keys():
        print(f"{name} is not there: `make peers` fetches it", flush=True)
    build(bases, jobs)
    hits = equivalent = alarms = 0
    rights = right_runs(bases)
    tasks: list[Mutant | Right] = [*mutants, *rights]
    for task, good, outcome in _results(tasks, jobs):
        if isinstance(task, Right):
            alarms += not good
            if not good:
                print(f"ALARM   {task.base}, case {task.case}, {task.completion} {task.seed}: {outcome.told()}")
            continue
        hits += good and not task.equivalent
        equivalent += good and bool(task.equivalent)
        print(
            f"{'caught' if good else 'MISSED':<7} {task.kind:>2} {task.base:<15} {task.name:<62} "
            f"{task.expected:<24} {outcome.told()}",
            flush=True,
        )
    total = sum(not mutant.equivalent for mutant in mutants)
    print(f"caught {hits}/{total}, equivalent {equivalent}, false alarms {alarms}/{len(rights)}")
    return 1 if hits < total or equivalent < len(mutants) - total or alarms else 0
