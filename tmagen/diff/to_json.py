# SPDX-License-Identifier: Apache-2.0
"""A comparison as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tmagen.diff.align import Block, Row
from tmagen.diff.compare import Comparison
from tmagen.diff.event import Event
from tmagen.diff.facts import Group
from tmagen.diff.problem import Problem
from tmagen.diff.reasons import reason
from tmagen.diff.results import Results
from tmagen.diff.sides import Side
from tmagen.diff.tools import Tools

FORMAT = 1


def to_dict(comparison: Comparison, *, times: bool = True) -> dict[str, Any]:
    """Everything, for `json.dumps`; without `times` nothing that differs from run to run.

    Parts that were not asked for are missing.
    """
    found: dict[str, Any] = {
        "format": FORMAT,
        "exit_code": comparison.exit_code,
        "left": _side(comparison.left, times),
        "right": _side(comparison.right, times),
        "problem": None if comparison.unlaunched else _problem(comparison.problem),
        "trial": None if comparison.unlaunched else _problem(comparison.trial),
        "tools": _tools(comparison.tools),
    }
    if comparison.events is not None:
        totals = [{"step": name, "left": left, "right": right} for name, left, right in comparison.totals]
        found["events"] = {"sections": [_block(block) for block in comparison.events], "totals": totals}
    if comparison.unlaunched:
        found["unlaunched"] = list(comparison.unlaunched)
    if comparison.code:
        found["code"] = _groups(comparison.code)
    if comparison.plan is not None:
        found["plan"] = _groups(comparison.plan)
    if comparison.cost is not None:
        found["cost"] = _groups(comparison.cost)
    if comparison.result is not None:
        found["result"] = _result(comparison.result)
    return found


def _side(side: Side, times: bool) -> dict[str, Any]:
    seconds = {"compile_seconds": round(side.code.seconds, 3)} if times else {}
    return {"label": side.label, "made_by": side.made_by, **seconds}


def _tools(tools: Tools) -> dict[str, Any]:
    return {
        "nvcc": tools.nvcc,
        "ptxas": tools.ptxas,
        "flags": list(tools.flags),
        "disassembler": tools.disassembler or None,
        "tvm": tools.tvm or None,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    shape, lds = problem.shape, problem.lds
    return {
        "m": shape.m,
        "n": shape.n,
        "k": shape.k,
        "elements": [element.value for element in problem.elements],
        "leading_dims": [lds.a, lds.b, lds.d],
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "name": block.name,
        "tiles": list(block.tiles),
        "k_tiles": list(block.k),
        "alone": None if block.alone is None else block.alone.name.lower(),
        "differs": block.differs,
        "rows": [_row(row, block) for row in block.rows],
        "varying": [{"name": name, "left": left, "right": right} for name, left, right in block.varying],
    }


def _row(row: Row, block: Block) -> dict[str, Any]:
    return {
        "mark": row.mark.name.lower(),
        "left": _event(row.left),
        "right": _event(row.right),
        "reason": reason(row, block),
    }


def _event(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {
        "op": event.op,
        "about": event.about,
        "text": event.text,
        "who": event.who,
        "count": event.count,
        "facts": dict(event.facts),
        "varying": dict(event.varying),
        "ptx_line": event.line,
    }


def _groups(groups: Sequence[Group]) -> list[dict[str, Any]]:
    return [
        {
            "title": group.title,
            "facts": [
                {"name": f.name, "left": f.left, "right": f.right, "differs": f.differs, "note": f.note}
                for f in group.facts
            ],
        }
        for group in groups
    ]


def _result(result: Results) -> dict[str, Any]:
    return {
        "same": result.same,
        "left_ok": result.left_ok,
        "unjudged": result.unjudged or None,
        "reports": [{"side": label, "lines": list(lines)} for label, lines in result.reports],
        "cases": [
            {
                "inputs": case.inputs,
                "completion": case.completion,
                "same": case.same,
                "message": case.message,
                "left_exact": case.left_exact,
                "right_exact": case.right_exact,
            }
            for case in result.cases
        ],
        "checks": [
            {
                "rule": check.rule,
                "title": check.title,
                "severity": check.severity,
                "left": check.left or None,
                "right": check.right or None,
            }
            for check in result.checks
        ],
    }
