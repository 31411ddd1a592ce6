# SPDX-License-Identifier: Apache-2.0
"""Tiles that leave in passes whose last has fewer boxes than the staging buffer holds."""

from __future__ import annotations

import pytest

from tmagen.ir import DType, Gemm, Problem, Shape, Target, Tile
from tmagen.plan import plan
from tmagen.verify import verify


@pytest.mark.parametrize(("n", "boxes", "per_pass"), [(160, 5, 4), (224, 7, 4), (192, 3, 2)])
def test_the_last_pass_is_short(n: int, boxes: int, per_pass: int) -> None:
    """nvcc 13.0 stages a fifth box of four where the loop over them ends at a variable: it overwrites the barriers."""
    bf16 = Problem(DType.BF16, DType.BF16, DType.BF16)
    spec = Gemm(bf16, Tile(128, n, 64), target=Target.SM_90A)
    epilogue = plan(spec).epilogue
    assert (epilogue.boxes, epilogue.boxes_per_pass) == (boxes, per_pass)
    report = verify(spec, [Shape(130, n + 9, 72)], inputs="integer", completion="eager")
    assert report.exit_code == 0, report.text()
