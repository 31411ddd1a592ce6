# SPDX-License-Identifier: Apache-2.0
"""`tmagen run`: a kernel launched on the GPU of this machine and compared."""

from __future__ import annotations

from typing import Any

import click

from tmagen import flag_text
from tmagen.cli_options import kernel_subject, spec_options
from tmagen.cli_output import leave, say
from tmagen.flag_text import FlagReader, integer_between, word_of

MAX_REPEAT = 10_000_000
MAX_SECONDS = 86_400
INPUTS = ("integer", "normal", "both")
REFERENCES = ("numpy", "torch", "both")
COMPILERS = ("nvcc", "pycuda")


@click.command(
    "run",
    epilog="""\b
Examples:
  tmagen run --preset step6 --target sm_90a
  tmagen run --preset step5 --target sm_90a --shape 4096,4096,4096 --seed 1 --seed 2
  tmagen run kernel.cu --shape 1000,1000,1000 --ld 1008,1024,1016
  tmagen run --preset step6-wide --target sm_90a --shape 2048,2048,2048 --input integer --repeat 10000

\b
Exit codes:
  0  every case is right
  1  a case is wrong: a wrong element, a write outside D, a race, a fault, a hang
  2  nothing was run: no GPU, driver, PyCUDA or compiler, another architecture, an illegal spec
""",
)
@click.argument("file", required=False)
@spec_options
@click.option("--shape", "shapes", metavar="M,N,K", multiple=True, help="A shape to try, any number of times.")
@click.option(
    "--input", "inputs", metavar="KIND", help="Bit-exact, or in a bound: " + "|".join(INPUTS) + ".  [default: both]"
)
@click.option("--seed", "seeds", metavar="N", multiple=True, help="Seed of inputs, any number of times.  [default: 0]")
@click.option("--repeat", metavar="N", help="Launch N times more, and compare each D with the first.  [default: 0]")
@click.option("--ld", metavar="A,B,D", help="Leading dimensions, elements.  [default: the least that TMA takes]")
@click.option(
    "--reference", metavar="WHOSE", help="Whose product D must be: " + "|".join(REFERENCES) + ".  [default: both]"
)
@click.option("--compiler", metavar="NAME", help="What makes the cubin: " + "|".join(COMPILERS) + ".  [default: nvcc]")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@click.option("--device", metavar="N", help="Which GPU.  [default: 0]")
@click.option("--timeout", metavar="SECONDS", help="A launch that takes longer hangs.  [default: 20]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str | None,
    shapes: tuple[str, ...],
    inputs: str | None,
    seeds: tuple[str, ...],
    repeat: str | None,
    ld: str | None,
    reference: str | None,
    compiler: str | None,
    nvcc: str | None,
    device: str | None,
    timeout: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Compile a kernel, launch it on the GPU of this machine, and compare D with A * B^T.

    FILE is launched by its own launch(); a kernel of the spec flags by its C symbol, with the tensor maps of its plan.
    D and all around it is poisoned before each launch. Without --shape, small and large shapes with tails, K = 0 and
    many tiles are tried.
    """
    reader = FlagReader()
    tried = [reader.read("shape", text, flag_text.shape) for text in shapes]
    kind = reader.read("input", inputs, word_of({word: word for word in INPUTS})) or "both"
    starts = [reader.read("seed", text, integer_between(0, 2**63 - 1)) for text in seeds]
    times = reader.read("repeat", repeat, integer_between(0, MAX_REPEAT)) or 0
    leading = reader.read("ld", ld, lambda text: flag_text.three_integers(text, "A,B,D"))
    whose = reader.read("reference", reference, word_of({word: word for word in REFERENCES})) or "both"
    maker = reader.read("compiler", compiler, word_of({word: word for word in COMPILERS})) or "nvcc"
    ordinal = reader.read("device", device, integer_between(0, 1023)) or 0
    patience = reader.read("timeout", timeout, integer_between(1, MAX_SECONDS))
    subject = kernel_subject("run", file, options, reader.diagnostics)

    from tmagen.bind import LeadingDims
    from tmagen.gpu import validate
    from tmagen.verify import NoProgress, TerminalProgress

    settings = validate.RunSettings(
        inputs=validate.INPUTS if kind == "both" else (kind,),
        seeds=tuple(seed for seed in starts if seed is not None) or (0,),
        repeat=times,
        references=validate.REFERENCES if whose == "both" else (whose,),
        timeout=validate.TIMEOUT_SECONDS if patience is None else float(patience),
    )
    report = validate.run(
        subject,
        [shape for shape in tried if shape is not None] or None,
        settings,
        lds=None if leading is None else LeadingDims(*leading),
        compiler=maker,
        nvcc=nvcc,
        device=ordinal,
        progress=NoProgress() if as_json else TerminalProgress(),
    )
    if as_json:
        import json

        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        say(report.text())
    if report.lost:
        leave(report.exit_code)
    return report.exit_code
