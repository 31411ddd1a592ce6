# SPDX-License-Identifier: Apache-2.0
"""`tmagen emit`: a spec as CUDA C++."""

from __future__ import annotations

from typing import Any

import click

from tmagen.cli_options import requested_spec, spec_options


@click.command(
    "emit",
    epilog="""\b
Examples:
  tmagen emit                                      step 5: a ring of two stages
  tmagen emit --pipe-depth 1                       step 4: one stage
  tmagen emit --pipe-depth 2 --persistent          step 6, to stdout
  tmagen emit --preset step5 --dtype bf16 --tile 128,256,64 --pipe-depth 4 -o k.cu
  tmagen emit --spec kernel.toml -o kernel.cu      `tmagen explain --toml` prints such a file
""",
)
@spec_options
@click.option("--shape", metavar="M,N,K", help="Bake a shape in.  [default: M, N and K are run-time arguments]")
@click.option("-o", "--output", metavar="FILE", default="-", help="Write FILE, whole or not at all.  [default: stdout]")
def command(output: str, shape: str | None, **options: Any) -> None:
    """Write a kernel as one self-contained CUDA C++ file.

    The file holds the device code and a host part with `launch()`; its header says what was decided and which command
    writes it again. Flags override the TOML file, and that the preset.
    """
    spec = requested_spec(options, shape=shape)
    from tmagen.cli_output import write_text
    from tmagen.emit import emit
    from tmagen.plan import plan

    write_text(output, emit(plan(spec)))
