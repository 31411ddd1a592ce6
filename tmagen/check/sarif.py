# SPDX-License-Identifier: Apache-2.0
"""A report as SARIF 2.1.0, which code hosts and editors show beside the lines that it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tmagen import __version__
from tmagen.check.finding import Before, Finding, Severity
from tmagen.check.report import Report, Verdict
from tmagen.check.rules import Rule, rule_of

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REVIEW: "note",
    Severity.NOT_JUDGED: "warning",
}


def sarif(report: Report, *, launch_file: str | None = None, ptx_file: str | None = None) -> dict[str, Any]:
    """The log. `launch_file` is where keys of a launch file lie, `ptx_file` where the PTX of a .cu was saved."""
    findings = report.findings
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    ptx = ptx_file or next((name for name in report.subject if name.endswith(".ptx")), None)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "tmagen check",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(rule_of(rule)) for rule in rules],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": report.verdict is not Verdict.NOT_JUDGED,
                        "exitCode": report.exit_code,
                    }
                ],
                "artifacts": [{"location": _artifact(name)} for name in report.subject],
                "columnKind": "utf16CodeUnits",
                "results": [_result(finding, rules, report.subject, ptx, launch_file) for finding in findings],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {"id": rule.id, "shortDescription": {"text": rule.title}, "fullDescription": {"text": rule.help}}


def _result(
    finding: Finding, rules: Sequence[str], subject: Sequence[str], ptx: str | None, launch_file: str | None
) -> dict[str, Any]:
    places = []
    if finding.source is not None:
        places.append(_place(finding.source[0], finding.source[1]))
    if finding.ptx_line is not None and ptx is not None:
        places.append(_place(ptx, finding.ptx_line))
    waits = [("waits too", place) for at in finding.waits if (place := _place_of(at, ptx)) is not None]
    if not places and waits:
        places.append(waits.pop(0)[1])
    if not places:
        places.append(_place(launch_file if finding.key and launch_file else subject[0], None))
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "kind": "fail" if finding.severity is not Severity.NOT_JUDGED else "open",
        "message": {"text": "\n".join((finding.message, *finding.detail))},
        "locations": places[:1],
        "occurrenceCount": finding.count,
    }
    # SARIF allows a level other than "none" for a kind of "fail" alone.
    if result["kind"] == "open":
        result["level"] = "none"
    related = [*(("the PTX", place) for place in places[1:]), *waits]
    if (before := finding.before) is not None:
        if before.source is not None:
            related.append((f"the access before: {before.instruction}", _place(*before.source)))
        if ptx is not None:
            related.append(("the access before, in the PTX", _place(ptx, before.ptx_line)))
    if related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": words}, **place} for number, (words, place) in enumerate(related, 1)
        ]
    properties = {
        "ptxLine": finding.ptx_line,
        "instruction": finding.instruction,
        "who": finding.where,
        "key": finding.key,
    }
    result["properties"] = {name: value for name, value in properties.items() if value is not None}
    return result


def _place_of(spot: Before, ptx: str | None) -> dict[str, Any] | None:
    """The line of the source, else that of the PTX; None where neither is there."""
    if spot.source is not None:
        return _place(*spot.source)
    return None if ptx is None else _place(ptx, spot.ptx_line)


def _place(file: str, line: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(file)}
    if line is not None and line > 0:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _artifact(name: str) -> dict[str, str]:
    path = PurePath(name)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}
