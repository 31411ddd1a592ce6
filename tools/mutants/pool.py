# SPDX-License-Identifier: Apache-2.0
"""Runs of kernels, shared by several processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from tools.mutants.base import Base

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = 2.0  # seconds without a word

_WORK: list[tuple[Callable[[Any], Any], Any]] = []  # by number: an edit is a closure, which no process can be sent


def _run(number: int) -> Any:
    work, task = _WORK[number]
    return work(task)


def shared(work: Callable[[T], R], tasks: list[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Each task with what `work` makes of it, in their order, by `jobs` processes; a terminal is told how far it is."""
    _WORK[:] = [(work, task) for task in tasks]
    started, shown = time.monotonic(), False
    with get_context("fork").Pool(jobs) as pool:
        for done, (task, result) in enumerate(zip(tasks, pool.imap(_run, range(len(tasks))), strict=True), 1):
            if shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            yield task, result
            shown = sys.stderr.isatty() and time.monotonic() - started > PATIENCE and done < len(tasks)
            if shown:
                print(f"{done}/{len(tasks)}", end="", file=sys.stderr, flush=True)


def build(bases: Iterable[Base], jobs: int) -> None:
    """Compile and parse all kernels, and find out how each is launched, before the processes part."""
    bases = list(bases)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda base: base.ptx, bases))
    for base in bases:
        for case in range(base.cases):
            base.prepare(case, 0)
        base.run(base.ptx)
