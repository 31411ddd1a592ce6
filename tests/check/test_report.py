# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from tests.check.kernels import ADD_S32, HEAD, add_launch, check_add, subject
from tmagen.check import RULES, Rule, Severity, Verdict, run, sarif
from tmagen.check.finding import Before, Finding, Findings
from tmagen.check.report import CaseReport, Report, verdict_of
from tmagen.check.rules import register, rule_of


@dataclass(frozen=True)
class Found:
    """What a checker of the emulator hands over."""

    rule: str
    level: str
    message: str = "the load may overwrite what the MMA still reads"
    detail: tuple[str, ...] = ("nothing orders them",)
    ptx_line: int | None = 12
    source: tuple[str, int] | None = ("kernel.cu", 34)
    instruction: str | None = "cp.async.bulk"
    where: str | None = "CTA (0, 0, 0) warp 0"
    count: int = 1
    calls: str = " in load, called at line 80"
    other: Before | None = None


def report_of(*findings: Finding, subject: str = "kernel.cu") -> Report:
    return Report((subject,), None, (), (CaseReport("eager", 0, 0.1, (), findings),), 0.0)


def test_the_same_place_counts() -> None:
    findings = Findings()
    findings.take([Found("race", "E", source=None), Found("race", "E", source=None)])
    findings.take([Found("race", "E", source=None, ptx_line=13)])
    assert [(one.ptx_line, one.count) for one in findings] == [(12, 2), (13, 1)]
    assert "2 times" in "\n".join(next(iter(findings)).lines())


def test_a_line_of_the_source_is_one_finding() -> None:
    """A loop that is unrolled has its line in many places of the PTX; who does it, and where, differs."""
    findings = Findings()
    lines = [12, 40, 12, *range(50, 60)]
    findings.take(
        [
            Found("race", "E", f"warp {i} reads 0x{i:x}", ptx_line=at, instruction=f"ld.shared.b32 %r{i}, [%r1]")
            for i, at in enumerate(lines)
        ]
    )
    findings.take([Found("race", "E", source=("kernel.cu", 35)), Found("race", "E", instruction="st.shared.b32 [%r1]")])
    first, *others = findings
    assert (first.ptx_line, first.count, first.also) == (12, 13, (40, *range(50, 60))) and len(others) == 2
    assert "  the same of PTX lines 40, 50, 51, 52, 53, 54, 55, 56 and 3 more" in first.lines()
    assert first.to_dict()["also_ptx_lines"] == [40, *range(50, 60)] and others[0].to_dict()["also_ptx_lines"] == []


def test_hints_are_told_once_for_a_line_of_the_source() -> None:
    findings = Findings()
    findings.take_hints([Found("DS-10", "H", f"the map of PTX line {at}", ptx_line=at) for at in (3, 4)])
    findings.take_hints([Found("DS-10", "H", "the map of PTX line 3", source=None)])
    assert findings.hints == (
        "perhaps DS-10: the map of PTX line 3, at kernel.cu:34 in load, called at line 80",
        "perhaps DS-10: the map of PTX line 3, at PTX line 12",
    )
    assert not len(findings)


def test_verdicts() -> None:
    error, warning, review, unknown = (Finding("r", severity, "m") for severity in Severity)
    assert verdict_of([review], strict=True) is Verdict.PASSED
    assert verdict_of([warning], strict=True) is Verdict.FAILED
    assert verdict_of([]) is Verdict.PASSED
    assert verdict_of([warning]) is Verdict.PASSED
    assert verdict_of([warning, unknown]) is Verdict.NOT_JUDGED
    assert verdict_of([warning, unknown, error]) is Verdict.FAILED
    assert [report_of(one).exit_code for one in (error, warning, unknown)] == [1, 0, 2]
    assert Report(("k",), None, (), (), 0.0).exit_code == 2


def test_a_checker_must_know_severities() -> None:
    with pytest.raises(KeyError, match="fatal"):
        Findings().take([Found("race", "fatal")])


def test_rules_are_known_once() -> None:
    assert "fault" in RULES
    with pytest.raises(ValueError, match="fault"):
        register(Rule("fault", "", ""))
    assert rule_of("none").id == "none"
    assert "mbarrier" in rule_of("MB-01").help


def test_json_is_plain() -> None:
    report = check_add(add_launch(), ADD_S32.replace("add.s32 %r8", "sub.s32 %r8"))
    document = json.loads(json.dumps(report.to_dict()))
    assert document["exit_code"] == 1
    (case,) = document["cases"]
    assert case["verdict"] == "failed"
    assert case["findings"][0]["rule"] == "wrong-result"
    assert case["launches"][0]["grid"] == [4, 1, 1]


def test_the_line_comes_with_the_calls_that_led_there() -> None:
    findings = Findings()
    findings.take([Found("race", "E")])
    (finding,) = findings
    assert "  at kernel.cu:34 in load, called at line 80, PTX line 12, CTA (0, 0, 0) warp 0" in finding.lines()
    assert finding.to_dict()["calls"] == "in load, called at line 80"


def test_the_report_names_the_way_to_more_about_a_check() -> None:
    findings = Findings()
    findings.take([Found("WG-05", "E")])
    assert "tmagen explain-check WG-05 has more about it" in report_of(*findings).text()
    findings.take([Found("TM-34", "E")])
    assert "tmagen explain-check ID has more about WG-05, TM-34" in report_of(*findings).text()
    unknown = Finding("not-judged", Severity.NOT_JUDGED, "m")
    assert "explain-check" not in report_of(unknown).text()


def test_sarif_has_both_lines() -> None:
    findings = Findings()
    findings.take([Found("race", "E"), Found("order", "W")])
    log = json.loads(json.dumps(sarif(report_of(*findings), ptx_file="out/kernel.ptx")))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["race", "order"]
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    first = run["results"][0]
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"]
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "kernel.cu"}, "region": {"startLine": 34}}
    related = first["relatedLocations"][0]["physicalLocation"]
    assert related == {"artifactLocation": {"uri": "out/kernel.ptx"}, "region": {"startLine": 12}}
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]


def test_sarif_has_both_accesses_of_a_race() -> None:
    findings = Findings()
    findings.take([Found("race", "E", other=Before("st.shared.b32 [%r1], %r2", 7, ("kernel.cu", 20)))])
    (result,) = sarif(report_of(*findings), ptx_file="out/kernel.ptx")["runs"][0]["results"]
    places = [place["physicalLocation"] for place in result["relatedLocations"]]
    assert [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places] == [
        ("out/kernel.ptx", 12),
        ("kernel.cu", 20),
        ("out/kernel.ptx", 7),
    ]
    assert [place["id"] for place in result["relatedLocations"]] == [1, 2, 3]
    assert result["relatedLocations"][1]["message"]["text"] == "the access before: st.shared.b32 [%r1], %r2"


def test_sarif_of_a_launch_file_and_of_what_is_not_judged() -> None:
    key = Finding("wrong-result", Severity.ERROR, "m", key="expect")
    unknown = Finding("not-judged", Severity.NOT_JUDGED, "m")
    log = sarif(report_of(key, unknown, subject="/k b.ptx"), launch_file="launch.toml")
    first, second = log["runs"][0]["results"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "launch.toml"
    assert (second["kind"], second["level"]) == ("open", "none")
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///k%20b.ptx"
    passed = sarif(report_of())
    assert passed["runs"][0]["results"] == []


WAITS = """
.visible .entry k()
{
.reg .pred %p<3>; .reg .b32 %r<4>;
.shared .align 8 .b8 bar[8];
mov.u32 %r1, bar;
mov.u32 %r2, %tid.x;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra $ready;
mbarrier.init.shared::cta.b64 [%r1], 1;
$ready:
.loc 1 40 1
bar.sync 0;
.loc 1 41 1
setp.ge.u32 %p2, %r2, 32;
@%p2 bra $second;
.loc 2 7 1, function_name $L__name, inlined_at 1 30 5
$wait:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
@!%p1 bra $wait;
$second:
.loc 1 50 1
bar.sync 2, 64;
ret;
}
"""
FILES = """.file 1 "kernel.cu"
.file 2 "ptx.h"
.section .debug_str
{
$L__name:
.b8 95,90,78,49,107,51,112,116,120,52,119,97,105,116,69,106,0
}
"""


def test_sarif_says_where_a_deadlock_waits() -> None:
    """At the lines that a person looks for: not that of the wrapper."""
    launch = {"grid": 1, "block": 64, "params": [], "kernel": "k"}
    lines = []
    for text in (HEAD + WAITS + FILES, HEAD + re.sub(r"\.loc.*\n", "", WAITS)):
        report = run(subject(text), launch, completion="eager")
        (result,) = sarif(report)["runs"][0]["results"]
        assert result["ruleId"] == "deadlock"
        places = [place["physicalLocation"] for place in (*result["locations"], *result["relatedLocations"])]
        lines.append([(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places])
    rows = (HEAD + re.sub(r"\.loc.*\n", "", WAITS)).split("\n")
    at = [number for number, row in enumerate(rows, 1) if row.startswith(("mbarrier.try_wait", "bar.sync 2"))]
    assert lines == [[("kernel.cu", 30), ("kernel.cu", 50)], [("kernel.ptx", line) for line in at]]
