# SPDX-License-Identifier: Apache-2.0
"""The emulator answers as the H200 did, and the comparison finds it where one of them does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gpu.conformance import docs, records
from tests.gpu.conformance.build import module
from tests.gpu.conformance.outcome import HANG, MEMORY, TRAP, Outcome, difference, unpacked
from tests.gpu.conformance.question import Question, out
from tests.gpu.conformance.replay import disagreement, judge
from tests.gpu.conformance.topics import topics

ASKED = Question(id="some", asks="?", ptx="-", source="", parameters=(out(64), out(2, "f4", "more")), shows="{w[0]}")


def memory(first: int = 1, more: float = 0.5, repeat: int = 64) -> Outcome:
    raw = np.full(repeat, first, "u4").tobytes()
    return Outcome(MEMORY, outputs={"out": raw, "more": np.full(2, more, "f4").tobytes()})


@pytest.mark.parametrize("topic", topics())
def test_the_emulator_answers_as_hardware_did(topic: str) -> None:
    questions, recorded = topics()[topic], records.load(topic)
    loaded = module(questions)
    assert [f"{r.question.id}: {r.wrong}" for r in (judge(q, recorded, loaded) for q in questions) if r.wrong] == []
    assert set(recorded["answers"]) == {q.id for q in questions}, "answers to questions that are no more"


def test_the_page_is_made_from_the_records() -> None:
    assert docs.DOCUMENT.read_text() == docs.text(), "run `make regen`"


def test_few_differences_are_explained() -> None:
    assert sum(bool(q.explained) for group in topics().values() for q in group) <= 5


def test_other_bytes_are_told() -> None:
    record = memory().record(ASKED)
    assert record["shows"] == "1"
    assert difference(ASKED, record, memory()) == ""
    assert difference(ASKED, record, memory(first=3)).startswith("out: 64 of 64 elements differ: [0] H200 0x1 (1), emu")
    assert difference(ASKED, record, memory(more=-0.5)).startswith("more: 2 of 2 elements differ")


def test_long_outputs_are_kept_packed_or_as_a_digest() -> None:
    noise = np.random.default_rng(0).integers(0, 1 << 32, 4096, np.uint32)
    for words in (np.arange(32, dtype="u4"), np.zeros(4096, "u4"), noise):
        asked = replace(ASKED, parameters=(out(words.size),), shows="")
        found = Outcome(MEMORY, outputs={"out": words.tobytes()})
        record = found.record(asked)
        assert len(str(record)) < 3500
        assert unpacked(record["outputs"]["out"]) in (words.tobytes(), None)
        assert difference(asked, record, found) == ""
        words[-1] += 1
        assert difference(asked, record, Outcome(MEMORY, outputs={"out": words.tobytes()})) != ""


def test_a_trap_is_no_hang_and_needs_the_fault_that_is_meant() -> None:
    asked = replace(ASKED, fault="too many arrivals")
    trap = Outcome(TRAP, "CUDA_ERROR_LAUNCH_FAILED").record(asked)
    assert disagreement(asked, trap, Outcome(TRAP, "mbarrier: too many arrivals")) == ""
    assert "another fault" in disagreement(asked, trap, Outcome(TRAP, "misaligned"))
    assert "does not say what fault" in disagreement(ASKED, trap, Outcome(TRAP, "misaligned"))
    assert "emulator: hang" in disagreement(asked, trap, Outcome(HANG))
    assert "emulator: memory" in disagreement(asked, trap, memory())


def test_an_explanation_covers_a_fault_alone_and_ends_with_the_difference() -> None:
    asked = replace(ASKED, explained="the ISA forbids it", fault="range")
    record = memory().record(asked)
    assert disagreement(asked, record, Outcome(TRAP, "out of range")) == ""
    assert "another fault" in disagreement(asked, record, Outcome(TRAP, "misaligned"))
    assert "no difference is left" in disagreement(asked, record, memory())
    assert "elements differ" in disagreement(asked, record, memory(first=2))


def test_undetermined_outputs_are_reduced() -> None:
    asked = replace(ASKED, varies=lambda found: str(sorted(set(found["out"].tolist()))))
    record = memory().record(asked)
    assert "outputs" not in record
    assert difference(asked, record, memory(more=9)) == ""
    assert difference(asked, record, memory(first=2)) == "H200: [1]; emulator: [2]"


def test_a_changed_kernel_has_to_be_asked_again() -> None:
    answers = {ASKED.id: memory().record(ASKED)}
    assert records.complaint(ASKED, {"answers": answers}) == ""
    assert "no record" in records.complaint(ASKED, {"answers": {}})
    for changed in (
        replace(ASKED, source="//"),
        replace(ASKED, block=(64, 1, 1)),
        replace(ASKED, parameters=(out(64), out(2, "f4", "more", fill="zeros"))),
    ):
        assert "another kernel" in records.complaint(changed, {"answers": answers})
    assert records.complaint(replace(ASKED, asks="!"), {"answers": answers}) == ""
