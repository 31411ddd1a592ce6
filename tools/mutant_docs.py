# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/mutants.md`: kinds of mistake, what breaks kernels that way, and which rules tell of it.

python -m tools.mutant_docs
"""

from __future__ import annotations

from pathlib import Path

from tools.mutants.bases import BASES
from tools.mutants.campaign import VERDICTS, recorded
from tools.mutants.judge import right_runs
from tools.mutants.kinds import KINDS
from tools.mutants.mutant import Mutant
from tools.mutants.survivors import SURVIVORS
from tools.mutants.table import MUTANTS

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "mutants.md"

HEAD = """# Mutants

A checker is as good as the mistakes that it finds. `make mutants` breaks correct kernels one way after another and sees
that the rule that is about the mistake tells of it; then it runs the kernels as they are, and nothing may be found.
This page is written by `make regen` from the tables that `make mutants` runs.

    python -m tools.mutants                      every row, and false alarms
    python -m tools.mutants --only pair          those of kernels whose name holds a text
    python -m tools.mutants random --seeds 200   changes of single synchronisation instructions

The exit status is 1 where a mutant is missed, a false alarm is given, a random change survives unexplained, or one that
is caught is explained away.

## Kernels that are broken
"""

KINDS_HEAD = """
## Kinds of mistake

A mutant of synchronisation counts when one of the rules that its row names fires, and not when the run fails in
another way. Where no rule is about the mistake, the row says how the run ends: a deadlock, wrong values, a fault. Each
is tried under the completions one after another, eager first.

| # | mistake | mutants | in kernels | told by |
|---|---|---|---|---|
"""

EQUIVALENT_HEAD = """
## Equivalent mutants

These change nothing, and no rule of severity E may fire on them.

| kernel | change | why |
|---|---|---|
"""

RANDOM_HEAD = """
## Random changes

`python -m tools.mutants random` takes every synchronisation instruction of each kernel (barriers, fences, waits and the
branches of their loops, commits, arrivals, elections, allocations) and leaves it out, or lets it change places with the
memory or synchronisation instruction before or after it, where registers allow; each seed is another change, as far as
there are any. Each runs under nine completions, and under `starve` with everyone as its victim; any lane may be
elected. A change is caught by a rule of severity E, or by the result (wrong values, a fault, a deadlock) under one of
the completions; or it is formal: told with `--strict` alone. What is left must stand in the table of survivors, by its
number in the kernel, with the reason why nothing breaks; and what is caught may not stand there. These are the counts
of 200 seeds, which `--record` writes down:

| kernel | changes | by a rule | by the result | formal | explained | unexplained |
|---|---|---|---|---|---|---|
"""

SURVIVORS_HEAD = """
| kernels | changes that survive | why nothing breaks |
|---|---|---|
"""


def _of(kind: int) -> list[Mutant]:
    return [mutant for mutant in MUTANTS if mutant.kind == kind]


def _kinds() -> list[str]:
    lines = []
    for number, title in KINDS.items():
        mutants = _of(number)
        bases = ", ".join(name for name in BASES if any(mutant.base == name for mutant in mutants))
        told = {rule: None for mutant in mutants for rule in mutant.rules}
        told |= {mutant.ends: None for mutant in mutants if mutant.ends}
        told |= dict.fromkeys(["none: equivalent"] if any(mutant.equivalent for mutant in mutants) else [])
        lines.append(f"| {number} | {title} | {len(mutants)} | {bases} | {', '.join(told)} |")
    return lines


def _counts() -> list[str]:
    counts = [(name, [count[verdict] for verdict in VERDICTS]) for name, count in recorded().items()]
    counts.append(("these", [sum(column) for column in zip(*(row for _, row in counts), strict=True)]))
    return [f"| {name} | {sum(row)} | {' | '.join(map(str, row))} |" for name, row in counts]


def text() -> str:
    """The page."""
    bases = ["| kernel | what it is | mutants |", "|---|---|---|"]
    for name, base in BASES.items():
        count = sum(mutant.base == name for mutant in MUTANTS)
        bases.append(f"| {name} | {base.about} | {count} |")
    total, same = len(MUTANTS), sum(bool(mutant.equivalent) for mutant in MUTANTS)
    lines = [
        *bases,
        "",
        f"{total} mutants in all, of which {same} change nothing. As they are, the kernels run for "
        f"{len(right_runs(BASES))} cases of shape, completion and seed. Triton's kernels are there where `make peers` "
        "has fetched Triton. Where all is well `python -m tools.mutants` ends so:",
        "",
        f"    caught {total - same}/{total - same}, equivalent {same}, false alarms 0/{len(right_runs(BASES))}",
        "",
        "Under `starve` with seeds 1 to 3 TVM's two kernels deadlock as they are, and have to: all four warps wait for "
        "the MMAs of every K tile, and a warp that is held back for two of them waits for a parity that has come and "
        "gone. Our script for TIRx asks for that; the CUDA that we emit lets the one issuing thread wait.",
    ]
    equivalent = [
        f"| {mutant.base} | {mutant.name} | {mutant.equivalent} |" for mutant in MUTANTS if mutant.equivalent
    ]
    survivors = [f"| {each.kernels} | {each.what} | {each.reason} |" for each in SURVIVORS]
    return (
        HEAD
        + "\n".join(["", *lines])
        + "\n"
        + KINDS_HEAD
        + "\n".join(_kinds())
        + "\n"
        + EQUIVALENT_HEAD
        + "\n".join(equivalent)
        + "\n"
        + RANDOM_HEAD
        + "\n".join(_counts())
        + "\n"
        + SURVIVORS_HEAD
        + "\n".join(survivors)
        + "\n"
    )


def main() -> None:
    """The command."""
    DOCUMENT.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
