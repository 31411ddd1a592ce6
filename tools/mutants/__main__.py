# SPDX-License-Identifier: Apache-2.0
"""python -m tools.mutants: break kernels one way after another, and print which rule told of it.

A mutant counts as caught when one of the rules that its row names fires, or, where the row names none, when the run
ends as the row says. False alarms are findings of severity E on kernels as they are, over shapes, completions and
seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tmagen.ir import Shape
from tools.mutants.bases import Outcome
from tools.mutants.table import BASES, MUTANTS, SHAPE, Mutant

RIGHT_SHAPES = (
    SHAPE, Shape(128, 128, 64), Shape(129, 136, 72), Shape(64, 300, 200), Shape(256, 256, 128), Shape(131, 133, 40),
    Shape(300, 128, 520),
)  # fmt: skip
RIGHT_RUNS = (("eager", 0), ("lazy", 0), ("newest-first", 0), *(("random", seed) for seed in range(5)))


def caught(mutant: Mutant, outcome: Outcome) -> bool:
    """Whether the outcome is what the row asks for."""
    if mutant.equivalent:
        return not outcome.errors and not outcome.ended and not outcome.wrong
    if not mutant.rules:
        return outcome.ended == mutant.ends
    fired = outcome.errors | outcome.others if mutant.weak else outcome.errors
    return bool(fired & set(mutant.rules))


def told(outcome: Outcome) -> str:
    """What fired, and how the run ended."""
    parts = sorted(outcome.errors) + [f"({rule})" for rule in sorted(outcome.others - outcome.errors)]
    if outcome.ended and outcome.rule is None:
        parts.append(outcome.ended[:60])
    elif outcome.wrong and not outcome.ended:
        parts.append("wrong values")
    return " ".join(parts) or "nothing"


def false_alarms() -> Iterator[bool]:
    """For each run of a kernel as it is, whether something was found."""
    for base in BASES.values():
        for shape in RIGHT_SHAPES:
            for completion, seed in RIGHT_RUNS:
                outcome = base.run(base.program.ptx, shape, completion=completion, seed=seed, strict=False)
                yield bool(outcome.errors or outcome.ended or outcome.wrong)


def main() -> None:
    """The command."""
    hits = equivalent = 0
    for mutant in MUTANTS:
        base = BASES[mutant.base]
        text = mutant.edit(base.program.ptx)
        outcome = base.run(text, SHAPE)
        found = caught(mutant, outcome)
        if not found and not mutant.equivalent:
            # Some mistakes change what is waited for, which shows where copies complete late.
            outcome = base.run(text, SHAPE, completion="lazy")
            found = caught(mutant, outcome)
        expected = ", ".join(mutant.rules) or mutant.ends or f"equivalent: {mutant.equivalent}"
        print(
            f"{'caught' if found else 'MISSED':<7} {mutant.base:<15} {mutant.name:<62} {expected:<24} {told(outcome)}"
        )
        if mutant.equivalent:
            equivalent += found
        else:
            hits += found
    total = sum(not mutant.equivalent for mutant in MUTANTS)
    alarms = list(false_alarms())
    print(f"caught {hits}/{total}, equivalent {equivalent}, false alarms {sum(alarms)}/{len(alarms)}")
    bad = hits < total or equivalent < len(MUTANTS) - total or any(alarms)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
