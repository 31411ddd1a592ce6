# SPDX-License-Identifier: Apache-2.0
"""Which of the warps that can run have a turn. A turn ends where the warp waits, and where a wait of it is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from tmagen.emu.state.fragments import Warp

_VAIN = 2  # rounds in which everyone looks at memory and goes on to look again


class Schedule(ABC):
    """The warps of one cluster. In rounds: `turns` of the warps at the front of the queue run, each once."""

    holds_back = False
    """Whether a warp that can run may have no turn for many rounds."""

    def __init__(self, cluster: Any, seed: int) -> None:
        self.cluster = cluster

    @abstractmethod
    def turns(self, queue: deque[Warp]) -> int:
        """A round begins: put the warps in order; how many of them have a turn."""

    def ends(self, turns: int, looks: int) -> None:  # noqa: B027 (most have nothing to learn)
        """A round of `turns` has ended, with `looks` at memory that may have been in vain."""


class Backwards(Schedule):
    """Each in turn, those who came last first."""

    def turns(self, queue: deque[Warp]) -> int:
        queue.reverse()
        return len(queue)


class Shuffled(Schedule):
    """Each in turn, in random order. Goes with an engine that draws."""

    def turns(self, queue: deque[Warp]) -> int:
        warps = list(queue)
        self.cluster.ctas[0].engine.random.shuffle(warps)  # the draw that completion is by
        queue.clear()
        queue.extend(warps)
        return len(queue)


class Favouring(Schedule):
    """Some run as long as they can; the others when none of those can go on. Those who only look at memory, again and
    again, need the others, or what is under way, to go on: then everyone has a turn.
    """

    holds_back = True

    def __init__(self, cluster: Any, seed: int) -> None:
        super().__init__(cluster, seed)
        self._vain = 0

    @abstractmethod
    def place(self, warp: Warp) -> int:
        """Lower runs first."""

    def turns(self, queue: deque[Warp]) -> int:
        places = sorted([(self.place(warp), number, warp) for number, warp in enumerate(queue)], key=_order)
        queue.clear()
        queue.extend(warp for _, _, warp in places)
        if self._vain >= _VAIN:
            self._vain = 0
            if not self.cluster.step():
                return len(queue)
        best = places[0][0]
        return sum(1 for place, _, _ in places if place == best)

    def ends(self, turns: int, looks: int) -> None:
        self._vain = self._vain + 1 if turns and (looks >= turns or looks < 0) else 0


def _order(item: tuple[int, int, Warp]) -> tuple[int, int]:
    return item[:2]


class ProducerFirst(Favouring):
    """Warps that issue loads, then those that issue tensor work, then the others."""

    def place(self, warp: Warp) -> int:
        return warp.role


class ConsumerFirst(Favouring):
    """The other way round."""

    def place(self, warp: Warp) -> int:
        return -warp.role
