# SPDX-License-Identifier: Apache-2.0
"""What each side costs: registers, machine code, and what a reader has to read."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.diff.code import Code
from tmagen.diff.facts import Fact, Group, facts
from tmagen.diff.notes import noted
from tmagen.diff.sass import Loop, MachineCode, machine_code
from tmagen.diff.source import SourceFacts, source_facts
from tmagen.diff.view import View
from tmagen.toolchain import KernelResources, Nvcc, disassemble

REGISTERS = "registers a thread"
MAIN_LOOP = "instructions of the main loop"

LONG_NOTE = "a call with a pointer to each of many registers, on one line"
REGISTERS_PER_SM = 65_536
REGISTER_UNIT = 8  # a thread's registers are rounded up to this
SMEM_PER_SM = 233_472
SMEM_RESERVED = 1_024
TMEM_COLUMNS = 512


@dataclass(frozen=True, slots=True)
class Cost:
    """One side's figures; None where the side is PTX alone."""

    resources: KernelResources | None
    code: MachineCode | None
    source: SourceFacts | None
    seconds: float


def cost_of(code: Code, nvcc: Nvcc) -> Cost:
    """Disassembles and counts. Raises ToolchainError where no disassembler is installed."""
    if code.cubin is None:
        return Cost(None, None, None, 0.0)
    return Cost(
        next((kernel for kernel in code.cubin.kernels if kernel.name == code.kernel), None),
        machine_code(disassemble(code.cubin.data, nvcc=nvcc), code.kernel),
        None if code.text is None else source_facts(code.text),
        code.seconds,
    )


def costs(left: View | None, right: View | None, mine: Cost, theirs: Cost) -> tuple[Group, ...]:
    """Side by side."""
    groups = (
        Group("Resources", _resources(left, right, mine, theirs)),
        Group("Machine code", _machine_code(left, right, mine, theirs)),
        Group("Source", _source(mine, theirs)),
    )
    return noted(groups)


def _resources(left: View | None, right: View | None, mine: Cost, theirs: Cost) -> tuple[Fact, ...]:
    pair = (mine.resources, theirs.resources)
    return facts(
        (REGISTERS, *(r and r.registers for r in pair), _registers_note(left, right)),
        ("spilled, bytes", *(None if r is None else r.spill_store_bytes + r.spill_load_bytes for r in pair)),
        ("stack, bytes", *(None if r is None else r.stack_bytes for r in pair)),
        ("named barriers, highest and one", *(r and r.barriers for r in pair)),
        (
            "CTAs of one SM",
            _resident(left, mine.resources),
            _resident(right, theirs.resources),
            "the least of what registers, shared memory and tensor memory allow",
        ),
    )


def _registers_note(left: View | None, right: View | None) -> str:
    """What the widest loads of tensor memory hold at once, where that differs."""
    widths = [_widest_load(view) for view in (left, right)]
    if not all(widths) or widths[0] == widths[1]:
        return ""
    wide, narrow = max(widths), min(widths)
    return f"a tcgen05.ld of {wide} columns fills {wide} registers at once, one of {narrow} fills {narrow}"


def _widest_load(view: View | None) -> int:
    shapes = [dict(event.facts)["shape"] for event in (view.events if view else ()) if event.op == "TMEM load"]
    return max((int(shape.rpartition("x")[2]) for shape in shapes), default=0)


def _resident(view: View | None, resources: KernelResources | None) -> str | None:
    """How many CTAs an SM holds at a time, and what keeps it from more; None where no launch is known."""
    if view is None:
        return None
    launch = view.launch
    x, y, z = launch.block
    limits = {"shared memory": SMEM_PER_SM // (launch.dynamic_smem_bytes + SMEM_RESERVED)}
    if resources is not None:
        registers = -(-resources.registers // REGISTER_UNIT) * REGISTER_UNIT
        limits["registers"] = REGISTERS_PER_SM // (registers * x * y * z)
    columns = sum(event.operands[1] for event in view.recording.events if event.kind == "tmem_alloc")
    if columns:
        limits["tensor memory"] = TMEM_COLUMNS // columns
    least = min(limits.values())
    return f"{least} ({' and '.join(name for name, limit in limits.items() if limit == least)})"


def _machine_code(left: View | None, right: View | None, mine: Cost, theirs: Cost) -> tuple[Fact, ...]:
    pair = ((left, mine.code), (right, theirs.code))
    loops = [None if code is None else code.main_loop() for _, code in pair]

    def in_all(opcode: str) -> list[int | None]:
        return [None if code is None else code.count(opcode) for _, code in pair]

    return facts(
        ("instructions", *(None if code is None else len(code.instructions) for _, code in pair)),
        (
            MAIN_LOOP,
            *(_loop_text(v, c, loop) for (v, c), loop in zip(pair, loops, strict=True)),
            "with the waits that are repeated out of line. A loop whose number of turns is a constant is unrolled by "
            "the compiler; each loop around a single instruction adds to it",
        ),
        ("MMA instructions", *(None if code is None else code.mmas() for _, code in pair)),
        (
            "loops around single instructions (BRA.U.ANY)",
            *in_all("BRA.U.ANY"),
            "an instruction under a guard such as `tid == 0` is for any lane as far as ptxas knows, and it loops over "
            "those that are left; under elect.sync it knows that it is one",
        ),
        ("ELECT", *in_all("ELECT")),
        ("TMA loads (UTMALDG)", *in_all("UTMALDG")),
        ("TMA stores (UTMASTG)", *in_all("UTMASTG")),
        ("tcgen05.commit (UTCBAR)", *in_all("UTCBAR")),
    )


def _loop_text(view: View | None, code: MachineCode | None, loop: Loop | None) -> str | None:
    """Its length, and that of each K tile in it where it is unrolled."""
    if code is None:
        return None
    if loop is None:
        return "no loop"
    total = len(code.range(loop))
    events = () if view is None else view.events
    per_tile = max((event.count for event in events if event.op == "MMA"), default=0)
    tiles = code.mmas(loop) / per_tile if per_tile else 0
    if not tiles:
        return f"{total}"
    return f"{total} ({total / tiles:.0f} a K tile, {f'{tiles:.0f} unrolled' if tiles > 1 else 'not unrolled'})"


def _numbered(source: SourceFacts) -> str:
    names = source.numbered
    shown = f" ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})" if names else ""
    return f"{len(names)}{shown}"


def _lines_note(mine: SourceFacts | None, theirs: SourceFacts | None) -> str:
    """Why one text is longer: the two kinds of lines that the difference is mostly made of."""
    if mine is None or theirs is None:
        return ""
    longer, shorter = (mine, theirs) if mine.lines > theirs.lines else (theirs, mine)
    kinds = {
        "comments and blank lines": longer.blank_and_comments - shorter.blank_and_comments,
        "host part": longer.host - shorter.host,
        "functions, types and constants with names": longer.called - shorter.called,
        "wrappers": longer.wrappers - shorter.wrappers,
        "kernel": longer.kernel - shorter.kernel,
        "unused declarations": longer.unused - shorter.unused,
    }
    most = sorted(kinds, key=lambda kind: -kinds[kind])[:3]
    told = ", ".join(f"{kind} ({kinds[kind]:,} more)" for kind in most if kinds[kind] > 0)
    return f"the longer one has more of: {told}"


def _source(mine: Cost, theirs: Cost) -> tuple[Fact, ...]:
    pair = (mine.source, theirs.source)
    return facts(
        ("lines", *(s and s.lines for s in pair), _lines_note(*pair)),
        ("of them comments and blank", *(None if s is None else s.blank_and_comments for s in pair)),
        (
            "of them host part",
            *(None if s is None else s.host for s in pair),
            "what checks arguments, encodes tensor maps and launches; without it another program has to know how",
        ),
        (
            "of them before the kernel: wrappers of one instruction",
            *(None if s is None else s.wrappers for s in pair),
            "a function around each PTX instruction, with its name and operands",
        ),
        ("of them before the kernel: functions, types and constants that it uses", *(s and s.called for s in pair)),
        (
            "of them before the kernel: declarations that nothing uses",
            *(None if s is None else s.unused for s in pair),
            "a preamble that is the same for every kernel, to be read past",
        ),
        (
            "of them before the kernel: directives and static_assert",
            *(None if s is None else s.directives for s in pair),
        ),
        (
            "of them kernel",
            *(s and s.kernel for s in pair),
            "one function with everything in it, or one that calls main loop, epilogue and set-up by name",
        ),
        ("longest line, characters", *(s and s.widest_line for s in pair), LONG_NOTE),
        (
            "parameters of a function, at most",
            *(s and s.most_parameters for s in pair),
            "a load of many registers that takes a pointer to each, or an array",
        ),
        (
            "variables named by number",
            *(None if s is None else _numbered(s) for s in pair),
            "names that a compiler made up, as cse_v4 for a common subexpression, say nothing about what they hold",
        ),
        (
            'asm without a "memory" clobber',
            *(None if s is None else ", ".join(s.unclobbered) or "none" for s in pair),
            "the compiler may move ordinary accesses of memory across it",
        ),
    )
