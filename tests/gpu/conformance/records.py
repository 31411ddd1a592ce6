# SPDX-License-Identifier: Apache-2.0
"""What hardware answered, a file of JSON for each topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.gpu.conformance.question import Question

RECORDED = Path(__file__).with_name("recorded")


def path(topic: str) -> Path:
    """The file of a topic."""
    return RECORDED / f"{topic}.json"


def load(topic: str) -> dict[str, Any]:
    """The file of a topic: `machine`, and `answers` by the question's id. Empty where there is none."""
    if not path(topic).is_file():
        return {"machine": {}, "answers": {}}
    found: dict[str, Any] = json.loads(path(topic).read_text())
    return found


def save(topic: str, machine: dict[str, str], answers: dict[str, dict[str, Any]]) -> None:
    """Write a topic's file."""
    RECORDED.mkdir(exist_ok=True)
    ordered = {name: answers[name] for name in sorted(answers)}
    path(topic).write_text(json.dumps({"machine": machine, "answers": ordered}, indent=1) + "\n")


def complaint(question: Question, recorded: dict[str, Any]) -> str:
    """What is wrong with the record of a question; empty where nothing is."""
    found = recorded["answers"].get(question.id)
    if found is None:
        return "no record: run `python -m tests.gpu.conformance run` on an H200"
    if found["digest"] != question.digest:
        return "the record is of another kernel or launch: run `python -m tests.gpu.conformance run` on an H200"
    return ""
