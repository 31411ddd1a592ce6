# SPDX-License-Identifier: Apache-2.0
"""From the instructions of an entry to basic blocks: guards made branches, block limits, liveness, and which waits
spin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tmagen.emu.isa import families, registry  # noqa: F401  (families fills the registry)
from tmagen.emu.isa.forms import looks_at_memory
from tmagen.emu.isa.registry import Spec
from tmagen.emu.module import Addr, Entry, Imm, Instruction, Not, Operand, Pair, Reg, Sym, Vec

TERMINATORS = ("bra", "brx", "ret", "exit", "trap")
SPINNING = ("mbarrier.try_wait", "mbarrier.test_wait")


@dataclass
class Block:
    """Straight-line code. Blocks are numbered in text order: the number is the program counter that lanes reconverge
    by.
    """

    number: int
    body: list[Instruction] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    uses: int = 0  # bit sets over register slots
    defs: int = 0
    live_in: int = 0
    live_out: int = 0
    spins: bool = False  # ends in a wait whose false result only leads back to it


@dataclass
class Graph:
    """The blocks of an entry, and where each label is."""

    blocks: list[Block]
    targets: dict[str, int]


def registers_of(operand: Operand) -> Iterator[str]:
    """Names of all registers in an operand."""
    if isinstance(operand, Reg):
        yield operand.name
    elif isinstance(operand, Not):
        yield operand.reg.name
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Addr):
        yield from registers_of(operand.base)
        for item in operand.rest:
            yield from registers_of(item)


def split_operands(instruction: Instruction, spec: Spec | None) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """(results, sources) of an instruction."""
    dests = spec.dests if spec else 0
    results, sources = instruction.operands[:dests], instruction.operands[dests:]
    # An address or a vector of sources in the place of a result: `red`, `st`-like forms of an opcode with optional
    # result.
    moved = tuple(o for o in results if isinstance(o, Addr))
    return tuple(o for o in results if not isinstance(o, Addr)), (*moved, *sources)


def build(entry: Entry, slots: dict[str, int]) -> Graph:
    """Blocks with successors, liveness and spin marks. `slots` numbers the registers."""
    body, labels = _expand_guards(entry)
    graph = _cut(body, labels, entry)
    _liveness(graph, slots)
    for block in graph.blocks:
        last = block.body[-1] if block.body else None
        if last is not None and last.opcode.startswith(SPINNING):
            block.spins = _spins(graph, block)
    return graph


def _expand_guards(entry: Entry) -> tuple[list[Instruction], dict[str, int]]:
    """Put a branch around every guarded instruction that does more than compute; only branches and pure ones keep a
    guard.
    """
    at_index: dict[int, list[str]] = {}
    for name, index in entry.labels.items():
        at_index.setdefault(index, []).append(name)
    body: list[Instruction] = []
    labels: dict[str, int] = {}
    for index, instruction in enumerate(entry.body):
        for name in at_index.get(index, ()):
            labels[name] = len(body)
        spec = registry.find(instruction.opcode)
        head = instruction.parts[0]
        if instruction.guard is None or head == "bra" or (spec is not None and spec.pure):
            body.append(instruction)
            continue
        skip = f"#after {index}"
        guard = instruction.guard
        inverse = guard.reg if isinstance(guard, Not) else Not(guard)
        body.append(replace(instruction, opcode="bra", operands=(Sym(skip),), guard=inverse))
        body.append(replace(instruction, guard=None))
        labels[skip] = len(body)
    for name in at_index.get(len(entry.body), ()):
        labels[name] = len(body)
    return body, labels


def _cut(body: list[Instruction], labels: dict[str, int], entry: Entry) -> Graph:
    leaders = {0}
    for index, instruction in enumerate(body):
        spec = registry.find(instruction.opcode)
        head = instruction.parts[0]
        if head == "bra":
            leaders.add(labels[_target(instruction)])
        elif head == "brx":
            leaders.update(labels[name] for name in entry.branch_targets.get(_target(instruction), ()))
        if head in TERMINATORS or (spec is not None and (spec.waits or looks_at_memory(instruction))):
            leaders.add(index + 1)
    _separate_collectives(body, leaders)
    starts = sorted(i for i in leaders if i < len(body))
    number_at = {start: number for number, start in enumerate(starts)}
    end = len(starts)  # the block past the last one: falling off the end is `ret`
    blocks = []
    for number, start in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(body)
        block = Block(number, body[start:stop])
        last = block.body[-1]
        head = last.parts[0]
        if head == "bra":
            block.successors.append(number_at.get(labels[_target(last)], end))
            if last.guard is not None:
                block.successors.append(number + 1)
        elif head == "brx":
            block.successors += [
                number_at.get(labels[name], end) for name in entry.branch_targets.get(_target(last), ())
            ]
        elif head not in TERMINATORS:
            block.successors.append(number + 1)
        blocks.append(block)
    blocks.append(Block(end))
    return Graph(
        blocks,
        {name: number_at.get(index, end) for name, index in labels.items() if index in number_at or index == len(body)},
    )


def _separate_collectives(body: list[Instruction], leaders: set[int]) -> None:
    """Start a block at each collective, so that it can be tried again; lanes that came together for an `.aligned` one
    stay so.
    """
    converged = False
    for index, instruction in enumerate(body):
        if index in leaders:
            converged = False
        spec = registry.find(instruction.opcode)
        if spec is not None and spec.collective:
            whole = _whole_warp(instruction)
            if not (converged and whole and not spec.waits):
                leaders.add(index)
            converged = whole


def _whole_warp(instruction: Instruction) -> bool:
    return ".aligned" in instruction.opcode


def _target(instruction: Instruction) -> str:
    operand = instruction.operands[-1]
    return operand.name if isinstance(operand, Sym) else ""


def _liveness(graph: Graph, slots: dict[str, int]) -> None:
    for block in graph.blocks:
        for instruction in block.body:
            results, sources = split_operands(instruction, registry.find(instruction.opcode))
            for operand in sources:
                for name in registers_of(operand):
                    block.uses |= (1 << slots[name]) & ~block.defs
            guard = instruction.guard
            if guard is not None:
                block.uses |= (1 << slots[guard.reg.name if isinstance(guard, Not) else guard.name]) & ~block.defs
            for operand in results:
                for name in registers_of(operand):
                    bit = 1 << slots[name]
                    if guard is not None:
                        block.uses |= bit & ~block.defs  # a select keeps the old value in some lanes
                    block.defs |= bit
    changed = True
    while changed:
        changed = False
        for block in reversed(graph.blocks):
            out = 0
            for successor in block.successors:
                out |= graph.blocks[successor].live_in
            live_in = block.uses | (out & ~block.defs)
            if out != block.live_out or live_in != block.live_in:
                block.live_out, block.live_in, changed = out, live_in, True


def _spins(graph: Graph, block: Block) -> bool:
    """Whether the wait that ends `block`, when false, can only be executed again with the same operands.

    Follows the code with the wait's predicate false, through moves, logic and branches whose outcome that decides.
    Anything else on the way (a counter, a store, a test of another value) makes it a poll, which must not block.
    """
    wait = block.body[-1]
    predicate = wait.operands[0]
    if not isinstance(predicate, Reg):
        return False
    operands = {name for operand in wait.operands[1:] for name in registers_of(operand)}
    known: dict[str, int] = {predicate.name: 0}
    stale: set[str] = {predicate.name}
    number = block.successors[0]
    for _ in range(16):
        here = graph.blocks[number]
        for instruction in here.body:
            if instruction is wait:
                return not operands & stale
            if instruction.parts[0] == "bra":
                guard = instruction.guard
                if guard is None:
                    number = here.successors[0]
                    break
                value = known.get(guard.reg.name if isinstance(guard, Not) else guard.name)
                if value is None:
                    return False
                number = here.successors[0 if bool(value) != isinstance(guard, Not) else 1]
                break
            if not _follow(instruction, known, stale, operands):
                return False
        else:
            if not here.successors or (here.body and here.body[-1].parts[0] == "brx"):
                return False
            number = here.successors[0]
    return False


def _follow(instruction: Instruction, known: dict[str, int], stale: set[str], operands: set[str]) -> bool:
    """Evaluate one instruction over `known` values. False: it is not one that a spin loop may hold."""
    spec = registry.find(instruction.opcode)
    if instruction.parts[0] == "nanosleep":
        return True
    if spec is None or not spec.pure or instruction.guard is not None:
        return False
    results, sources = split_operands(instruction, spec)
    if len(results) != 1 or not isinstance(results[0], Reg):
        return False
    name = results[0].name
    values = [_value(operand, known) for operand in sources]
    value = _evaluate(instruction.parts, values)
    if value is None:
        known.pop(name, None)
        # Recomputing an operand of the wait from values that the loop does not change gives the same operand again.
        if {r for operand in sources for r in registers_of(operand)} & stale or name in {
            r for operand in sources for r in registers_of(operand)
        }:
            stale.add(name)
    else:
        known[name] = value
        if name not in operands or any(r in stale for operand in sources for r in registers_of(operand)):
            stale.add(name)
    return True


def _value(operand: Operand, known: dict[str, int]) -> int | None:
    if isinstance(operand, Imm):
        return operand.value
    if isinstance(operand, Reg):
        return known.get(operand.name)
    if isinstance(operand, Not):
        inner = known.get(operand.reg.name)
        return None if inner is None else int(not inner)
    return None


def _evaluate(parts: tuple[str, ...], values: list[int | None]) -> int | None:
    head = parts[0]
    if head == "selp" and values[2] is not None:
        return values[0] if values[2] else values[1]
    if any(value is None for value in values):
        return None
    numbers = [value for value in values if value is not None]
    if head == "mov" or (head == "cvt" and len(numbers) == 1 and 0 <= numbers[0] < 128):
        return numbers[0]
    if head == "setp" and len(numbers) == 2 and parts[1] in ("eq", "ne"):
        return int((numbers[0] == numbers[1]) == (parts[1] == "eq"))
    if head == "and":
        return numbers[0] & numbers[1]
    if head == "or":
        return numbers[0] | numbers[1]
    if head == "xor":
        return numbers[0] ^ numbers[1]
    if head == "not" and parts[-1] == "pred":
        return int(not numbers[0])
    return None
