# SPDX-License-Identifier: Apache-2.0
"""A cluster: CTAs that run together, and the loop that runs their warps (PTX ISA, "Cluster of Cooperative Thread
Arrays"). A launch without clusters has clusters of one CTA.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from tmagen.emu.errors import Deadlock, EmulatorError, Fault, NotJudged
from tmagen.emu.launch import Dim3
from tmagen.emu.report import waiting_at, waiting_lines
from tmagen.emu.state.cluster_barrier import ClusterBarrier
from tmagen.emu.state.context import Context
from tmagen.emu.state.cta import Cta
from tmagen.emu.state.endless import FIRST_ROUND, Watchdog
from tmagen.emu.state.fragments import WAIT, Warp

_POLL_LIMIT = 1_000_000


class Cluster:
    """The CTAs of one cluster, by rank, from launch to exit."""

    warp_class: ClassVar[type[Warp]] = Warp

    def __init__(self, context: Context, number: int) -> None:
        launch = context.launch
        shape, grid = launch.cluster, launch.grid
        self.count: Dim3 = (grid[0] // shape[0], grid[1] // shape[1], grid[2] // shape[2])
        self.shape = shape
        self.number = number
        self.id: Dim3 = coordinates(number, self.count)
        self.size = shape[0] * shape[1] * shape[2]
        self.queue: deque[Warp] = deque()
        self.barrier = ClusterBarrier(self)
        self.context = context
        self.refused: set[Warp] = set()  # those that have seen a request for a cluster fail
        self.responses: set[int] = set()  # to requests for clusters
        self.idle_polls = 0
        policy = context.policy
        self.schedule = None if policy.schedule is None else policy.schedule(self, context.seed)
        self._watchdog: Watchdog | None = None
        self.watch_from = FIRST_ROUND
        # What is traced or timed is told what happens.
        self.observer: Any = None if context.observation is None else context.observation.of(self)
        self.ctas: list[Cta] = []
        for rank in range(self.size):
            within = coordinates(rank, shape)
            ctaid = tuple(c * n + w for c, n, w in zip(self.id, shape, within, strict=True))
            self.ctas.append(Cta(context, ctaid, self, rank, within))  # type: ignore[arg-type]
        if context.program.pairs:
            # MMAs of a pair see both CTAs' memory, so whoever needs it up to date finds the same queue.
            for even, odd in zip(self.ctas[::2], self.ctas[1::2], strict=False):
                odd.mma_queue, odd.mma_lines = even.mma_queue, even.mma_lines

    def first_ctaid(self, number: int) -> Dim3:
        """The place in the grid of the first CTA of cluster `number`."""
        x, y, z = coordinates(number, self.count)
        return x * self.shape[0], y * self.shape[1], z * self.shape[2]

    def peer(self, rank: int) -> Cta:
        """The CTA of a rank. Raises Fault where there is none, or none any more."""
        if not 0 <= rank < self.size:
            self.ctas[0].no_cta(rank)
        cta = self.ctas[rank]
        if not cta.live_warps:
            raise Fault(f"the shared memory of CTA rank {rank} is used after that CTA has exited", rule="CB-06")
        return cta

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end. Raises located EmulatorErrors."""
        queue, ctas = self.queue, self.ctas
        for cta in ctas:
            for warp in cta.warps:
                warp.queued = True
                queue.append(warp)
        self.running = ctas[0].warps[0]
        try:
            self.run_warps()
            for cta in ctas:
                if cta.watch is not None:
                    cta.watch.ends()
            for cta in ctas:
                cta.check_exit()
        except EmulatorError as error:
            warp = self.running
            raise warp.cta.locate(error, warp) from error.__cause__
        except Exception as error:
            # A hole of the emulator, not of the kernel: said like anything else that it cannot judge.
            warp = self.running
            unknown = NotJudged(f"the emulator failed with {type(error).__name__}: {error}")
            raise warp.cta.locate(unknown.with_traceback(error.__traceback__), warp) from error

    def run_warps(self) -> None:
        """Run the warps until all have ended."""
        queue, ctas = self.queue, self.ctas
        eager, schedule = ctas[0].eager, self.schedule
        limit = 4 * ctas[0].nwarps
        rounds = 0
        while True:
            # In rounds: whatever the order within one, no warp gets two turns more than another.
            while queue:
                rounds += 1
                if rounds >= self.watch_from:
                    self.look_for_endless(rounds)
                turns, before = len(queue), 0
                if schedule is not None:
                    turns, before = schedule.turns(queue), self.looks
                for _ in range(turns):
                    self.running = warp = queue.popleft()
                    warp.queued = False
                    cta = warp.cta
                    if not eager:
                        cta.engine.tick()
                    warp.run()
                    if cta.mma_queue:
                        cta.flush_mma()
                if schedule is not None:
                    schedule.ends(turns, self.looks - before)
                for cta in ctas:
                    if cta.polls > limit:
                        self.idle()
                        break
            for cta in ctas:
                if cta.live_warps:
                    break
            else:
                return
            if not self.step():
                raise self.deadlock()

    def look_for_endless(self, rounds: int) -> None:
        """This takes long: is it endless?"""
        if self._watchdog is None:
            self._watchdog = Watchdog(self, self.context.max_rounds)
            self.watch_from = 0
        self._watchdog.look(rounds)

    def step(self) -> bool:
        """Nobody can run: complete an asynchronous operation. False where none is outstanding."""
        engines = [cta.engine for cta in self.ctas if cta.engine.pending]
        if not engines:
            return False
        return (engines[0] if len(engines) == 1 else engines[0].foremost(engines)).step()

    def idle(self) -> None:
        """Programs that look at barriers again and again need the outstanding work to go on."""
        for cta in self.ctas:
            self.idle_polls += cta.polls
            cta.polls = 0
        if self.step():
            self.idle_polls = 0
        elif self.idle_polls > _POLL_LIMIT:
            raise self.poll_deadlock()

    @property
    def looks(self) -> int:
        """How often threads have looked at memory since the cluster was last idle."""
        return sum(cta.polls for cta in self.ctas)

    @property
    def looks_in_vain(self) -> bool:
        """Whether threads have looked at memory since something last changed."""
        return self.idle_polls > 0 or any(cta.polls for cta in self.ctas)

    def poll_deadlock(self) -> EmulatorError:
        """Threads look at memory, and what they look for never comes."""
        context = self.context
        if context.program.uses_global_atomics and self.count != (1, 1, 1):
            return NotJudged("CTAs that wait for each other through global memory: they run one after another here")
        return Deadlock(
            "threads look at memory again and again and nothing changes",
            detail=[line for cta in self.ctas for line in waiting_lines(cta)],
        )

    def deadlock(self) -> Deadlock:
        """Nobody can run, and nothing is left that could change that."""
        lines = [line for cta in self.ctas for line in waiting_lines(cta)]
        stuck = sum(1 for line in lines if not line.startswith(" "))  # a group for each place and reason
        error = Deadlock(
            f"{stuck} group{'s' if stuck != 1 else ''} of threads wait{'s' if stuck == 1 else ''} and nothing is left "
            "that could wake them",
            where=next(cta for cta in self.ctas if cta.live_warps).title,
            detail=lines,
            rule=_rule(self.ctas),
        )
        error.waits = tuple(dict.fromkeys(place for cta in self.ctas for place in waiting_at(cta)))
        return error


def _rule(ctas: list[Cta]) -> str | None:
    """The rule that a deadlock is about, where one of those who wait can tell."""
    for cta in ctas:
        for fragment in (fragment for warp in cta.warps for fragment in warp.fragments if fragment.state == WAIT):
            rule_of = getattr(fragment.wait, "rule_of", None)
            if rule_of is not None and (rule := rule_of(cta)) is not None:
                return str(rule)
    return None


def coordinates(index: int, extents: Dim3) -> Dim3:
    """The place of number `index` in a grid, x fastest."""
    return index % extents[0], index // extents[0] % extents[1], index // (extents[0] * extents[1])
