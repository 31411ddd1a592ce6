# SPDX-License-Identifier: Apache-2.0
"""Kernels broken and whole: the rule that is named fires, and nothing fires without a reason."""

from __future__ import annotations

import pytest

from tmagen.emu.checks import find
from tools.mutants import judge
from tools.mutants.bases import BASES, EMITTED, HAND
from tools.mutants.kinds import KINDS
from tools.mutants.mutant import DEADLOCK, WRONG, Mutant, caught
from tools.mutants.outcome import Outcome
from tools.mutants.table import MUTANTS

LOCAL = {base.name: base for base in (*HAND, *EMITTED)}

FORMAL = {"chained": {"PX-07"}}  # E is copied again with no proxy fence after the product that has read it


def _one_of_each_kind() -> list[Mutant]:
    """Of the kernels that take least to build."""
    order = {name: place for place, name in enumerate(LOCAL)}
    of_ours = sorted((mutant for mutant in MUTANTS if mutant.base in order), key=lambda mutant: order[mutant.base])
    return list({mutant.kind: mutant for mutant in reversed(of_ours)}.values())


CHOSEN = [*_one_of_each_kind(), *(mutant for mutant in MUTANTS if mutant.base == "step 6")]


@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: f"{mutant.base}: {mutant.name}")
def test_the_rule_fires(mutant: Mutant) -> None:
    good, outcome = judge.judge(mutant)
    assert good, outcome.told()


@pytest.mark.parametrize("name", LOCAL)
def test_nothing_is_found_in_kernels_as_they_are(name: str) -> None:
    base = LOCAL[name]
    for case, completion in enumerate(["adversarial", "lazy"]):
        outcome = base.run(base.text(case), case, completion=completion, seed=1)
        assert outcome.clean and outcome.others <= FORMAL.get(name, set()), outcome.told()


def test_every_kind_of_mistake_has_mutants() -> None:
    assert {mutant.kind for mutant in MUTANTS} == set(KINDS) == set(range(1, 55))
    assert {mutant.base for mutant in MUTANTS} == set(BASES)


def test_every_named_rule_is_registered() -> None:
    assert [rule for mutant in MUTANTS for rule in mutant.rules if find(rule) is None] == []


def test_few_mutants_are_equivalent_and_every_other_says_what_must_come() -> None:
    assert sum(bool(mutant.equivalent) for mutant in MUTANTS) <= 8
    assert all(bool(mutant.rules) + bool(mutant.ends) + bool(mutant.equivalent) == 1 for mutant in MUTANTS)
    names = [(mutant.base, mutant.name) for mutant in MUTANTS]
    assert len(set(names)) == len(names)


def test_a_mutant_is_caught_by_what_its_row_says_alone() -> None:
    nothing, wrong = Outcome((), "", None, False), Outcome((), "", None, True)
    stuck, fault = Outcome((), DEADLOCK, None, True), Outcome((), "fault: x", "MB-04", True)

    def row(*rules: str, ends: str = "", equivalent: str = "") -> Mutant:
        return Mutant(1, "", "roles", str, rules, ends=ends, equivalent=equivalent)

    assert [caught(row("MB-04"), each) for each in (nothing, wrong, stuck, fault)] == [False, False, False, True]
    assert [caught(row("MB-03"), each) for each in (nothing, wrong, stuck, fault)] == [False] * 4
    assert [caught(row(ends=DEADLOCK), each) for each in (nothing, wrong, stuck, fault)] == [False, False, True, False]
    assert [caught(row(ends=WRONG), each) for each in (nothing, wrong, stuck, fault)] == [False, True, False, False]
    assert [caught(row(equivalent="so"), each) for each in (nothing, wrong, stuck)] == [True, False, False]


def test_there_are_enough_right_runs() -> None:
    assert len(judge.right_runs(LOCAL)) >= 200
