# SPDX-License-Identifier: Apache-2.0
"""The project's own kernels, compiled by nvcc and launched by their own host part."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tmagen.errors import TmagenError
from tmagen.ir import Shape
from tmagen.presets import PRESETS
from tmagen.verify import Verdict, verify
from tools.peers.outcome import Outcome

SHAPES = (Shape(256, 256, 256), Shape(200, 136, 72))


def run_all(pattern: str, checks: bool) -> Iterator[Outcome]:
    """Every preset whose name holds `pattern`."""
    for name, preset in PRESETS.items():
        if pattern not in name:
            continue
        outcome = Outcome("tmagen", name)
        start = time.perf_counter()
        shape = preset.spec.problem.shape
        shapes = [shape] if shape is not None else list(SHAPES)
        try:
            # A baked-in shape may be a large one: one order of completion, as `tmagen verify` does.
            ways = "all" if shape is None else "eager"
            report = verify(preset.spec, shapes, completion=ways, inputs="integer", checks=checks)
        except TmagenError as error:
            outcome.problems.append(str(error))
        else:
            outcome.runs = len(report.cases)
            outcome.problems = [
                line for case in report.cases if case.verdict is not Verdict.PASSED for line in case.lines()
            ]
        outcome.seconds = time.perf_counter() - start
        yield outcome
