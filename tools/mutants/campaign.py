# SPDX-License-Identifier: Apache-2.0
"""Changes of single synchronisation instructions: what tells of each, and why the rest breaks nothing."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context

from tools.mutants.base import Base
from tools.mutants.bases import present
from tools.mutants.outcome import Outcome
from tools.mutants.sites import Change, changes
from tools.mutants.survivors import reason

RUNS = (
    *(("eager", 0), ("lazy", 0), ("newest-first", 0), ("random", 1), ("adversarial", 1), ("consumer-first", 0)),
    *(("late-read", 0), *(("starve", victim) for victim in range(4))),
)
VERDICTS = ("rule", "result", "formal", "explained", "UNEXPLAINED")
"""Caught by a rule of severity E; by wrong values, a fault or a deadlock; told by a rule of severity W or R alone; by
nothing, and the table of survivors says why; by nothing.
"""


@dataclass(frozen=True)
class Trial:
    """One change, and what came of it."""

    base: str
    change: Change
    verdict: str
    told: str

    def line(self) -> str:
        return f"{self.verdict:<11} {self.base:<15} {self.change.title:<58} {self.told}"


def chosen(base: Base, seeds: int) -> list[Change]:
    """Distinct changes of one kernel, one for each seed as far as there are."""
    every = changes(base.ptx)
    if len(every) <= seeds:
        return every
    taken: dict[int, Change] = {}
    for seed in range(seeds):
        left = [index for index in range(len(every)) if index not in taken]
        index = random.Random(seed).choice(left)
        taken[index] = every[index]
    return [taken[index] for index in sorted(taken)]


def judge(base: Base, change: Change) -> Trial:
    """Run one change under every completion until something tells of it."""
    formal: set[str] = set()
    usual: set[str] = set()
    results = ""
    for completion, seed in RUNS:
        outcome = base.run(change.text, completion=completion, seed=seed)
        if outcome.errors:
            return Trial(base.name, change, "rule", outcome.told())
        results = results or _result(outcome)
        formal |= outcome.others
    if results:
        return Trial(base.name, change, "result", results)
    if formal:
        usual = base.run(base.ptx).others
    if new := formal - usual:
        return Trial(base.name, change, "formal", " ".join(sorted(new)))
    why = reason(base.name, change)
    return Trial(base.name, change, "explained" if why else "UNEXPLAINED", why or change.what)


def _result(outcome: Outcome) -> str:
    return outcome.ended[:60] or ("wrong values" if outcome.wrong else "")


_TASKS: list[tuple[Base, Change]] = []


def _judge(number: int) -> Trial:
    base, change = _TASKS[number]
    return judge(base, change)


def trials(bases: Iterable[Base], seeds: int, jobs: int) -> Iterator[Trial]:
    """Every trial, in the order of bases and instructions; `jobs` processes share them."""
    _TASKS[:] = [(base, change) for base in bases for change in chosen(base, seeds)]
    for base in {id(base): base for base, _ in _TASKS}.values():
        base.run(base.ptx)  # what is launched is found out once, before the processes part
    with get_context("fork").Pool(jobs) as pool:
        for done, trial in enumerate(pool.imap(_judge, range(len(_TASKS)), chunksize=1), 1):
            if sys.stderr.isatty():
                print(f"\r{done}/{len(_TASKS)}", end="", file=sys.stderr, flush=True)
            yield trial


def campaign(seeds: int, jobs: int, only: str, *, every: bool) -> int:
    """Print what is asked for, and the counts; the exit status is 1 where a survivor has no explanation."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    bases = [base for name, base in present().items() if only in name]
    for trial in trials(bases, seeds, jobs):
        counts[trial.base, trial.verdict] += 1
        if trial.verdict == "explained":
            reasons[trial.told] += 1
        if every or trial.verdict == "UNEXPLAINED":
            print(trial.line(), flush=True)
    print(f"\n{'':<16}" + "".join(f"{verdict:>12}" for verdict in VERDICTS))
    for base in bases:
        print(f"{base.name:<16}" + "".join(f"{counts[base.name, verdict]:>12}" for verdict in VERDICTS))
    print("\nSurvivors, by reason:")
    for why, count in reasons.most_common():
        print(f"{count:>4}  {why}")
    total, told = sum(counts.values()), {verdict: 0 for verdict in VERDICTS}
    for (_, verdict), count in counts.items():
        told[verdict] += count
    print(
        f"\nchanges {total}: by a rule {told['rule']}, by the result {told['result']}, formal {told['formal']}, "
        f"survivors explained {told['explained']}, unexplained {told['UNEXPLAINED']}"
    )
    return 1 if told["UNEXPLAINED"] else 0
