# SPDX-License-Identifier: Apache-2.0
"""`tmagen verify`: a kernel compiled, emulated and compared."""

from __future__ import annotations

from typing import Any

import click

from tmagen import flag_text
from tmagen.cli_options import kernel_subject, spec_options
from tmagen.cli_output import say
from tmagen.cli_trace import trace_options, traced, tracing_of
from tmagen.errors import Diagnostic
from tmagen.flag_text import FlagReader, integer_between, word_of

MAX_JOBS = 1024
COMPLETIONS = (
    "eager", "lazy", "newest-first", "random", "producer-first", "consumer-first", "late-read", "split", "adversarial",
    "poison", "starve", "timed", "usual", "all",
)  # fmt: skip
INPUTS = ("integer", "normal", "both")


@click.command(
    "verify",
    epilog="""\b
Examples:
  tmagen verify --preset step6 --shape 512,512,512 --shape 129,136,72
  tmagen verify kernel.cu --strict
  tmagen verify two_kernels.cu --kernel gemm_b
  tmagen verify kernel.cu --thorough --shape 200,136,328
  tmagen verify kernel.cu --completion split --seed 5      one run of those, again
  tmagen verify --preset step4 --completion lazy --input integer --json
  tmagen verify --preset step5 --shape 256,256,512 --completion timed --trace step5.json
  tmagen verify --spec kernel.toml --shape 256,256,256 --ld 320,264,272

\b
Exit codes:
  0  every case is right
  1  a case is wrong: a wrong element, a write outside D, a deadlock, a misuse of a barrier, a race
  2  not judged: no compiler, an illegal spec, a shape beyond the kernel's limits, or something that the emulator does
     not know
""",
)
@click.argument("file", required=False)
@spec_options
@click.option("--shape", "shapes", metavar="M,N,K", multiple=True, help="A shape to try, any number of times.")
@click.option(
    "--completion",
    metavar="POLICY",
    help="How a run goes where PTX leaves it open: " + "|".join(COMPLETIONS) + "; all but timed.  [default: usual]",
)
@click.option("--thorough", is_flag=True, help="Run under all policies, or that of --completion, each with all seeds.")
@click.option(
    "--input", "inputs", metavar="KIND", help="Bit-exact, or in a bound: " + "|".join(INPUTS) + ".  [default: both]"
)
@click.option("--no-checks", is_flag=True, help="Do not look for races and other broken rules.")
@click.option("--strict", is_flag=True, help="Also tell formal rules, and what one run cannot settle.")
@click.option("-x", "--fail-fast", is_flag=True, help="Stop at the first case that fails.")
@click.option("--seed", metavar="N", help="Seed of inputs and of the policy; the first with --thorough.  [default: 0]")
@click.option("--ld", metavar="A,B,D", help="Leading dimensions, elements.  [default: the least, and others]")
@click.option("--jobs", metavar="N", help="Processes that emulate.  [default: one per core]")
@click.option("--kernel", metavar="NAME", help="Which one, by its namespace, of a FILE with several.")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@trace_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str | None,
    shapes: tuple[str, ...],
    completion: str | None,
    thorough: bool,
    inputs: str | None,
    no_checks: bool,
    strict: bool,
    fail_fast: bool,
    seed: str | None,
    ld: str | None,
    jobs: str | None,
    kernel: str | None,
    nvcc: str | None,
    trace: str | None,
    trace_ctas: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Compile a kernel, run it on the emulator, and compare D with A * B^T.

    The kernel is FILE as it stands, edited or not, or what the spec flags ask for. Tensor maps and launch come from the
    file's own host part. Without --shape, a small set of shapes with tails, K = 0, rows that lie apart and many tiles
    is tried; of a large shape that is baked in, only integer input in two orders.
    """
    reader = FlagReader()
    tried = [reader.read("shape", text, flag_text.shape) for text in shapes]
    order = reader.read("completion", completion, word_of({word: word for word in COMPLETIONS}))
    kind = reader.read("input", inputs, word_of({word: word for word in INPUTS}))
    start = reader.read("seed", seed, integer_between(0, 2**63 - 1)) or 0
    leading = reader.read("ld", ld, lambda text: flag_text.three_integers(text, "A,B,D"))
    processes = reader.read("jobs", jobs, integer_between(1, MAX_JOBS))
    if kernel is not None and file is None:
        reader.diagnostics.append(Diagnostic(f"--kernel {kernel!r} chooses one of a FILE, and there is none"))
    tracing = tracing_of(reader, trace, trace_ctas)
    subject = kernel_subject("verify", file, options, reader.diagnostics)

    from tmagen.verify import LeadingDims, NoProgress, StreamedText, TerminalProgress, verify

    text = StreamedText(say, TerminalProgress())
    with traced(tracing, trace, quiet=as_json):
        report = verify(
            subject,
            [shape for shape in tried if shape is not None] or None,
            completion=order,
            thorough=thorough,
            inputs=kind,
            seed=start,
            checks=not no_checks,
            strict=strict,
            fail_fast=fail_fast,
            lds=None if leading is None else LeadingDims(*leading),
            jobs=processes,
            nvcc=nvcc,
            kernel=kernel,
            progress=NoProgress() if as_json else text,
            tracing=tracing,
        )
    if as_json:
        import json

        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        text.finish(report)
    return report.exit_code
