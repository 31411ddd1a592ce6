# SPDX-License-Identifier: Apache-2.0
"""Runs anyone's PTX or .cu on the emulator and says what is wrong with it: no GPU is needed.

>>> from tmagen import check
>>> report = check.run("kernel.ptx", Path("launch.toml"))
>>> report.exit_code                    # 0: every run passed; 1: one failed; 2: one could not be judged
>>> print(report.text())
"""

from __future__ import annotations

from tmagen.check.finding import Finding, Severity
from tmagen.check.host import run_host
from tmagen.check.read_launch import from_mapping, from_toml
from tmagen.check.report import CaseReport, LaunchRecord, Report, Verdict
from tmagen.check.rules import RULES, Rule
from tmagen.check.run import COMPLETIONS, run
from tmagen.check.sarif import sarif
from tmagen.check.skeleton import skeleton
from tmagen.check.spec import LaunchSpec
from tmagen.check.subject import Subject, load

__all__ = [
    "COMPLETIONS",
    "RULES",
    "CaseReport",
    "Finding",
    "LaunchRecord",
    "LaunchSpec",
    "Report",
    "Rule",
    "Severity",
    "Subject",
    "Verdict",
    "from_mapping",
    "from_toml",
    "load",
    "run",
    "run_host",
    "sarif",
    "skeleton",
]
