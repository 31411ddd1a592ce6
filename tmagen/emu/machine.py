# SPDX-License-Identifier: Apache-2.0
"""Running a launch: CTAs one after another, or split over forked processes that write one shared mapping."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tmagen.emu.checks.finding import hints_apart, merged
from tmagen.emu.checks.session import Session
from tmagen.emu.compile import Program, compile_entry
from tmagen.emu.errors import EmulatorError, NotJudged
from tmagen.emu.launch import Launch, RunResult
from tmagen.emu.machine_limits import check_launch, cluster_size, target_of
from tmagen.emu.memory import GlobalMemory
from tmagen.emu.module import Module
from tmagen.emu.observe.trace import Observation, Trace
from tmagen.emu.policy import policy_of
from tmagen.emu.policy.choices import at_random
from tmagen.emu.policy.poison import pattern
from tmagen.emu.state.cluster import Cluster
from tmagen.emu.state.context import Context
from tmagen.emu.state.endless import MAX_ROUNDS
from tmagen.emu.timing.cluster import TimedCluster
from tmagen.emu.timing.engine import Timed
from tmagen.emu.timing.latency import table_for

Progress = Callable[[int, int], None]
Listener = Callable[[str, Any, Any, tuple[Any, ...]], None]
_SM_COUNT = {"sm_90": 132, "sm_100": 148}


def run(
    module: Module,
    launch: Launch,
    memory: GlobalMemory,
    *,
    completion: str = "eager",
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    listener: Listener | None = None,
    checks: bool = False,
    strict: bool = False,
    any_leader: bool = False,
    max_rounds: int = MAX_ROUNDS,
    hardware_sums: bool = False,
    trace: Trace | None = None,
) -> RunResult:
    """Execute a launch to its end; results are in `memory`.

    `completion` is the execution policy, by its name (see `policy/catalog.py`): when asynchronous work takes effect,
    and what else PTX leaves open; `seed` starts what it draws, or names whom it holds back. `jobs` processes share the
    CTAs, except where CTAs may talk to each other through global memory. `progress(done, total)` counts CTAs. A
    `listener` is called as `listener(kind, cta, fragment, operands)` for each memory access, barrier, fence and
    asynchronous operation, before its effect; it hears one process, so it needs `jobs` = 1. So does a `trace`, which
    takes down what the first CTAs do, and the one in which the run ends early; it has that when this returns or raises.
    `timed` completion gives the cycles of a CTA too: a model's (see `timing`).

    With `checks` the run is observed: `findings` of the result, or of the error that ends the run, are the races and
    other broken rules (see `checks`); `strict` adds formal rules and what one run cannot settle.

    elect.sync takes the lowest lane, as hardware is seen to and shipping kernels rely on; with `any_leader` the policy
    says which.

    wgmma and mma.sync sum their products in float32; with `hardware_sums` as an H200 does, to the last bit, which takes
    many times as long (see `sums.py`). Where all partial sums are exact there is no difference.

    A CTA whose state comes back again and again never ends; neither does one, it is taken, that has not ended after
    `max_rounds` turns of each of its warps (see `state/endless.py`).

    Raises NotJudged for what the emulator does not model, Fault for a broken rule, Deadlock when all wait, Endless when
    some run for ever; ValueError for a wrong argument.
    """
    policy = policy_of(completion)
    if jobs < 1 or max_rounds < 1:
        raise ValueError(f"jobs = {jobs}, max_rounds = {max_rounds}")
    if (listener is not None or trace is not None) and jobs > 1:
        raise ValueError(f"a {'listener' if trace is None else 'trace'} hears one process alone: jobs = 1")
    started = time.perf_counter()
    clustered = launch.cluster != (1, 1, 1)
    timed = policy.completion is Timed
    program = compile_entry(
        module,
        launch.kernel,
        listening=listener is not None,
        checked=checks,
        clustered=clustered,
        observed=timed or trace is not None,
    )
    check_launch(module, program, launch)
    symbols = _place_variables(program, memory)
    context = Context(
        program,
        launch,
        memory,
        policy,
        seed,
        symbols,
        listener=listener,
        any_leader=any_leader,
        sm_count=_SM_COUNT.get(target_of(module), 148),
        max_rounds=max_rounds,
        registers=program.first,
        hardware_sums=hardware_sums,
    )
    if policy.spoils:
        context.fill = pattern(seed)
        context.registers = program.undefined(context.fill)
    if checks:
        context.session = Session(program, launch, memory, context.shared_end, strict=strict)
    gx, gy, gz = launch.grid
    total = gx * gy * gz
    # Processes take clusters from one pipe, in order.
    ordered = policy.clusters is not at_random
    alone = program.uses_global_atomics or (program.takes_clusters and (total > _MAX_PORTIONS or not ordered))
    jobs = 1 if alone else max(1, min(jobs, total // cluster_size(launch)))
    if timed or trace is not None:
        table = table_for(module.target) if timed else None
        context.observation = Observation(table, trace, jobs)
        if trace is not None:
            trace.kernel, trace.completion, trace.table = launch.kernel, completion, table
    try:
        with _one_blas_thread():
            found = _run_alone(context, total, progress) if jobs == 1 else _run_split(context, total, jobs, progress)
    except EmulatorError as error:
        error.findings = hints_apart(error.findings)[0]
        raise
    findings, hints = hints_apart(found)
    cycles = context.observation.cycles() if timed else None
    return RunResult(total, time.perf_counter() - started, completion, jobs, findings, hints, cycles)


def _run_cluster(context: Context, index: int) -> None:
    """One cluster, from launch to exit."""
    observation = context.observation
    if observation is None:
        return Cluster(context, index).run()
    cluster = TimedCluster(context, index) if observation.table is not None else Cluster(context, index)
    try:
        cluster.run()
    except EmulatorError as error:
        observation.failed(cluster, error)
        raise
    except BaseException:
        observation.failed(cluster, None)
        raise
    observation.ended(cluster)


def _run_alone(context: Context, total: int, progress: Progress | None) -> tuple[Any, ...]:
    session = context.session
    size = cluster_size(context.launch)
    try:
        waiting = deque(range(total // size))

        def take(which: int) -> int:
            waiting.rotate(-which)
            index = waiting.popleft()
            waiting.rotate(which)
            return index

        context.next_cluster, context.clusters_left = take, waiting.__len__
        while waiting:
            _run_cluster(context, waiting.popleft())
            if progress is not None:
                progress(total - len(waiting) * size, total)
    except EmulatorError as error:
        if session is not None:
            error.findings = merged([session.ends()])
        raise
    return () if session is None else merged([session.ends()])


def _place_variables(program: Program, memory: GlobalMemory) -> dict[str, int]:
    """Allocate the module's .global and .const variables that the kernel names."""
    symbols = {}
    for variable in program.memory_variables:
        if variable.nbytes is None or variable.extern:
            raise NotJudged(f"variable {variable.name}, which is defined elsewhere")
        allocation = memory.allocate(variable.nbytes, align=max(256, variable.align))
        if variable.initial is not None:
            allocation.data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        symbols[variable.name] = allocation.address
    return symbols


def _run_split(context: Context, total: int, jobs: int, progress: Progress | None) -> tuple[Any, ...]:
    """Fork `jobs - 1` workers; this process is the last. Each takes the next CTAs when it has none left. Returns what
    the checks of all of them found.
    """
    counters = mmap.mmap(-1, 8 * jobs)
    queue = _queue(total // cluster_size(context.launch))
    workers: list[tuple[int, int]] = []
    failure: EmulatorError | None = None
    found: list[tuple[Any, ...]] = []
    if context.session is not None:
        context.session.memory.is_split = True
    try:
        for number in range(1, jobs):
            reader, writer = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(reader)
                _work(context, number, total, jobs, counters, queue, writer)
            os.close(writer)
            workers.append((pid, reader))
        try:
            for _ in _take(context, 0, total, jobs, counters, queue):
                if progress is not None:
                    progress(sum(_counts(counters, jobs)), total)
        except EmulatorError as error:
            failure = error
            struct.pack_into("<q", counters, 0, -1)
        found.append(_findings(context, total, jobs, counters))
        for _pid, reader in workers:
            with os.fdopen(reader, "rb") as pipe:
                raw = pipe.read()
            if not raw:
                raise RuntimeError("a worker of the emulator ended without a result")
            outcome, theirs = pickle.loads(raw)
            found.append(theirs)
            if outcome is not None and failure is None:
                failure = outcome
        finished, workers = workers, []
        for pid, _ in finished:
            os.waitpid(pid, 0)
    finally:
        os.close(queue)
        for pid, _ in workers:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    if failure is not None:
        failure.findings = merged(found)
        raise failure
    if progress is not None:
        progress(total, total)
    return merged(found)


def _findings(context: Context, total: int, jobs: int, counters: mmap.mmap) -> tuple[Any, ...]:
    """What the checks of this process found, once the others have run their CTAs too."""
    if context.session is None:
        return ()
    while (counts := _counts(counters, jobs)) and min(counts) >= 0 and sum(counts) < total:
        time.sleep(0.001)
    findings: tuple[Any, ...] = context.session.ends()
    return findings


_MAX_PORTIONS = 4096


def _queue(total: int) -> int:
    """A pipe with the first cluster of each portion: a read takes one, and no two processes take the same."""
    reader, writer = os.pipe()
    # All of it fits a pipe (64 KiB), so the writes do not wait for a reader.
    for first in range(0, total, _portion(total)):
        os.write(writer, struct.pack("<q", first))
    os.close(writer)
    return reader


def _portion(total: int) -> int:
    return -(-total // _MAX_PORTIONS)


def _take(context: Context, number: int, total: int, jobs: int, counters: mmap.mmap, queue: int) -> Iterator[int]:
    """Run portions until there are none, or another process has failed; yields after each cluster."""
    done = 0
    size = cluster_size(context.launch)
    clusters = total // size

    def take(which: int) -> int | None:
        nonlocal done
        raw = os.read(queue, 8)
        done += size if raw else 0
        return int.from_bytes(raw, "little") if raw else None

    context.next_cluster = take
    if context.observation is not None:
        context.observation.process = number
    while raw := os.read(queue, 8):
        (first,) = struct.unpack("<q", raw)
        for index in range(first, min(clusters, first + _portion(clusters))):
            _run_cluster(context, index)
            done += size
            struct.pack_into("<q", counters, 8 * number, done)
            yield index
        if any(count < 0 for count in _counts(counters, jobs)):
            return


def _counts(counters: mmap.mmap, jobs: int) -> list[int]:
    return list(struct.unpack_from(f"<{jobs}q", counters, 0))


def _work(context: Context, number: int, total: int, jobs: int, counters: mmap.mmap, queue: int, writer: int) -> None:
    """A worker's life; it never returns."""
    outcome: BaseException | None = None
    findings: tuple[Any, ...] = ()
    if context.session is not None:
        context.session.forked(number)
    try:
        for _ in _take(context, number, total, jobs, counters, queue):
            pass
    except BaseException as error:
        outcome = error
        struct.pack_into("<q", counters, 8 * number, -1)
    try:
        findings = _findings(context, total, jobs, counters)
        raw = pickle.dumps((outcome, findings))
    except Exception as error:
        raw = pickle.dumps((RuntimeError(f"a worker failed: {outcome!r}, {error!r}"), ()))
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(raw)
    os._exit(0)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """One tile's product is too small for threads, and workers would fight for the cores."""
    setters = _blas()
    if setters is None:
        yield
        return
    get, put = setters
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


def _blas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """OpenBLAS's thread count, where NumPy came with an OpenBLAS of its own."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line}
        for path in paths:
            library = ctypes.CDLL(path)
            for prefix, suffix in (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", "")):
                get = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return get, put
    except OSError:
        pass
    return None
