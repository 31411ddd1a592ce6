# SPDX-License-Identifier: Apache-2.0
"""The project's own kernels, compiled by nvcc and launched by their own host part."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tmagen.errors import TmagenError
from tmagen.ir import Shape, Target
from tmagen.presets import PRESETS
from tmagen.verify import Verdict, verify
from tools.peers.outcome import Outcome, Ways

SHAPES = (Shape(256, 256, 256), Shape(200, 136, 72))


def run_all(pattern: str, ways: Ways) -> Iterator[Outcome]:
    """Every preset for every target whose name holds `pattern`, except those for one large shape alone."""
    for target, (preset_name, preset) in product(Target, PRESETS.items()):
        name = f"{preset_name} {target.value}"
        if pattern not in name or preset.spec.problem.shape is not None:
            continue
        outcome = Outcome("tmagen", name)
        start = time.perf_counter()
        try:
            spec = replace(preset.spec, target=target)
            report = verify(
                spec, list(SHAPES), inputs="integer", checks=ways.checks, thorough=ways.thorough
            )
        except TmagenError as error:
            outcome.problems.append(str(error))
        else:
            outcome.runs = sum(case.runs for case in report.cases)
            outcome.problems = [
                line for case in report.cases if case.verdict is not Verdict.PASSED for line in case.lines()
            ]
        outcome.seconds = time.perf_counter() - start
        yield outcome
