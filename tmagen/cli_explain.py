# SPDX-License-Identifier: Apache-2.0
"""`tmagen explain`: what was decided about a kernel."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tmagen.cli_options import requested_spec, spec_options
from tmagen.flag_text import FlagReader, integer_between

if TYPE_CHECKING:
    from tmagen.errors import Diagnostic
    from tmagen.explain import Section
    from tmagen.ir import Gemm, Shape
    from tmagen.plan import Plan

MAX_K_TILES = 10_000
"""A longer table is a mistake: the pattern is plain after a few rounds of the ring."""


@click.command(
    "explain",
    epilog="""\b
Examples:
  tmagen explain --preset step6
  tmagen explain --preset step6 --shape 4096,4096,4096     tiles, waves, tiles per CTA
  tmagen explain --pipe-depth 2 --k-tiles 5                stage, phases and refill of each K tile
  tmagen explain --preset step6 --shape 512,512,512 --json
  tmagen explain --preset step6 --toml > kernel.toml       a spec to edit
""",
)
@spec_options
@click.option("--shape", metavar="M,N,K", help="Show sizes, grid and tiles for a shape.  [default: as expressions]")
@click.option("--k-tiles", metavar="N", help="Show the K loop over N tiles of K.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: with a shape, complete enough to launch from.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the spec as TOML, with --shape baked in.")
def command(shape: str | None, k_tiles: str | None, as_json: bool, as_toml: bool, **options: Any) -> None:
    """Show what was decided about a kernel.

    Tiles, shared memory, barriers, roles, tensor memory, tensor maps, descriptors field by field, grid and launch. The
    kernel is the one that `emit` writes without --shape: M, N and K stay arguments of it, and --shape says where to
    look. For a kernel with a shape baked in, take it from a preset or a TOML file.
    """
    if as_toml:
        if as_json or k_tiles is not None:
            raise click.UsageError("--toml prints the spec alone: no --json, no --k-tiles")
        from tmagen.spec_toml import to_toml

        click.echo(to_toml(requested_spec(options, shape=shape)), nl=False)
        return
    reader = FlagReader()
    steps = reader.read("k-tiles", k_tiles, integer_between(0, MAX_K_TILES))
    spec, wanted = _spec_and_shape(options, shape, reader.diagnostics)
    from tmagen.plan import plan

    decided = plan(spec)
    if as_json:
        import json

        from tmagen.explain_json import document_of

        click.echo(json.dumps(document_of(decided, wanted, steps), indent=2))
        return
    from tmagen.explain import sections_of

    _show(decided, wanted, sections_of(decided, wanted, steps))


def _spec_and_shape(options: dict[str, Any], shape: str | None, also: list[Diagnostic]) -> tuple[Gemm, Shape | None]:
    """The spec without ``shape``, and the shape to look at, held to the limits of one that is baked in."""
    if shape is None:
        spec = requested_spec(options, also=also)
        return spec, spec.problem.shape
    wanted = requested_spec(options, shape=shape, also=also)
    own = requested_spec(options).problem.shape
    return replace(wanted, problem=replace(wanted.problem, shape=own)), wanted.problem.shape


def _show(plan: Plan, shape: Shape | None, sections: tuple[Section, ...]) -> None:
    from tmagen.emit_text import text_of

    text = text_of(plan)
    where = ""
    if shape is not None:
        baked = ", baked in" if plan.spec.problem.shape is not None else ""
        where = f"\nshape {shape.m},{shape.n},{shape.k}{baked}"
    head = f"{plan.name}\n{text.summary}{where}\n{text.command}\n"
    if sys.stdout.isatty():
        _show_rich(head, sections)
    else:
        _show_plain(head, sections)


def _show_plain(head: str, sections: tuple[Section, ...]) -> None:
    from tmagen.tables import plain_table

    click.echo(head, nl=False)
    for section in sections:
        notes = "".join(f"  {note}\n" for note in section.notes)
        click.echo(f"\n{section.title}\n{plain_table(section.rows)}{notes}", nl=False)


def _show_rich(head: str, sections: tuple[Section, ...]) -> None:
    from rich.console import Console
    from rich.text import Text

    from tmagen.tables import rich_table

    console = Console(highlight=False)
    console.print(Text(head))
    for section in sections:
        console.print(Text(section.title, style="bold cyan"))
        console.print(rich_table(section.rows))
        for note in section.notes:
            console.print(Text(note, style="dim"))
        console.print()
