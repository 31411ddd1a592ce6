# SPDX-License-Identifier: Apache-2.0
"""The table of mutants and the kernels as they are, run by several processes."""

from __future__ import annotations

from dataclasses import dataclass

from tools.mutants.base import Base
from tools.mutants.bases import BASES, named, present
from tools.mutants.mutant import DEADLOCK, Mutant, caught
from tools.mutants.outcome import Outcome
from tools.mutants.pool import build, shared
from tools.mutants.table import MUTANTS

RUNS = (
    *(("eager", 0), ("lazy", 0), ("newest-first", 0), ("random", 1), ("adversarial", 1)),
    *(("starve", victim) for victim in range(4)),
)
RIGHT_RUNS = (
    *(("eager", 0), ("lazy", 0), ("adversarial", 0), ("random", 1), ("starve", 0), ("newest-first", 0)),
    *(("late-read", 0), ("random", 0), ("split", 0), ("starve", 1)),
)
RIGHT_EACH = 20  # runs of each kernel as it is, over its cases; at least 4 of each case


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
    for completion, seed in (run for run in RUNS if run not in base.hangs):
        outcome = base.run(text, completion=completion, seed=seed)
        if caught(mutant, outcome) != bool(mutant.equivalent):
            return not mutant.equivalent, outcome
    return bool(mutant.equivalent), outcome


def right_runs(bases: dict[str, Base]) -> list[Right]:
    """Kernels as they are, over cases, completions and seeds: each case eagerly, and under as many others as make up
    the number of runs of its kernel; the cases take different ones.
    """
    found = []
    for name, base in bases.items():
        others, rounds = len(RIGHT_RUNS) - 1, min(len(RIGHT_RUNS), max(4, RIGHT_EACH // base.cases)) - 1
        for case in range(base.cases):
            chosen = [0, *(1 + (case * rounds + place) % others for place in range(rounds))]
            found += [Right(name, case, *RIGHT_RUNS[number]) for number in chosen]
    return found


def _run(task: Mutant | Right) -> tuple[bool, Outcome]:
    if isinstance(task, Mutant):
        return judge(task)
    base = BASES[task.base]
    outcome = base.run(base.text(task.case), task.case, completion=task.completion, seed=task.seed, strict=False)
    if (task.completion, task.seed) in base.hangs:
        return outcome.ended == DEADLOCK and not outcome.errors, outcome
    return outcome.clean, outcome


def whole(jobs: int, only: str) -> int:
    """Print a line for each mutant, and the counts; the exit status."""
    bases = named(only)
    mutants = [mutant for mutant in MUTANTS if mutant.base in bases]
    for name in BASES.keys() - present().keys():
        print(f"{name} is not there: `make peers` fetches it", flush=True)
    build(bases.values(), jobs)
    hits = equivalent = alarms = 0
    rights = right_runs(bases)
    tasks: list[Mutant | Right] = [*mutants, *rights]
    for task, (good, outcome) in shared(_run, tasks, jobs):
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
