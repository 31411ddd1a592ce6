# SPDX-License-Identifier: Apache-2.0
"""Proves a kernel without a GPU: compiles it, lets its own host part launch it on an emulator, and compares D.

>>> report = verify(Path("kernel.cu"), [Shape(512, 512, 512)])
>>> report.exit_code                    # 0: every case passed; 1: one is wrong; 2: one could not be judged
>>> print(report.text())
"""

from __future__ import annotations

from tmagen.bind import LeadingDims
from tmagen.verify.progress import NoProgress, Progress, StreamedText, TerminalProgress
from tmagen.verify.report import CaseReport, Report, Verdict
from tmagen.verify.run import COMPLETIONS, verify

__all__ = [
    "COMPLETIONS",
    "CaseReport",
    "LeadingDims",
    "NoProgress",
    "Progress",
    "Report",
    "StreamedText",
    "TerminalProgress",
    "Verdict",
    "verify",
]
