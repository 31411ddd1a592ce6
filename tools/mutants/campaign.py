# SPDX-License-Identifier: Apache-2.0
"""Changes of single synchronisation instructions: what tells of each, and why the rest breaks nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tmagen.emu.policy.policy import victims
from tools.mutants.base import Base
from tools.mutants.bases import BASES, named
from tools.mutants.outcome import Outcome
from tools.mutants.pool import build, shared
from tools.mutants.sites import Change, changes
from tools.mutants.survivors import reason

RUNS = (
    *(("eager", 0), ("lazy", 0), ("newest-first", 0), ("random", 1), ("adversarial", 1), ("consumer-first", 0)),
    *(("late-read", 0), ("split", 1), ("poison", 1)),
)
"""The completions that each change is run under; `starve` follows, with everyone as its victim."""
RUNS_OF_RESULT = 4  # where a result is wrong under the first completions, a rule is looked for under these alone
VERDICTS = ("rule", "result", "formal", "explained", "UNEXPLAINED")
"""Caught by a rule of severity E; by wrong values, a fault or a deadlock; told by a rule of severity W or R alone; by
nothing, and the table of survivors says why; by nothing.
"""
CAUGHT = VERDICTS[:2]
RECORD = Path(__file__).with_name("random_counts.json")
"""What `--record` writes and the page says."""


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
    formal: set[tuple[str, str]] = set()
    results = ""
    for number, (case, completion, seed) in enumerate(_runs(base)):
        if results and number >= RUNS_OF_RESULT:
            break
        outcome = base.run(change.text, case, completion=completion, seed=seed)
        if outcome.errors:
            return Trial(base.name, change, "rule", f"{outcome.told()} [{completion} {seed}]")
        if not results and (result := _result(outcome)):
            results = f"{result} [{completion} {seed}]"
        formal |= outcome.places
    if results:
        return Trial(base.name, change, "result", results)
    if new := formal - _usual(base):
        return Trial(base.name, change, "formal", " ".join(sorted({rule for rule, _ in new})))
    why = reason(base.name, change)
    return Trial(base.name, change, "explained" if why else "UNEXPLAINED", why or change.what)


@lru_cache
def _runs(base: Base) -> tuple[tuple[int, str, int], ...]:
    """Cases, completions and seeds, without those under which the kernel deadlocks as it is."""
    starved = (("starve", victim) for victim in range(victims(base.prepare(0, 0).launches[0])))
    runs = [run for run in (*RUNS, *starved) if run not in base.hangs]
    return tuple((case, *run) for case in (0, *base.others) for run in runs)


@lru_cache
def _usual(base: Base) -> frozenset[tuple[str, str]]:
    """What `--strict` tells of the kernel as it is, and of which opcodes."""
    return frozenset().union(*(base.run(base.text(case), case).places for case in (0, *base.others)))


def _result(outcome: Outcome) -> str:
    return outcome.ended[:60] or ("wrong values" if outcome.wrong else "")


def _judge(task: tuple[Base, Change]) -> Trial:
    return judge(*task)


def recorded() -> dict[str, dict[str, int]]:
    """The counts that are written down, by kernel and verdict."""
    found: dict[str, dict[str, int]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def _record(counts: dict[str, Counter[str]]) -> None:
    """Write the counts of these kernels down, and keep those of the others."""
    old = recorded()
    new = {name: {verdict: count[verdict] for verdict in VERDICTS} for name, count in counts.items()}
    kept = {name: new.get(name) or old[name] for name in BASES if name in new or name in old}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(count)}" for name, count in kept.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def campaign(seeds: int, jobs: int, only: str, *, every: bool, record: bool = False) -> int:
    """Print what is asked for, and the counts; `record` writes them down for the page. The exit status is 1 where a
    survivor has no explanation, or where an explanation is of a change that is caught.
    """
    bases = list(named(only).values())
    build(bases, jobs)
    tasks = [(base, change) for base in bases for change in chosen(base, seeds)]
    counts = {base.name: Counter[str]() for base in bases}
    reasons: Counter[str] = Counter()
    wrong = 0
    left = Counter(base.name for base, _ in tasks)
    print(_row("", VERDICTS), flush=True)
    for (base, _), trial in shared(_judge, tasks, jobs):
        counts[base.name][trial.verdict] += 1
        if trial.verdict == "explained":
            reasons[trial.told] += 1
        if every or trial.verdict == "UNEXPLAINED":
            print(trial.line(), flush=True)
        if trial.verdict in CAUGHT and (why := reason(base.name, trial.change)):
            wrong += 1
            print(f"{trial.line()}\n            wrongly explained: {why}", flush=True)
        left[base.name] -= 1
        if not left[base.name]:
            print(_row(base.name, [counts[base.name][verdict] for verdict in VERDICTS]), flush=True)
    if record:
        _record(counts)
    print("\nSurvivors, by reason:")
    for why, count in reasons.most_common():
        print(f"{count:>4}  {why}")
    told = sum(counts.values(), Counter[str]())
    print(
        f"\nchanges {told.total()}: by a rule {told['rule']}, by the result {told['result']}, formal {told['formal']}, "
        f"survivors explained {told['explained']}, unexplained {told['UNEXPLAINED']}"
    )
    return 1 if told["UNEXPLAINED"] or wrong else 0


def _row(name: str, cells: Iterable[object]) -> str:
    return f"{name:<16}" + "".join(f"{cell!s:>12}" for cell in cells)
