# SPDX-License-Identifier: Apache-2.0
"""The spec of a command line: the preset, the file and the flags that it names, and the command that a spec is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tmagen.choices import Layer, choices_of, spec_from
from tmagen.errors import Diagnostic
from tmagen.ir import DType, Gemm, Policy, Shape, Target
from tmagen.legality import require_legal
from tmagen.words import nearest, one_of, shown


def requested(
    preset: str | None = None,
    toml: str | None = None,
    flags: Mapping[str, str | bool | None] | None = None,
    *,
    toml_source: str = "TOML",
) -> Gemm:
    """The legal spec that a command line asks for: flags override TOML, TOML the preset, and the default is step 5.

    ``flags`` maps `pipe-depth` to its text and `persistent` to True or False; None is a flag that was not given. Raises
    :class:`SpecError` with everything that cannot be read, and everything that is illegal in the rest.
    """
    layers = [preset_layer(preset)]
    if toml is not None:
        from tmagen.spec_toml import toml_layer

        layers.append(toml_layer(toml, toml_source))
    return spec_from([*layers, flag_layer(flags or {})])


def preset_layer(name: str | None) -> Layer:
    """What the preset ``name`` says."""
    from tmagen.presets import PRESETS

    if name is None:
        return Layer({})
    if name not in PRESETS:
        meant = nearest(name, PRESETS)
        return Layer(
            {},
            (
                Diagnostic(
                    f"--preset {shown(name)} is unknown: it is {one_of(PRESETS)}",
                    hint=None if meant is None else f"--preset {meant}",
                ),
            ),
        )
    return Layer(choices_of(PRESETS[name].spec))


class UnreadableError(Exception):
    """A flag's text that cannot be read; the text says what it takes."""


def integer(text: str) -> int:
    """A decimal integer of at most 63 bits."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise UnreadableError("it takes an integer")
    return int(text)


def three_integers(text: str) -> tuple[int, int, int]:
    """`M,N,K`."""
    try:
        m, n, k = (integer(part.strip()) for part in text.split(","))
    except (ValueError, UnreadableError):
        raise UnreadableError("it takes three integers M,N,K") from None
    return m, n, k


def _word(*members: Any) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        for member in members:
            if member.value == text:
                return member
        raise UnreadableError(f"it is {one_of(member.value for member in members)}")

    return read


_FLAGS: Mapping[str, tuple[tuple[str, ...], Callable[[str], Any]]] = MappingProxyType(
    {
        "target": (("target",), _word(*Target)),
        "name": (("name",), str),
        "dtype": (("problem.a", "problem.b"), _word(DType.F16, DType.BF16)),
        "out-dtype": (("problem.d",), _word(*DType)),
        "tile": (("tile.m", "tile.n", "tile.k"), three_integers),
        "pipe-depth": (("pipeline.depth",), integer),
        "policy": (("pipeline.policy",), _word(*Policy)),
        "ctas": (("schedule.ctas",), integer),
        "l2-group": (("schedule.l2_group",), integer),
        "shape": (("problem.shape",), lambda text: Shape(*three_integers(text))),
    }
)
"""Each flag with a value: the fields that it chooses, and how its text is read."""


def flag_layer(flags: Mapping[str, str | bool | None]) -> Layer:
    """What the flags of :func:`requested` say."""
    choices: dict[str, Any] = {}
    diagnostics: list[Diagnostic] = []
    for flag, text in flags.items():
        if text is None:
            continue
        if flag == "persistent":
            choices["schedule.persistent"] = text
            continue
        names, read = _FLAGS[flag]
        try:
            value = read(str(text))
        except UnreadableError as unreadable:
            diagnostics.append(Diagnostic(f"--{flag} {shown(text)} cannot be read: {unreadable}"))
            continue
        choices.update(zip(names, value, strict=True) if flag == "tile" else dict.fromkeys(names, value))
    return Layer(choices, tuple(diagnostics))


def to_command(spec: Gemm) -> str:
    """The command that emits ``spec``: no path, and only what differs from the defaults.

    Raises :class:`SpecError` for an illegal spec.
    """
    require_legal(spec)
    said = choices_of(spec)
    words = ["tmagen", "emit"]
    for flag, (names, _) in _FLAGS.items():
        if not said.keys() & set(names):
            continue
        if flag == "tile":
            text = f"{spec.tile.m},{spec.tile.n},{spec.tile.k}"
        elif flag == "shape":
            shape = said["problem.shape"]
            text = f"{shape.m},{shape.n},{shape.k}"
        else:
            value = said[names[0]]
            text = str(getattr(value, "value", value))
        words += [f"--{flag}", text]
    if said.get("schedule.persistent"):
        words.append("--persistent")
    return " ".join(words)
