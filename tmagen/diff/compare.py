# SPDX-License-Identifier: Apache-2.0
"""The comparison of two sides: events, decisions, cost and result."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tmagen.diff.align import Block, align
from tmagen.diff.code import Code
from tmagen.diff.cost import Cost, cost_of, costs
from tmagen.diff.decisions import decisions
from tmagen.diff.facts import Group
from tmagen.diff.problem import Problem
from tmagen.diff.results import Results, Runs, results, runs_of
from tmagen.diff.sides import Side
from tmagen.diff.tools import Tools
from tmagen.diff.unlaunched import decided_by_code, instructions
from tmagen.diff.view import View, look_at
from tmagen.toolchain import Nvcc

PARTS = ("events", "plan", "cost", "result")
LOOKED_AT = {"events", "plan", "cost"}
"""The parts that a recorded run goes into."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, compared. A part that was not asked for is None."""

    left: Side
    right: Side
    problem: Problem
    trial: Problem
    tools: Tools
    events: tuple[Block, ...] | None
    plan: tuple[Group, ...] | None
    cost: tuple[Group, ...] | None
    result: Results | None
    unseen: tuple[str, ...] = ()  # sides that could not be looked at, since a run of theirs did not end
    unlaunched: tuple[str, ...] = ()  # sides that nothing launches: what stands in the code is all that is known
    code: tuple[Group, ...] = ()  # how often each instruction stands in the PTX, where no run says what is done
    totals: tuple[tuple[str, int, int], ...] = ()  # steps of CTA 0 of the trial, by what they are: left, right

    @property
    def exit_code(self) -> int:
        """0: they compute the same, and no check fires on the left. 1: otherwise. 2: a side cannot be judged."""
        if self.result is None:
            return 0
        if self.result.unjudged:
            return 2
        return 0 if self.result.same and self.result.left_ok else 1


@dataclass(frozen=True, slots=True)
class Half:
    """What is found out about one side alone. What was not asked for is None."""

    side: Side
    view: View | None
    cost: Cost | None
    runs: Runs | None


def half_of(
    side: Side, problem: Problem, trial: Problem, *, nvcc: Nvcc, parts: Collection[str], seed: int, jobs: int = 1
) -> Half:
    """Looks at one side; at its code alone where nothing says how it is launched.

    Raises EmulatorError where the emulator cannot run it for its steps, ToolchainError for a missing disassembler.
    """
    runs = runs_of(side, trial, seed=seed, jobs=jobs) if "result" in parts else None
    stopped = runs is not None and any(run.bits is None for run in runs.runs[:1])
    seen = side.launch is not None and not stopped and LOOKED_AT & set(parts)
    view = look_at(side, problem, trial, seed) if seen else None
    cost = cost_of(side.code, nvcc) if "cost" in parts and not stopped else None
    return Half(side, view, cost, runs)


def compare(
    left: Callable[[], Half],
    right: Callable[[], Half],
    problem: Problem,
    trial: Problem,
    *,
    tools: Callable[[], Tools],
    parts: Collection[str],
    seed: int,
) -> Comparison:
    """Looks at both at the same time, and compares what was found: most of it is other programs that run."""
    with ThreadPoolExecutor(3) as pool:
        futures = pool.submit(left), pool.submit(right)
        made_with = pool.submit(tools)
        mine, theirs = (future.result() for future in futures)
    both = (mine.view, theirs.view) if mine.view is not None and theirs.view is not None else None
    unlaunched = tuple(half.side.label for half in (mine, theirs) if half.side.launch is None)
    codes = (mine.side.code, theirs.side.code)
    return Comparison(
        left=mine.side,
        right=theirs.side,
        problem=problem,
        trial=trial,
        tools=made_with.result(),
        events=align(both[0].sections, both[1].sections) if both and "events" in parts else None,
        plan=_plan(both, codes if unlaunched else None) if "plan" in parts else None,
        cost=costs(mine.view, theirs.view, mine.cost, theirs.cost) if mine.cost and theirs.cost else None,
        result=results(mine.runs, theirs.runs, trial, seed=seed) if mine.runs and theirs.runs else None,
        unseen=tuple(
            half.side.label
            for half in (mine, theirs)
            if half.view is None and half.side.launch is not None and LOOKED_AT & set(parts)
        ),
        unlaunched=unlaunched,
        code=instructions(*codes) if unlaunched and "events" in parts else (),
        totals=_totals(*both) if both and "events" in parts else (),
    )


def _plan(both: tuple[View, View] | None, codes: tuple[Code, Code] | None) -> tuple[Group, ...] | None:
    """What is decided: by the runs, or by what stands in the code where there are none."""
    if both is not None:
        return decisions(*both)
    return None if codes is None else decided_by_code(*codes)


_TOLD_APART = ("TMA load", "TMA store", "wait")


def _totals(left: View, right: View) -> tuple[tuple[str, int, int], ...]:
    counts: dict[str, list[int]] = {}
    for position, view in enumerate((left, right)):
        for event in view.events:
            told = (
                event.about
                if event.op == "fence"
                else f"{event.op} {event.about}"
                if event.op in _TOLD_APART
                else event.op
            )
            counts.setdefault(told, [0, 0])[position] += event.count
    return tuple((name, mine, theirs) for name, (mine, theirs) in counts.items())
