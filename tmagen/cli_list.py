# SPDX-License-Identifier: Apache-2.0
"""`tmagen list`: presets and targets."""

from __future__ import annotations

import click


@click.command(
    "list",
    epilog="""\b
Examples:
  tmagen list
  tmagen emit --preset step6 -o step6.cu
""",
)
def command() -> None:
    """Show the presets and the targets."""
    from tmagen.arch import ARCHES
    from tmagen.presets import PRESETS
    from tmagen.spec import to_command
    from tmagen.tables import plain_table

    presets = [(name, preset.about, to_command(preset.spec)) for name, preset in PRESETS.items()]
    click.echo("Presets\n" + plain_table((("name", "what it is", "the same as"), *presets)), nl=False)
    targets = [
        (
            target.value,
            "{}.{}".format(*row.compute_capability),
            str(row.sm_count),
            f"{row.smem_per_block_bytes:,}",
            f"{row.tmem_columns:,}",
        )
        for target, row in ARCHES.items()
    ]
    heads = ("name", "compute capability", "SMs", "shared memory of a block, bytes", "TMEM columns")
    click.echo("\nTargets\n" + plain_table((heads, *targets)), nl=False)
