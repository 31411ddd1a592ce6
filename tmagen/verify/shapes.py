# SPDX-License-Identifier: Apache-2.0
"""Which problems are tried, and how their matrices lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmagen.bind import ALIGN_BYTES, LeadingDims
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import DType, Shape
from tmagen.legality import INT32_MAX

_SMALL = (
    Shape(256, 256, 256),  # several tiles, each of them whole
    Shape(129, 203, 71),  # every extent ends inside a tile, rows of D inside a chunk of a box that is not the first
    Shape(1, 1, 1),
    Shape(200, 520, 328),  # a K loop of odd length, tails in N that are no multiple of a box
    Shape(136, 72, 0),  # nothing to multiply: D is zero
    Shape(0, 128, 64),
    Shape(128, 0, 64),
)

# Of these the rows lie apart, each matrix's by a step of its own: a host part that takes a row's length, or another
# matrix's leading dimension, for the one that it was given is right as long as rows are packed.
_APART = (Shape(129, 203, 71), Shape(200, 520, 328))
_APART_CHUNKS = (1, 3, 2)  # of 16 bytes, between the rows of A, B and D

# Tried in this order until the grid stops growing with the shape: each CTA then has several tiles. K is an odd number
# of tiles of each size, so that a ring is left in the middle and has to go on from there with the next tile.
_MANY_TILES = (Shape(1000, 336, 280), Shape(1288, 1288, 280), Shape(1600, 1544, 280), Shape(1664, 3080, 280))

StaticShape = tuple[int | None, int | None, int | None]


def default_leading_dims(shape: Shape, elements: tuple[DType, DType, DType]) -> LeadingDims:
    """The shortest rows that TMA takes: K and N, rounded up to 16 bytes."""
    a, b, d = (
        _round_up(extent, ALIGN_BYTES // element.bytes)
        for extent, element in zip((shape.k, shape.k, shape.n), elements, strict=True)
    )
    return LeadingDims(a, b, d)


def padded_leading_dims(shape: Shape, elements: tuple[DType, DType, DType]) -> LeadingDims:
    """Rows that lie apart: three different leading dimensions, none the least that TMA takes."""
    packed = default_leading_dims(shape, elements)
    chosen: list[int] = []
    for least, element, chunks in zip((packed.a, packed.b, packed.d), elements, _APART_CHUNKS, strict=True):
        step = ALIGN_BYTES // element.bytes
        value = least + chunks * step
        while value in chosen:
            value += step
        chosen.append(value)
    return LeadingDims(*chosen)


def chosen_leading_dims(shape: Shape, elements: tuple[DType, DType, DType], static: StaticShape) -> LeadingDims:
    """How the matrices of one of :func:`default_shapes` lie: rows apart for some shapes, and for one that is baked in,
    else packed.
    """
    apart = None not in static or shape in {_fit(one, static) for one in _APART}
    return padded_leading_dims(shape, elements) if apart else default_leading_dims(shape, elements)


def check_leading_dims(shape: Shape, lds: LeadingDims, elements: tuple[DType, DType, DType]) -> None:
    """Raises SpecError for rows that overlap or that TMA cannot address; a kernel need not take those."""
    rows = (("A", lds.a, shape.k), ("B", lds.b, shape.k), ("D", lds.d, shape.n))
    wrong: list[Diagnostic] = []
    for (name, ld, extent), element in zip(rows, elements, strict=True):
        multiple = ALIGN_BYTES // element.bytes
        if ld < extent:
            wrong.append(Diagnostic(f"leading dimension {ld} of {name} is shorter than a row of {extent} elements"))
        elif ld % multiple:
            wrong.append(
                Diagnostic(
                    f"leading dimension {ld} of {name} is not a multiple of {ALIGN_BYTES} bytes",
                    hint=f"{_round_up(ld, multiple)}",
                )
            )
    if wrong:
        raise SpecError(*wrong)


def rounded_note(shape: Shape, lds: LeadingDims) -> str | None:
    """A line that says which leading dimensions are longer than their rows, or None if none is."""
    rows = (("lda", lds.a, shape.k), ("ldb", lds.b, shape.k), ("ldd", lds.d, shape.n))
    rounded = [f"{name} = {value}" for name, value, extent in rows if value != extent]
    return f"leading dimensions rounded up to 16 bytes: {', '.join(rounded)}" if rounded else None


def layout_note(shape: Shape, elements: tuple[DType, DType, DType], lds: LeadingDims) -> str | None:
    """A line on leading dimensions that nobody asked for, or None where rows are packed."""
    if lds == default_leading_dims(shape, elements):
        return rounded_note(shape, lds)
    return f"rows lie apart: lda = {lds.a}, ldb = {lds.b}, ldd = {lds.d}"


def default_shapes(static: StaticShape, tiles_of: Callable[[Shape], int | None]) -> tuple[Shape, ...]:
    """A small set that meets tails, K = 0, empty problems, and several tiles per CTA where the grid is fixed.

    `tiles_of` says how many CTAs the kernel's host part launches for a shape, None if it launches nothing.
    """
    if all(extent is not None for extent in static):
        return (_fit(Shape(0, 0, 0), static),)
    shapes = [*_SMALL, *_many_tiles(static, tiles_of)]
    return tuple(dict.fromkeys(_fit(shape, static) for shape in shapes))


def check_shapes(shapes: Sequence[Shape], static: StaticShape) -> tuple[Shape, ...]:
    """The shapes as asked for. Raises SpecError where a kernel with a baked-in shape cannot compute one."""
    wrong = [shape for shape in shapes if _fit(shape, static) != shape]
    if wrong:
        baked = ", ".join(f"{n} = {v}" for n, v in zip("mnk", static, strict=True) if v is not None)
        raise SpecError(
            *(
                Diagnostic(f"the kernel is for {baked} only, not for {s.m},{s.n},{s.k}", hint="no --shape")
                for s in wrong
            )
        )
    outside = [
        Diagnostic(f"shape {s.m},{s.n},{s.k}: {name} = {size:,} is out of range: it is 0 to {INT32_MAX:,} elements")
        for s in shapes
        for name, size in zip("mnk", (s.m, s.n, s.k), strict=True)
        if not 0 <= size <= INT32_MAX
    ]
    if outside:
        raise SpecError(*outside)
    return tuple(shapes)


def _many_tiles(static: StaticShape, tiles_of: Callable[[Shape], int | None]) -> tuple[Shape, ...]:
    """The smallest shape that has more tiles than the grid has CTAs; none if the grid grows with the shape."""
    for shape in _MANY_TILES:
        fitted = _fit(shape, static)
        larger = _fit(Shape(2 * shape.m, 2 * shape.n, shape.k), static)
        if larger != fitted and tiles_of(fitted) == tiles_of(larger):
            return (fitted,)
    return ()


def _fit(shape: Shape, static: StaticShape) -> Shape:
    m, n, k = (
        given if baked is None else baked for given, baked in zip((shape.m, shape.n, shape.k), static, strict=True)
    )
    return Shape(m, n, k)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
