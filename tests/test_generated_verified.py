# SPDX-License-Identifier: Apache-2.0
"""Every file in `generated/` computes the right product on the emulator, as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmagen.ir import Shape
from tmagen.verify import verify
from tools.regen import GENERATED, pinned_nvcc

FILES = sorted(GENERATED.rglob("*.cu"))
SHAPES = [Shape(256, 264, 320), Shape(131, 141, 71)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_verified(path: Path) -> None:
    if "4096x4096x4096" in path.stem:
        report = verify(path, completion="eager", inputs="integer", nvcc=pinned_nvcc())  # seconds each: one will do
    else:
        report = verify(path, SHAPES, nvcc=pinned_nvcc())
    assert report.exit_code == 0, report.text()
    assert report.cases
