# SPDX-License-Identifier: Apache-2.0
"""`tmagen emit`: a spec as CUDA C++, as a TIRx script, or as the CUDA that TVM makes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tmagen.cli_options import requested_spec, spec_options
from tmagen.flag_text import FlagReader, word_of

if TYPE_CHECKING:
    from tmagen.ir import Gemm

BACKENDS = ("cuda", "tirx", "tirx-cuda")


@click.command(
    "emit",
    epilog="""\b
Examples:
  tmagen emit                                      step 5: a ring of two stages
  tmagen emit --pipe-depth 1                       step 4: one stage
  tmagen emit --pipe-depth 2 --persistent          step 6, to stdout
  tmagen emit --preset step5 --dtype bf16 --tile 128,256,64 --pipe-depth 4 -o k.cu
  tmagen emit --spec kernel.toml -o kernel.cu      `tmagen explain --toml` prints such a file
  tmagen emit --preset step6 --backend tirx        the same kernel as a TIRx script for TVM
""",
)
@spec_options
@click.option("--shape", metavar="M,N,K", help="Bake a shape in.  [default: M, N and K are run-time arguments]")
@click.option(
    "--backend",
    metavar="WORD",
    help="What is written: "
    + "|".join(BACKENDS)
    + ", the last what TVM makes of the second; both have a shape, 4096,4096,4096 by default.  [default: cuda]",
)
@click.option("-o", "--output", metavar="FILE", default="-", help="Write FILE, whole or not at all.  [default: stdout]")
def command(output: str, shape: str | None, backend: str | None, **options: Any) -> None:
    """Write a kernel as one self-contained CUDA C++ file.

    The file holds the device code and a host part with `launch()`; its header says what was decided and which command
    writes it again. Flags override the TOML file, and that the preset.
    """
    reader = FlagReader()
    chosen = reader.read("backend", backend, word_of({word: word for word in BACKENDS})) or "cuda"
    spec = requested_spec(options, shape=shape, also=reader.diagnostics)
    from tmagen.cli_output import write_text

    write_text(output, _text(spec, chosen))


def _text(spec: Gemm, backend: str) -> str:
    if backend == "cuda":
        from tmagen.emit import emit
        from tmagen.plan import plan

        return emit(plan(spec))
    from tmagen.tirx import build_script, tirx_script

    script = tirx_script(spec)
    return script if backend == "tirx" else build_script(script).text
