# SPDX-License-Identifier: Apache-2.0
"""A drawing as SVG: the same bytes for the same drawing."""

from __future__ import annotations

from xml.etree import ElementTree as Tree

from tmagen.timeline.drawing import Box, Drawing, Line, Shape, Text

_FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def svg(drawing: Drawing) -> str:
    """The file's text."""
    root = Tree.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", width=str(drawing.width), height=str(drawing.height),
        viewBox=f"0 0 {drawing.width} {drawing.height}", role="img",
    )  # fmt: skip
    root.set("font-family", _FONT)
    Tree.SubElement(root, "title").text = drawing.title
    defs = Tree.SubElement(root, "defs")
    for colour in sorted({s.hatch for s in drawing.shapes if isinstance(s, Box) and s.hatch is not None}):
        _hatch(defs, colour)
    for colour in sorted({s.colour for s in drawing.shapes if isinstance(s, Line) and s.head}):
        _head(defs, colour)
    Tree.SubElement(root, "rect", width=str(drawing.width), height=str(drawing.height), fill="#ffffff")
    for shape in drawing.shapes:
        _shape(root, shape)
    Tree.indent(root, " ")
    return Tree.tostring(root, encoding="unicode") + "\n"


def _name(kind: str, colour: str) -> str:
    return f"{kind}-{colour.lstrip('#')}"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _hatch(defs: Tree.Element, colour: str) -> None:
    pattern = Tree.SubElement(
        defs, "pattern", id=_name("hatch", colour), width="6", height="6", patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )  # fmt: skip
    line = Tree.SubElement(pattern, "line", x1="0", y1="0", x2="0", y2="6", stroke=colour)
    line.set("stroke-width", "2")


def _head(defs: Tree.Element, colour: str) -> None:
    marker = Tree.SubElement(
        defs, "marker", id=_name("head", colour), viewBox="0 0 8 8", refX="7", refY="4", markerWidth="7",
        markerHeight="7", orient="auto", markerUnits="userSpaceOnUse",
    )  # fmt: skip
    Tree.SubElement(marker, "path", d="M0,0.8 L8,4 L0,7.2 z", fill=colour)


def _shape(root: Tree.Element, shape: Shape) -> None:
    match shape:
        case Box():
            for fill in (shape.fill, *(() if shape.hatch is None else (f"url(#{_name('hatch', shape.hatch)})",))):
                box = Tree.SubElement(
                    root, "rect", x=_number(shape.x), y=_number(shape.y), width=_number(shape.width),
                    height=_number(shape.height), fill=fill,
                )  # fmt: skip
                if shape.edge is not None:
                    box.set("stroke", shape.edge)
        case Line():
            line = Tree.SubElement(
                root, "line", x1=_number(shape.x1), y1=_number(shape.y1), x2=_number(shape.x2), y2=_number(shape.y2),
                stroke=shape.colour,
            )  # fmt: skip
            line.set("stroke-width", _number(shape.width))
            if shape.head:
                line.set("marker-end", f"url(#{_name('head', shape.colour)})")
        case Text():
            text = Tree.SubElement(root, "text", x=_number(shape.x), y=_number(shape.y), fill=shape.fill)
            text.set("font-size", str(shape.size))
            if shape.anchor != "start":
                text.set("text-anchor", shape.anchor)
            if shape.bold:
                text.set("font-weight", "bold")
            text.text = shape.text
