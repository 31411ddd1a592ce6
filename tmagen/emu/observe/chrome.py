# SPDX-License-Identifier: Apache-2.0
"""A trace in the JSON that ui.perfetto.dev and chrome://tracing open (Trace Event Format, JSON object form).

A process is a CTA, a thread a row. One microsecond of the viewer is one cycle of a timed run, or one step of another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tmagen.emu.observe.recorder import Arrow, Row, Slice
from tmagen.emu.observe.rows import Rows, lanes_of, rows_of
from tmagen.emu.observe.trace import ClusterRecord, CtaInfo, Trace
from tmagen.emu.report import instruction_place
from tmagen.emu.timing.latency import MODEL


def text(trace: Trace, **about: Any) -> str:
    """The file's text, an event a line; `about` goes into its metadata."""
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in _events(trace))
    data: dict[str, Any] = {
        "kernel": trace.kernel,
        "completion": trace.completion,
        "time": f"1 us is 1 cycle of {MODEL}" if trace.table is not None else "1 us is 1 step of the emulator",
        **about,
    }
    if trace.table is not None:
        data["latencies"] = {row.key: f"{row.value} {row.unit}: {row.what}; {row.source}" for row in trace.table.rows}
    if any(record.cut for record in trace.records):
        data["cut"] = f"a cluster of more than {trace.max_slices:,} slices: what follows is left out"
    other = json.dumps(data, indent=1)
    return f'{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":[\n{events}\n]}}\n'


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    arrows = 0
    for record in trace.records:
        shown = {cta.rank: cta for cta in record.ctas}
        places = {rank: rows_of(record, cta) for rank, cta in shown.items()}
        for rank, cta in shown.items():
            yield from _names(cta, places[rank])
        for rank, cta in shown.items():
            for one in sorted((s for s in record.slices if s.rank == rank), key=lambda s: (s.start, -s.end)):
                yield _slice(one, cta, places[rank], trace)
        for arrow in sorted(record.arrows, key=lambda a: (a.target.start, a.source.start)):
            if arrow.source.rank in shown and arrow.target.rank in shown:
                arrows += 1
                yield from _flow(arrow, arrows, shown, places)
        if record.fault:
            yield from _fault(record, shown, places)


def _names(cta: CtaInfo, rows: Rows) -> Iterator[dict[str, Any]]:
    title = f"CTA ({', '.join(map(str, cta.ctaid))})"
    for name, args in (("process_name", {"name": title}), ("process_sort_index", {"sort_index": cta.index})):
        yield {"ph": "M", "name": name, "pid": cta.index, "tid": 0, "args": args}
    for tid, name in rows.names.items():
        yield {"ph": "M", "name": "thread_name", "pid": cta.index, "tid": tid, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": cta.index, "tid": tid, "args": {"sort_index": tid}}


def _slice(one: Slice, cta: CtaInfo, rows: Rows, trace: Trace) -> dict[str, Any]:
    args = dict(one.args)
    instruction = one.instruction
    if instruction is not None:
        args["instruction"] = instruction.text
        args["at"] = instruction_place(instruction)
        if instruction.source is not None:
            file, line = instruction.source.place
            args["source"] = f"{file}:{line}"
    if one.row[0] == "warp":
        args["lanes"] = lanes_of(one.row[2])
    if one.barrier is not None:
        args["mbarrier"] = f"shared {one.barrier[1]:#x}"
        stage = rows.stages.get(one.barrier)
        if stage is not None:
            args["stage"] = stage
    if one.k is not None:
        args["k"] = one.k
    work = one.work
    if work is not None:
        if work.nbytes:
            args["bytes"] = work.nbytes
        if work.coords is not None:
            args["coordinates"] = list(work.coords)
        if any(work.shape):
            args["shape"] = "x".join(map(str, work.shape))
        args["shared"] = f"{work.place:#x}"
    name = f"wait: {one.name}" if one.kind == "wait" else one.name
    return {
        "ph": "X", "name": name, "cat": one.kind, "pid": cta.index, "tid": rows.tid(one), "ts": one.start,
        "dur": one.end - one.start, "args": args,
    }  # fmt: skip


def _flow(arrow: Arrow, number: int, shown: dict[int, CtaInfo], places: dict[int, Rows]) -> Iterator[dict[str, Any]]:
    """Both ends lie in their slices, the second not before the first."""
    source, target = arrow.source, arrow.target
    start = min(max(target.start, source.start), source.end - 1)
    end = min(max(start, target.start), target.end - 1)
    for phase, one, ts in (("s", source, start), ("f", target, max(start, end))):
        event = {
            "ph": phase, "name": arrow.kind, "cat": arrow.kind, "id": number, "pid": shown[one.rank].index,
            "tid": places[one.rank].tid(one), "ts": ts,
        }  # fmt: skip
        yield event | {"bp": "e"} if phase == "f" else event


def _fault(record: ClusterRecord, shown: dict[int, CtaInfo], places: dict[int, Rows]) -> Iterator[dict[str, Any]]:
    """An instant where the run broke off, at the last instruction that ran."""
    ran = [s for s in record.slices if s.row[0] == "warp" and s.rank in shown]
    last: Slice | None = max(ran, key=lambda s: (s.start, s.end), default=None)
    rank = last.rank if last is not None else next(iter(shown))
    yield {
        "ph": "i", "name": record.fault[0], "cat": "fault", "s": "g", "pid": shown[rank].index,
        "tid": places[rank].tid(last) if last is not None else 0, "ts": record.end,
        "args": {"report": "\n".join(record.fault)},
    }  # fmt: skip


__all__ = ["Row", "text"]
