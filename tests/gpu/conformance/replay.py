# SPDX-License-Identifier: Apache-2.0
"""The emulator against what was recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.gpu.conformance import records
from tests.gpu.conformance.build import module
from tests.gpu.conformance.emulated import ask
from tests.gpu.conformance.outcome import TRAP, Outcome, difference
from tests.gpu.conformance.question import Question
from tests.gpu.conformance.topics import topics
from tmagen.emu import Module


@dataclass(frozen=True)
class Result:
    """A question's verdict: `wrong` is empty where emulator and hardware agree or differ as is explained."""

    question: Question
    wrong: str = ""

    @property
    def explained(self) -> bool:
        return not self.wrong and bool(self.question.explained)


def judge(question: Question, recorded: dict[str, Any], loaded: Module) -> Result:
    """One question under each of its policies."""
    if wrong := records.complaint(question, recorded):
        return Result(question, wrong)
    record = recorded["answers"][question.id]
    for policy in question.policies:
        if wrong := disagreement(question, record, ask(question, loaded, policy)):
            return Result(question, f"with {policy} completion: {wrong}")
    return Result(question)


def disagreement(question: Question, record: dict[str, Any], outcome: Outcome) -> str:
    """What is wrong with an outcome of the emulator; empty where nothing is."""
    found = difference(question, record, outcome)
    if question.explained:
        if not found:
            return f"no difference is left that needs the explanation {question.explained!r}"
        found = "" if outcome.what == TRAP else found
    if not found and outcome.what == TRAP:
        if not question.fault:
            return f"the question does not say what fault is meant; the emulator's is: {outcome.says}"
        if not re.search(question.fault, outcome.says):
            return f"another fault than {question.fault!r}: {outcome.says}"
    return found


def replay(only: Sequence[str] = ()) -> Iterator[Result]:
    """Every question, or those of some topics or ids."""
    for topic, questions in topics().items():
        chosen = [q for q in questions if not only or topic in only or q.id in only]
        if chosen:
            recorded, loaded = records.load(topic), module(questions)
            for question in chosen:
                yield judge(question, recorded, loaded)
