# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/conformance.md` from the questions and what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.gpu.conformance import records
from tests.gpu.conformance.question import Question
from tests.gpu.conformance.topics import title, topics

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"

HEAD = """# The emulator and an H200

Each row is a small kernel that asks one question. It ran on the GPU named here and runs on the emulator, under every
completion policy, in the test suite; the bytes that it writes, or the trap that ends it, have to be the same. The
kernels are in `tests/gpu/conformance/topics/`, what the GPU answered in `tests/gpu/conformance/recorded/`. This page is
written from both by `make regen`.

```
make conformance                                                # the emulator against what was recorded; no GPU
python -m tests.gpu.conformance compile -o build/conformance    # the kernels for a GPU, anywhere
python -m tests.gpu.conformance run --cubins build/conformance  # ask the GPU of this machine, and record it
```

A record names the digest of its kernel and launch; a changed kernel has to be asked again.
"""


def text() -> str:
    """The page."""
    lines = [HEAD]
    questions = [q for group in topics().values() for q in group]
    explained = [q for q in questions if q.explained]
    machines = sorted({_machine(records.load(topic)["machine"]) for topic in topics()} - {""})
    lines.append(f"{len(questions)} questions. Asked: {'; '.join(machines) or 'not yet'}.\n")
    if explained:
        lines += ["## Where they differ", "", "| question | why |", "|---|---|"]
        lines += [f"| `{q.id}` | {_cell(q.explained)} |" for q in explained]
        lines.append("")
    for topic, group in topics().items():
        recorded = records.load(topic)["answers"]
        lines += [f"## {title(topic)}", "", "| question | PTX ISA | H200 | emulator |", "|---|---|---|---|"]
        lines += [
            f"| {_cell(q.asks)} `{q.id}` | {_cell(q.ptx)} | {_answer(recorded.get(q.id))} | {_emulator(q)} |"
            for q in group
        ]
        lines.append("")
    return "\n".join(lines)


def _machine(found: dict[str, str]) -> str:
    return "{device}, driver {driver}, CUDA {cuda}, {date}".format(**found) if found else ""


def _emulator(question: Question) -> str:
    return "differs, see above" if question.explained else "the same"


def _answer(record: dict[str, Any] | None) -> str:
    if record is None:
        return "not asked yet"
    if record["what"] != "memory":
        return _cell(f"{record['what']}: {record.get('says', '')}")
    if "shows" in record:
        return _cell(record["shows"])
    if "reduced" in record:
        return _cell(record["reduced"])
    first = next(iter(record["outputs"].values()))
    words = str(first.get("hex", first.get("begins"))).split()
    return f"`{' '.join(words[:8])}{' ...' if len(words) > 8 else ''}`"


def _cell(said: str) -> str:
    return " ".join(said.replace("|", "\\|").split())


def main() -> int:
    """The command."""
    DOCUMENT.write_text(text())
    print(f"wrote docs/{DOCUMENT.name}")
    return 0
