# SPDX-License-Identifier: Apache-2.0
"""Runs of the same step as one: MMAs of a K tile, boxes side by side, barriers initialised one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tmagen.diff.event import Event, area, prefetch_text
from tmagen.diff.layout import Box


def folded(events: Iterable[Event | None]) -> list[Event]:
    """The events, each run of the same step as one; None is left out."""
    found: list[Event] = []
    for event in events:
        if event is None:
            continue
        for back in range(1, len(found) + 1):
            joined = _joined(found[-back], event)
            if joined is not None:
                found[-back] = joined
                break
            # Loads of A and B may alternate: each goes on with the last of its own.
            if event.op != "TMA load" or found[-back].op != event.op:
                found.append(event)
                break
        else:
            found.append(event)
    return found


def _joined(last: Event, event: Event) -> Event | None:
    """Both as one, where the second goes on with what the first began."""
    if last.op != event.op or last.about != event.about or last.who != event.who:
        return None
    join = _JOINS.get(event.op)
    return None if join is None else join(last, event)


def _join_inits(last: Event, event: Event) -> Event:
    facts = tuple(sorted({*last.facts, *event.facts}))
    counts = {arrivals for _, arrivals in facts}
    text = "init " + (
        f"{', '.join(name for name, _ in facts)}, {next(iter(counts))} each"
        if len(counts) == 1
        else ", ".join(f"{name} ({arrivals})" for name, arrivals in facts)
    )
    return replace(last, facts=facts, text=text)


def _join_prefetches(last: Event, event: Event) -> Event | None:
    if last.about != "tensor maps":
        return None
    facts = (*last.facts, *event.facts)
    return replace(last, facts=facts, text=prefetch_text([operand for operand, _ in facts]))


def _join_mmas(last: Event, event: Event) -> Event | None:
    if dict(last.varying)["stage"] != dict(event.varying)["stage"] or last.facts != event.facts:
        return None
    count = last.count + 1
    # "4 MMAs 128x128x16, A and B of stage 0, the first adds": of one MMA, it is the one that adds.
    rest = last.text.partition(" " if last.count == 1 else " MMAs ")[2]
    rest = rest.replace(", adds", ", the first adds").replace(", overwrites", ", the first overwrites")
    return replace(last, count=count, text=f"{count} MMAs {rest}")


def _join_stores(last: Event, event: Event) -> Event | None:
    if last.facts != event.facts:
        return None
    nbytes = dict(event.facts)["bytes"]
    count = last.count + 1
    return replace(last, count=count, text=f"{count} st.{event.about} of {nbytes} bytes")


def _join_boxes(last: Event, event: Event) -> Event | None:
    """Boxes side by side, of one stage: what they move is one area."""
    before, after = dict(last.varying), dict(event.varying)
    facts, more = dict(last.facts), dict(event.facts)
    if (
        before.get("stage") != after.get("stage")
        or before["row"] != after["row"]
        or int(before["column"]) + int(facts["columns"]) != int(after["column"])
    ):
        return None
    count = last.count + 1
    columns = int(facts["columns"]) + int(more["columns"])
    nbytes = int(facts["bytes"].replace(",", "")) + int(more["bytes"].replace(",", ""))
    box = Box(last.about, int(before["row"]), int(facts["rows"]), int(before["column"]), columns, nbytes)
    facts |= {"columns": str(columns), "bytes": f"{nbytes:,}"}
    rest = last.text.partition(" bytes")[2]
    into = f" into stage {before['stage']}" if last.op == "TMA load" else ""
    text = f"{count} {last.op}s of {area(box)}{into}, {nbytes:,} bytes{rest}"
    return replace(last, count=count, facts=tuple(facts.items()), text=text)


_JOINS: dict[str, Callable[[Event, Event], Event | None]] = {
    "init": _join_inits,
    "prefetch": _join_prefetches,
    "MMA": _join_mmas,
    "store": _join_stores,
    "TMA load": _join_boxes,
    "TMA store": _join_boxes,
}
