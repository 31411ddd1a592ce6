# SPDX-License-Identifier: Apache-2.0
"""From a kernel to a drawing: a timed run of one shape, traced in one CTA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tmagen.emu import Trace, Tracing
from tmagen.emu.observe.trace import ClusterRecord, CtaInfo
from tmagen.emu.timing.latency import MODEL
from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import Gemm, Shape
from tmagen.timeline.drawing import Drawing, draw
from tmagen.timeline.picture import picture
from tmagen.toolchain import Nvcc
from tmagen.verify import Report, verify

_FILE_SHAPE = Shape(256, 256, 512)
_K_TILES = 8


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing, and the report of the run that it is of."""

    drawing: Drawing
    report: Report


def timeline(
    subject: Path | Gemm,
    shape: Shape | None = None,
    *,
    cta: int = 0,
    k: tuple[int, int] | None = None,
    cycles: tuple[int, int] | None = None,
    title: str | None = None,
    nvcc: Nvcc | Path | str | None = None,
    kernel: str | None = None,
) -> Timeline:
    """Runs a kernel by the model of :mod:`tmagen.emu.timing` and draws CTA `cta`, by its place in the grid, x fastest.

    `shape` is one tile of D by eight of K unless it is given or baked in, and 256 x 256 x 512 of a file. The window is
    that of the K tiles from the first of `k` to its last, or of `cycles`; by default that of the first four K tiles.
    A run that fails is drawn up to there.

    Raises TmagenError where there is nothing to draw: what `verify` raises, a CTA or a window that does not exist.
    """
    tracing = Tracing({cta})
    report = verify(
        subject,
        [shape or _default_shape(subject)],
        completion="timed",
        inputs="integer",
        checks=False,
        nvcc=nvcc,
        kernel=kernel,
        tracing=tracing,
    )
    case = report.cases[0]
    grid = None if case.message or case.launch is None else case.launch.grid
    why = "; ".join(case.message) or "nothing is launched for this shape"
    heading = title or f"{report.subject}: CTA {{cta}} of {_words(case.shape)}"
    drawing = drawing_of(tracing.kept, cta, heading, report.target, grid=grid, why_not=why, k=k, cycles=cycles)
    return Timeline(drawing, report)


def drawing_of(
    trace: Trace | None,
    cta: int,
    title: str,
    target: str,
    *,
    grid: tuple[int, int, int] | None,
    why_not: str,
    k: tuple[int, int] | None = None,
    cycles: tuple[int, int] | None = None,
) -> Drawing:
    """The drawing of a CTA of a launch that was traced under timed completion; `{cta}` in `title` is its place.

    Raises SpecError, which says `why_not` where no launch of `grid` was traced, for a CTA that the grid has not and a
    window in which nothing is.
    """
    record, info = _of(trace, cta, grid, why_not)
    note = f"timed completion, {target}: {MODEL}"
    if record.fault:
        note = f"the run ends here: {record.fault[0]}"
    heading = title.replace("{cta}", f"({', '.join(map(str, info.ctaid))})")
    return draw(picture(record, info, heading, note, k=k, cycles=cycles))


def _words(shape: Shape) -> str:
    return f"{shape.m} x {shape.n} x {shape.k}"


def _default_shape(subject: Path | Gemm) -> Shape:
    if isinstance(subject, Path):
        return _FILE_SHAPE
    tile = subject.tile
    return subject.problem.shape or Shape(tile.m, tile.n, _K_TILES * tile.k)


def _of(
    trace: Trace | None, cta: int, grid: tuple[int, int, int] | None, why_not: str
) -> tuple[ClusterRecord, CtaInfo]:
    """The CTA that was asked for; where the run ended in another before, that one."""
    for record in () if trace is None else trace.records:
        for info in record.ctas:
            if info.index == cta:
                return record, info
    if trace is not None and trace.records[-1].fault:
        return trace.records[-1], trace.records[-1].ctas[0]
    if grid is None:
        raise SpecError(Diagnostic(f"there is nothing to draw: {why_not}"))
    x, y, z = grid
    raise SpecError(Diagnostic(f"there is no CTA {cta}: the grid has {x * y * z:,}, counted from 0"))
