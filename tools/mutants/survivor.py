# SPDX-License-Identifier: Apache-2.0
"""Changes that break nothing, and how they are named: by instruction and number."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Survivor:
    """Changes that break nothing, for one reason: `sites` are patterns of the whole name of a kernel and of the whole
    title of a change. A site is a number, except where the reason is about the instruction and not about its place.
    """

    kernels: str
    what: str
    reason: str
    sites: tuple[tuple[str, str], ...]

    def covers(self, base: str, title: str) -> bool:
        """Whether a change of a kernel is one of them."""
        return any(re.fullmatch(bases, base) and re.fullmatch(changes, title) for bases, changes in self.sites)


def _which(opcode: str, numbers: tuple[int, ...]) -> str:
    return f"{_opcode(opcode)} #({'|'.join(map(str, numbers))})" if numbers else rf"{_opcode(opcode)} #\d+"


def _opcode(opcode: str) -> str:
    return re.escape(opcode[:-1]) if opcode.endswith("$") else rf"{re.escape(opcode)}\S*"


def out(opcode: str, *numbers: int) -> str:
    """Instructions that are left out, by number; all of them without numbers. They are of an opcode that begins so, or,
    with `$` behind it, is so.
    """
    return f"leave out: {_which(opcode, numbers)}"


def later(opcode: str, past: str, *numbers: int) -> str:
    """Likewise, those that come after the next one."""
    return f"later: {_which(opcode, numbers)} than {_opcode(past)}"


def earlier(opcode: str, past: str, *numbers: int) -> str:
    """Likewise, those that come before the last one."""
    return f"earlier: {_which(opcode, numbers)} than {_opcode(past)}"


def either(*patterns: str) -> str:
    """One of several changes."""
    return "|".join(patterns)


ALL = ".*"
BRANCH = "branch of a wait"
INIT = "mbarrier.init"
INVAL = "mbarrier.inval"
ARRIVE = "mbarrier.arrive.shared"
ARRIVE_FAR = "mbarrier.arrive.release.cluster"
EXPECT = "mbarrier.arrive.expect_tx"
WARP = "bar.warp.sync"
BAR = "bar.sync"
BARRIER = "barrier.sync"
CLUSTER_ARRIVE = "barrier.cluster.arrive"
CLUSTER_WAIT = "barrier.cluster.wait"
PROXY = "fence.proxy.async"
ELECT = "elect.sync"
COPY = "cp.async.bulk.tensor"
COMMIT_STORES = "cp.async.bulk.commit_group"
STORES_READ = "cp.async.bulk.wait_group.read"
STORES_DONE = "cp.async.bulk.wait_group$"
ALLOC = "tcgen05.alloc"
FREE = "tcgen05.dealloc"
PERMIT = "tcgen05.relinquish_alloc_permit"
LOADED = "tcgen05.wait::ld"
STORED = "tcgen05.wait::st"
GROW = "setmaxnreg.inc"
GIVE = "setmaxnreg.dec"
MAP_COPY = "tensormap.cp_fenceproxy"
MAP_FENCE = "fence.proxy.tensormap"
