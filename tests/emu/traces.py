# SPDX-License-Identifier: Apache-2.0
"""What has to hold of every trace, whatever it is of."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

Event = dict[str, Any]


def load(text: str) -> list[Event]:
    """The events of a trace file."""
    data = json.loads(text)
    assert data["displayTimeUnit"] == "ns" and data["otherData"]["kernel"]
    events: list[Event] = data["traceEvents"]
    return events


def slices(events: list[Event], **wanted: Any) -> list[Event]:
    """The slices whose fields are as wanted."""
    return [e for e in events if e["ph"] == "X" and all(e[key] == value for key, value in wanted.items())]


def rows(events: list[Event]) -> dict[tuple[int, int], str]:
    """(process, row) -> its name."""
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}


def row(events: list[Event], name: str, pid: int = 0) -> int:
    """The number of a row."""
    (found,) = [tid for (owner, tid), known in rows(events).items() if owner == pid and known == name]
    return found


def check(events: list[Event]) -> None:
    """Raises AssertionError for what Chrome or Perfetto would not show as it was meant."""
    named = rows(events)
    processes = {e["pid"] for e in events if e["name"] == "process_name"}
    by_row: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        assert event["pid"] in processes
        if event["ph"] == "X":
            assert isinstance(event["ts"], int) and event["ts"] >= 0 and event["dur"] >= 1
            assert (event["pid"], event["tid"]) in named, "a slice lies in a row that has a name"
            by_row.setdefault((event["pid"], event["tid"]), []).append(event)
    for place, found in by_row.items():
        _check_nesting(named[place], found)
        if named[place].startswith("mbarrier"):
            _check_phases(found)
    _check_flows(events, by_row)


def _check_nesting(name: str, found: list[Event]) -> None:
    """Slices of one row follow each other or lie within each other, in the order of the file."""
    assert [e["ts"] for e in found] == sorted(e["ts"] for e in found), f"{name}: in the order of time"
    open_ends: list[Event] = []
    for event in found:
        end = event["ts"] + event["dur"]
        while open_ends and open_ends[-1]["ts"] + open_ends[-1]["dur"] <= event["ts"]:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1]["ts"] + open_ends[-1]["dur"], f"{name}: {event} in {open_ends[-1]}"
        open_ends.append(event)


def _check_phases(found: list[Event]) -> None:
    phases = [e for e in found if e["cat"] == "phase"]
    numbers = [e["args"]["phase"] for e in phases]
    assert numbers == list(range(len(numbers))), "phases one after another from 0"
    for before, after in pairwise(phases):
        assert before["ts"] + before["dur"] == after["ts"], "a phase begins where the one before ended"
    for event in found:
        if event["cat"] == "arrival":
            assert {"pending arrivals", "tx bytes", "phase"} <= event["args"].keys()


def _check_flows(events: list[Event], by_row: dict[tuple[int, int], list[Event]]) -> None:
    ends: dict[int, dict[str, Event]] = {}
    for event in events:
        if event["ph"] in "sf":
            assert event["ph"] not in ends.setdefault(event["id"], {}), "an id is of one arrow"
            ends[event["id"]][event["ph"]] = event
            around = by_row[event["pid"], event["tid"]]
            assert any(e["ts"] <= event["ts"] < e["ts"] + e["dur"] for e in around), f"{event} hangs in no slice"
    for pair in ends.values():
        assert pair.keys() == {"s", "f"}, "an arrow has both ends"
        assert pair["s"]["ts"] <= pair["f"]["ts"], "an arrow does not go back in time"
        assert pair["s"]["cat"] == pair["f"]["cat"] and pair["f"]["bp"] == "e"
