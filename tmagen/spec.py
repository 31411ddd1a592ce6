# SPDX-License-Identifier: Apache-2.0
"""The spec of a command line: the preset, the file and the flags that it names, and the command that a spec is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tmagen.choices import KINDS, Choices, Layer, choices_of, spec_from
from tmagen.errors import Diagnostic, SpecError
from tmagen.flag_text import FlagReader, integer, shape, three_integers, word_of
from tmagen.ir import DType, Gemm, Policy, Target
from tmagen.legality import require_legal
from tmagen.words import nearest, one_of, shown


def requested(
    preset: str | None = None,
    toml: str | None = None,
    flags: Mapping[str, str | bool | None] | None = None,
    *,
    toml_source: str = "TOML",
    also: Iterable[Diagnostic] = (),
) -> Gemm:
    """The legal spec that a command line asks for: flags override TOML, TOML the preset, and the default is step 5.

    ``flags`` maps `pipe-depth` to its text and `persistent` to True or False; None is a flag that was not given. Raises
    :class:`SpecError` with everything that cannot be read, what ``also`` says of other flags, and everything that is
    illegal in the rest.
    """
    layers = [preset_layer(preset)]
    if toml is not None:
        from tmagen.spec_toml import toml_layer

        layers.append(toml_layer(toml, toml_source))
    said = flag_layer(flags or {})
    try:
        return spec_from([*layers, said, Layer({}, tuple(also))])
    except SpecError as error:
        if toml is None:
            raise
        raise SpecError(*(_for_toml(diagnostic, said.choices) for diagnostic in error.diagnostics)) from None


_FLAG = re.compile(r"(a smaller |a wider |no )?--(no-)?([a-z][\w-]*)(?: (\w+(?:,\w+)*))?")


def _for_toml(diagnostic: Diagnostic, flags: Choices) -> Diagnostic:
    """The diagnostic of someone who wrote TOML: what to try as its keys, except what ``flags`` said."""

    def keys(match: re.Match[str]) -> str:
        how, negated, flag, value = match[1] or "", match[2], match[3], match[4]
        if flag == "persistent":
            fields: tuple[str, ...] = ("schedule.persistent",)
            texts = ["false" if negated else "true"]
        elif flag in _FLAGS:
            # B follows A, and its key may stand in the file only where it differs.
            fields = ("problem.a",) if flag == "dtype" else _FLAGS[flag][0]
            texts = [] if value is None else value.split(",")
            if KINDS[fields[0]] is not int:
                texts = [f'"{text}"' for text in texts]
        else:
            return match[0]
        if not flags.keys().isdisjoint(fields):
            return match[0]
        if how or not texts:
            return how + (" and ".join(fields) if flag != "tile" else "tile")
        return ", ".join(f"{field} = {text}" for field, text in zip(fields, texts, strict=True))

    if diagnostic.hint is None or diagnostic.hint.startswith("tmagen "):
        return diagnostic
    return replace(diagnostic, hint=_FLAG.sub(keys, diagnostic.hint))


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


def _words(*members: Any) -> Callable[[str], Any]:
    return word_of({member.value: member for member in members})


_FLAGS: Mapping[str, tuple[tuple[str, ...], Callable[[str], Any]]] = MappingProxyType(
    {
        "target": (("target",), _words(*Target)),
        "name": (("name",), str),
        "dtype": (("problem.a", "problem.b"), _words(DType.F16, DType.BF16)),
        "out-dtype": (("problem.d",), _words(*DType)),
        "tile": (("tile.m", "tile.n", "tile.k"), three_integers),
        "pipe-depth": (("pipeline.depth",), integer),
        "policy": (("pipeline.policy",), _words(*Policy)),
        "ctas": (("schedule.ctas",), integer),
        "l2-group": (("schedule.l2_group",), integer),
        "shape": (("problem.shape",), shape),
    }
)
"""Each flag with a value: the fields that it chooses, and how its text is read."""


def flag_layer(flags: Mapping[str, str | bool | None]) -> Layer:
    """What the flags of :func:`requested` say."""
    choices: dict[str, Any] = {}
    reader = FlagReader()
    for flag, text in flags.items():
        if flag == "persistent":
            if text is not None:
                choices["schedule.persistent"] = text
            continue
        fields, read = _FLAGS[flag]
        value = reader.read(flag, None if text is None else str(text), read)
        if value is not None:
            choices.update(zip(fields, value, strict=True) if flag == "tile" else dict.fromkeys(fields, value))
    return Layer(choices, tuple(reader.diagnostics))


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
            sizes = said["problem.shape"]
            text = f"{sizes.m},{sizes.n},{sizes.k}"
        else:
            value = said[names[0]]
            text = str(getattr(value, "value", value))
        words += [f"--{flag}", text]
    if said.get("schedule.persistent"):
        words.append("--persistent")
    return " ".join(words)
