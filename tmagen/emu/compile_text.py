# SPDX-License-Identifier: Apache-2.0
"""Writing the Python text of all blocks of an entry: which registers a block loads and stores, which instructions are
written as one, where a block goes on, and what checks and observers are told.
"""

from __future__ import annotations

from tmagen.emu import compile_wgmma
from tmagen.emu.compile_blocks import TERMINATORS, Block, Graph, registers_of, split_operands
from tmagen.emu.compile_emit import Emitter, Symbols
from tmagen.emu.compile_order import ordered
from tmagen.emu.compile_wgmma import WgmmaTable
from tmagen.emu.isa import registry
from tmagen.emu.isa.registry import Unknown
from tmagen.emu.module import Instruction, Not, Operand
from tmagen.emu.timing.cost import Clock
from tmagen.emu.timing.latency import Table


def members(bits: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, lowest first."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return tuple(found)


class Writer:
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
        self.crossing = members(crossing & ~wgmma.resident)
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

    def __init__(self, writer: Writer, block: Block) -> None:
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
        loads = members(block.uses & ~resident)
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
        stores = members(self.block.defs & self.block.live_out & ~self.wgmma.resident)
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
