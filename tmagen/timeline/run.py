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
    record, info = _of(tracing.kept, cta, report)
    case = report.cases[0]
    if title is None:
        title = f"{report.subject}: CTA ({', '.join(map(str, info.ctaid))}) of {_words(case.shape)}"
    note = f"timed completion, {report.target}: {MODEL}"
    if record.fault:
        note = f"the run ends here: {record.fault[0]}"
    return Timeline(draw(picture(record, info, title, note, k=k, cycles=cycles)), report)


def _words(shape: Shape) -> str:
    return f"{shape.m} x {shape.n} x {shape.k}"


def _default_shape(subject: Path | Gemm) -> Shape:
    if isinstance(subject, Path):
        return _FILE_SHAPE
    tile = subject.tile
    return subject.problem.shape or Shape(tile.m, tile.n, _K_TILES * tile.k)


def _of(trace: Trace | None, cta: int, report: Report) -> tuple[ClusterRecord, CtaInfo]:
    """The CTA that was asked for; where the run ended in another before, that one."""
    for record in () if trace is None else trace.records:
        for info in record.ctas:
            if info.index == cta:
                return record, info
    if trace is not None and trace.records[-1].fault:
        return trace.records[-1], trace.records[-1].ctas[0]
    case = report.cases[0]
    if case.message or case.launch is None:
        message = "; ".join(case.message) or "nothing is launched for this shape"
        raise SpecError(Diagnostic(f"there is nothing to draw: {message}"))
    x, y, z = case.launch.grid
    raise SpecError(Diagnostic(f"there is no CTA {cta}: the grid has {x * y * z:,}, counted from 0"))
