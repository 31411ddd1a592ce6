# SPDX-License-Identifier: Apache-2.0
"""A CUDA text as a reader meets it, and the clobbers of its inline assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass

ORDERED = ("tcgen05.mma", "tcgen05.ld", "tcgen05.st", "tcgen05.commit", "cp.async.bulk", "mbarrier", "fence", "bar.")
"""Instructions that the compiler must not move other accesses across: their asm has to name memory as clobbered."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Counts of one text."""

    lines: int
    device_lines: int  # up to the end of the kernel
    before_kernel: int  # lines before the kernel's body
    comment_lines: int
    widest_line: int
    most_parameters: int  # of one function
    unclobbered: tuple[str, ...]  # instructions of ORDERED whose asm does not clobber memory


def source_facts(text: str) -> SourceFacts:
    """Reads a text of one kernel."""
    lines = text.splitlines()
    kernel = next((i for i, line in reversed(list(enumerate(lines))) if "__global__" in line), len(lines))
    end = next((i for i in range(kernel, len(lines)) if lines[i].startswith("}")), len(lines) - 1)
    return SourceFacts(
        lines=len(lines),
        device_lines=end + 1,
        before_kernel=kernel,
        comment_lines=sum(line.lstrip().startswith(("//", "/*", "*")) for line in lines),
        widest_line=max(map(len, lines), default=0),
        most_parameters=max((found.count(",") + 1 for found in _parameter_lists(text)), default=0),
        unclobbered=tuple(dict.fromkeys(_unclobbered(text))),
    )


def _parameter_lists(text: str) -> list[str]:
    return re.findall(r"__device__[^;{}()]*\(([^(){};]*)\)\s*\{", text)


def _unclobbered(text: str) -> list[str]:
    found = []
    for statement in re.findall(r"\basm\b[^;]*?\((.*?)\)\s*;\s*(?=[\n}])", text, re.DOTALL):
        if '"memory"' in statement:
            continue
        literals = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', statement)).replace("\\n", " ").replace("\\t", " ")
        for opcode in re.findall(r"(?:^|[\s;{])((?:tcgen05|cp|mbarrier|fence|bar)\.[\w.:]+)", literals):
            if opcode.startswith(ORDERED):
                found.append(_short(opcode))
    return found


def _short(opcode: str) -> str:
    """Enough of an opcode to know it by."""
    if "commit_group" in opcode or "wait_group" in opcode:
        return opcode
    return ".".join(opcode.split(".")[:2])
