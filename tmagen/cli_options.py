# SPDX-License-Identifier: Apache-2.0
"""The flags that say which kernel, the same for every command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import Gemm
from tmagen.words import named, unreadable

F = TypeVar("F", bound=Callable[..., Any])

_VALUE_FLAGS = (
    ("target", "TARGET", "GPU architecture: sm_100a or sm_90a.  [default: sm_100a]"),
    ("name", "NAME", "Identifier of the kernel.  [default: made from the rest]"),
    ("dtype", "f16|bf16", "Element type of A and B.  [default: f16]"),
    ("out-dtype", "f16|bf16|f32", "Element type of D.  [default: that of A and B]"),
    ("tile", "M,N,K", "Tile of D that a CTA computes, and K of a stage.  [default: 128,128,64]"),
    ("pipe-depth", "N", "Stages of the ring; 1 is serial (step 4).  [default: 2]"),
    ("policy", "serial|prefetch", "Load and MMA in turn, or ahead.  [default: by --pipe-depth]"),
    ("ctas", "N", "CTAs of a persistent grid.  [default: the target's SM count]"),
    ("l2-group", "N", "Tile rows that a persistent grid finishes together.  [default: 8]"),
)

FLAGS = (*(flag for flag, _, _ in _VALUE_FLAGS), "persistent")
"""The names of the flags that choose fields; --shape is apart, since not every command bakes it in."""


def spec_options(function: F) -> F:
    """Adds the spec flags to a command; it receives them as keyword arguments."""
    persistent = click.option(
        "--persistent/--no-persistent",
        default=None,
        help="A fixed grid whose CTAs take tile after tile (step 6), or one CTA per tile.",
    )
    options = [
        click.option("--preset", metavar="NAME", help="Start from a preset: see `tmagen list`."),
        click.option(
            "--spec", metavar="FILE", help="Take a spec from a TOML file (`-`: stdin); it overrides the preset."
        ),
        *(click.option(f"--{flag}", metavar=metavar, help=text) for flag, metavar, text in _VALUE_FLAGS[:7]),
        persistent,
        *(click.option(f"--{flag}", metavar=metavar, help=text) for flag, metavar, text in _VALUE_FLAGS[7:]),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def requested_spec(options: Mapping[str, Any], *, shape: str | None = None, also: Iterable[Diagnostic] = ()) -> Gemm:
    """The legal spec that the options of :func:`spec_options` ask for, ``shape`` baked in if there is one.

    Raises :class:`tmagen.errors.SpecError` with everything that is wrong, and what ``also`` says of other flags.
    """
    from tmagen.cli_output import read_text
    from tmagen.spec import requested

    source = options["spec"]
    flags = {flag: options[flag.replace("-", "_")] for flag in FLAGS}
    return requested(
        options["preset"],
        None if source is None else read_text(source),
        {**flags, "shape": shape},
        toml_source="stdin" if source == "-" else named(str(source)),
        also=also,
    )


def kernel_subject(command: str, file: str | None, options: Mapping[str, Any], also: list[Diagnostic]) -> Path | Gemm:
    """The kernel that ``command`` is about: FILE, or the spec of the flags; both together are a contradiction.

    Raises :class:`tmagen.errors.SpecError` with everything that is wrong, and what ``also`` says of other flags.
    """
    if file is None:
        return requested_spec(options, also=also)
    flags = ("preset", "spec", *FLAGS)
    given = [f"--{flag}" for flag in flags if options[flag.replace("-", "_")] is not None]
    if given:
        also.append(Diagnostic(f"{file!r} says which kernel it is: {', '.join(given)} cannot change it"))
    if file.endswith(".toml"):
        also.append(Diagnostic(f"{file!r} is no kernel", hint=f"tmagen {command} --spec {named(file)}"))
    elif (reason := unreadable(file)) is not None:
        also.append(Diagnostic(f"cannot read {file!r}: {reason}"))
    if also:
        raise SpecError(*also)
    return Path(file)
