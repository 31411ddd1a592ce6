# SPDX-License-Identifier: Apache-2.0
"""A picture of what one CTA does, drawn from a trace of a timed run: what works when, who waits, who releases whom.

`run` makes the trace, `picture` chooses what to show, `drawing` places it, `svg` and `png` write it.
"""

from __future__ import annotations

from tmagen.timeline.drawing import Drawing, draw
from tmagen.timeline.png import png
from tmagen.timeline.run import Timeline, drawing_of, timeline
from tmagen.timeline.svg import svg

__all__ = ["Drawing", "Timeline", "draw", "drawing_of", "png", "svg", "timeline"]
