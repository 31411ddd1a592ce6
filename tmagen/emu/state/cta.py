# SPDX-License-Identifier: Apache-2.0
"""One CTA: its shared memory, barriers, tensor memory, warps, and the loop that runs them."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tmagen.emu import mma, tensormap, wgmma
from tmagen.emu.compile import RESERVED_SHARED_BYTES
from tmagen.emu.compile_emit import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from tmagen.emu.errors import Deadlock, EmulatorError, Fault, NotJudged
from tmagen.emu.launch import Dim3, Launch
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.report import place_in_shared, waiting_lines
from tmagen.emu.state.barriers import NamedBarrier, recheck
from tmagen.emu.state.convergence import Fragment, Warp
from tmagen.emu.state.engine import ASYNC, STORE, TENSOR, Engine, make_engine
from tmagen.emu.state.mbarrier import MBarrier
from tmagen.emu.state.warpgroup import members_of
from tmagen.emu.tensormap import TensorMap
from tmagen.emu.tmem import Tmem

if TYPE_CHECKING:
    from tmagen.emu.compile import Program

_NOWHERE = 1 << 40
_POLL_LIMIT = 1_000_000


@dataclass
class Context:
    """What the CTAs of a launch share."""

    program: Program
    launch: Launch
    memory: GlobalMemory
    completion: str
    seed: int
    symbols: dict[str, int]
    maps: dict[int, TensorMap] = field(default_factory=dict)  # parameters, by address
    made: dict[bytes, TensorMap] = field(default_factory=dict)  # others, by their bytes
    listener: Any = None
    session: Any = None  # of a checked run
    sm_count: int = 148

    @property
    def shared_end(self) -> int:
        return self.program.dynamic_base + self.launch.dynamic_smem_bytes


class Cta:
    """A CTA from launch to exit. Generated code knows it as `C`."""

    def __init__(self, context: Context, ctaid: Dim3) -> None:
        program, launch = context.program, context.launch
        self.launch = context
        self.program = program
        self.ctaid = ctaid
        self.ntid = launch.block
        self.nctaid = launch.grid
        self.nthreads = launch.block[0] * launch.block[1] * launch.block[2]
        self.nwarps = -(-self.nthreads // 32)
        self.live_warps = self.nwarps
        # As if each CTA of a wave had an SM of its own, in order.
        self.nsmid = context.sm_count
        self.smid = (ctaid[0] + launch.grid[0] * (ctaid[1] + launch.grid[1] * ctaid[2])) % self.nsmid
        self.dynamic_smem_bytes = launch.dynamic_smem_bytes
        self.memory = context.memory
        self.params = launch.params
        self.symbols = context.symbols
        self.local_bytes = program.local_bytes
        self._shared(context.shared_end)
        self.mbarriers: dict[int, MBarrier] = {}
        self.low_barrier, self.high_barrier = _NOWHERE, -1
        self.named = [NamedBarrier() for _ in range(16)]
        self.tmem = Tmem()
        self.mma_queue: list[Any] = []  # of mma.Mma, or of wgmma.Op: no architecture has both
        self.mma_lines: list[int] = []
        self.bulk_waiters: list[Fragment] = []
        self.alloc_waiters: list[Fragment] = []
        self.polls = 0
        self.idle_polls = 0
        self.watch: Any = None  # of a checked run
        self.site = 0  # number of the instruction that runs, in a checked run
        self.frames = 0  # Python frames between generated code and what it calls
        self.clock = 0
        self.queue: deque[Warp] = deque()
        self.engine: Engine = make_engine(context.completion, self)
        self.eager = context.completion == "eager"
        self.warps = [self._warp(i) for i in range(self.nwarps)]
        self.members = members_of(self, self.nwarps)
        if context.session is not None:
            context.session.attach(self)

    def _shared(self, end: int) -> None:
        """Shared memory, poisoned. Its index is the address in the shared window."""
        size = -(-end // 16) * 16
        self.first_shared = RESERVED_SHARED_BYTES
        self.shared_end = end
        self.smem = np.full(size, 0xFF, np.uint8)
        raw = memoryview(self.smem)  # type: ignore[arg-type]
        self.cells = {1: raw, 2: raw.cast("H"), 4: raw.cast("I"), 8: raw.cast("Q")}
        self.arrays: dict[int, Any] = {
            n: self.smem.view(t)
            for n, t in ((1, np.uint8), (2, np.uint16), (4, np.uint32), (8, np.uint64), (16, np.complex128))
        }

    def _warp(self, index: int) -> Warp:
        x, y, _ = self.ntid
        threads = np.arange(index * 32, index * 32 + 32, dtype=np.uint32)
        mask = (1 << min(32, self.nthreads - index * 32)) - 1
        tid = (threads % x, threads // x % y if y > 1 else 0, threads // (x * y) if self.ntid[2] > 1 else 0)
        return Warp(self, index, mask, tid, self.program)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end. Raises located EmulatorErrors."""
        queue = self.queue
        for warp in self.warps:
            warp.queued = True
            queue.append(warp)
        warp = self.warps[0]
        eager, engine = self.eager, self.engine
        try:
            while True:
                # In rounds: whatever the order within one, no warp gets two turns more than another.
                while queue:
                    if not eager:
                        engine.order(queue)
                    for _ in range(len(queue)):
                        warp = queue.popleft()
                        warp.queued = False
                        if not eager:
                            engine.tick()
                        warp.run()
                        if self.mma_queue:
                            self.flush_mma()
                    if self.polls > 4 * self.nwarps:
                        self.idle()
                if not self.live_warps:
                    break
                if engine.step():
                    continue
                raise self._deadlock()
            if self.watch is not None:
                self.watch.ends()
            self._check_exit()
        except EmulatorError as error:
            raise self._locate(error, warp) from error.__cause__
        except Exception as error:
            # A hole of the emulator, not of the kernel: said like anything else that it cannot judge.
            unknown = NotJudged(f"the emulator failed with {type(error).__name__}: {error}")
            raise self._locate(unknown.with_traceback(error.__traceback__), warp) from error

    def idle(self) -> None:
        """Programs that look at barriers again and again need the outstanding work to go on."""
        self.idle_polls += self.polls
        self.polls = 0
        if self.engine.step():
            self.idle_polls = 0
        elif self.idle_polls > _POLL_LIMIT:
            ctas = self.nctaid[0] * self.nctaid[1] * self.nctaid[2]
            if self.program.uses_global_atomics and ctas > 1:
                raise NotJudged("CTAs that wait for each other through global memory: they run one after another here")
            raise Deadlock(
                f"threads look at memory again and again ({self.idle_polls:,} times) and nothing changes",
                detail=waiting_lines(self),
            )

    def tick(self, width: int) -> int:
        """Clocks only promise to go on."""
        self.clock += 64
        return self.clock & ((1 << width) - 1)

    def warp_ended(self, warp: Warp) -> None:
        self.live_warps -= 1
        recheck(self)

    def store_done(self) -> None:
        """A bulk store has completed: wake those whose stores are all done."""
        waiting = []
        for fragment in self.bulk_waiters:
            if all(operation.done for operation in fragment.wait.operations):
                fragment.wake()
            else:
                waiting.append(fragment)
        self.bulk_waiters = waiting

    def _check_exit(self) -> None:
        """What may not be left when a CTA has ended."""
        if any(operation.kind == STORE for operation in self.engine.pending):
            # Nobody waited for these stores to read their source: the next CTA may have the memory by now.
            self.smem[:] = 0xFF
            self.engine.drain_stores()
        outstanding = [operation for operation in self.engine.pending if operation.kind not in (TENSOR, ASYNC)]
        if outstanding:
            error = Fault(
                f"the CTA exits with {len(outstanding)} asynchronous copies to its shared memory outstanding",
                rule="MB-09",
            )
            self.blame(error, outstanding[0].line)
            raise error
        while self.engine.step():
            pass
        if self.mma_queue:
            self.flush_mma()
        for barrier in self.mbarriers.values():
            if barrier.tx:
                raise Fault(
                    f"the CTA exits while tx bytes are outstanding: {barrier} at {self.place(barrier.address)}",
                    rule="MB-09",
                )
        self.tmem.check_exit()
        for member in self.members[::4]:
            member.group.check_exit()

    # --- tensor work --------------------------------------------------------------------------------------------------

    def start_mma(self, fragment: Fragment, lane: int, op: mma.Mma) -> None:
        """Issue an MMA. Those that follow one another run together when somebody needs the result."""
        line = sys._getframe(2 + self.frames).f_lineno
        if self.eager:
            self.mma_queue.append(op)
            self.mma_lines.append(line)
            return

        def run() -> None:
            self.mma_queue.append(op)
            self.mma_lines.append(line)

        self.engine.issue(fragment, lane, TENSOR, run)

    def flush_mma(self) -> None:
        ops, lines = self.mma_queue, self.mma_lines
        self.mma_queue, self.mma_lines = [], []
        if ops[0].__class__ is wgmma.Op:
            wgmma.execute(ops, self.smem)
            return
        try:
            mma.execute_chain(ops, self.smem, self.tmem)
        except EmulatorError as error:
            # Which one? The state no longer matters: run them one by one until it shows.
            for op, line in zip(ops, lines, strict=True):
                try:
                    mma.execute(op, self.smem, self.tmem)
                except EmulatorError:
                    self.blame(error, line)
                    break
            raise

    # --- addresses ----------------------------------------------------------------------------------------------------

    def own(self, address: int) -> int:
        """An address of the shared::cluster window as one of this CTA. Rank 0 is the only one there is."""
        if address >> 24:
            raise Fault(f"shared::cluster address {address:#x} names a CTA that the cluster does not have")
        return address

    def place(self, address: int) -> str:
        """A shared address in words."""
        return place_in_shared(address, self.program.dynamic_base, self.program.entry, self.shared_end)

    def check_shared(self, address: int, nbytes: int, what: str, align: int = 1) -> None:
        if address % align or not self.first_shared <= address <= self.shared_end - nbytes:
            self.bad_shared(address, nbytes, what)

    def bad_shared(self, address: int, nbytes: int, what: str) -> None:
        if self.first_shared <= address <= self.shared_end - nbytes:
            raise Fault(f"shared {what} of {nbytes} bytes at {address:#x}, which is not aligned to its size")
        raise Fault(
            f"shared {what} of {nbytes} bytes at {address:#x} is outside the CTA's shared memory, "
            f"{self.first_shared:#x} to {self.shared_end:#x}"
        )

    def check_overwrite(self, address: int, nbytes: int, what: str) -> None:
        """Raises Fault where a write would change the bytes of a live mbarrier."""
        for at in self.mbarriers:
            if at < address + nbytes and address < at + 8:
                raise Fault(
                    f"{what} of {nbytes:,} bytes at {self.place(address)} overwrites "
                    f"the live mbarrier at {self.place(at)}",
                    rule="MB-02",
                )

    def add_barrier(self, barrier: MBarrier) -> None:
        for at in (barrier.address - 4, barrier.address + 4):
            if at in self.mbarriers:
                raise Fault(
                    f"mbarrier.init at {self.place(barrier.address)} overlaps the live mbarrier at {self.place(at)}",
                    rule="MB-02",
                )
        self.mbarriers[barrier.address] = barrier
        self._barrier_range()

    def remove_barrier(self, barrier: MBarrier) -> None:
        del self.mbarriers[barrier.address]
        self._barrier_range()

    def _barrier_range(self) -> None:
        self.low_barrier = min(self.mbarriers, default=_NOWHERE)
        self.high_barrier = max(self.mbarriers, default=-9) + 8

    def tensor_map(self, address: int) -> TensorMap:
        """The map at a generic address: a kernel parameter, or global memory."""
        maps = self.launch.maps
        found = maps.get(address)
        if found is not None:
            return found
        if address % tensormap.ALIGNMENT:
            raise Fault(f"tensor map at {address:#x}, which is not a multiple of {tensormap.ALIGNMENT}", rule="TM-09")
        offset = address - PARAM_WINDOW
        if 0 <= offset < 1 << 32:
            raw = bytes(self.params[offset : offset + tensormap.NBYTES])
            if len(raw) < tensormap.NBYTES:
                raise Fault(
                    f"tensor map at parameter offset {offset:#x} reaches past the parameters' {len(self.params)} bytes",
                    rule="TM-09",
                )
            # Parameters do not change during a launch; maps in global memory may.
            found = maps[address] = TensorMap.decode(raw)
            return found
        if SHARED_WINDOW <= address < LOCAL_WINDOW + (1 << 32):
            raise Fault(
                "tensor map in shared or local memory: it must be a parameter, or in global or constant memory",
                rule="TM-09",
            )
        raw = self.memory.view(address, tensormap.NBYTES).tobytes()
        found = self.launch.made.get(raw)
        if found is None:
            found = self.launch.made[raw] = TensorMap.decode(raw)
        return found

    # --- errors -------------------------------------------------------------------------------------------------------

    def blame(self, error: EmulatorError, line: int) -> None:
        """Say that the instruction on a line of generated code issued what failed."""
        instruction = self.program.instruction_at(line)
        if instruction is not None:
            source = instruction.source
            error.located(
                instruction.line, (source.file, source.line) if source else None, instruction.text, self.title
            )

    @property
    def title(self) -> str:
        return f"CTA ({', '.join(map(str, self.ctaid))})"

    def _locate(self, error: EmulatorError, warp: Warp) -> EmulatorError:
        """Fill in which instruction raised, from the traceback through generated code."""
        trace, line = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.program.filename:
                line = trace.tb_lineno
            trace = trace.tb_next
        if line is not None and error.ptx_line is None:
            self.blame(error, line)
            error.where = f"{self.title} warp {warp.index}"
        if error.where is None:
            error.where = self.title
        return error

    def _deadlock(self) -> Deadlock:
        lines = waiting_lines(self)
        stuck = sum(1 for warp in self.warps for _ in warp.fragments)
        return Deadlock(
            f"{stuck} group{'s' if stuck != 1 else ''} of threads wait and nothing is left that could wake them",
            where=self.title,
            detail=lines,
        )

    def listen(self, kind: str, fragment: Fragment, *arguments: Any) -> None:
        """An event for the listeners; only code compiled for listening calls this."""
        self.launch.listener(kind, self, fragment, arguments)
