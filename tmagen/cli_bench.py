# SPDX-License-Identifier: Apache-2.0
"""`tmagen bench`: kernels measured against cuBLAS on the GPU of this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from tmagen import flag_text
from tmagen.cli_options import FLAGS, requested_spec, spec_options
from tmagen.cli_output import leave, print_error, say
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, integer_between, word_of
from tmagen.ir import Gemm
from tmagen.words import unreadable

METHODS = ("flushed", "graph", "auto")
CUBLAS = ("auto", "torch", "library")
COMPILERS = ("nvcc", "pycuda")
PLOTS = (".pdf", ".png", ".svg")


@click.command(
    "bench",
    epilog="""\b
Examples:
  tmagen bench step4 step5 step6 --target sm_90a --dtype bf16
  tmagen bench step5 "step6 --tile 128,256,64 --pipe-depth 4 --ctas 264" --target sm_90a --shape 4096,4096,4096
  tmagen bench kernel.cu --shape 8192,8192,8192 --json
  tmagen bench step6 --target sm_90a --shape 512,512,512 --plot step6.png

\b
Exit codes:
  0  measured, and every output is right
  1  an output is wrong
  2  nothing was measured: no GPU, driver, PyCUDA or compiler, another architecture, an illegal spec
""",
)
@click.argument("specs", metavar="[SPEC]...", nargs=-1)
@spec_options
@click.option(
    "--shape", "shapes", metavar="M,N,K", multiple=True, help="A shape, any number of times.  [default: 4096^3, 8192^3]"
)
@click.option(
    "--method", metavar="HOW", help="L2 flushed, or a graph of 20 launches: " + "|".join(METHODS) + ".  [default: auto]"
)
@click.option("--rounds", metavar="N", help="Rounds, in each of which every contender has its turn.  [default: 5]")
@click.option("--seed", metavar="N", help="Seed of inputs.  [default: 0]")
@click.option("--cublas", metavar="HOW", help="How cuBLAS is called: " + "|".join(CUBLAS) + ".  [default: auto]")
@click.option("--skewed", is_flag=True, help="Put matrices at multiples of 16 bytes and of no more.")
@click.option("--compiler", metavar="NAME", help="What makes cubins: " + "|".join(COMPILERS) + ".  [default: nvcc]")
@click.option("--nvcc", metavar="PATH", help="The compiler.  [default: CUDA_HOME, PATH, else the one from PyPI]")
@click.option("--device", metavar="N", help="Which GPU.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", "picture", metavar="FILE", help="Draw roofline and bars: .png, .svg or .pdf.")
def command(
    specs: tuple[str, ...],
    shapes: tuple[str, ...],
    method: str | None,
    rounds: str | None,
    seed: str | None,
    cublas: str | None,
    skewed: bool,
    compiler: str | None,
    nvcc: str | None,
    device: str | None,
    as_json: bool,
    picture: str | None,
    **options: Any,
) -> int:
    """Measure kernels against cuBLAS in the same process.

    Each SPEC is a preset, a kernel file, a TOML file, or a quoted preset with flags of its own; the flags outside of
    quotes hold for all of them. Without SPEC the flags alone say which kernel. Contenders take turns, inputs are
    normal random numbers, every output is verified before and after. Nothing of the device is changed.
    """
    reader = FlagReader()
    tried = [reader.read("shape", text, flag_text.shape) for text in shapes]
    how = reader.read("method", method, word_of({word: word for word in METHODS})) or "auto"
    turns = reader.read("rounds", rounds, integer_between(1, 1000)) or 5
    start = reader.read("seed", seed, integer_between(0, 2**63 - 1)) or 0
    through = reader.read("cublas", cublas, word_of({word: word for word in CUBLAS})) or "auto"
    maker = reader.read("compiler", compiler, word_of({word: word for word in COMPILERS})) or "nvcc"
    ordinal = reader.read("device", device, integer_between(0, 1023)) or 0
    wrong = reader.diagnostics
    if picture is not None and Path(picture).suffix not in PLOTS:
        wrong.append(Diagnostic(f"--plot {picture!r}: the name ends in {', '.join(PLOTS)}"))
    wrong += [
        Diagnostic(f"--shape {s.m},{s.n},{s.k}: nothing to measure") for s in tried if s and min(s.m, s.n, s.k) < 1
    ]
    subjects = contenders(specs, options, wrong)

    from tmagen.gpu import bench, plot
    from tmagen.gpu.errors import HangError, KernelFaultError

    if picture is not None:
        plot.require_matplotlib()
    settings = bench.BenchSettings(
        method=None if how == "auto" else how, rounds=turns, seed=start, cublas=through, skewed=skewed
    )
    try:
        report = bench.bench(
            subjects,
            [shape for shape in tried if shape is not None] or bench.SHAPES,
            settings,
            compiler=maker,
            nvcc=nvcc,
            device=ordinal,
        )
    except (KernelFaultError, HangError) as error:
        print_error(error.report())
        leave(error.exit_code)
    if as_json:
        import json

        click.echo(json.dumps(report.to_dict(), indent=2))
    else:
        say(report.text())
    if picture is not None:
        plot.plot(report, Path(picture))
    return report.exit_code


def contenders(
    specs: tuple[str, ...], options: dict[str, Any], wrong: list[Diagnostic]
) -> list[tuple[str, Path | Gemm]]:
    """What each SPEC means, under the words that it was asked for by.

    Raises :class:`tmagen.errors.SpecError` with everything that is wrong with any of them, and with ``wrong``.
    """
    if not specs:
        return [(options["preset"] or "the kernel", requested_spec(options, also=wrong))]
    found: list[tuple[str, Path | Gemm]] = []
    for text in specs:
        try:
            found.append((text, _contender(text, options)))
        except SpecError as error:
            wrong.extend(error.diagnostics)
    if wrong:
        raise SpecError(*dict.fromkeys(wrong))
    return found


def _contender(text: str, options: dict[str, Any]) -> Path | Gemm:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SpecError(Diagnostic(f"{text!r} cannot be read: {error}")) from None
    if text.endswith(".cu"):
        reason = unreadable(text)
        if reason is not None:
            raise SpecError(Diagnostic(f"cannot read {text!r}: {reason}"))
        return Path(text)
    first = words[0] if words and not words[0].startswith("-") else None
    own = _own_options(text, words[1:] if first is not None else words)
    if first is not None:
        key = "spec" if first.endswith(".toml") else "preset"
        own[key] = first
    names = [flag.replace("-", "_") for flag in ("preset", "spec", *FLAGS)]
    return requested_spec({name: options[name] if own[name] is None else own[name] for name in names})


def _own_options(text: str, words: list[str]) -> dict[str, Any]:
    """The spec flags inside of quotes."""
    parser = click.Command("SPEC", params=list(_flags_only.params), add_help_option=False)
    try:
        return dict(parser.make_context("SPEC", list(words)).params)
    except click.ClickException as error:
        raise SpecError(Diagnostic(f"{text!r}: {error.format_message()}")) from None


@click.command()
@spec_options
def _flags_only(**_: Any) -> None:
    """Holds the spec flags."""
