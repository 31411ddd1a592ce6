# SPDX-License-Identifier: Apache-2.0
"""`tmagen explain-check`: what a rule of the checker says."""

from __future__ import annotations

import textwrap

import click

from tmagen.check.rules import RULES, Rule
from tmagen.emu.checks import FAMILIES, Check, find, known
from tmagen.errors import Diagnostic, SpecError

_LEVELS = {
    "E": "error: undefined behaviour that hardware can show",
    "W": "warning, with --strict: a formal rule that shipping kernels leave out",
    "R": "review, with --strict: right or not by what one run cannot show",
}
_HOW = {
    "race": "happens-before over all threads and asynchronous operations",
    "fault": "the run ends where it happens",
    "lint": "the instruction and what went before it",
    "exit": "what is left when a CTA ends",
}
_WIDTH = 96


@click.command(
    "explain-check",
    epilog="""\b
Examples:
  tmagen explain-check            list every check
  tmagen explain-check PX-01      what it means, an example, the fix
""",
)
@click.argument("identifier", required=False, metavar="[ID]")
def command(identifier: str | None) -> int:
    """Say what a check of the emulator means, and how to mend what it finds.

    ID is what stands before a finding of `verify`, and behind one of `check` in brackets. Without it, every check is
    listed.
    """
    if identifier is None:
        click.echo("\n".join(_list()))
        return 0
    check = find(identifier)
    if check is None and identifier.lower() in RULES:
        click.echo("\n".join(_outcome(RULES[identifier.lower()])))
        return 0
    if check is None:
        close = [c.id for c in known() if c.family == identifier.upper().partition("-")[0]]
        hint = f"{', '.join(close)}" if close else "tmagen explain-check, which lists every check"
        raise SpecError(Diagnostic(f"there is no check {identifier!r}", hint=hint))
    click.echo("\n".join(_page(check)))
    return 0


def _list() -> list[str]:
    lines: list[str] = []
    family = ""
    for check in known():
        if check.family != family:
            family = check.family
            lines += [*([""] if lines else []), FAMILIES[family]]
        lines.append(f"  {check.id:<7} {check.severity:<4} {check.title}")
    lines += ["", "Outcomes of a run"]
    return [*lines, *(f"  {rule.id:<26}  {rule.title}" for rule in RULES.values())]


def _outcome(rule: Rule) -> list[str]:
    """What ends a run or stands under one, and is no check."""
    lines = [f"{rule.id}: {rule.title}", "", "Meaning"]
    return lines + textwrap.wrap(rule.help, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _page(check: Check) -> list[str]:
    lines = [f"{check.id}: {check.title}", ""]
    lines += [f"  {level}  {_LEVELS[level]}" for level in check.severity.split("/")]
    parts = (
        ("Meaning", check.meaning),
        ("Example", check.example),
        ("Fix", check.fix),
        ("PTX ISA", check.section),
        ("Found by", _HOW[check.how]),
    )
    for title, text in parts:
        lines += ["", title]
        lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    return lines
