# SPDX-License-Identifier: Apache-2.0
"""`tmagen check`: anyone's kernel on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tmagen.cli_output import say
from tmagen.cli_trace import trace_options, traced, tracing_of
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, architecture, integer_between, word_of
from tmagen.words import named, unreadable

if TYPE_CHECKING:
    from tmagen.check import Report, Subject

MAX_JOBS = 1024
COMPLETIONS = (
    "eager", "lazy", "newest-first", "random", "producer-first", "consumer-first", "late-read", "split", "adversarial",
    "poison", "starve", "timed", "usual", "all",
)  # fmt: skip


@click.command(
    "check",
    epilog="""\b
Examples:
  tmagen check kernel.ptx --list-entries > launch.toml    a launch file to fill in
  tmagen check kernel.ptx --launch launch.toml
  tmagen check kernel.ptx --launch launch.toml --thorough
  tmagen check kernel.ptx --launch launch.toml --completion split --seed 5
  tmagen check kernel.cu --launch launch.toml --target sm_90a --nvcc-flag=-Iinclude
  tmagen check main.cu gemm.cu --host                     the program's own main
  tmagen check main.cu --host --completion eager --trace run.json
  tmagen check --example > launch.toml                    for `tmagen emit -o kernel.cu`

\b
Exit codes:
  0  every run is right
  1  something is wrong: a wrong result, a bad access, a deadlock, a misused barrier
  2  not judged: no compiler, a file that cannot be read, or something that the emulator does not know
""",
)
@click.argument("files", nargs=-1, metavar="FILE")
@click.option("--launch", "launch", metavar="FILE", help="The launch: grid, parameters, buffers, what must come out.")
@click.option("--host", is_flag=True, help="Run the host program of the .cu files in place of a launch file.")
@click.option("--call", metavar="SYMBOL", help="With --host: call this C function, int SYMBOL(void), not main.")
@click.option("--arg", "arguments", metavar="TEXT", multiple=True, help="With --host: an argument of the program.")
@click.option("--list-entries", is_flag=True, help="Print kernels and parameters as a launch file to fill in.")
@click.option("--example", is_flag=True, help="Print a launch file for the kernel that `tmagen emit` writes.")
@click.option(
    "--completion",
    metavar="POLICY",
    help="How a run goes where PTX leaves it open: " + "|".join(COMPLETIONS) + "; all but timed.  [default: usual]",
)
@click.option("--thorough", is_flag=True, help="Run under all policies, or that of --completion, each with all seeds.")
@click.option("--seed", metavar="N", help="Seed of fills and of the policy; the first with --thorough.  [default: 0]")
@click.option("--jobs", metavar="N", help="Processes that emulate.  [default: one per core]")
@click.option("--target", metavar="TARGET", help="What a .cu is compiled for.  [default: sm_100a]")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@click.option("--nvcc-flag", "nvcc_flags", metavar="FLAG", multiple=True, help="A flag for nvcc, any number of times.")
@click.option("--strict", is_flag=True, help="Look for formal rules too, and fail for them.")
@click.option("--save-ptx", metavar="FILE", help="Write the PTX of a .cu, in which reports count lines.")
@trace_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF 2.1.0 too (`-`: to stdout, alone).")
def command(
    files: tuple[str, ...],
    launch: str | None,
    host: bool,
    call: str | None,
    arguments: tuple[str, ...],
    list_entries: bool,
    example: bool,
    completion: str | None,
    thorough: bool,
    seed: str | None,
    jobs: str | None,
    target: str | None,
    nvcc: str | None,
    nvcc_flags: tuple[str, ...],
    strict: bool,
    save_ptx: str | None,
    trace: str | None,
    trace_ctas: str | None,
    as_json: bool,
    sarif_file: str | None,
) -> int:
    """Run a kernel, anyone's, on the emulator and say what is wrong with it.

    FILE is PTX, or a .cu that nvcc compiles first. A launch file says how it is launched, on what data, and what must
    come out; with --host the program's own host code does, unmodified, on a stand-in for the CUDA runtime. It runs once
    under each execution policy, and the first time looks for races and broken rules too.
    """
    reader = FlagReader()
    order = reader.read("completion", completion, word_of({word: word for word in COMPLETIONS}))
    start = reader.read("seed", seed, integer_between(0, 2**63 - 1)) or 0
    processes = reader.read("jobs", jobs, integer_between(1, MAX_JOBS))
    arch = reader.read("target", target, architecture) or "sm_100a"
    tracing = tracing_of(reader, trace, trace_ctas)
    modes = {"--launch": launch is not None, "--host": host, "--list-entries": list_entries, "--example": example}
    problems = [*reader.diagnostics, *_misuse(files, modes)]
    if not host and (call is not None or arguments):
        problems.append(Diagnostic("--call and --arg are for --host"))
    if as_json and sarif_file == "-":
        problems.append(Diagnostic("--json and --sarif - both go to stdout", hint="--sarif report.sarif"))
    if problems:
        raise SpecError(*problems)
    if example:
        from tmagen.check.example import example as example_text

        click.echo(example_text(), nl=False)
        return 0

    from tmagen.verify.progress import NoProgress, TerminalProgress

    progress = NoProgress() if as_json else TerminalProgress()
    if host:
        from tmagen.check import run_host

        with traced(tracing, trace, quiet=as_json or sarif_file == "-"):
            report = run_host(
                [Path(file) for file in files],
                call=call,
                arguments=arguments,
                completion=order,
                thorough=thorough,
                seed=start,
                jobs=processes,
                target=arch,
                nvcc=nvcc,
                nvcc_flags=nvcc_flags,
                strict=strict,
                save_ptx=None if save_ptx is None else Path(save_ptx),
                progress=progress,
                tracing=tracing,
            )
    else:
        from tmagen.check import load, run, skeleton

        subject = load(Path(files[0]), target=arch, nvcc=nvcc, flags=nvcc_flags)
        _save(subject, save_ptx)
        if list_entries:
            click.echo(skeleton(subject), nl=False)
            return 0
        assert launch is not None
        with traced(tracing, trace, quiet=as_json or sarif_file == "-"):
            report = run(
                subject,
                Path(launch),
                completion=order,
                thorough=thorough,
                seed=start,
                jobs=processes,
                strict=strict,
                progress=progress,
                tracing=tracing,
            )
    _show(report, launch, save_ptx, as_json, sarif_file)
    return report.exit_code


def _misuse(files: tuple[str, ...], modes: dict[str, bool]) -> list[Diagnostic]:
    """What does not go together."""
    given = [mode for mode, is_given in modes.items() if is_given]
    if len(given) > 1:
        return [Diagnostic(f"{' and '.join(given)} ask for different things: take one of them")]
    if modes["--example"]:
        return [Diagnostic("--example takes no FILE")] if files else []
    if not files:
        return [Diagnostic("which kernel? FILE is missing", hint="tmagen check --help")]
    if not given:
        hint = f"tmagen check {named(files[0])} --list-entries > launch.toml"
        return [Diagnostic("how is it launched? One of --launch FILE and --host is missing", hint=hint)]
    found = [
        Diagnostic(f"cannot read {file!r}: {reason}") for file in files if (reason := unreadable(file)) is not None
    ]
    if len(files) > 1 and not modes["--host"]:
        found.append(Diagnostic(f"{given[0]} takes one FILE; several are for --host"))
    return found


def _save(subject: Subject, save_ptx: str | None) -> None:
    if save_ptx is not None:
        from tmagen.cli_output import write_text

        write_text(save_ptx, subject.ptx)


def _show(report: Report, launch: str | None, save_ptx: str | None, as_json: bool, sarif_file: str | None) -> None:
    import json

    if sarif_file is not None:
        from tmagen.check import sarif
        from tmagen.cli_output import write_text

        log = sarif(report, launch_file=launch, ptx_file=save_ptx)
        write_text(sarif_file, json.dumps(log, indent=2) + "\n")
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    elif sarif_file != "-":
        say(report.text())
