# SPDX-License-Identifier: Apache-2.0
"""One CTA: its shared memory, barriers, tensor memory and warps."""

from __future__ import annotations

import sys
from collections import deque
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from tmagen.emu import mma, mma_pair, tensormap, wgmma
from tmagen.emu.compile_emit import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from tmagen.emu.compile_layout import RESERVED_SHARED_BYTES
from tmagen.emu.errors import EmulatorError, Fault
from tmagen.emu.launch import Dim3
from tmagen.emu.report import calls_text, place_in_shared
from tmagen.emu.state.barriers import NamedBarrier, recheck
from tmagen.emu.state.context import Context
from tmagen.emu.state.engine import ASYNC, TENSOR, Engine
from tmagen.emu.state.fragments import Fragment, Warp
from tmagen.emu.state.mbarrier import MBarrier
from tmagen.emu.state.registers import Registers
from tmagen.emu.state.transfer import StartMma
from tmagen.emu.state.warpgroup import members_of
from tmagen.emu.tensormap import TensorMap
from tmagen.emu.tmem import Tmem

_NOWHERE = 1 << 40


class Cta:
    """A CTA from launch to exit. Generated code knows it as `C`."""

    def __init__(self, context: Context, ctaid: Dim3, cluster: Any, rank: int, within: Dim3) -> None:
        program, launch = context.program, context.launch
        self.cluster = cluster
        self.observer = cluster.observer
        self.rank = rank
        self.base = rank << 24  # of its addresses in the shared window
        self.cluster_ctaid = within
        self.cluster_nctaid = launch.cluster
        self.cluster_nctarank = cluster.size
        self.is_explicit_cluster = cluster.size > 1 or "explicitcluster" in program.entry.directives
        self.clusterid: Dim3 = cluster.id
        self.nclusterid: Dim3 = cluster.count
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
        # In units of 128 bytes, without what the system keeps (PTX ISA, "%total_smem_size").
        self.total_smem_bytes = -(-(context.shared_end - RESERVED_SHARED_BYTES) // 128) * 128
        self.memory = context.memory
        self.params = launch.params
        self.symbols = context.symbols
        self.local_bytes = program.local_bytes
        self._shared(context.shared_end)
        self.mbarriers: dict[int, MBarrier] = {}
        self.low_barrier, self.high_barrier = _NOWHERE, -1
        self.named = [NamedBarrier() for _ in range(16)]
        start = context.policy.tensor_memory(context.seed, cluster.number) if context.shares_sm else None
        self.tmem = Tmem(start, context.fill)
        self.mma_queue: list[Any] = []  # of mma.Mma, or of wgmma.Op: no architecture has both
        self.mma_lines: list[int] = []
        self.bulk_waiters: list[Fragment] = []
        self.alloc_waiters: list[Fragment] = []
        self.alloc_lines: dict[int, int] = {}  # of generated code, by the first column that it got
        self.registers: Registers | None = None  # from the first setmaxnreg on
        self.polls = 0
        self.watch: Any = None  # of a checked run
        self.site = 0  # number of the instruction that runs, in a checked run
        self.frames = 0  # Python frames between generated code and what it calls
        self.clock = 0
        self.queue: deque[Warp] = cluster.queue
        policy = context.policy
        self.engine: Engine = policy.completion(self)
        self.eager = policy.completion is Engine
        self.refusals = None if policy.waits is None else policy.waits(self, context.seed)
        self.warps = [self._warp(i) for i in range(self.nwarps)]
        self.members = members_of(self, self.nwarps)
        if context.session is not None:
            context.session.attach(self)

    def _shared(self, end: int) -> None:
        """Shared memory, poisoned. Its index is the address in the shared window."""
        size = -(-end // 16) * 16
        self.first_shared = RESERVED_SHARED_BYTES
        self.shared_end = end
        self.smem = np.full(size, self.launch.fill, np.uint8)
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
        warp: Warp = self.cluster.warp_class(self, index, mask, tid, self.program)
        return warp

    # --- running ------------------------------------------------------------------------------------------------------

    def idle(self) -> None:
        """Programs that look at barriers again and again need the outstanding work to go on."""
        self.cluster.idle()

    def tick(self, width: int) -> int:
        """Clocks only promise to go on; those of a timed run tell its cycles."""
        if self.observer is not None and self.observer.timed:
            return int(self.observer.now) & ((1 << width) - 1)
        self.clock += 64
        return self.clock & ((1 << width) - 1)

    def warp_ended(self, warp: Warp) -> None:
        self.live_warps -= 1
        recheck(self)
        self.cluster.barrier.recheck()

    def store_done(self) -> None:
        """A store or a copy has completed, or its source has been read: wake those who wait for nothing else."""
        waiting = []
        for fragment in self.bulk_waiters:
            if fragment.wait.is_over():
                fragment.wake()
            else:
                waiting.append(fragment)
        self.bulk_waiters = waiting

    def check_exit(self) -> None:
        """What may not be left when a CTA has ended."""
        # Shared memory outlives the CTA until stores that nobody waited for have read it: nothing says so, but shipping
        # kernels exit with their last store under way.
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
        try:
            self.tmem.check_exit()
        except Fault as error:
            self.blame(error, self.alloc_lines[min(self.tmem.allocations)])
            raise
        for member in self.members[::4]:
            member.group.check_exit()
        if self.registers is not None:
            self.registers.check_exit()

    # --- tensor work --------------------------------------------------------------------------------------------------

    def start_mma(self, fragment: Fragment, lane: int, op: Any) -> None:
        """Issue an MMA. Those that follow one another run together when somebody needs the result."""
        line = sys._getframe(2 + self.frames).f_lineno
        if self.eager:
            self.mma_queue.append(op)
            self.mma_lines.append(line)
            if self.observer is not None:
                self.observer.at_once(self, fragment, lane, TENSOR, None)
            return

        self.engine.issue(fragment, lane, TENSOR, StartMma(self, op, line))

    def flush_mma(self) -> None:
        ops, lines = self.mma_queue.copy(), self.mma_lines.copy()
        # In place: the CTAs of a pair share the lists.
        self.mma_queue.clear()
        self.mma_lines.clear()
        if ops[0].__class__ is wgmma.Op:
            wgmma.execute(ops, self.smem, hardware_sums=self.launch.hardware_sums)
            return
        if ops[0].__class__ is mma_pair.PairMma:
            self._flush_pairs(ops, lines)
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

    def _flush_pairs(self, ops: list[Any], lines: list[int]) -> None:
        pair = self.pair
        smems, tmems = (pair[0].smem, pair[1].smem), (pair[0].tmem, pair[1].tmem)
        for start, end in mma_pair.chains(ops):
            try:
                mma_pair.execute(ops[start:end], smems, tmems)
            except EmulatorError as error:
                self.blame(error, lines[start])
                raise

    @property
    def pair(self) -> tuple[Cta, Cta]:
        """The CTAs of even and odd rank that work as one with cta_group::2 (PTX ISA, "CTA Pair"). Raises Fault where
        the cluster has no such pair or one of them has exited.
        """
        if self.cluster.size % 2:
            raise Fault(f"cta_group::2 in a cluster of {self.cluster.size} CTAs: there are no pairs")
        even, odd = self.cluster.ctas[self.rank & ~1 : (self.rank & ~1) + 2]
        for cta in (even, odd):
            if cta is not self:
                self.cluster.peer(cta.rank)
        return even, odd

    # --- addresses ----------------------------------------------------------------------------------------------------

    def own(self, address: int) -> int:
        """An address of the shared window that has to be this CTA's, counted from the start of its memory."""
        if address >> 24 != self.rank:
            self.at(address)
            raise Fault(
                f"shared address {address:#x} is in another CTA of the cluster; one of this CTA is needed", rule="TM-07"
            )
        return address & 0xFFFFFF

    def at(self, address: int) -> tuple[Cta, int]:
        """The CTA that an address of the shared::cluster window is in, and the address counted from its start."""
        rank = address >> 24
        if rank == self.rank:
            return self, address & 0xFFFFFF
        if rank >= self.cluster.size:
            self.no_cta(rank)
        return self.cluster.peer(rank), address & 0xFFFFFF

    def no_cta(self, rank: int) -> NoReturn:
        """Raises Fault for an address of a CTA that there is not."""
        raise Fault(f"CTA rank {rank} in a cluster of {self.cluster.size}: there is no such CTA", rule="CB-07")

    def place(self, address: int) -> str:
        """A shared address in words."""
        return place_in_shared(address, self.program.dynamic_base, self.program.entry, self.shared_end)

    def check_shared(self, address: int, nbytes: int, what: str, align: int = 1) -> None:
        if address % align or not self.first_shared <= address <= self.shared_end - nbytes:
            self.bad_shared(address, nbytes, what)

    def bad_shared(self, address: int, nbytes: int, what: str) -> None:
        if self.first_shared <= address <= self.shared_end - nbytes:
            raise Fault(f"shared {what} of {nbytes} bytes at {address:#x}, which is not aligned to its size")
        rank, within = divmod(address + self.base, 1 << 24)
        if rank >= self.cluster.size and self.first_shared <= within <= self.shared_end - nbytes:
            self.no_cta(rank)
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

    def check_read(self, address: int, nbytes: int, what: str) -> None:
        """Raises Fault where a read would see the bytes of a live mbarrier, which mean nothing to a program."""
        for at in self.mbarriers:
            if at < address + nbytes and address < at + 8:
                raise Fault(
                    f"{what} of {nbytes:,} bytes at {self.place(address)} reads the live mbarrier at {self.place(at)}: "
                    "only mbarrier operations may touch it",
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
            place, calls = (source.place, calls_text(source)) if source else (None, "")
            error.located(instruction.line, place, instruction.text, self.title, calls)

    def line(self) -> int:
        """The line of generated code that called; 0 if none did."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.program.filename:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0

    @property
    def title(self) -> str:
        return f"CTA ({', '.join(map(str, self.ctaid))})"

    def locate(self, error: EmulatorError, warp: Warp) -> EmulatorError:
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

    def listen(self, kind: str, fragment: Fragment, *arguments: Any) -> None:
        """An event for the listeners; only code compiled for listening calls this."""
        self.launch.listener(kind, self, fragment, arguments)
