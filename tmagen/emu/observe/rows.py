# SPDX-License-Identifier: Apache-2.0
"""The rows of a CTA's picture: warps, then TMA, tensor core and mbarriers; and which stage an mbarrier is of."""

from __future__ import annotations

from dataclasses import dataclass, field

from tmagen.emu.observe.recorder import Row, Slice
from tmagen.emu.observe.trace import ClusterRecord, CtaInfo
from tmagen.emu.report import lanes_text
from tmagen.emu.state.fragments import lane_set

_UNITS = {"loads": "TMA loads", "stores": "TMA stores", "copies": "cp.async", "tensor": "tensor core"}
_ORDER = ("warp", "loads", "stores", "copies", "tensor", "mbarrier")
Barrier = tuple[int, int]
"""The rank of its CTA, and its shared address."""


@dataclass(slots=True)
class Rows:
    """The rows of one CTA, numbered from 1 in the order to show them."""

    names: dict[int, str] = field(default_factory=dict)
    stages: dict[Barrier, int] = field(default_factory=dict)
    roles: dict[Barrier, str] = field(default_factory=dict)
    _numbers: dict[Row, int] = field(default_factory=dict)
    _apart: dict[int, int] = field(default_factory=dict)  # id of a slice that overlaps others of its row -> its own row

    def tid(self, one: Slice) -> int:
        """The row of a slice."""
        return self._apart.get(id(one)) or self._numbers[one.row]


def lanes_of(mask: int) -> str:
    """ "lanes 0-31"."""
    return lanes_text(lane_set(mask))


def stages_of(record: ClusterRecord) -> dict[Barrier, int]:
    """The mbarriers that loads complete on, numbered by their addresses in each CTA."""
    barriers = sorted({s.barrier for s in record.slices if s.kind == "load" and s.barrier is not None})
    first: dict[int, int] = {}
    return {barrier: number - first.setdefault(barrier[0], number) for number, barrier in enumerate(barriers)}


def roles_of(record: ClusterRecord, stages: dict[Barrier, int]) -> dict[Barrier, str]:
    """What each mbarrier is for, as far as it shows: loads of a stage, or commits."""
    roles = {barrier: f"loads of stage {stage}" for barrier, stage in stages.items()}
    for arrow in record.arrows:
        if arrow.kind == "ends" and arrow.target.row[0] == "mbarrier":
            roles.setdefault((arrow.target.rank, arrow.target.row[1]), "MMAs")
    return roles


def rows_of(record: ClusterRecord, cta: CtaInfo) -> Rows:
    """The rows of a CTA. Operations of one unit that overlap get further rows of it."""
    stages = stages_of(record)
    rows = Rows(stages=stages, roles=roles_of(record, stages))
    mine = [one for one in record.slices if one.rank == cta.rank]
    keys = sorted({one.row for one in mine}, key=lambda row: _place(row, cta))
    for key in keys:
        tid = len(rows.names) + 1
        rows._numbers[key] = tid
        rows.names[tid] = _name(key, cta, rows)
        if key[0] not in ("warp", "mbarrier"):
            _spread(rows, [one for one in mine if one.row == key], tid)
    return rows


def _place(row: Row, cta: CtaInfo) -> tuple[int, ...]:
    order = _ORDER.index(row[0])
    if row[0] == "warp":
        return order, row[1], row[2] != cta.whole[row[1]], row[2]
    return (order, row[1]) if row[0] == "mbarrier" else (order,)


def _name(row: Row, cta: CtaInfo, rows: Rows) -> str:
    if row[0] == "warp":
        _, index, mask = row
        return f"warp {index}" if mask == cta.whole[index] else f"warp {index} {lanes_of(mask)}"
    if row[0] == "mbarrier":
        address = row[1]
        where = f"dynamic + {address - cta.dynamic_base}" if address >= cta.dynamic_base else f"shared {address:#x}"
        role = rows.roles.get((cta.rank, address))
        return f"mbarrier at {where}" + (f" ({role})" if role else "")
    return _UNITS[row[0]]


def _spread(rows: Rows, slices: list[Slice], first: int) -> None:
    free = {first: 0}
    for one in sorted(slices, key=lambda s: (s.start, s.end)):
        tid = next((tid for tid, end in free.items() if end <= one.start), None)
        if tid is None:
            tid = len(rows.names) + 1
            rows.names[tid] = f"{rows.names[first]} ({len(free) + 1})"
        free[tid] = one.end
        if tid != first:
            rows._apart[id(one)] = tid
