# SPDX-License-Identifier: Apache-2.0
"""The rules that a finding can name."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.emu.checks import find


@dataclass(frozen=True, slots=True)
class Rule:
    """`title` is one line; `help` says what it means for the kernel and what to look at."""

    id: str
    title: str
    help: str


RULES: dict[str, Rule] = {}


def register(*rules: Rule) -> None:
    """Adds rules. Raises ValueError for an identifier that is taken."""
    for rule in rules:
        if rule.id in RULES:
            raise ValueError(f"rule {rule.id} exists already")
        RULES[rule.id] = rule


def rule_of(identifier: str) -> Rule:
    """The rule with this identifier: one of RULES, or a check of the emulator's.

    For an identifier that nobody knows, a rule without a title of its own.
    """
    check = None if identifier in RULES else find(identifier)
    if check is not None:
        return Rule(check.id, check.title, f"{check.meaning} Fix: {check.fix} (PTX ISA, {check.section})")
    return RULES.get(identifier, Rule(identifier, identifier, "No description."))


register(
    Rule(
        "fault",
        "The kernel breaks a rule of the machine",
        "An access outside every allocation or misaligned, a misused barrier, a bad descriptor, a leak of tensor "
        "memory. The run ends there.",
    ),
    Rule(
        "deadlock",
        "Nobody can run, and nothing is outstanding",
        "Each waiting thread is listed with what it waits for: look for a barrier whose arrivals or bytes never come.",
    ),
    Rule(
        "wrong-result",
        "A result is not what the launch file expects",
        "The expectation was evaluated over the buffers. Elements that still hold the poison were never written.",
    ),
    Rule(
        "padding-written",
        "Something was written between the rows of a buffer",
        "The bytes between the end of a row and the start of the next belong to nobody; a kernel that writes them "
        "writes into a neighbour where the matrix is part of a larger one.",
    ),
    Rule(
        "input-changed",
        "An input was written to",
        "The buffer has contents of its own and stands on the left side of no expectation. If the kernel may write "
        "it, say `writable = true`.",
    ),
    Rule(
        "host-exit",
        "The host program reports failure",
        "It ran to its end on the emulator and ended with an exit status other than 0.",
    ),
    Rule(
        "host-crash",
        "The host program crashed",
        "A signal ended it. The stand-in runtime answers as a real one does, so the fault is most likely its own.",
    ),
    Rule(
        "host-touches-device-memory",
        "Host code accessed device memory",
        "Memory from cudaMalloc is out of reach of host code; copy it with cudaMemcpy.",
    ),
    Rule(
        "refused-call",
        "A call was refused",
        "The runtime returned an error for a launch or a tensor map, as it would on a GPU.",
    ),
    Rule(
        "not-judged",
        "Something is not modelled",
        "The emulator or the stand-in runtime does not know an instruction, a launch feature or a call. It never "
        "guesses: the rest of the run is not judged.",
    ),
    Rule("PTX-syntax", "The text is not PTX as the parser knows it", "What was expected, and where."),
)
