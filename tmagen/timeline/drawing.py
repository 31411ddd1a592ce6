# SPDX-License-Identifier: Apache-2.0
"""A picture as shapes with places in pixels, which both writers draw alike."""

from __future__ import annotations

from dataclasses import dataclass

from tmagen.timeline.picture import Bar, Edge, Picture

WIDTH = 900
_LEFT, _RIGHT = 162, 14
_TOP, _ROW, _BAR = 54, 32, 20
_SMALL, _TEXT, _TITLE = 11, 12, 15
_CHARACTER = 0.56  # of the font's size: the mean width of a character

INK, SOFT, GRID = "#1f2933", "#616e7c", "#e4e7eb"
FILLS = {
    "load": "#a9cdf0", "store": "#b5dfb0", "copy": "#c9b8e8", "mma": "#f7c07a", "wait": "#fbeaea", "phase": "#eef0f3",
    "odd phase": "#dfe3e8", "instruction": "#c3cad2",
}  # fmt: skip
EDGES = {
    "load": "#3b78b3", "store": "#4b8f44", "copy": "#7a5fb0", "mma": "#c27a17", "wait": "#c0605c", "phase": "#a8b0ba",
    "odd phase": "#a8b0ba", "instruction": "#9aa5b1",
}  # fmt: skip
ARROWS = {"issue": "#3e4c59", "tells": "#3b78b3", "releases": "#b3261e"}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; `hatch` is the colour of its stripes, or None."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str | None
    hatch: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `anchor` is start, middle or end; `y` is its base line."""

    x: float
    y: float
    text: str
    size: int
    fill: str
    anchor: str = "start"
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line; `head` for an arrow's."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float
    head: bool = False


Shape = Box | Text | Line


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes in the order to paint them."""

    width: int
    height: int
    title: str
    shapes: tuple[Shape, ...]


def draw(picture: Picture) -> Drawing:
    """The picture at a width of 900 pixels."""
    painter = _Painter(picture)
    return painter.draw()


def width_of(text: str, size: int) -> float:
    """About how wide a text is, pixels."""
    return len(text) * size * _CHARACTER


class _Painter:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.bottom = _TOP + _ROW * len(picture.lanes)
        self.shapes: list[Shape] = []

    def draw(self) -> Drawing:
        picture = self.picture
        self.shapes.append(Text(10, 20, picture.title, _TITLE, INK, bold=True))
        self.shapes.append(Text(10, 37, picture.note, _SMALL, SOFT))
        self._axis()
        for number, lane in enumerate(picture.lanes):
            y = self._y(number)
            self.shapes.append(Text(_LEFT - 8, y + _BAR / 2 + 4, lane.label, _TEXT, INK, "end"))
            for bar in lane.bars:
                self._bar(bar, y)
        for edge in picture.edges:
            self._edge(edge)
        for number, lane in enumerate(picture.lanes):
            for bar in lane.bars:
                self._label(bar, self._y(number))
        height = self._legend()
        return Drawing(WIDTH, height, picture.title, tuple(self.shapes))

    def _x(self, cycle: float) -> float:
        first, last = self.picture.first, self.picture.last
        place = (min(max(cycle, first), last) - first) / max(1, last - first)
        return round(_LEFT + place * (WIDTH - _LEFT - _RIGHT), 2)

    def _y(self, number: int) -> float:
        return _TOP + _ROW * number + (_ROW - _BAR) / 2

    def _axis(self) -> None:
        first, last = self.picture.first, self.picture.last
        step = next(s * 10**e for e in range(9) for s in (1, 2, 5) if (last - first) / (s * 10**e) <= 10)
        at = -(-first // step) * step
        while at <= last:
            x = self._x(at)
            self.shapes.append(Line(x, _TOP, x, self.bottom, GRID, 1))
            label = f"{at:,}"
            if x - width_of(label, _SMALL) / 2 > _LEFT and x + width_of(label, _SMALL) / 2 < WIDTH:
                self.shapes.append(Text(x, self.bottom + 14, label, _SMALL, SOFT, "middle"))
            at += step
        self.shapes.append(Text(_LEFT - 8, self.bottom + 14, "cycles", _SMALL, SOFT, "end"))

    def _bar(self, bar: Bar, y: float) -> None:
        left, right = self._x(bar.start), self._x(bar.end)
        if right <= left:
            return
        inset = 5 if bar.kind == "instruction" else 0
        hatch = "#e7b4b1" if bar.kind == "wait" else None
        width = max(round(right - left, 2), 1)
        self.shapes.append(Box(left, y + inset, width, _BAR - 2 * inset, FILLS[bar.kind], EDGES[bar.kind], hatch))

    def _label(self, bar: Bar, y: float) -> None:
        left, right = self._x(bar.start), self._x(bar.end)
        for text in bar.labels:
            wide = width_of(text, _SMALL)
            if wide + 6 <= right - left:
                middle = round((left + right) / 2, 2)
                # Stripes and arrows do not go through a label.
                back = Box(round(middle - wide / 2 - 1, 2), y + 3, round(wide + 2, 2), _BAR - 6, FILLS[bar.kind], None)
                self.shapes.append(back)
                self.shapes.append(Text(middle, y + _BAR / 2 + 4, text, _SMALL, INK, "middle"))
                return

    def _edge(self, edge: Edge) -> None:
        down = edge.target > edge.source
        y1 = self._y(edge.source) + (_BAR if down else 0)
        y2 = self._y(edge.target) + (0 if down else _BAR)
        self.shapes.append(Line(self._x(edge.start), y1, self._x(edge.end), y2, ARROWS[edge.kind], 1.2, head=True))

    def _legend(self) -> int:
        kinds = {bar.kind for lane in self.picture.lanes for bar in lane.bars}
        entries = [
            ("load", "TMA load"), ("mma", "MMA"), ("store", "TMA store"), ("copy", "cp.async"), ("wait", "waits"),
            ("phase", "mbarrier phase"), ("instruction", "other instructions"),
        ]  # fmt: skip
        arrows = [("issue", "issues"), ("tells", "completes on"), ("releases", "releases")]
        drawn = {edge.kind for edge in self.picture.edges}
        x, y = 10.0, self.bottom + 28.0
        for kind, text in [e for e in entries if e[0] in kinds] + [a for a in arrows if a[0] in drawn]:
            wide = 24 + width_of(text, _SMALL) + 14
            if x + wide > WIDTH:
                x, y = 10.0, y + 18
            if kind in FILLS:
                self.shapes.append(Box(x, y, 18, 11, FILLS[kind], EDGES[kind], "#e7b4b1" if kind == "wait" else None))
            else:
                self.shapes.append(Line(x, y + 6, x + 18, y + 6, ARROWS[kind], 1.2, head=True))
            self.shapes.append(Text(round(x + 23, 2), y + 10, text, _SMALL, SOFT))
            x = round(x + wide, 2)
        return int(y + 22)
