# SPDX-License-Identifier: Apache-2.0
"""The instructions that checks know by number, and when the results of a load are used."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from tmagen.emu.compile_blocks import registers_of, split_operands
from tmagen.emu.isa import registry
from tmagen.emu.module import Entry, Instruction, Not, Operand, Sym

# What lets others go on, and after which a thread's clock is another (see `Lanes.tick`).
_RELEASES = (
    "mbarrier.arrive", "mbarrier.init", "bar.sync", "bar.arrive", "bar.cta", "barrier.", "st.release", "atom.", "red.",
    "fence.", "membar.",
)  # fmt: skip
# What may overwrite, with no release, memory that its own warp has read. wgmma writes registers alone.
_OVERWRITES = ("cp.async.bulk", "tcgen05.mma", "tcgen05.dealloc")
# What registers are ready for: no load is still on its way when the MMAs behind it end, and kernels put their loads of
# scales before it for that (DeepGEMM, sm90_fp8_gemm_1d2d).
_COMPLETES = "wgmma.fence"
_ENDS = ("ret", "exit", "trap")
SCOPE_NAMES = ("cta", "cluster", "gpu", "sys")
_SCOPES = {"cta": 0, "cluster": 1, "gpu": 2, "gl": 2, "sys": 3}
_MOST_STEPS = 20_000
_MOST_RELEASES = 12


def scope_of(instruction: Instruction) -> int:
    """The scope of an instruction, or what the PTX ISA gives it where it names none: .gpu for atomics, .sys for
    volatile accesses, .cta for mbarriers.
    """
    for part in instruction.parts[1:]:
        if part in _SCOPES:
            return _SCOPES[part]
    if instruction.parts[0] in ("atom", "red", "cp"):
        return _SCOPES["gpu"]
    return _SCOPES["sys" if instruction.parts[0] in ("ld", "st") else "cta"]


class Use(NamedTuple):
    """What stands between a load and the use of its last register: how many releases at most, and which instructions
    (line, text) that may overwrite what was read.
    """

    releases: int
    overwrites: frozenset[tuple[int, str]]


class Flow:
    """The instructions of an entry by place, and where each goes on."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._places = {(i.line, i.text): at for at, i in enumerate(entry.body)}

    def place(self, instruction: Instruction) -> int | None:
        return self._places.get((instruction.line, instruction.text))

    def after(self, at: int) -> tuple[int, ...]:
        """The places that may follow; past the end is the end."""
        instruction = self.entry.body[at]
        head = instruction.parts[0]
        if head in _ENDS and instruction.guard is None:
            return ()
        if head == "bra":
            target = self._target(instruction.operands[-1])
            return (target,) if instruction.guard is None else (target, at + 1)
        if head == "brx":
            last = instruction.operands[-1]
            names = self.entry.branch_targets.get(last.name, ()) if isinstance(last, Sym) else ()
            return tuple(self.entry.labels[name] for name in names)
        return (at + 1,)

    def _target(self, operand: Operand) -> int:
        return self.entry.labels[operand.name] if isinstance(operand, Sym) else len(self.entry.body)

    def use_of(self, instruction: Instruction) -> Use | None:
        """When every register of a load has been the source of some instruction, which waits for the load, or a
        wgmma.fence has been executed. None where there is a way on which some register never is.
        """
        start = self.place(instruction)
        results, _ = split_operands(instruction, registry.find(instruction.opcode))
        names = frozenset(name for operand in results for name in registers_of(operand))
        if start is None or not names:
            return None
        most = 0
        overwrites: set[tuple[int, str]] = set()
        seen: set[tuple[int, int, frozenset[str]]] = set()
        work = [(place, 0, names) for place in self.after(start)]
        while work:
            state = work.pop()
            if state in seen:
                continue
            seen.add(state)
            at, releases, left = state
            if len(seen) > _MOST_STEPS or releases > _MOST_RELEASES or at >= len(self.entry.body):
                return None
            here = self.entry.body[at]
            read, written = _registers(here)
            left = left - read
            if not left or here.opcode.startswith(_COMPLETES):
                most = max(most, releases)
                continue
            ways = self.after(at)
            if left & written or not ways:
                return None
            if here.opcode.startswith(_RELEASES):
                releases += 1
            elif here.opcode.startswith(_OVERWRITES):
                overwrites.add((here.line, here.text))
            work += [(place, releases, left) for place in ways]
        return Use(most, frozenset(overwrites))

    def clobber_of(self, instruction: Instruction) -> Instruction | None:
        """On some way: an instruction that writes a register of a tcgen05.ld which nothing has waited for."""
        start = self.place(instruction)
        results, _ = split_operands(instruction, registry.find(instruction.opcode))
        names = {name for operand in results for name in registers_of(operand)}
        if start is None or not names:
            return None
        seen: set[int] = set()
        work = list(self.after(start))
        while work and len(seen) < _MOST_STEPS:
            at = work.pop()
            if at in seen or at >= len(self.entry.body):
                continue
            seen.add(at)
            here = self.entry.body[at]
            read, written = _registers(here)
            if here.opcode.startswith("tcgen05.wait::ld") or names & read:
                continue  # a use waits for the load
            if names & written:
                return here
            work += self.after(at)
        return None


def _registers(instruction: Instruction) -> tuple[set[str], set[str]]:
    """(read, written)"""
    results, sources = split_operands(instruction, registry.find(instruction.opcode))
    read = {name for operand in sources for name in registers_of(operand)}
    guard = instruction.guard
    if guard is not None:
        read.add(guard.reg.name if isinstance(guard, Not) else guard.name)
    return read, {name for operand in results for name in registers_of(operand)}


class Site:
    """One instruction of the kernel, as the checks see it."""

    def __init__(self, number: int, instruction: Instruction, flow: Flow) -> None:
        self.number = number
        self.instruction = instruction
        self._flow = flow
        parts = set(instruction.parts)
        self.relaxed = "relaxed" in parts
        self.strong = not parts.isdisjoint(("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"))
        self.acquires = not parts.isdisjoint(("acquire", "acq_rel"))
        self.releases = not parts.isdisjoint(("release", "acq_rel"))
        self.collector = next((part[14:] for part in instruction.parts if part.startswith("collector::a::")), "")
        self.scope = scope_of(instruction)  # place in SCOPE_NAMES

    @cached_property
    def use(self) -> Use | None:
        """What may stand between this load and the use of its last register; None: it may go unused."""
        return self._flow.use_of(self.instruction)

    @cached_property
    def clobbered_by(self) -> Instruction | None:
        """What overwrites a register of this tcgen05.ld before anything has read one or waited for it."""
        return self._flow.clobber_of(self.instruction)


def sites_of(program: Any) -> tuple[Site, ...]:
    """The sites of a program that was compiled for checks."""
    flow = Flow(program.entry)
    return tuple(Site(number, instruction, flow) for number, instruction in enumerate(program.sites))
