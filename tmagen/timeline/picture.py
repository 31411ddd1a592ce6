# SPDX-License-Identifier: Apache-2.0
"""What of a trace is shown: rows with bars, and arrows between them, in cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tmagen.emu.observe.recorder import Row as TraceRow
from tmagen.emu.observe.recorder import Slice
from tmagen.emu.observe.rows import Barrier, roles_of, stages_of
from tmagen.emu.observe.trace import ClusterRecord, CtaInfo
from tmagen.errors import Diagnostic, SpecError

_NEAR = 24  # cycles between instructions of one kind that are shown as one bar
_MARGIN = 0.01  # of the window, before and after what it is chosen for
_PHASES = ("phase", "odd phase")
_GROUPS = {
    "wgmma.wait_group": "MMAs", "cp.async.bulk.wait_group": "stores", "cp.async": "copies",
}  # fmt: skip
_ARROWS = ("issue", "tells", "ends", "releases")


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that takes time. `labels` are texts for it, the longest first; one that fits is shown."""

    start: int
    end: int
    kind: str  # load, mma, store, copy, wait, phase, odd phase or instruction
    labels: tuple[str, ...] = ()


@dataclass(slots=True)
class Lane:
    """A row of the picture."""

    label: str
    bars: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow between rows, by their numbers."""

    kind: str  # issue, tells or releases
    start: int
    source: int
    end: int
    target: int


@dataclass(frozen=True, slots=True)
class Picture:
    """What to draw."""

    title: str
    note: str
    first: int  # cycle
    last: int
    lanes: tuple[Lane, ...]
    edges: tuple[Edge, ...]


def picture(
    record: ClusterRecord, cta: CtaInfo, title: str, note: str, *,
    k: tuple[int, int] | None = None, cycles: tuple[int, int] | None = None,
) -> Picture:  # fmt: skip
    """The picture of a CTA between two cycles, or from the load of the first K tile of `k` to the MMAs of the last.

    Without either: the first four. Raises SpecError where there is nothing to see in the window.
    """
    return _Chooser(record, cta).picture(title, note, k, cycles)


class _Chooser:
    def __init__(self, record: ClusterRecord, cta: CtaInfo) -> None:
        self.record = record
        self.cta = cta
        self.slices = [one for one in record.slices if one.rank == cta.rank]
        self.stages = stages_of(record)
        self.roles = roles_of(record, self.stages)
        self.issues: dict[int, Slice] = {}  # id of an instruction -> the operation that it issues
        for arrow in record.arrows:
            if arrow.kind == "issue":
                self.issues[id(arrow.source)] = arrow.target
        self.lanes: list[Lane] = []
        self.at: dict[TraceRow, int] = {}

    def picture(self, title: str, note: str, k: tuple[int, int] | None, cycles: tuple[int, int] | None) -> Picture:
        first, last = cycles if cycles is not None else self._window(k)
        last = min(last, max(self.record.end, first + 1))
        seen = [s for s in self.slices if s.start < last and s.end > first]
        if not seen:
            message = f"there is nothing between cycles {first:,} and {last:,}: the run ends at {self.record.end:,}"
            raise SpecError(Diagnostic(message))
        busy, idle = self._warps(seen, first, last)
        for group, bars in busy:
            self._lane(self._names(group), group, bars)
        self._units(seen)
        for group, bars in idle:
            self._lane(self._names(group), group, bars)
        return Picture(title, note, first, last, tuple(self.lanes), tuple(self._edges(first, last)))

    def _window(self, k: tuple[int, int] | None) -> tuple[int, int]:
        """From the issue of the first K tile's load to the end of what waits for the last one's MMAs."""
        tiles = sorted({s.k for s in self.slices if s.kind == "load" and s.k is not None})
        if not tiles:
            return 0, self.record.end
        low, high = k if k is not None else (tiles[0], tiles[0] + 3)
        chosen = [tile for tile in tiles if low <= tile <= high]
        if not chosen:
            message = f"no K tile from {low} to {high}: the CTA loads {len(tiles)}, numbered from 0"
            raise SpecError(Diagnostic(message, hint=f"--k 0-{min(3, len(tiles) - 1)}"))
        loads = [s for s in self.slices if s.k == chosen[0]]
        ends = [s for s in self.slices if s.k == chosen[-1]]
        first, last = min(s.start for s in loads), max(s.end for s in ends)
        after = [a.target.end for a in self.record.arrows if a.kind == "releases" and last <= a.target.end]
        last = min([end for end in after if end <= last + 400], default=last)
        margin = max(10, int((last - first) * _MARGIN))
        return max(0, first - margin), last + margin

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _lane(self, label: str, rows: Iterable[TraceRow], bars: list[Bar]) -> None:
        for row in rows:
            self.at[row] = len(self.lanes)
        self.lanes.append(Lane(label, bars))

    def _warps(
        self, seen: list[Slice], first: int, last: int
    ) -> tuple[list[tuple[list[TraceRow], list[Bar]]], list[tuple[list[TraceRow], list[Bar]]]]:
        """Warps, and lanes of them that go their own way: those that do something, and those that wait throughout. Rows
        that look alike in the window are one.
        """
        rows = sorted(
            {s.row for s in seen if s.row[0] == "warp"}, key=lambda r: (r[1], r[2] != self.cta.whole[r[1]], r[2])
        )
        alike: dict[tuple[object, ...], list[TraceRow]] = {}
        drawn: dict[TraceRow, list[Bar]] = {}
        for row in rows:
            bars = self._warp_bars([s for s in seen if s.row == row])
            if all(bar.kind == "instruction" for bar in bars):
                continue  # on its way to somewhere else
            drawn[row] = bars
            key = tuple((max(b.start, first), min(b.end, last), b.kind, b.labels) for b in bars)
            alike.setdefault(key, []).append(row)
        found = [(group, drawn[group[0]]) for group in alike.values()]
        busy = [pair for pair in found if len(pair[1]) > 1 or pair[1][0].kind != "wait"]
        return busy, [pair for pair in found if pair not in busy]

    def _names(self, rows: list[TraceRow]) -> str:
        whole = [row[1] for row in rows if row[2] == self.cta.whole[row[1]]]
        parts = [row for row in rows if row[2] != self.cta.whole[row[1]]]
        names = []
        if whole:
            names.append(f"warp{'s' if len(whole) > 1 else ''} {_ranges(whole)}")
        names += [f"warp {row[1]}, {_lanes_text(row[2])}" for row in parts]
        return "; ".join(names)

    def _warp_bars(self, slices: list[Slice]) -> list[Bar]:
        bars: list[Bar] = []
        for one in sorted(slices, key=lambda s: (s.start, -s.end)):
            if one.kind == "released":
                continue
            if one.kind == "wait":
                bars.append(Bar(one.start, one.end, "wait", self._wait_labels(one)))
                continue
            issued = self.issues.get(id(one))
            kind = _kind(issued) if issued is not None else "instruction"
            label = "" if issued is None or issued.k is None else f"k{issued.k}"
            before = bars[-1] if bars else None
            if (
                before is not None
                and before.kind == kind
                and one.start - before.end <= _NEAR
                and before.labels == _texts(label)
            ):
                bars[-1] = Bar(before.start, max(before.end, one.end), kind, before.labels)
            else:
                bars.append(Bar(one.start, one.end, kind, _texts(label)))
        return bars

    def _wait_labels(self, one: Slice) -> tuple[str, ...]:
        if one.barrier is not None:
            role = self._role(one.barrier)
            return f"waits: {role}", role
        name = "other lanes" if one.args.get("waits for") is not None else _GROUPS.get(one.name, one.name)
        return f"waits: {name}", name

    def _role(self, barrier: Barrier) -> str:
        stage = self.stages.get(barrier)
        if stage is not None:
            return f"stage {stage}"
        return "MMAs" if self.roles.get(barrier) == "MMAs" else f"mbarrier {barrier[1]:#x}"

    def _units(self, seen: list[Slice]) -> None:
        """TMA loads by stage, stores, tensor core: what belongs to one K tile is one bar."""
        loads = [s for s in seen if s.kind == "load"]
        for barrier in sorted({s.barrier for s in loads if s.barrier is not None}):
            mine = [s for s in loads if s.barrier == barrier]
            self._lane(f"TMA loads, stage {self.stages[barrier]}", [("loads", barrier)], _by_k(mine, "load"))
            self._barrier(barrier, seen)
        for barrier in self.stages:
            self._barrier(barrier, seen)
        rest = [s for s in loads if s.barrier is None]
        if rest:
            self._lane("TMA loads", [("loads", None)], [Bar(s.start, s.end, "load") for s in rest])
        for row, label in ((("tensor",), "tensor core"), (("stores",), "TMA stores"), (("copies",), "cp.async")):
            mine = [s for s in seen if s.row == row]
            if mine:
                self._lane(label, [row], _by_k(mine, _kind(mine[0])))
            if row == ("tensor",):
                for at in sorted({s.row[1] for s in seen if s.row[0] == "mbarrier"}):
                    self._barrier((self.cta.rank, at), seen)

    def _barrier(self, barrier: Barrier, seen: list[Slice]) -> None:
        """The phases of an mbarrier of this CTA, unless they have their row."""
        row = ("mbarrier", barrier[1])
        if barrier[0] != self.cta.rank or row in self.at:
            return
        bars = []
        for one in seen:
            if one.row == row and one.kind == "phase":
                number = one.args["phase"]
                bars.append(Bar(one.start, one.end, _PHASES[number & 1], (f"phase {number}", str(number))))
        if bars:
            if barrier in self.stages:
                label = f"mbarrier, {self._role(barrier)} full"
            else:
                label = "mbarrier, MMAs done" if barrier in self.roles else f"mbarrier {barrier[1]:#x}"
            self._lane(label, [row], bars)

    # --- arrows -------------------------------------------------------------------------------------------------------

    def _edges(self, first: int, last: int) -> list[Edge]:
        found: dict[tuple[object, ...], Edge] = {}
        for arrow in self.record.arrows:
            source, target = arrow.source, arrow.target
            if (
                arrow.kind not in _ARROWS
                or self.cta.rank not in (source.rank, target.rank)
                or source.rank != target.rank
            ):
                continue
            a, b = self._number(source), self._number(target)
            if a is None or b is None or a == b:
                continue
            if arrow.kind == "tells" and source.kind == "instruction" and id(source) not in self.issues:
                kind = "arrives"
            else:
                kind = {"issue": "issue", "releases": "releases"}.get(arrow.kind, "tells")
            start = target.start if kind == "issue" else source.end
            end = target.start if kind == "issue" else target.end
            if kind == "arrives" or not (first <= start <= last and first <= end <= last):
                continue
            # The operations of one K tile are one bar: the first is issued for all of them.
            key = (kind, a, b, source.k if kind == "issue" and source.k is not None else id(arrow))
            found.setdefault(key, Edge(kind, start, a, end, b))
        return list(found.values())

    def _number(self, one: Slice) -> int | None:
        if one.row == ("loads",):
            return self.at.get(("loads", one.barrier))
        return self.at.get(one.row)


def _kind(one: Slice) -> str:
    return {"load": "load", "store": "store", "copy": "copy"}.get(one.kind, "mma")


def _texts(label: str) -> tuple[str, ...]:
    return (label,) if label else ()


def _by_k(slices: list[Slice], kind: str) -> list[Bar]:
    """One bar for what has the same K tile and touches or overlaps, else one for each."""
    bars: list[Bar] = []
    last_k: int | None = None
    for one in sorted(slices, key=lambda s: (s.start, s.end)):
        before = bars[-1] if bars else None
        if before is not None and one.k == last_k and one.start <= before.end + _NEAR:
            bars[-1] = Bar(before.start, max(before.end, one.end), kind, before.labels)
        else:
            bars.append(Bar(one.start, one.end, kind, () if one.k is None else (f"k{one.k}",)))
        last_k = one.k
    return bars


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _lanes_text(mask: int) -> str:
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    return f"lane{'s' if len(lanes) > 1 else ''} {_ranges(lanes)}"
