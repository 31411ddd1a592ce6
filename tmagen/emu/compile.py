# SPDX-License-Identifier: Apache-2.0
"""An entry as Python functions, one per basic block.

A block function takes the fragment (the lanes that run it) and the CTA, loads the registers that it needs from the
fragment's list into locals, runs, stores those that are live afterwards, and returns the number of the next block or a
negative code (see `state/fragments.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tmagen.emu import compile_wgmma
from tmagen.emu.compile_blocks import build
from tmagen.emu.compile_emit import WIDTH
from tmagen.emu.compile_layout import Layout
from tmagen.emu.compile_text import Writer, members
from tmagen.emu.compile_wgmma import WgmmaTable
from tmagen.emu.errors import Fault, NotJudged
from tmagen.emu.isa import access, combine, conversion, families, floats, narrow, values  # noqa: F401  (families fills the registry)
from tmagen.emu.module import Entry, Instruction, Module, Variable
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
from tmagen.emu.timing.latency import table_for

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
    writer = Writer(graph, slots, widths, layout.symbols, wgmma, listening, checked, clustered, table)
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
            tuple(writer.place[slot] for slot in members(block.live_in & ~wgmma.resident)) for block in graph.blocks
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


__all__ = ["Program", "compile_entry"]
