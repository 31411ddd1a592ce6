# SPDX-License-Identifier: Apache-2.0
"""Tests marked `gpu` are deselected unless `-m gpu` asks for them, and say why where they then cannot run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tmagen.gpu.device import PyCudaGpu, open_gpu
from tmagen.gpu.errors import MissingError


@pytest.fixture(scope="session")
def hopper() -> Iterator[PyCudaGpu]:
    """A GPU of sm_90, open for the whole session: its primary context stays."""
    try:
        with open_gpu() as gpu:
            if gpu.info.compute_capability != (9, 0):
                pytest.skip(f"needs a GPU of sm_90: this is {gpu.info}")
            yield gpu
    except MissingError as error:
        pytest.skip(error.report())
