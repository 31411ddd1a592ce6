# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tmagen.errors import SpecError
from tmagen.ir import DType, Shape
from tmagen.verify import LeadingDims
from tmagen.verify.shapes import (
    check_leading_dims,
    check_shapes,
    chosen_leading_dims,
    default_leading_dims,
    default_shapes,
    layout_note,
    padded_leading_dims,
    rounded_note,
)

HALF = (DType.F16, DType.F16, DType.F16)
RUN_TIME = (None, None, None)


def one_tile_per_cta(shape: Shape) -> int | None:
    return -(-shape.m // 128) * -(-shape.n // 128) or None


def persistent(shape: Shape) -> int | None:
    return min(148, one_tile_per_cta(shape) or 0) or None


def test_leading_dims_are_rounded_up_to_16_bytes() -> None:
    assert default_leading_dims(Shape(5, 9, 17), HALF) == LeadingDims(24, 24, 16)
    assert default_leading_dims(Shape(5, 9, 16), (DType.F16, DType.F16, DType.F32)) == LeadingDims(16, 16, 12)
    assert default_leading_dims(Shape(5, 8, 0), HALF) == LeadingDims(0, 0, 8)


def test_note_names_what_was_rounded() -> None:
    shape = Shape(5, 9, 16)
    assert (
        rounded_note(shape, default_leading_dims(shape, HALF)) == "leading dimensions rounded up to 16 bytes: ldd = 16"
    )
    assert rounded_note(Shape(5, 8, 16), LeadingDims(16, 16, 8)) is None


@pytest.mark.parametrize("shape", [Shape(129, 141, 71), Shape(5, 64, 64), Shape(5, 72, 64), Shape(5, 48, 64)])
@pytest.mark.parametrize("elements", [HALF, (DType.BF16, DType.BF16, DType.F32)])
def test_padded_leading_dims_differ_from_each_other_and_from_packed_rows(
    shape: Shape, elements: tuple[DType, DType, DType]
) -> None:
    packed, padded = default_leading_dims(shape, elements), padded_leading_dims(shape, elements)
    check_leading_dims(shape, padded, elements)
    assert len({padded.a, padded.b, padded.d}) == 3
    assert padded.a > packed.a and padded.b > packed.b and padded.d > packed.d
    note = f"rows lie apart: lda = {padded.a}, ldb = {padded.b}, ldd = {padded.d}"
    assert layout_note(shape, elements, padded) == note


def test_some_default_shapes_have_rows_that_lie_apart() -> None:
    shapes = default_shapes(RUN_TIME, one_tile_per_cta)
    apart = {s for s in shapes if chosen_leading_dims(s, HALF, RUN_TIME) != default_leading_dims(s, HALF)}
    assert any(s.n % 8 and s.n % 4 and s.m % 128 and s.k % 64 for s in apart), "an edge of D, of any output type"
    assert set(shapes) - apart, "packed rows are tried too"
    assert chosen_leading_dims(Shape(8, 8, 8), HALF, (8, 8, 8)) == padded_leading_dims(Shape(8, 8, 8), HALF)


def test_impossible_leading_dims_are_all_named() -> None:
    with pytest.raises(SpecError) as raised:
        check_leading_dims(Shape(4, 20, 40), LeadingDims(39, 44, 20), HALF)
    messages = [diagnostic.message for diagnostic in raised.value.diagnostics]
    assert messages == [
        "leading dimension 39 of A is shorter than a row of 40 elements",
        "leading dimension 44 of B is not a multiple of 16 bytes",
        "leading dimension 20 of D is not a multiple of 16 bytes",
    ]
    assert raised.value.diagnostics[1].hint == "48"
    check_leading_dims(Shape(4, 20, 40), LeadingDims(40, 48, 20), (DType.F16, DType.F16, DType.F32))


@pytest.mark.parametrize("block_k", [32, 64, 128])
def test_ctas_with_several_tiles_leave_the_ring_in_the_middle(block_k: int) -> None:
    def fixed_grid(shape: Shape) -> int:
        return min(148, -(-shape.m // 128) * -(-shape.n // 128))

    before, shapes = set(default_shapes(RUN_TIME, one_tile_per_cta)), default_shapes(RUN_TIME, fixed_grid)
    (many,) = set(shapes) - before
    assert -(-many.m // 128) * -(-many.n // 128) > 148
    assert -(-many.k // block_k) % 2 == 1


def test_defaults_meet_the_corners() -> None:
    shapes = default_shapes(RUN_TIME, one_tile_per_cta)
    assert any(shape.k == 0 and shape.m and shape.n for shape in shapes)
    assert any(shape.m == 0 for shape in shapes)
    assert any(shape.n == 0 for shape in shapes)
    assert any(shape.m % 128 and shape.n % 128 and shape.k % 64 for shape in shapes)
    assert any(shape.m % 128 and shape.n % 128 and shape.n % 8 == 0 for shape in shapes), "no edge"
    assert any(shape.n % 8 for shape in shapes), "rows of D that are no multiple of 16 bytes"
    assert any(shape.n % 8 and shape.n % 128 > 64 for shape in shapes), "an edge in a later box"
    assert len(set(shapes)) == len(shapes)


def test_fixed_grid_gets_more_tiles_than_ctas() -> None:
    (added,) = set(default_shapes(RUN_TIME, persistent)) - set(default_shapes(RUN_TIME, one_tile_per_cta))
    tiles = one_tile_per_cta(added)
    assert tiles is not None
    assert 148 < tiles < 2 * 148


def test_baked_in_extents_stay() -> None:
    assert default_shapes((300, 200, 100), one_tile_per_cta) == (Shape(300, 200, 100),)
    shapes = default_shapes((None, 96, None), one_tile_per_cta)
    assert {shape.n for shape in shapes} == {96}
    assert len({shape.m for shape in shapes}) > 3


def test_shapes_that_the_kernel_is_not_for() -> None:
    assert check_shapes([Shape(1, 2, 3)], RUN_TIME) == (Shape(1, 2, 3),)
    with pytest.raises(SpecError, match="the kernel is for m = 1, k = 3 only, not for 2,2,3"):
        check_shapes([Shape(1, 2, 3), Shape(2, 2, 3)], (1, None, 3))
    for shape, size in ((Shape(-1, 2, 3), "m = -1"), (Shape(1, 2**31, 3), "n = 2,147,483,648")):
        with pytest.raises(SpecError, match=rf"{size} is out of range: it is 0 to 2,147,483,647 elements"):
            check_shapes([Shape(1, 2, 3), shape], RUN_TIME)
