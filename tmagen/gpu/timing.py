# SPDX-License-Identifier: Apache-2.0
"""How long launches take, by CUDA events: contenders in turn, so that a clock that changes meets them all."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tmagen.gpu.device import Event, Gpu
from tmagen.gpu.driver import Graph
from tmagen.gpu.kernels import Launch

FLUSHED = "flushed"
GRAPH = "graph"

_GRAPH_LAUNCHES = 20
_L2_TIMES = 4  # what is written to flush it; the host queues the next launch meanwhile
_WARM_UP_MS = 25.0
_LEAST, _MOST = 10, 400  # samples of a round
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Timing:
    """What one contender took: the median of each round, milliseconds of one launch."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """The slowest round over the fastest, less one."""
        return max(self.rounds) / min(self.rounds) - 1

    def ratio_to(self, other: Timing) -> float:
        """How fast this is against `other`: the median of the rounds, each compared within itself."""
        return statistics.median(b / a for a, b in zip(self.rounds, other.rounds, strict=True))


Sampler = Callable[[int], list[float]]
"""So many samples, milliseconds of one launch."""


def measure(
    gpu: Gpu, contenders: Mapping[str, Launch], *, method: str, rounds: int, round_ms: float
) -> dict[str, Timing]:
    """Times every contender in each of `rounds` rounds of about `round_ms` each, in an order that rotates.

    FLUSHED empties the L2 before each launch and times launches one by one. GRAPH times a graph of 20 launches, whose
    matrices stay in the L2: what is left of a small kernel without the cost of launching it.
    """
    graphs: list[Graph] = []
    scratch_bytes = _L2_TIMES * gpu.info.l2_bytes
    scratch = gpu.allocate(scratch_bytes)
    try:
        samplers: dict[str, Sampler] = {}
        for name, launch in contenders.items():
            launch()  # whatever is loaded or allocated at first use is, before anything is captured
            gpu.wait(_PATIENCE_SECONDS)
            if method == GRAPH:
                graph = Graph.capture(gpu.stream, _many(launch))
                graphs.append(graph)
                samplers[name] = _graph_sampler(gpu, graph)
            else:
                samplers[name] = _flushed_sampler(gpu, launch, scratch, scratch_bytes)
        counts = {name: _warm_up(sampler, round_ms) for name, sampler in samplers.items()}
        taken: dict[str, list[float]] = {name: [] for name in contenders}
        for order in _orders(list(contenders), rounds):
            for name in order:
                taken[name].append(statistics.median(samplers[name](counts[name])))
        return {name: Timing(tuple(times)) for name, times in taken.items()}
    finally:
        for graph in graphs:
            graph.close()
        gpu.free(scratch)


def bandwidth(gpu: Gpu, *, nbytes: int = 1 << 30, samples: int = 10) -> float:
    """Bytes a second that a copy on the device moves, read and written both counted."""
    source, target = gpu.allocate(nbytes), gpu.allocate(nbytes)
    try:
        gpu.fill(source, 1, nbytes)
        gpu.copy(target, source, nbytes)
        times = _timed(gpu, [lambda: gpu.copy(target, source, nbytes)] * samples, before=lambda: None)
        return 2 * nbytes / (statistics.median(times) * 1e-3)
    finally:
        gpu.free(source)
        gpu.free(target)


def _many(launch: Launch) -> Launch:
    def work() -> None:
        for _ in range(_GRAPH_LAUNCHES):
            launch()

    return work


def _orders(names: Sequence[str], rounds: int) -> list[list[str]]:
    """Each round starts with another contender."""
    shifts = [index % len(names) for index in range(rounds)]
    return [[*names[shift:], *names[:shift]] for shift in shifts]


def _warm_up(sampler: Sampler, round_ms: float) -> int:
    """Runs for a while; returns how many samples fill a round."""
    once = max(1e-4, statistics.median(sampler(3)))
    sampler(min(_MOST, max(1, round(_WARM_UP_MS / once))))
    return min(_MOST, max(_LEAST, round(round_ms / once)))


def _flushed_sampler(gpu: Gpu, launch: Launch, scratch: int, scratch_bytes: int) -> Sampler:
    def sample(count: int) -> list[float]:
        return _timed(gpu, [launch] * count, before=lambda: gpu.fill(scratch, 0, scratch_bytes))

    return sample


def _graph_sampler(gpu: Gpu, graph: Graph) -> Sampler:
    def sample(count: int) -> list[float]:
        launches = [lambda: graph.launch(gpu.stream)] * max(_LEAST, count // _GRAPH_LAUNCHES)
        return [time / _GRAPH_LAUNCHES for time in _timed(gpu, launches, before=lambda: None)]

    return sample


def _timed(gpu: Gpu, launches: Sequence[Launch], *, before: Launch) -> list[float]:
    """Milliseconds of each launch. Nothing waits between them, so that the GPU is never idle for want of work."""
    pairs: list[tuple[Event, Event]] = []
    for launch in launches:
        start, end = gpu.event(), gpu.event()
        before()
        gpu.record(start)
        launch()
        gpu.record(end)
        pairs.append((start, end))
    gpu.wait(_PATIENCE_SECONDS)
    return [end.time_since(start) for start, end in pairs]
