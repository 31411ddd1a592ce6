# SPDX-License-Identifier: Apache-2.0
"""Questions to an H200, and the emulator's answers to them.

python -m tests.gpu.conformance compile -o build/conformance      anywhere
python -m tests.gpu.conformance run --cubins build/conformance      on an H200: writes recorded/
python -m tests.gpu.conformance replay [TOPIC or ID ...]      anywhere: the emulator against recorded/
python -m tests.gpu.conformance emulate ID ...      what the emulator answers
python -m tests.gpu.conformance docs      writes docs/conformance.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from tests.gpu.conformance import docs, records
from tests.gpu.conformance.build import build_cubins, module
from tests.gpu.conformance.emulated import ask
from tests.gpu.conformance.hardware import answers, describe, work
from tests.gpu.conformance.outcome import Outcome, shown
from tests.gpu.conformance.question import Question
from tests.gpu.conformance.replay import replay
from tests.gpu.conformance.topics import topics
from tmagen.gpu.errors import MissingError


def run(cubins: Path, only: Sequence[str], jobs: int, keep: Path | None) -> int:
    """Ask the GPU and write down what it answers, each topic's file once it is complete."""
    machine = describe() | {"date": datetime.now(UTC).date().isoformat()}
    print(", ".join(f"{key} {value}" for key, value in machine.items()), flush=True)
    started = time.perf_counter()
    chosen = {
        topic: tuple(q for q in questions if not only or topic in only or q.id in only)
        for topic, questions in topics().items()
    }
    paths = build_cubins(topics(), cubins, jobs)
    print(f"compiled in {time.perf_counter() - started:.0f} s", flush=True)
    everything: dict[str, bytes] = {}

    def ask_topic(topic: str) -> list[tuple[Question, Outcome]]:
        return list(answers(paths[topic], topic, chosen[topic]))

    asked = 0
    with ThreadPoolExecutor(jobs) as pool:
        for topic, found in zip(chosen, pool.map(ask_topic, chosen), strict=True):
            known = {q.id for q in topics()[topic]}
            kept = {name: r for name, r in records.load(topic)["answers"].items() if name in known}
            for question, outcome in found:
                asked += 1
                kept[question.id] = outcome.record(question)
                print(f"{question.id}: {_line(question, outcome)}", flush=True)
                for name, raw in outcome.outputs.items():
                    everything[f"{question.id}/{name}"] = raw
            if found:
                records.save(topic, machine, kept)
    if keep is not None:
        with zipfile.ZipFile(keep, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, raw in everything.items():
                archive.writestr(name, raw)
    print(f"{asked} questions asked in {time.perf_counter() - started:.0f} s")
    return 0


def tell(only: Sequence[str]) -> int:
    """What the emulator answers, without a record; each of its policies that answers otherwise."""
    for topic, questions in topics().items():
        for question in questions:
            if not only or topic in only or question.id in only:
                found = [ask(question, module(questions), policy) for policy in question.policies]
                for said in dict.fromkeys(_line(question, outcome) for outcome in found):
                    print(f"{question.id}: {said}", flush=True)
    return 0


def _line(question: Question, outcome: Outcome) -> str:
    words = shown(question, outcome) if question.shows and outcome.outputs else ""
    if outcome.outputs and not words:
        words = json.dumps({k: v for k, v in outcome.record(question).items() if k in ("outputs", "reduced")})[:400]
    return f"{outcome.what} {outcome.says} {words}".rstrip()


def compare(only: Sequence[str]) -> int:
    """Replay, and say where emulator and hardware differ."""
    agree = explained = total = 0
    for result in replay(only):
        total += 1
        agree += not result.wrong
        explained += result.explained
        if result.wrong:
            print(f"{result.question.id}: {result.wrong}")
    print(f"agree {agree}/{total}, explained {explained}")
    return 0 if agree == total and total else 1


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("compile", "run", "replay", "emulate", "docs", "work"))
    parser.add_argument("only", nargs="*", metavar="TOPIC or ID", help="of these alone")
    parser.add_argument("--cubins", "-o", type=Path, default=Path("build/conformance"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="run: all outputs in full, as a .zip")
    parser.add_argument("--cubin", type=Path, help="work: the machine code of --topic")
    parser.add_argument("--topic", default="")
    asked = parser.parse_intermixed_args()
    if asked.what == "work":
        work(asked.cubin, asked.topic, asked.only)
        return 0
    if wrong := set(asked.only) - set(topics()) - {q.id for questions in topics().values() for q in questions}:
        parser.error(f"no topic or question is called {', '.join(sorted(wrong))}")
    if asked.what == "compile":
        paths = build_cubins(topics(), asked.cubins, asked.jobs)
        print(f"{len(paths)} topics, {sum(path.stat().st_size for path in paths.values()):,} bytes")
        return 0
    if asked.what == "docs":
        return docs.main()
    if asked.what == "emulate":
        return tell(asked.only)
    if asked.what != "run":
        return compare(asked.only)
    try:
        return run(asked.cubins, asked.only, asked.jobs, asked.keep)
    except MissingError as error:
        print(error.report(), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
