# SPDX-License-Identifier: Apache-2.0
"""`tmagen diff`: two kernels side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmagen import flag_text
from tmagen.cli_options import FLAGS, requested_spec, spec_options
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, integer_between, word_of
from tmagen.words import named, unreadable

if TYPE_CHECKING:
    from tmagen.diff import Comparison

MAX_JOBS = 1024
FORMATS = ("text", "json", "html", "markdown")
PARTS = ("events", "plan", "cost", "result")


@click.command(
    "diff",
    epilog="""\b
Examples:
  tmagen diff --preset step6                      against TVM's TIRx
  tmagen diff --preset step6 --format html -o step6.html
  tmagen diff step4.cu step5.cu --only events     what one flag changed
  tmagen diff --preset step5 --against mine.cu
  tmagen diff --preset step6 --against mine.ptx --against-launch launch.toml
  tmagen diff --preset step6 --only cost,result --format json

\b
Exit codes:
  0  both compute the same, and no check fires on the first
  1  they do not, or one does
  2  not judged: no compiler, no TVM, an illegal spec, or something that the emulator does not know
""",
)
@click.argument("files", nargs=-1, metavar="[FILE FILE]")
@spec_options
@click.option("--against", metavar="WHAT", help="`tirx`, or a .cu or .ptx file.  [default: tirx]")
@click.option("--against-launch", metavar="FILE", help="How the second is launched: a file as `tmagen check` takes.")
@click.option("--launch", metavar="FILE", help="How the first is launched, where both are files.")
@click.option("--shape", metavar="M,N,K", help="The problem of plan and cost.  [default: 4096,4096,4096]")
@click.option("--emulate", metavar="M,N,K", help="The problem that is emulated.  [default: about 512,512,512]")
@click.option("--only", metavar="PARTS", help=f"Some of {','.join(PARTS)}.  [default: all]")
@click.option("--format", "form", metavar="WORD", help="One of " + "|".join(FORMATS) + ".  [default: text]")
@click.option("--seed", metavar="N", help="Seed of inputs and of random completion.  [default: 0]")
@click.option("--jobs", metavar="N", help="Processes that emulate.  [default: one per core]")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@click.option("-o", "--output", metavar="FILE", default="-", help="Write FILE, whole or not at all.  [default: stdout]")
def command(
    files: tuple[str, ...],
    against: str | None,
    against_launch: str | None,
    launch: str | None,
    shape: str | None,
    emulate: str | None,
    only: str | None,
    form: str | None,
    seed: str | None,
    jobs: str | None,
    nvcc: str | None,
    output: str,
    **options: Any,
) -> int:
    """Compare two kernels: what each does, decides, costs and computes.

    One is what the spec flags ask for, the other what TVM makes of the same spec, or a file; or both are files that
    `tmagen emit` wrote, edited or not. Steps are taken from a run of each on the emulator.
    """
    reader = FlagReader()
    problem = reader.read("shape", shape, flag_text.shape)
    trial = reader.read("emulate", emulate, flag_text.shape)
    chosen = reader.read("format", form, word_of({word: word for word in FORMATS})) or "text"
    start = reader.read("seed", seed, integer_between(0, 2**63 - 1)) or 0
    processes = reader.read("jobs", jobs, integer_between(1, MAX_JOBS))
    parts = reader.read("only", only, _parts) or PARTS
    also = [*reader.diagnostics, *_misuse(files, against, options), *_launches(files, against, launch, against_launch)]
    if trial is not None and min(trial.m, trial.n, trial.k) < 1:
        also.append(Diagnostic(f"--emulate {emulate}: every extent is at least 1"))
    if problem is not None and min(problem.m, problem.n, problem.k) < 1:
        also.append(Diagnostic(f"--shape {shape}: every extent is at least 1"))
    pair = (*files, *([against] if files and against is not None else []))

    from tmagen.diff import Request, diff_files, diff_spec

    request = Request(
        problem,
        trial,
        tuple(parts),
        start,
        processes,
        nvcc,
        None if launch is None else Path(launch),
        None if against_launch is None else Path(against_launch),
    )
    if pair:
        if also:
            raise SpecError(*also)
        comparison = diff_files(Path(pair[0]), Path(pair[1]), request)
    else:
        spec = requested_spec(options, also=also)
        other = None if against in (None, "tirx") else Path(str(against))
        comparison = diff_spec(spec, other, request)
    _write(comparison, chosen, output)
    return comparison.exit_code


def _parts(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    if not set(found) <= set(PARTS):
        raise flag_text.UnreadableError(f"it takes some of {', '.join(PARTS)}, with commas between them")
    return found


def _misuse(files: tuple[str, ...], against: str | None, options: dict[str, Any]) -> list[Diagnostic]:
    """What does not go together."""
    other = [] if against in (None, "tirx") else [str(against)]
    found = [
        Diagnostic(f"cannot read {file!r}: {reason}")
        for file in (*files, *other)
        if (reason := unreadable(file)) is not None
    ]
    given = [f"--{flag}" for flag in ("preset", "spec", *FLAGS) if options[flag.replace("-", "_")] is not None]
    if files and given:
        found.append(Diagnostic(f"files say which kernels they are: {', '.join(given)} cannot change them"))
    if len(files) == 1 and not other:
        found.append(Diagnostic(f"{files[0]!r} against what?", hint=f"tmagen diff {named(files[0])} OTHER.cu"))
    if len(files) > 2 or (len(files) == 2 and against is not None):
        found.append(Diagnostic("a comparison takes two kernels"))
    return found


def _launches(
    files: tuple[str, ...], against: str | None, launch: str | None, against_launch: str | None
) -> list[Diagnostic]:
    """Launch files that nothing is launched by, or that cannot be read."""
    found = [
        Diagnostic(f"cannot read {file!r}: {reason}")
        for file in (launch, against_launch)
        if file is not None and (reason := unreadable(file)) is not None
    ]
    if launch is not None and not files:
        found.append(Diagnostic("--launch is for the first of two files: a spec says itself how it is launched"))
    if against_launch is not None and not files and against in (None, "tirx"):
        found.append(Diagnostic("--against-launch is for a file: TVM says itself how its kernel is launched"))
    return found


def _write(comparison: Comparison, form: str, output: str) -> None:
    from tmagen.cli_output import write_text
    from tmagen.diff import render

    write_text(output, render(comparison, form, sys.stdout if output == "-" else None))
