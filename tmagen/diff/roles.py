# SPDX-License-Identifier: Apache-2.0
"""Who issues and who waits, and which orders are made: read off the code and the recorded steps."""

from __future__ import annotations

from collections.abc import Sequence

from tmagen.diff.code import Code
from tmagen.diff.event import Event
from tmagen.diff.facts import Fact, facts
from tmagen.diff.layout import DONE, FULL
from tmagen.diff.view import View

ELECTION_NOTE = (
    "ptxas knows that elect.sync leaves one lane; under any other guard it puts a loop around each instruction of the "
    "uniform datapath"
)
AFTER = "tcgen05.fence::after_thread_sync"


def roles(left: View, right: View) -> tuple[Fact, ...]:
    """One row for each question."""
    both = (left, right)
    return facts(
        (
            "one thread is chosen by",
            *(election_of(view.side.code) for view in both),
            ELECTION_NOTE,
        ),
        ("loads are issued by", *(_who(view, "TMA load") for view in both)),
        ("MMAs are issued by", *(_who(view, "MMA") for view in both)),
        ("loaded stages are waited for by", *(_who(view, "wait", FULL) for view in both)),
        ("MMAs are waited for by", *(_who(view, "wait", DONE) for view in both)),
        (
            f"{AFTER} before each first tcgen05.ld",
            *(_fenced(view.events) for view in both),
            "without it nothing in PTX orders the load after MMAs that another thread has waited for",
        ),
        (
            "a store is waited for until",
            *(_store_wait(view.events) for view in both),
            "wait_group.read returns when shared memory has been read: without .read D is in global memory by then",
        ),
    )


def election_of(code: Code) -> str:
    """How one thread of a warp is chosen."""
    elects = any(instruction.opcode.startswith("elect.sync") for instruction in code.entry.body)
    return "elect.sync" if elects else "its number"


def _who(view: View, op: str, about: str | None = None) -> str:
    found = dict.fromkeys(e.who for e in view.events if e.op == op and about in (None, e.about))
    return " and ".join(found) or "nobody"


def _fenced(events: Sequence[Event]) -> bool | None:
    """Whether each TMEM load that follows a wait or a barrier has the fence between the two; None without loads."""
    answers = []
    fenced = fresh = False
    for event in events:
        if event.op in ("wait", "meet"):
            fenced, fresh = False, True
        elif event.about == AFTER:
            fenced = True
        elif event.op == "TMEM load" and fresh:
            answers.append(fenced)
            fresh = False
    return all(answers) if answers else None


def _store_wait(events: Sequence[Event]) -> str:
    words = {"reads": "shared memory is read", "writes": "global memory is written"}
    kinds = dict.fromkeys(dict(event.facts)["waits for"] for event in events if event.op == "wait_group")
    return ", in the end ".join(words[kind] for kind in kinds) or "never"
