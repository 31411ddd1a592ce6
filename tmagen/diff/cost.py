# SPDX-License-Identifier: Apache-2.0
"""What each side costs: registers, machine code, and what a reader has to read."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.diff.code import Code
from tmagen.diff.facts import Fact, Group, facts
from tmagen.diff.sass import Loop, MachineCode, machine_code
from tmagen.diff.source import SourceFacts, source_facts
from tmagen.diff.view import View
from tmagen.toolchain import KernelResources, Nvcc, disassemble

REGISTERS = "registers a thread"
MAIN_LOOP = "instructions of the main loop"

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
    return (
        Group("Resources", _resources(left, right, mine, theirs)),
        Group("Machine code", _machine_code(left, right, mine, theirs)),
        Group("Source", _source(mine, theirs)),
    )


def _resources(left: View | None, right: View | None, mine: Cost, theirs: Cost) -> tuple[Fact, ...]:
    pair = (mine.resources, theirs.resources)
    return facts(
        (REGISTERS, *(r and r.registers for r in pair)),
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
        (MAIN_LOOP, *(_loop_text(v, c, loop) for (v, c), loop in zip(pair, loops, strict=True))),
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
    return f"{total} ({total / tiles:.0f} a K tile, {tiles:.0f} unrolled)" if tiles > 1 else f"{total}"


def _source(mine: Cost, theirs: Cost) -> tuple[Fact, ...]:
    pair = (mine.source, theirs.source)
    return facts(
        ("lines", *(s and s.lines for s in pair)),
        ("lines of device code, to the kernel's end", *(s and s.device_lines for s in pair)),
        ("of them before the kernel", *(s and s.before_kernel for s in pair)),
        ("comment lines", *(None if s is None else s.comment_lines for s in pair)),
        ("longest line, characters", *(s and s.widest_line for s in pair)),
        ("parameters of a function, at most", *(s and s.most_parameters for s in pair)),
        (
            'asm without a "memory" clobber',
            *(None if s is None else ", ".join(s.unclobbered) or "none" for s in pair),
            "the compiler may move ordinary accesses of memory across it",
        ),
    )
