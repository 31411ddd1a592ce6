# SPDX-License-Identifier: Apache-2.0
"""`tmagen timeline`: a picture of a timed run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmagen import flag_text
from tmagen.cli_options import FLAGS, kernel_subject, spec_options
from tmagen.cli_output import check_can_write, say, write_bytes, write_text
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, UnreadableError, architecture, integer_between
from tmagen.words import unreadable

if TYPE_CHECKING:
    from tmagen.check import Report
    from tmagen.emu import Tracing
    from tmagen.timeline import Drawing

_MAX_CTA = (1 << 31) - 1
_SUFFIXES = (".svg", ".png")
_OF_SPECS = ("preset", "spec", *(flag for flag in FLAGS if flag != "target"))


@click.command(
    "timeline",
    epilog="""\b
Examples:
  tmagen timeline --preset step4 -o step4.svg
  tmagen timeline --preset step5 --pipe-depth 4 --shape 128,128,1024 --k 2-9 -o ring.svg
  tmagen timeline kernel.cu --shape 256,256,512 --cta 3 --cycles 0-2000 -o start.png
  tmagen timeline other.ptx --launch launch.toml -o other.svg
  tmagen timeline main.cu gemm.cu --host --nvcc-flag=-Iinclude -o first_launch.svg

\b
Exit codes:
  0  drawn
  1  drawn, of a run that is wrong or breaks off
  2  nothing to draw: no compiler, an illegal spec, a window that does not exist, a file that cannot be written
""",
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@spec_options
@click.option("--launch", metavar="FILE", help="How a kernel of any other form is launched: see `tmagen check`.")
@click.option("--host", is_flag=True, help="Run the host program of the FILEs, and draw its first launch.")
@click.option("--shape", metavar="M,N,K", help="What to compute.  [default: one tile by 8 of K; FILE: 256,256,512]")
@click.option("-o", "--output", metavar="FILE", help="Where to: a name that ends in .svg or .png (needs matplotlib).")
@click.option("--cta", metavar="N", help="Which CTA, by its place in the grid, x fastest.  [default: 0]")
@click.option("--k", metavar="A-B", help="The window: K tiles A to B, in the CTA's own count.  [default: 0-3]")
@click.option("--cycles", metavar="A-B", help="The window in cycles, instead of --k.")
@click.option("--title", metavar="TEXT", help="The heading.  [default: kernel, CTA and shape]")
@click.option("--kernel", metavar="NAME", help="Which one, by its namespace, of a FILE with several.")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@click.option("--nvcc-flag", "nvcc_flags", metavar="FLAG", multiple=True, help="For nvcc, with --launch or --host.")
def command(
    files: tuple[str, ...],
    launch: str | None,
    host: bool,
    shape: str | None,
    output: str | None,
    cta: str | None,
    k: str | None,
    cycles: str | None,
    title: str | None,
    kernel: str | None,
    nvcc: str | None,
    nvcc_flags: tuple[str, ...],
    **options: Any,
) -> int:
    """Draw what one CTA does when: TMA, tensor core, mbarriers, who waits, and what releases whom.

    The kernel is FILE, as `tmagen emit` writes it, or what the spec flags ask for; with --launch or --host it is
    anyone's, and drawn is the launch in which the run breaks off, else the first. Times are those of timed completion:
    a model's, whose figures and their sources `tmagen verify --completion timed` prints, and no measurement.
    """
    reader = FlagReader()
    asked = reader.read("shape", shape, flag_text.shape)
    number = reader.read("cta", cta, integer_between(0, _MAX_CTA)) or 0
    tiles = reader.read("k", k, _span)
    window = reader.read("cycles", cycles, _span)
    if tiles is not None and window is not None:
        reader.diagnostics.append(Diagnostic("--k and --cycles both choose the window: take one of them"))
    if kernel is not None and not files:
        reader.diagnostics.append(Diagnostic(f"--kernel {kernel!r} chooses one of a FILE, and there is none"))
    path = _checked(output, reader)
    if launch is not None or host:
        arch = reader.read("target", options["target"], architecture) or "sm_100a"
        ours = {flag: options[flag.replace("-", "_")] for flag in _OF_SPECS}
        reader.diagnostics += _misuse(files, launch, host, {"shape": shape, "kernel": kernel, **ours})
        if reader.diagnostics:
            raise SpecError(*reader.diagnostics)
        _need_for(path)
        tracing, report = _traced(files, launch, number, arch, nvcc, nvcc_flags)
        _write(path, _of_anyone(tracing, report, number, arch, title, tiles, window))
        for line in (*(line for case in report.cases for line in case.lines()), f"drawn: {path}"):
            say(line)
        return report.exit_code
    if nvcc_flags:
        reader.diagnostics.append(Diagnostic("--nvcc-flag is for --launch and --host"))
    if len(files) > 1:
        reader.diagnostics.append(Diagnostic("several FILEs are for --host: take one"))
    subject = kernel_subject("timeline", files[0] if files else None, options, reader.diagnostics)
    _need_for(path)

    from tmagen.timeline import timeline

    found = timeline(subject, asked, cta=number, k=tiles, cycles=window, title=title, nvcc=nvcc, kernel=kernel)
    _write(path, found.drawing)
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


def _traced(
    files: tuple[str, ...], launch: str | None, cta: int, target: str, nvcc: str | None, flags: tuple[str, ...]
) -> tuple[Tracing, Report]:
    """A timed run of anyone's kernel, by its launch file or else its host program."""
    from tmagen.check import load, run, run_host
    from tmagen.emu import Tracing

    tracing = Tracing({cta})
    paths = [Path(file) for file in files]
    if launch is None:
        host = run_host(paths, completion="timed", target=target, nvcc=nvcc, nvcc_flags=flags, tracing=tracing)
        return tracing, host
    subject = load(paths[0], target=target, nvcc=nvcc, flags=flags)
    return tracing, run(subject, Path(launch), completion="timed", tracing=tracing)


def _of_anyone(
    tracing: Tracing,
    report: Report,
    cta: int,
    target: str,
    title: str | None,
    k: tuple[int, int] | None,
    cycles: tuple[int, int] | None,
) -> Drawing:
    from tmagen.timeline import drawing_of

    (case,) = report.cases
    grid = case.launches[0].grid if case.launches else None
    why = "; ".join(finding.message for finding in case.findings) or "nothing was launched"
    heading = title or f"{', '.join(Path(file).name for file in report.subject)}: CTA {{cta}}"
    return drawing_of(tracing.kept, cta, heading, target, grid=grid, why_not=why, k=k, cycles=cycles)


def _misuse(files: tuple[str, ...], launch: str | None, host: bool, ours: Mapping[str, Any]) -> list[Diagnostic]:
    """What does not go together with a launch file or a host program; `ours` are flags of kernels of our own."""
    found = [Diagnostic(f"--{flag} is for kernels of tmagen") for flag, value in ours.items() if value is not None]
    if launch is not None and host:
        found.append(Diagnostic("--launch and --host ask for different things: take one of them"))
    if not files:
        found.append(Diagnostic("which kernel? FILE is missing"))
    elif launch is not None and len(files) > 1:
        found.append(Diagnostic("--launch takes one FILE; several are for --host"))
    found += [Diagnostic(f"cannot read {file!r}: {reason}") for file in files if (reason := unreadable(file))]
    return found


def _write(path: str, drawing: Drawing) -> None:
    from tmagen.timeline import png, svg

    if path.endswith(".png"):
        write_bytes(path, png(drawing))
    else:
        write_text(path, svg(drawing))


def _need_for(path: str) -> None:
    """A PNG needs matplotlib: it is looked for before the run takes its time."""
    if not path.endswith(".png"):
        return
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
