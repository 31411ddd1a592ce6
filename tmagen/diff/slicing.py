# SPDX-License-Identifier: Apache-2.0
"""A kernel cut down to what decides where it stores: the scheduler alone, and nothing of what it schedules.

A program slice: the TMA stores, what their coordinates are computed from, and the branches that decide whether and how
often they are reached. All else goes, and with it everything that takes time: loads, waits, MMAs, the loop over K. What
is left runs on the emulator for a grid of any size, and tells which CTA takes which tiles in which order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tmagen.emu import Entry, Module
from tmagen.emu.compile_blocks import registers_of, split_operands
from tmagen.emu.isa import registry
from tmagen.emu.module import Addr, Instruction, Not, Special, Sym

STORES = ("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
WARP_WIDE = ("shfl.sync", "elect.sync", "vote.sync", "redux.sync", "match.any.sync", "match.all.sync")
"""What computes registers from registers of the warp."""
MACHINE = frozenset({"smid", "nsmid", "warpid", "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo"})
"""Special registers whose value is the machine's own affair."""
_ENDS = ("ret", "exit", "trap")


class NotSliced(Exception):
    """The coordinates depend on more than registers and parameters; says on what."""


def scheduler_of(module: Module, entry: Entry) -> Module:
    """A module with `entry` cut down to its scheduler; each TMA store is a prefetch of what it would store.

    Raises NotSliced where there is no TMA store, or where coordinates come from memory.
    """
    if not any(_is_store(instruction) for instruction in entry.body):
        raise NotSliced("no TMA store says where a tile of D lies")
    graph = _Graph(entry)
    kept = _kept(entry, graph)
    return replace(module, entries={entry.name: _cut_down(entry, graph, kept)})


def _is_store(instruction: Instruction) -> bool:
    return instruction.opcode.startswith(STORES) and ".global.shared" in instruction.opcode


def _branches(instruction: Instruction) -> bool:
    """Whether what follows depends on a register."""
    head = instruction.parts[0]
    return head == "brx" or (instruction.guard is not None and head in ("bra", *_ENDS))


@dataclass(slots=True)
class _Block:
    first: int
    end: int  # past the last instruction
    successors: tuple[int, ...] = ()


class _Graph:
    """Basic blocks of an entry with their post-dominators, as sets of bits. The last block is the end of the kernel."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        body = entry.body
        leaders = {0, *(index for index in entry.labels.values())}
        leaders |= {i + 1 for i, ins in enumerate(body) if ins.parts[0] in ("bra", "brx", *_ENDS)}
        starts = sorted(start for start in leaders if start < len(body))
        self.number = {start: number for number, start in enumerate(starts)}
        self.end = len(starts)
        self.blocks = [
            _Block(start, stop) for start, stop in zip(starts, [*starts[1:], len(body)], strict=True) if start < stop
        ]
        for number, block in enumerate(self.blocks):
            block.successors = tuple(dict.fromkeys(self._following(number, body[block.end - 1])))
        self.block_of = [number for number, block in enumerate(self.blocks) for _ in range(block.first, block.end)]
        self.after = self._post_dominators()

    def _following(self, number: int, last: Instruction) -> Iterator[int]:
        head = last.parts[0]
        if head == "bra":
            yield self.target(last)
        elif head == "brx":
            for name in self.entry.branch_targets.get(_label(last), ()):
                yield self.number.get(self.entry.labels[name], self.end)
            return
        elif head in _ENDS:
            yield self.end
        if head not in ("bra", *_ENDS) or last.guard is not None:
            yield number + 1

    def target(self, branch: Instruction) -> int:
        """The block that a branch goes to."""
        return self.number.get(self.entry.labels[_label(branch)], self.end)

    def _post_dominators(self) -> list[int]:
        everything = (1 << self.end + 1) - 1
        found = [*[everything] * self.end, 1 << self.end]
        changed = True
        while changed:
            changed = False
            for number in reversed(range(self.end)):
                common = everything
                for successor in self.blocks[number].successors:
                    common &= found[successor]
                common |= 1 << number
                if common != found[number]:
                    found[number], changed = common, True
        return found

    def next_common(self, number: int) -> int:
        """The block that every way from `number` comes to first: its immediate post-dominator."""
        others = self.after[number] & ~(1 << number)
        return max(_bits(others), key=lambda other: self.after[other].bit_count())

    def deciders(self) -> list[set[int]]:
        """For each block, those whose branch decides whether it runs (control dependence)."""
        found: list[set[int]] = [set() for _ in range(self.end + 1)]
        for number, block in enumerate(self.blocks):
            if len(block.successors) > 1:
                for successor in block.successors:
                    for dependent in _bits(self.after[successor] & ~(self.after[number] & ~(1 << number))):
                        found[dependent].add(number)
        return found


def _kept(entry: Entry, graph: _Graph) -> set[int]:
    """The instructions of the slice. Raises NotSliced."""
    writers: dict[str, list[int]] = {}
    for index, instruction in enumerate(entry.body):
        results, _ = split_operands(instruction, registry.find(instruction.opcode))
        for operand in results:
            for name in registers_of(operand):
                writers.setdefault(name, []).append(index)
    deciders = graph.deciders()
    kept: set[int] = set()
    waiting = [index for index, instruction in enumerate(entry.body) if _is_store(instruction)]
    while waiting:
        index = waiting.pop()
        if index in kept:
            continue
        kept.add(index)
        instruction = entry.body[index]
        for name in _read(instruction):
            waiting += writers.get(name, [])
        for number in deciders[graph.block_of[index]]:
            waiting.append(graph.blocks[number].end - 1)
    return kept


def _read(instruction: Instruction) -> Iterator[str]:
    """The registers that an instruction of the slice reads. Raises NotSliced for one that reads more than registers."""
    guard = instruction.guard
    if guard is not None:
        yield guard.reg.name if isinstance(guard, Not) else guard.name
    if _is_store(instruction):
        yield from registers_of(instruction.operands[0])
        return
    spec = registry.find(instruction.opcode)
    head = instruction.parts[0]
    known = head in ("bra", "brx", *_ENDS) or instruction.opcode.startswith((*WARP_WIDE, "ld.param"))
    if spec is None or not (spec.pure or known):
        raise NotSliced(f"they depend on {instruction.opcode}")
    _, sources = split_operands(instruction, spec)
    for operand in sources:
        if isinstance(operand, Special) and operand.name.lstrip("%") in MACHINE:
            raise NotSliced(f"they depend on {operand.name}")
        yield from registers_of(operand)


def _cut_down(entry: Entry, graph: _Graph, kept: set[int]) -> Entry:
    """The entry with the slice alone. A branch that decides nothing of it goes to where its ways meet again."""
    body: list[Instruction] = []
    starts: dict[int, int] = {}
    at: dict[int, int] = {}
    for index, instruction in enumerate(entry.body):
        at[index] = len(body)
        number = graph.block_of[index]
        if index == graph.blocks[number].first:
            starts[number] = len(body)
        head = instruction.parts[0]
        if index in kept:
            body.append(_as_prefetch(instruction) if _is_store(instruction) else instruction)
        elif _branches(instruction):
            common = graph.next_common(number)
            jump = ("ret", ()) if common == graph.end else ("bra", (Sym(_meeting(common)),))
            body.append(replace(instruction, opcode=jump[0], operands=jump[1], guard=None))
        elif head == "bra":
            body.append(instruction)
        elif head in _ENDS:
            body.append(replace(instruction, opcode="ret", operands=()))
    labels = {name: at.get(index, len(body)) for name, index in entry.labels.items()}
    return replace(
        entry, body=tuple(body), labels=labels | {_meeting(number): start for number, start in starts.items()}
    )


def _as_prefetch(store: Instruction) -> Instruction:
    """The same map and coordinates, and nothing that is moved."""
    place = store.operands[0]
    assert isinstance(place, Addr)
    rank = next(part for part in store.parts if part in ("1d", "2d", "3d", "4d", "5d"))
    return replace(store, opcode=f"cp.async.bulk.prefetch.tensor.{rank}.L2.global.tile", operands=(place,))


def _label(branch: Instruction) -> str:
    operand = branch.operands[-1]
    return operand.name if isinstance(operand, Sym) else ""


def _meeting(block: int) -> str:
    return f"#block {block}"


def _bits(value: int) -> Iterator[int]:
    while value:
        low = value & -value
        yield low.bit_length() - 1
        value ^= low
