# SPDX-License-Identifier: Apache-2.0
"""Emitted kernels, broken and whole: the rule that is named fires, and nothing fires without a reason."""

from __future__ import annotations

import pytest

from tmagen.ir import Shape
from tools.mutants.__main__ import caught
from tools.mutants.table import BASES, MUTANTS, SHAPE

CHOSEN = [mutant for mutant in MUTANTS if mutant.base.startswith("step 6")]


@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: f"{mutant.base}: {mutant.name}")
def test_the_rule_fires(mutant) -> None:
    base = BASES[mutant.base]
    text = mutant.edit(base.program.ptx)
    outcomes = [base.run(text, SHAPE)]
    if not mutant.equivalent and not caught(mutant, outcomes[0]):
        outcomes.append(base.run(text, SHAPE, completion="lazy"))
    assert caught(mutant, outcomes[-1]), [(outcome.errors, outcome.others, outcome.ended) for outcome in outcomes]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("completion", ["eager", "lazy", "newest-first", "random"])
def test_nothing_is_found_in_kernels_as_they_are(name: str, completion: str) -> None:
    base = BASES[name]
    for shape in (SHAPE, Shape(128, 128, 64), Shape(131, 133, 40)):
        outcome = base.run(base.program.ptx, shape, completion=completion, seed=1)
        assert outcome.findings == () and not outcome.ended and not outcome.wrong


def test_every_named_rule_is_registered() -> None:
    from tmagen.emu.checks import find

    assert [rule for mutant in MUTANTS for rule in mutant.rules if find(rule) is None] == []
