# SPDX-License-Identifier: Apache-2.0
"""Writing down what an observed cluster does: a slice for each instruction, operation and phase, an arrow for each
edge.

An edge goes from what makes something happen to that: an instruction to the operation that it issues, the operation to
the mbarrier that is told, the arrival that ends a phase to the waits for it, a wait to the next operation of its
thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tmagen.emu.module import Instruction
from tmagen.emu.observe.work import Work
from tmagen.emu.state.fragments import WAIT, Fragment
from tmagen.emu.state.mbarrier import PhaseWait

if TYPE_CHECKING:
    from tmagen.emu.observe.observer import Eye

Row = tuple[Any, ...]
"""("warp", index, lanes), ("loads",), ("stores",), ("copies",), ("tensor",) or ("mbarrier", shared address)."""

_ROWS: dict[str, Row] = {
    "load": ("loads",), "store": ("stores",), "copy": ("copies",), "mma": ("tensor",), "wgmma": ("tensor",),
    "tmem copy": ("tensor",),
}  # fmt: skip
_BULK = ("cp", "reduce", "async", "bulk", "tensor", "commit_group", "wait_group")
OPEN = -1


@dataclass(slots=True, eq=False)
class Slice:
    """Something that takes time. `end` is OPEN while it is not known."""

    rank: int  # of the CTA in its cluster
    row: Row
    name: str
    start: int
    end: int
    instruction: Instruction | None = None
    kind: str = ""  # instruction, wait, released, phase, arrival, or that of the work
    work: Work | None = None
    k: int | None = None  # which filling of a stage, counted from 0
    barrier: tuple[int, int] | None = None  # rank and address of the mbarrier of a load, of an MMA's stage, of a wait
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge. `kind` is issue, tells, releases, then or ends."""

    kind: str
    source: Slice
    target: Slice


@dataclass(slots=True, eq=False)
class Seen:
    """An operation under way."""

    work: Work
    origin: Slice  # the instruction
    slice: Slice | None  # none of a commit
    after: Slice | None = None  # of a commit: the last MMA before it


class Recorder:
    """Of one cluster. It stops at `limit` slices of a cluster."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.slices: list[Slice] = []
        self.arrows: list[Arrow] = []
        self.full = False
        self.last: Slice | None = None  # the instruction that runs
        self._cause: Slice | Seen | None = None
        self._current: dict[tuple[int, int], dict[int, Slice]] = {}  # by warp: of its lanes
        self._waited: dict[tuple[int, int], list[tuple[Slice, int]]] = {}  # waits that ended, of lanes
        self._phases: dict[int, Slice] = {}
        self._releases: dict[int, Slice] = {}  # by barrier: the arrival that ended its last phase
        self._latest: dict[int, Slice] = {}  # by barrier: the latest arrival of the phase
        self._fills: dict[tuple[int, int, int], int] = {}  # rank, barrier, phase -> k
        self._loads: dict[tuple[int, int], Slice] = {}  # rank, shared address -> the load that last wrote there
        self._mma: dict[tuple[int, int], Slice] = {}  # by warp: its last MMA

    def _add(self, one: Slice) -> Slice:
        if len(self.slices) < self.limit:
            self.slices.append(one)
        else:
            self.full = True
        return one

    def _arrow(self, kind: str, source: Slice | None, target: Slice | None) -> None:
        if source is not None and target is not None and not self.full:
            self.arrows.append(Arrow(kind, source, target))

    # --- instructions and waits ---------------------------------------------------------------------------------------

    def instruction(self, cta: Any, frag: Fragment, site: int, begin: int, end: int) -> None:
        """An instruction starts."""
        found: Instruction = cta.program.sites[site]
        warp = (cta.rank, frag.warp.index)
        current = self._current.setdefault(warp, {})
        for mask, before in list(current.items()):
            if mask & frag.mask:
                if mask != frag.mask and before.instruction is found and before.end <= begin:
                    # It sent its lanes to wait for the others of the warp, and now runs with them.
                    before.kind, before.end = "wait", max(before.end, begin)
                    before.args["waits for"] = "the other lanes of its warp"
                del current[mask]
        one = Slice(cta.rank, ("warp", frag.warp.index, frag.mask), name_of(found), begin, end, found, "instruction")
        self._cause = self.last = current[frag.mask] = self._add(one)

    def _slice_of(self, frag: Fragment) -> Slice | None:
        return self._current.get((frag.warp.cta.rank, frag.warp.index), {}).get(frag.mask)

    def woken(self, frag: Fragment, time: int, cost: int) -> None:
        """A wait ends, `cost` after what it waited for."""
        one = self._slice_of(frag)
        if one is None or one.start > time - cost:
            return
        one.kind, one.end = "wait", time
        self._says_what(one, frag)
        released = self._add(
            Slice(one.rank, one.row, "released", time - cost, time, one.instruction, "released", barrier=one.barrier)
        )
        wait, cause = frag.wait, self._cause
        if isinstance(wait, PhaseWait):
            source = self._releases.get(id(wait.barrier))
        else:
            source = cause.slice or cause.origin if isinstance(cause, Seen) else cause
        self._arrow("releases", source, released)
        self._waits(frag, released)

    def passed(self, frag: Fragment, eye: Eye) -> None:
        """A wait that need not wait."""
        one = self._slice_of(frag)
        if one is not None:
            one.barrier = (eye.cta.rank, eye.barrier.address)
            one.args["phase"] = eye.barrier.phase - 1
            self._arrow("releases", self._releases.get(id(eye.barrier)), one)
            self._waits(frag, one)

    def _waits(self, frag: Fragment, one: Slice) -> None:
        self._waited.setdefault((frag.warp.cta.rank, frag.warp.index), []).append((one, frag.mask))

    def _says_what(self, one: Slice, frag: Fragment) -> None:
        wait, cta = frag.wait, frag.warp.cta
        if isinstance(wait, PhaseWait):
            eye = wait.barrier.eye
            one.barrier = (cta.rank if eye is None else eye.cta.rank, wait.barrier.address)
            one.args["parity"] = wait.parity
        elif wait is not None and one.end == OPEN:
            one.args["waits for"] = wait.describe(cta)

    # --- operations ---------------------------------------------------------------------------------------------------

    def issued(self, cta: Any, frag: Any, lane: int, work: Work, now: int, begin: int) -> Seen | None:
        """An operation is issued; its unit begins with it at `begin`."""
        origin = self.last
        if origin is None:
            return None
        warp = (origin.rank, origin.row[1])
        waited = self._waited.get(warp)
        if waited:
            mine = [pair for pair in waited if pair[1] >> lane & 1]
            for one, _ in mine:
                self._arrow("then", one, origin)
            self._waited[warp] = [pair for pair in waited if not pair[1] >> lane & 1]
        row = _ROWS.get(work.kind)
        if row is None:
            return Seen(work, origin, None, self._mma.get(warp) if work.kind == "commit" else None)
        starts = begin if row == ("tensor",) else now
        one = Slice(cta.rank, row, _title(work), starts, OPEN, origin.instruction, work.kind, replace(work, told=None))
        if work.kind == "load" and work.told is not None:
            holder, at = work.told
            barrier = holder.mbarriers.get(at)
            if barrier is not None:
                key = (holder.rank, at, barrier.phase)
                one.k = self._fills.setdefault(key, len(self._fills))
                one.barrier = (holder.rank, at)
            self._loads[holder.rank, work.place] = one
        elif row == ("tensor",):
            self._mma[warp] = one
            filled = self._filled(cta.rank, work.place)
            if filled is not None:
                one.k, one.barrier = filled.k, filled.barrier
        if origin.k is None:
            origin.k, origin.barrier = one.k, one.barrier
        self._arrow("issue", origin, self._add(one))
        return Seen(work, origin, one)

    def _filled(self, rank: int, place: int) -> Slice | None:
        """The load that last filled a place in shared memory."""
        for (owner, start), one in self._loads.items():
            if owner == rank and one.work is not None and start <= place < start + one.work.nbytes:
                return one
        return None

    def completes(self, seen: Seen | None, time: int) -> None:
        """An operation takes effect."""
        if seen is None:
            return
        self._cause = seen
        if seen.slice is not None:
            seen.slice.end = max(time, seen.slice.start + 1)

    # --- mbarriers ----------------------------------------------------------------------------------------------------

    def made(self, eye: Eye) -> None:
        """A barrier has its first phase."""
        self._open(eye)

    def _open(self, eye: Eye) -> None:
        number = eye.barrier.phase
        row = ("mbarrier", eye.barrier.address)
        one = Slice(eye.cta.rank, row, f"phase {number}", eye.ended, OPEN, None, "phase")
        one.args = {"phase": number, "parity": number & 1, "expected arrivals": eye.barrier.expected}
        self._phases[id(eye.barrier)] = self._add(one)

    def touched(self, eye: Eye, what: str, time: int) -> None:
        """An arrival, or bytes, at `time`."""
        barrier, cause = eye.barrier, self._cause
        one = Slice(eye.cta.rank, ("mbarrier", barrier.address), what, time - 1, time, None, "arrival")
        one.args = {"phase": barrier.phase, "pending arrivals": barrier.pending, "tx bytes": barrier.tx}
        self._add(one)
        if isinstance(cause, Seen):
            one.instruction = cause.origin.instruction
            self._arrow("tells", cause.slice or cause.origin, one)
            if cause.after is not None and cause.after.end != OPEN:
                self._arrow("ends", cause.after, one)
        elif cause is not None:
            one.instruction = cause.instruction
            self._arrow("tells", cause, one)
        latest = self._latest.get(id(barrier))
        if latest is None or latest.end <= one.end:
            self._latest[id(barrier)] = one

    def phase_ended(self, eye: Eye) -> None:
        """A phase is complete."""
        key = id(eye.barrier)
        one = self._phases.get(key)
        if one is not None:
            one.end = eye.ended
        latest = self._latest.pop(key, None)
        if latest is not None:
            self._releases[key] = latest
        self._open(eye)

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self, cluster: Any, end: int) -> int:
        """Close what is open, at the end of the run or where it broke off; the time of the end."""
        end = max([end, *(one.end for one in self.slices)])
        for one in self.slices:
            if one.end == OPEN:
                one.args["open"] = "still going on when the run ended"
                one.end = max(end, one.start + 1)
        for cta in cluster.ctas:
            for eye in (barrier.eye for barrier in cta.mbarriers.values() if barrier.eye is not None):
                phase = self._phases.get(id(eye.barrier))
                if phase is not None:
                    phase.args |= {"pending arrivals": eye.barrier.pending, "tx bytes": eye.barrier.tx}
            for warp in cta.warps:
                for fragment in warp.fragments:
                    waiting = self._slice_of(fragment)
                    if fragment.state == WAIT and waiting is not None and fragment.wait is not None:
                        waiting.kind, waiting.end = "wait", max(end, waiting.start + 1)
                        waiting.args["never released"] = fragment.wait.describe(cta)
                        self._says_what(waiting, fragment)
        return max([end, *(one.end for one in self.slices)])


def name_of(instruction: Instruction) -> str:
    """ "mbarrier.try_wait", "cp.async.bulk.tensor": an opcode without its qualifiers."""
    parts = instruction.parts
    if parts[0] == "cp" and "bulk" in parts:
        return ".".join(part for part in parts if part in _BULK)
    return ".".join(parts[:2])


def _title(work: Work) -> str:
    if work.kind in ("mma", "wgmma"):
        return f"{work.kind} {'x'.join(map(str, work.shape))}"
    return f"{work.kind} {work.nbytes:,} bytes"
