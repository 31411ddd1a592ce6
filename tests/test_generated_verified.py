# SPDX-License-Identifier: Apache-2.0
"""Every file in `generated/` computes the right product on the emulator, as it stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tmagen.ir import Shape, Target
from tmagen.presets import PRESETS
from tmagen.verify import verify
from tools.regen import GENERATED, pinned_nvcc

FILES = sorted(GENERATED.rglob("*.cu"))
SHAPES = [Shape(256, 264, 320), Shape(131, 141, 71)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_verified(path: Path) -> None:
    if "4096x4096x4096" in path.stem:
        # Seconds each: one order will do, and the checks see the same kernel at a smaller size below.
        report = verify(path, completion="eager", inputs="integer", checks=False, nvcc=pinned_nvcc())
    else:
        report = verify(path, SHAPES, nvcc=pinned_nvcc())
    assert report.exit_code == 0, report.text()
    assert report.cases


@pytest.mark.parametrize("target", Target)
def test_a_baked_in_shape_is_checked(target: Target) -> None:
    """Eight tiles of two CTAs, with a tail of K: more of each than a CTA of the preset takes of its 4096^3."""
    preset = PRESETS["step6-4096"].spec
    spec = replace(
        preset,
        problem=replace(preset.problem, shape=Shape(512, 264, 328)),
        schedule=replace(preset.schedule, ctas=2),
        target=target,
        name=None,
    )
    report = verify(spec, inputs="integer", nvcc=pinned_nvcc())
    assert report.exit_code == 0, report.text()
    assert any(case.checked for case in report.cases)
