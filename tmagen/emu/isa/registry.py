# SPDX-License-Identifier: Apache-2.0
"""The table of instructions that the emulator knows, and how one is added.

An instruction is a function that writes Python text for it, registered under its opcode::

    @instruction("add", "sub")
    def add(cx: Emitter, ins: Instruction) -> None: ...

Blocks of that text become functions once; running a kernel runs them. The decorator's flags say what the block builder
must know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tmagen.emu.module import Instruction

Emit = Callable[[Any, "Instruction"], None]  # (the block's emitter, the instruction)

Batch = Callable[[Any, "list[Instruction]"], bool]


class Unknown(Exception):
    """Raised by an emit function for a form that it does not know: NotJudged when the instruction is reached."""


@dataclass(frozen=True)
class Spec:
    """One known opcode.

    pure        computes registers from registers and nothing else: a guard becomes a select. Others run under a branch.
    dests       how many leading operands are results.
    collective  the named lanes of the warp must be together before it runs; it starts a block.
    waits       may have to wait: it ends its block and emits the `return`.
    batch       may write the text of a run of instructions of the very same opcode at once, none of which reads what
                another of them writes; returns whether it did.
    """

    opcode: str
    family: str
    summary: str
    emit: Emit
    pure: bool
    dests: int
    collective: bool
    waits: bool
    batch: Batch | None


_TABLE: dict[str, Spec] = {}
_FOUND: dict[str, Spec | None] = {}


def instruction(
    *opcodes: str,
    pure: bool = True,
    dests: int = 1,
    collective: bool = False,
    waits: bool = False,
    batch: Batch | None = None,
) -> Callable[[Emit], Emit]:
    """Register `emit` for every opcode (a dotted prefix of the full text) in `opcodes`."""

    def register(emit: Emit) -> Emit:
        family = emit.__module__.rsplit(".", 1)[-1]
        summary = (emit.__doc__ or "").strip().split("\n")[0]
        for opcode in opcodes:
            if opcode in _TABLE:
                raise ValueError(f"{opcode} is registered twice")
            _TABLE[opcode] = Spec(opcode, family, summary, emit, pure, dests, collective, waits, batch)
        _FOUND.clear()
        return emit

    return register


def find(opcode: str) -> Spec | None:
    """The entry with the longest prefix of `opcode`, in whole parts; None where there is none."""
    if opcode in _FOUND:
        return _FOUND[opcode]
    prefix = opcode
    while prefix and prefix not in _TABLE:
        prefix = prefix.rpartition(".")[0]
    _FOUND[opcode] = _TABLE.get(prefix)
    return _FOUND[opcode]


def known() -> tuple[Spec, ...]:
    """Every entry, by family and opcode: what the coverage table in the documentation is made of."""
    return tuple(sorted(_TABLE.values(), key=lambda spec: (spec.family, spec.opcode)))
