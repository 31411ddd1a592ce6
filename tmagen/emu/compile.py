# SPDX-License-Identifier: Apache-2.0
"""An entry as Python functions, one per basic block.

A block function takes the fragment (the lanes that run it) and the CTA, loads the registers that it needs from the
fragment's list into locals, runs, stores those that are live afterwards, and returns the number of the next block or a
negative code (see `state/warp.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tmagen.emu import compile_wgmma
from tmagen.emu.compile_blocks import TERMINATORS, Block, Graph, build, registers_of, split_operands
from tmagen.emu.compile_emit import WIDTH, Emitter, Symbols
from tmagen.emu.compile_layout import Layout
from tmagen.emu.compile_order import ordered
from tmagen.emu.compile_wgmma import WgmmaTable
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.isa import access, combine, conversion, families, floats, narrow, registry, values  # noqa: F401  (families fills the registry)
from tmagen.emu.isa.registry import Unknown
from tmagen.emu.module import Entry, Instruction, Module, Not, Operand, Variable
from tmagen.emu.state import (
    barriers,
    cluster_barrier,
    convergence,
    copies,
    issue,
    lanes,
    launch_control,
    maps,
    matrix,
    products,
    registers,
    remote,
    warpgroup,
)
from tmagen.emu.state import mbarrier as mbarriers
from tmagen.emu.timing.cost import Clock
from tmagen.emu.timing.latency import Table, table_for

BlockFunction = Callable[[Any, Any], int]
POISON = {1: False, 8: 0xA5, 16: 0xA5A5, 32: 0xA5A5A5A5, 64: 0xA5A5A5A5A5A5A5A5, 128: 0}
"""What a register holds before its first write: odd, and the same in every run."""


@dataclass(eq=False)
class Program:
    """A compiled entry."""

    entry: Entry
    filename: str
    blocks: list[BlockFunction]
    live: list[tuple[int, ...]]  # places in a fragment's list that are live on entry to each block
    widths: list[int]  # of each place
    first: list[Any]  # what each place holds at first
    instructions: list[Instruction | None]  # by line of the generated source
    waits: list[Instruction]
    static_end: int
    dynamic_base: int
    local_bytes: int
    memory_variables: tuple[Variable, ...]
    uses_global_atomics: bool
    wgmma: WgmmaTable
    source: str
    starts: list[Instruction | None]
    pairs: bool  # whether MMAs are of CTA pairs
    takes_clusters: bool  # whether it asks for clusters that have not been launched
    sites: list[Instruction]  # what checks call by number: all that touches memory or barriers

    def undefined(self, fill: int) -> list[Any]:
        """What each place may hold at first just as well: a byte, repeated."""
        return [bool(fill & 1) if width == 1 else int.from_bytes(bytes([fill]) * (width // 8)) for width in self.widths]

    def first_instruction(self, number: int) -> Instruction | None:
        """The first instruction of a block."""
        return self.starts[number]

    def instruction_at(self, line: int) -> Instruction | None:
        """The instruction that a line of the generated source belongs to."""
        return self.instructions[line - 1] if 0 < line <= len(self.instructions) else None


_COMPILED: weakref.WeakKeyDictionary[Module, dict[tuple[str, bool, bool, bool, bool], Program]] = (
    weakref.WeakKeyDictionary()
)


def compile_entry(
    module: Module,
    name: str,
    *,
    listening: bool = False,
    checked: bool = False,
    clustered: bool = False,
    observed: bool = False,
) -> Program:
    """The program of kernel `name`, compiled once per module and way of running: whether listeners hear of it, whether
    it is checked, whether it is for launches with clusters, whether it is traced or timed. Raises NotJudged for an
    entry that does not exist.
    """
    programs = _COMPILED.setdefault(module, {})
    key = (name, listening, checked, clustered, observed)
    if key not in programs:
        if name not in module.entries:
            raise Fault(f"kernel {name} is not in the module; it has {', '.join(module.entries) or 'none'}")
        programs[key] = _compile(module, module.entries[name], listening, checked, clustered, observed)
    return programs[key]


def _namespace(checked: bool, observed: bool) -> dict[str, Any]:
    names: dict[str, Any] = {}
    simple = (values, floats, conversion, narrow, access, combine)
    states = (convergence, barriers, mbarriers, issue, lanes, matrix, warpgroup, copies, maps, cluster_barrier, remote)
    for source in (*simple, *states, launch_control, products, registers):
        names.update({k: v for k, v in vars(source).items() if not k.startswith("_")})
    names["NotJudged"] = NotJudged
    if checked:
        from tmagen.emu.checks import hooks

        names.update((name, hook) for name, hook in hooks.namespace().items() if name in names)
    if observed:
        from tmagen.emu.observe.hooks import wrapped

        names.update(wrapped(names))
    return names


def _compile(
    module: Module, entry: Entry, listening: bool, checked: bool, clustered: bool, observed: bool
) -> Program:
    slots = {name: i for i, name in enumerate(entry.registers)}
    widths = []
    for name, kind in entry.registers.items():
        if kind not in WIDTH:
            raise NotJudged(f"register {name} of type .{kind}", ptx_line=entry.line)
        widths.append(WIDTH[kind])
    graph = build(entry, slots)
    layout = Layout(module, entry)
    wgmma = compile_wgmma.build(entry, slots, [POISON[width] for width in widths])
    table = table_for(module.target) if observed else None
    writer = _Writer(graph, slots, widths, layout.symbols, wgmma, listening, checked, clustered, table)
    writer.write()
    filename = f"<blocks of {entry.name}>"
    source = "\n".join(writer.lines) + "\n"
    names = _namespace(checked, observed)
    exec(compile(source, filename, "exec"), names)
    return Program(
        entry=entry,
        filename=filename,
        blocks=[names[f"b{block.number}"] for block in graph.blocks],
        live=[
            tuple(writer.place[slot] for slot in _members(block.live_in & ~wgmma.resident)) for block in graph.blocks
        ],
        widths=[widths[slot] for slot in writer.crossing],
        first=[POISON[widths[slot]] for slot in writer.crossing],
        instructions=writer.owners,
        waits=writer.waits,
        static_end=layout.static_end,
        dynamic_base=layout.dynamic_base,
        local_bytes=layout.local_bytes,
        memory_variables=layout.memory,
        uses_global_atomics=any(_talks_between_ctas(i) for i in entry.body),
        wgmma=wgmma,
        source=source,
        starts=[block.body[0] if block.body else None for block in graph.blocks],
        pairs=any(i.opcode.startswith("tcgen05.mma.cta_group::2") for i in entry.body),
        takes_clusters=any(i.opcode.startswith("clusterlaunchcontrol.try_cancel") for i in entry.body),
        sites=writer.sites,
    )


def _talks_between_ctas(instruction: Instruction) -> bool:
    """Whether it may read what another CTA of the same launch writes: such a grid must not be split over processes."""
    parts = instruction.parts
    if parts[0] in ("atom", "red"):
        return "shared" not in parts and not any(p.startswith("shared::") for p in parts)
    if parts[0] in ("ld", "st"):
        strong = {"volatile", "relaxed", "acquire", "release", "mmio"} & set(parts)
        return bool(strong) and not any(p.startswith("shared") for p in parts)
    return instruction.opcode.startswith(("cp.reduce.async", "multimem"))


def _members(bits: int) -> tuple[int, ...]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return tuple(found)


class _Writer:
    """The generated source of all blocks, with the instruction that each line belongs to."""

    def __init__(
        self,
        graph: Graph,
        slots: dict[str, int],
        widths: list[int],
        symbols: Symbols,
        wgmma: WgmmaTable,
        listening: bool,
        checked: bool,
        clustered: bool,
        table: Table | None,
    ) -> None:
        self.table = table
        self.graph = graph
        self.wgmma = wgmma
        self.slots = slots
        self.widths = widths
        self.symbols = symbols
        self.listening = listening
        self.checked = checked
        self.clustered = clustered
        self.sites: list[Instruction] = []
        self.lines: list[str] = []
        self.owners: list[Instruction | None] = []
        self.waits: list[Instruction] = []
        # Only registers that live across a block's end need a place in a fragment's list.
        crossing = 0
        for block in graph.blocks:
            crossing |= block.live_in
        self.crossing = _members(crossing & ~wgmma.resident)
        self.place = {slot: place for place, slot in enumerate(self.crossing)}

    def write(self) -> None:
        for block in self.graph.blocks:
            emitter = BlockEmitter(self, block)
            body = emitter.write()
            first = block.body[0] if block.body else None
            self.lines.append(f"def b{block.number}(F, C):")
            self.owners.append(first)
            self.lines += [f"    {text}" for text in body]
            self.owners += emitter.owners


class BlockEmitter(Emitter):
    """An emitter that also knows the block's place in the graph."""

    def __init__(self, writer: _Writer, block: Block) -> None:
        super().__init__(
            writer.slots,
            writer.widths,
            writer.symbols,
            writer.wgmma,
            writer.listening,
            writer.checked,
            writer.clustered,
            None if writer.table is None else Clock(writer.table),
        )
        self.writer = writer
        self.block = block
        self.number = block.number
        self.next_block = block.number + 1
        self.first_in_block = True
        # What was looked at since the block began or the last wgmma, which puts registers in flight again.
        self._settled: set[int] = set()
        self._free: set[int] = set()

    def write(self) -> list[str]:
        block = self.block
        resident = self.wgmma.resident
        loads = _members(block.uses & ~resident)
        self.current = block.body[0] if block.body else None
        if loads or block.defs & block.live_out & ~resident:
            self.line("R = F.R")
        place = self.writer.place
        if loads:
            self.line("n = F.one")
            self.line("if n < 0:")
            for start in range(0, len(loads), 8):
                self.line("    " + "; ".join(f"v{slot} = R[{place[slot]}]" for slot in loads[start : start + 8]))
            self.line("else:")
            for slot in loads:
                self.line(f"    v{slot} = R[{place[slot]}]")
                self.line(f"    if v{slot}.__class__ is ND: v{slot} = v{slot}.item(n)")
        body = ordered(block.body)
        at = 0
        while at < len(body):
            self.current = body[at]
            run = self._run(body, at)
            if len(run) > 1 and self._batch(run):
                at += len(run)
            else:
                self._instruction(body[at])
                at += 1
            self.first_in_block = False
        if not self.returned:
            self.ret(str(block.successors[0]) if block.successors else "exit_lanes(F)")
        return self.lines

    def ret(self, text: str) -> None:
        if self.clock is not None and (cycles := self.clock.end()):
            self.line(f"F.clock += {cycles}")
        stores = _members(self.block.defs & self.block.live_out & ~self.wgmma.resident)
        place = self.writer.place
        for start in range(0, len(stores), 8):
            self.line("; ".join(f"R[{place[slot]}] = v{slot}" for slot in stores[start : start + 8]))
        super().ret(text)

    def successor(self, index: int) -> int:
        return self.block.successors[index]

    def past_spin(self) -> int:
        """Where a spin loop goes on once its wait, the last instruction, is true: past branches that only test that."""
        assert self.current is not None
        predicate = self.current.operands[0]
        number = self.next_block
        for _ in range(4):
            block = self.writer.graph.blocks[number]
            if len(block.body) != 1 or block.body[0].parts[0] != "bra":
                break
            guard = block.body[0].guard
            if guard is None or guard == predicate:
                number = block.successors[0]
            elif isinstance(guard, Not) and guard.reg == predicate:
                number = block.successors[1]
            else:
                break
        return number

    def wait(self) -> int:
        """Number of the current instruction in the table of waits, for the deadlock report."""
        assert self.current is not None
        self.writer.waits.append(self.current)
        return len(self.writer.waits) - 1

    def branch(self, predicate: str, taken: int, other: int) -> None:
        """End the block with a conditional branch."""
        self.line(f"p = {predicate}")
        self.ret(f"({taken} if p else {other}) if p.__class__ is not ND else branch(F, p, {taken}, {other})")

    def _run(self, body: list[Instruction], at: int) -> list[Instruction]:
        """The instructions from `at` on that have one opcode and do not depend on each other."""
        first = body[at]
        spec = registry.find(first.opcode)
        if spec is None or spec.batch is None:
            return []
        run: list[Instruction] = []
        written: set[str] = set()
        for instruction in body[at:]:
            if instruction.opcode != first.opcode or instruction.guard is not None:
                break
            results, sources = split_operands(instruction, spec)
            if first.opcode.startswith(compile_wgmma.MMA):
                results = ()  # D flows through
            names = [name for operand in results for name in registers_of(operand)]
            read = [name for operand in sources for name in registers_of(operand)]
            if written.intersection((*names, *read)):
                break
            written.update(names)
            run.append(instruction)
        return run

    def _batch(self, run: list[Instruction]) -> bool:
        spec = registry.find(run[0].opcode)
        assert spec is not None and spec.batch is not None
        for instruction in run:
            self._look_at(instruction, spec)
        mark = len(self.lines)
        clock = None if self.clock is None else self.clock.copy()
        done = False
        try:
            for instruction in run if self.clock is not None else run[:1]:
                self._tell_site(instruction, spec)
            done = spec.batch(self, run)
            self.finish_kept()
        except Unknown:
            self._kept.clear()
        if not done:
            del self.lines[mark:], self.owners[mark:]
            self.clock = clock
        return done

    def _instruction(self, instruction: Instruction) -> None:
        spec = registry.find(instruction.opcode)
        mark = len(self.lines)
        try:
            if spec is None:
                raise Unknown(f"instruction {instruction.opcode}")
            self._look_at(instruction, spec)
            mark = len(self.lines)
            guard = instruction.guard
            if guard is not None and instruction.parts[0] != "bra":
                # The guard is read once: the instruction may write the very predicate.
                self.line(f"g = {self.pred(guard)}")
                self.guard = "g"
            self._tell_site(instruction, spec)
            spec.emit(self, instruction)
            if self.guard is not None:
                self.finish_guard()
            self.finish_kept()
        except Unknown as unknown:
            self._not_judged(instruction, spec, str(unknown), mark)
        except (IndexError, ValueError, KeyError) as error:
            self._not_judged(instruction, spec, f"operands of {instruction.opcode} ({error})", mark)

    def _tell_site(self, instruction: Instruction, spec: registry.Spec) -> None:
        """Checks and observers are told which instruction runs."""
        clock = self.clock
        before = own = 0
        if clock is not None:
            results, sources = split_operands(instruction, spec)
            before, own = clock.issue(
                instruction,
                tuple(name for operand in sources for name in registers_of(operand)),
                tuple(name for operand in results for name in registers_of(operand)),
            )
        if spec.pure or instruction.parts[0] in TERMINATORS:
            return
        number = len(self.writer.sites)
        if self.checked:
            self.line(f"C.site = {number}")
        if clock is not None:
            self.line(f"C.observer.step(F, C, {number}, {before}, {own})")
            clock.tell()
        if self.checked or clock is not None:
            self.writer.sites.append(instruction)

    def _look_at(self, instruction: Instruction, spec: registry.Spec) -> None:
        """Bring the accumulators that an instruction touches up to date, and see that it may write what it writes."""
        table = self.wgmma
        if not table.numbers:
            return
        results, sources = split_operands(instruction, spec)
        if instruction.opcode.startswith(compile_wgmma.MMA):
            results = ()  # D flows through
        written = {self.slots[name] for operand in results for name in registers_of(operand)}
        touched = written | {self.slots[name] for operand in sources for name in registers_of(operand)}
        for accumulator in sorted({number for slot in touched for number in table.touching.get(slot, ())}):
            if accumulator not in self._settled:
                self._settled.add(accumulator)
                self.line(f"W = settle(F, C, {accumulator})")
        for a_set in sorted({number for slot in written for number in table.holding.get(slot, ())}):
            if a_set not in self._free:
                self._free.add(a_set)
                self.line(f"check_a(F, C, {a_set})")

    def accumulates(self, d: Operand) -> None:
        """A wgmma has put the registers `d` in flight."""
        self._settled.clear()
        self._free.clear()
        for name in registers_of(d):
            self.constants.pop(name, None)

    def _not_judged(self, instruction: Instruction, spec: registry.Spec | None, message: str, mark: int) -> None:
        del self.lines[mark:], self.owners[mark:]
        self.guard = None
        self._selects.clear()
        self._kept.clear()
        self.returned = False
        self.line(f"raise NotJudged({message!r})")
        # Text after the raise is dead but still has to name only what exists.
        results, _ = split_operands(instruction, spec)
        for operand in results:
            for name in registers_of(operand):
                if self.slots[name] not in self.wgmma.numbers:
                    self.line(f"v{self.slots[name]} = 0")


__all__ = ["Program", "compile_entry"]
