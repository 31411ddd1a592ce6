# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from tmagen.errors import TmagenError
from tmagen.ir import DType, Shape
from tmagen.verify.inputs import integer_inputs, normal_inputs

PAIRS = [(DType.F16, DType.F16), (DType.BF16, DType.BF16)]


@pytest.mark.parametrize("elements", PAIRS)
def test_integers_are_small_exact_and_never_zero(elements: tuple[DType, DType]) -> None:
    inputs = integer_inputs(Shape(64, 48, 1000), elements, seed=3)
    assert (inputs.a.shape, inputs.b.shape) == ((64, 1000), (48, 1000))
    for matrix in (inputs.a, inputs.b):
        values = matrix.astype(np.float64)
        assert set(np.unique(values)) == {-7, -5, -3, -2, -1, 1, 2, 3, 5, 7}
    # The sum of the magnitudes of all products bounds every partial sum, in any order.
    assert (np.abs(inputs.a.astype(np.float64)) @ np.abs(inputs.b.astype(np.float64)).T).max() < 2**24


def test_longer_sums_get_smaller_integers() -> None:
    elements = (DType.F16, DType.F16)
    for k, largest in ((342_392, 7), (342_393, 3), (1_864_135, 3), (1_864_136, 1), (16_777_215, 1)):
        assert k * largest**2 < 2**24 or k == 16_777_216
        inputs = integer_inputs(Shape(1, 0, k), elements, seed=0)
        assert float(np.abs(inputs.a).max()) == largest
    with pytest.raises(TmagenError, match="not exact in f32"):
        integer_inputs(Shape(1, 0, 16_777_216), elements, seed=0)


def test_rows_and_columns_are_told_apart() -> None:
    """No two rows are alike, nor two columns: a tile or a K step in the wrong place changes D."""
    a = integer_inputs(Shape(256, 1, 512), (DType.F16, DType.F16), seed=0).a
    assert len(np.unique(a, axis=0)) == 256
    assert len(np.unique(a, axis=1).T) == 512


def test_seed_and_shape_decide_everything() -> None:
    shape, elements = Shape(8, 8, 16), (DType.F16, DType.F16)
    for make in (integer_inputs, normal_inputs):
        first, again, other = make(shape, elements, 1), make(shape, elements, 1), make(shape, elements, 2)
        assert np.array_equal(first.a, again.a)
        assert np.array_equal(first.b, again.b)
        assert not np.array_equal(first.a, other.a)
        assert not np.array_equal(first.a, first.b)


def test_normal_numbers_are_standard() -> None:
    a = normal_inputs(Shape(300, 1, 300), (DType.BF16, DType.BF16), seed=0).a.astype(np.float64)
    assert abs(a.mean()) < 0.02
    assert abs(a.std() - 1) < 0.02
