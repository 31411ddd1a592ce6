# SPDX-License-Identifier: Apache-2.0
"""A drawing as PNG, by matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from tmagen.errors import Diagnostic, SpecError
from tmagen.timeline.drawing import Box, Drawing, Line, Text

_DPI = 100
_SCALE = 2
_POINTS = 72 / _DPI  # of a pixel


def png(drawing: Drawing) -> bytes:
    """The file's bytes, at twice the size of the SVG. Raises SpecError where there is no matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise missing() from None
    figure = Figure(figsize=(drawing.width / _DPI, drawing.height / _DPI), dpi=_SCALE * _DPI)
    canvas: Any = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.axis("off")
    for order, shape in enumerate(drawing.shapes, 1):
        _paint(axes, shape, order)
    out = BytesIO()
    canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()


def missing() -> SpecError:
    """The error for a machine without matplotlib."""
    hint = "pip install matplotlib (or tmagen[png]); -o with a name that ends in .svg needs nothing"
    return SpecError(Diagnostic("a PNG needs matplotlib, which is not installed", hint=hint))


def _paint(axes: Any, shape: Any, order: int) -> None:
    from matplotlib.patches import Rectangle

    match shape:
        case Box():
            place, size = (shape.x, shape.y), (shape.width, shape.height)
            edge = shape.edge or "none"
            axes.add_patch(
                Rectangle(place, *size, facecolor=shape.fill, edgecolor=edge, linewidth=_POINTS, zorder=order)
            )
            if shape.hatch is not None:
                axes.add_patch(
                    Rectangle(place, *size, fill=False, edgecolor=shape.hatch, hatch="////", linewidth=0, zorder=order)
                )
                axes.add_patch(Rectangle(place, *size, fill=False, edgecolor=edge, linewidth=_POINTS, zorder=order))
        case Line():
            style = "-|>,head_width=0.2,head_length=0.4" if shape.head else "-"
            width = shape.width * _POINTS
            properties = {"arrowstyle": style, "color": shape.colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (shape.x2, shape.y2), (shape.x1, shape.y1), arrowprops=properties, zorder=order)
        case Text():
            anchor = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            weight = "bold" if shape.bold else "normal"
            axes.text(
                shape.x, shape.y, shape.text, fontsize=shape.size * _POINTS * 0.95, color=shape.fill, ha=anchor,
                va="baseline", fontweight=weight, zorder=order,
            )  # fmt: skip
