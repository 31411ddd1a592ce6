# SPDX-License-Identifier: Apache-2.0
"""The loop that runs warps and completes operations in the order of their time."""

from __future__ import annotations

from itertools import repeat

from tmagen.emu.state.cluster import Cluster
from tmagen.emu.state.convergence import resumed
from tmagen.emu.state.fragments import CONVERGE, FAR, LONG_TURN, LONG_WAY, RUN, Warp

NEVER = 1 << 62


class TimedWarp(Warp):
    """A warp that stops when its clock has passed what else happens."""

    __slots__ = ("horizon",)
    horizon: int

    @property
    def clock(self) -> int:
        """The cycle at which it goes on."""
        clocks = [f.clock for f in self.fragments if f.state == RUN]
        return min(clocks) if clocks else max((f.clock for f in self.fragments), default=0)

    def run(self) -> None:
        """Run until all fragments wait, or the others come first."""
        cta, blocks, fragments = self.cta, self.program.blocks, self.fragments
        observer, horizon = cta.observer, self.horizon
        for _ in repeat(None, LONG_WAY):
            if len(fragments) == 1:
                fragment = fragments[0]
                if fragment.state == CONVERGE and not self._released(fragment):
                    return
                if fragment.state:
                    return
                limit, stops = FAR, ()
            else:
                chosen = self._choose()
                if chosen is None:
                    return
                fragment, limit, stops = chosen  # type: ignore[assignment]
            pc = fragment.pc
            for _ in repeat(None, LONG_TURN):
                fragment.pc = pc
                observer.now = fragment.clock
                pc = blocks[pc](fragment, cta)
                if not 0 <= pc < limit or pc in stops or fragment.clock > horizon:
                    break
            else:
                fragment.pc = pc
                return self._give_way()
            if pc >= 0:
                fragment.pc = pc
            elif (number := resumed(pc)) is not None:
                fragment.pc = number
                if cta.polls:
                    return self.requeue()
            elif not fragments:
                return
            if fragment.clock > horizon:
                return self.requeue()
        self._give_way()

    def requeue(self) -> None:
        """Go on later."""
        if not self.queued:
            self.queued = True
            self.queue.append(self)


class TimedCluster(Cluster):
    """A cluster in which the earliest of all that can happen comes next."""

    warp_class = TimedWarp

    def run_warps(self) -> None:
        queue, ctas = self.queue, self.ctas
        limit = 4 * ctas[0].nwarps
        rounds = 0
        while True:
            event = min((operation.ends for cta in ctas for operation in cta.engine.pending), default=NEVER)
            if not queue:
                if all(not cta.live_warps for cta in ctas):
                    return
                if not self.step():
                    raise self.deadlock()
                continue
            order = sorted(queue, key=lambda warp: (warp.clock, warp.cta.rank, warp.index))  # type: ignore[attr-defined]
            warp = order[0]
            assert isinstance(warp, TimedWarp)
            if event < warp.clock:
                self.step()
                continue
            rounds += 1
            if rounds >= self.watch_from:
                self.look_for_endless(rounds)
            queue.remove(warp)
            warp.queued = False
            self.running = warp
            warp.horizon = min(event, order[1].clock if len(order) > 1 else NEVER)  # type: ignore[attr-defined]
            warp.run()
            if warp.cta.mma_queue:
                warp.cta.flush_mma()
            for cta in ctas:
                if cta.polls > limit:
                    self.idle()
                    break
