# SPDX-License-Identifier: Apache-2.0
"""The registers of a CTA's threads, which setmaxnreg moves between warps (PTX ISA, "setmaxnreg").

A CTA is launched with so many registers for each thread; ptxas decides how many. `dec` gives some back to the CTA's
pool, `inc` waits until the pool has enough. Without a limit that is known when the kernel is compiled (.maxnreg,
.maxntid or .reqntid) the instruction is ignored.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from tmagen.emu.errors import Fault
from tmagen.emu.module import Entry, Imm
from tmagen.emu.state.fragments import BLOCK, WAIT, Fragment

FILE = 65536
"""32-bit registers of an SM (CUDA C++ Programming Guide, "Compute Capabilities")."""
LEAST, MOST, STEP = 24, 256, 8
WARP = 32
GROUP = 4  # warps of a warpgroup
LIMITS = ("maxnreg", "maxntid", "reqntid")


class Count(NamedTuple):
    """Registers of a thread at launch, and where the number comes from."""

    registers: int
    origin: str


@lru_cache(maxsize=64)
def launch_count(entry: Entry, given: int | None) -> Count | None:
    """Registers of each thread at launch; None where the kernel has no limit, and setmaxnreg does nothing.

    Where nobody gives the number it is what ptxas is seen to choose: an even share of the SM's registers for as many
    threads as the kernel allows, rounded down to 8, and no more than the largest `setmaxnreg.inc` asks for.
    """
    if not any(name in entry.directives for name in LIMITS):
        return None
    if given is not None:
        return Count(-(-given // STEP) * STEP, "of the launch")
    if "maxnreg" in entry.directives:
        return Count(max(LEAST, entry.directives["maxnreg"][0] // STEP * STEP), "of .maxnreg")
    name = "maxntid" if "maxntid" in entry.directives else "reqntid"
    threads = -(-prod(entry.directives[name]) // WARP) * WARP
    share = FILE // (threads * (entry.directives.get("minnctapersm") or (1,))[0]) // STEP * STEP
    largest = max((_immediate(i.operands) for i in entry.body if i.opcode.startswith("setmaxnreg.inc")), default=MOST)
    return Count(max(LEAST, min(share, largest, MOST)), f"of .{name} {threads}")


def _immediate(operands: tuple[Any, ...]) -> int:
    return operands[0].value if operands and isinstance(operands[0], Imm) else 0


class Registers:
    """How many registers the threads of each warp have, and how many are free."""

    def __init__(self, cta: Any, count: Count) -> None:
        self.count = count
        self.of_warp = [count.registers] * cta.nwarps
        self.total = WARP * count.registers * cta.nwarps
        self.free = 0
        self.waiters: list[Fragment] = []
        # What the warps of each warpgroup have executed so far: (inc, count) in order, and how many of them each warp.
        self.history: list[list[tuple[bool, int]]] = [[] for _ in range(-(-cta.nwarps // GROUP))]
        self.executed = [0] * cta.nwarps

    def step(self, warp: int, grows: bool, count: int) -> tuple[bool, int] | None:
        """Note that a warp executes the next setmaxnreg; what others of its warpgroup executed in its place, where that
        is something else.
        """
        history, position = self.history[warp // GROUP], self.executed[warp]
        self.executed[warp] += 1
        if position == len(history):
            history.append((grows, count))
        return None if history[position] == (grows, count) else history[position]

    def release(self, warp: int, count: int) -> None:
        """Give registers back, and hand them to those who wait, first come first served."""
        self.free += WARP * (self.of_warp[warp] - count)
        self.of_warp[warp] = count
        waiters, self.waiters = self.waiters, []
        for fragment in waiters:
            if self.take(fragment.warp.index, fragment.wait.count):
                fragment.wake()
            else:
                self.waiters.append(fragment)

    def take(self, warp: int, count: int) -> bool:
        """Whether there were enough."""
        need = WARP * (count - self.of_warp[warp])
        if need > self.free:
            return False
        self.free -= need
        self.of_warp[warp] = count
        return True

    def check_exit(self) -> None:
        """Raises Fault where a warp of a warpgroup did not execute a setmaxnreg that others did."""
        for group, history in enumerate(self.history):
            done = self.executed[GROUP * group : GROUP * (group + 1)]
            for rank, executed in enumerate(done):
                if executed < len(history):
                    raise Fault(
                        f"the CTA exits, and warp {GROUP * group + rank} did not execute "
                        f"{text_of(*history[executed])}, which others of warpgroup {group} did",
                        rule="SR-02",
                    )


def text_of(grows: bool, count: int) -> str:
    """ "setmaxnreg.inc 232"."""
    return f"setmaxnreg.{'inc' if grows else 'dec'} {count}"


class RegisterWait:
    """Why a fragment is blocked: it waits for registers."""

    def __init__(self, registers: Registers, warp: int, count: int, number: int) -> None:
        self.registers = registers
        self.warp = warp
        self.count = count
        self.number = number

    def rule_of(self, cta: Any) -> str:
        """The rule that a deadlock with this wait is about."""
        return "SR-05"

    def describe(self, cta: Any) -> str:
        pool = self.registers
        have = pool.of_warp[self.warp]
        sums = " + ".join(f"{WARP * n} x {r}" for r, n in sorted(_tally(pool.of_warp).items(), reverse=True))
        return (
            f"waits for {WARP * (self.count - have):,} registers, to have {self.count} for each thread instead of "
            f"{have}; the CTA has {pool.total:,} ({pool.count.registers} for each thread, {pool.count.origin}) and "
            f"{pool.free:,} of them are free, the rest is {sums}"
        )


def _tally(counts: list[int]) -> dict[int, int]:
    return {count: counts.count(count) for count in set(counts)}


def set_registers(frag: Fragment, cta: Any, grows: bool, count: int, next_block: int, number: int) -> int:
    """setmaxnreg: the warp's threads have `count` registers from now on. `inc` blocks while too few are free.

    Raises Fault for a count that there is not, and for a direction that does not lead to it.
    """
    if not LEAST <= count <= MOST or count % STEP:
        raise Fault(f"{text_of(grows, count)}: a count is a multiple of {STEP} from {LEAST} to {MOST}", rule="SR-01")
    pool = registers_of(cta)
    if pool is None:
        return next_block
    warp = frag.warp.index
    pool.step(warp, grows, count)
    have = pool.of_warp[warp]
    if (count < have) if grows else (count > have):
        more = "more" if grows else "fewer"
        origin = f" ({pool.count.origin})" if have == pool.count.registers else ""
        raise Fault(
            f"{text_of(grows, count)} in a warp whose threads have {have} registers{origin}: "
            f"{'inc' if grows else 'dec'} asks for as many or {more}",
            rule="SR-03",
        )
    if not grows:
        pool.release(warp, count)
        return next_block
    if pool.take(warp, count):
        return next_block
    frag.pc = next_block
    frag.state = WAIT
    frag.wait = RegisterWait(pool, warp, count, number)
    pool.waiters.append(frag)
    return BLOCK


def registers_of(cta: Any) -> Registers | None:
    """The CTA's registers; None where setmaxnreg does nothing."""
    if cta.registers is None:
        count = launch_count(cta.program.entry, cta.launch.launch.registers)
        if count is not None:
            cta.registers = Registers(cta, count)
    found: Registers | None = cta.registers
    return found
