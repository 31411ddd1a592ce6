# SPDX-License-Identifier: Apache-2.0
"""`tmagen timeline`: a picture of a timed run."""

from __future__ import annotations

import re
from typing import Any

import click

from tmagen import flag_text
from tmagen.cli_options import kernel_subject, spec_options
from tmagen.cli_output import check_can_write, say, write_bytes, write_text
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, UnreadableError, integer_between

_MAX_CTA = (1 << 31) - 1
_SUFFIXES = (".svg", ".png")


@click.command(
    "timeline",
    epilog="""\b
Examples:
  tmagen timeline --preset step4 -o step4.svg
  tmagen timeline --preset step5 --pipe-depth 4 --shape 128,128,1024 --k 2-9 -o ring.svg
  tmagen timeline kernel.cu --shape 256,256,512 --cta 3 --cycles 0-2000 -o start.png

\b
Exit codes:
  0  drawn
  1  drawn, of a run that is wrong or breaks off
  2  nothing to draw: no compiler, an illegal spec, a window that does not exist, a file that cannot be written
""",
)
@click.argument("file", required=False)
@spec_options
@click.option("--shape", metavar="M,N,K", help="What to compute.  [default: one tile by 8 of K; FILE: 256,256,512]")
@click.option("-o", "--output", metavar="FILE", help="Where to: a name that ends in .svg or .png (needs matplotlib).")
@click.option("--cta", metavar="N", help="Which CTA, by its place in the grid, x fastest.  [default: 0]")
@click.option("--k", metavar="A-B", help="The window: K tiles A to B, in the CTA's own count.  [default: 0-3]")
@click.option("--cycles", metavar="A-B", help="The window in cycles, instead of --k.")
@click.option("--title", metavar="TEXT", help="The heading.  [default: kernel, CTA and shape]")
@click.option("--kernel", metavar="NAME", help="Which one, by its namespace, of a FILE with several.")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
def command(
    file: str | None,
    shape: str | None,
    output: str | None,
    cta: str | None,
    k: str | None,
    cycles: str | None,
    title: str | None,
    kernel: str | None,
    nvcc: str | None,
    **options: Any,
) -> int:
    """Draw what one CTA does when: TMA, tensor core, mbarriers, who waits, and what releases whom.

    The kernel is FILE, or what the spec flags ask for. Times are those of timed completion: a model's, whose figures
    and their sources `tmagen verify --completion timed` prints, and no measurement.
    """
    reader = FlagReader()
    asked = reader.read("shape", shape, flag_text.shape)
    number = reader.read("cta", cta, integer_between(0, _MAX_CTA)) or 0
    tiles = reader.read("k", k, _span)
    window = reader.read("cycles", cycles, _span)
    if tiles is not None and window is not None:
        reader.diagnostics.append(Diagnostic("--k and --cycles both choose the window: take one of them"))
    if kernel is not None and file is None:
        reader.diagnostics.append(Diagnostic(f"--kernel {kernel!r} chooses one of a FILE, and there is none"))
    path = _checked(output, reader)
    subject = kernel_subject("timeline", file, options, reader.diagnostics)

    from tmagen.timeline import png, svg, timeline

    if path.endswith(".png"):
        _require_matplotlib()
    found = timeline(subject, asked, cta=number, k=tiles, cycles=window, title=title, nvcc=nvcc, kernel=kernel)
    if path.endswith(".png"):
        write_bytes(path, png(found.drawing))
    else:
        write_text(path, svg(found.drawing))
    for line in (*(line for case in found.report.cases for line in case.lines()), f"drawn: {path}"):
        say(line)
    return found.report.exit_code


def _checked(output: str | None, reader: FlagReader) -> str:
    """The name of the file; what is wrong with it goes to the reader."""
    if output is None:
        reader.diagnostics.append(Diagnostic("-o is missing: where to draw", hint="-o timeline.svg"))
        return ""
    if not output.endswith(_SUFFIXES):
        stem = re.sub(r"\.\w*$", "", output) or "timeline"
        message = f"-o {output!r} ends in neither {' nor '.join(_SUFFIXES)}, so what to write is not known"
        reader.diagnostics.append(Diagnostic(message, hint=f"-o {stem}.svg"))
        return output
    try:
        check_can_write(output)
    except SpecError as error:
        reader.diagnostics.extend(error.diagnostics)
    return output


def _require_matplotlib() -> None:
    """Before the run takes its time."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        from tmagen.timeline.png import missing

        raise missing() from None


def _span(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(\d{1,12})(?:-(\d{1,12}))?\s*", text)
    if match is None:
        raise UnreadableError("it takes a range such as 0-3")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UnreadableError("its first number is the smaller one")
    return first, last
