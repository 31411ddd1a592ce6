# SPDX-License-Identifier: Apache-2.0
"""From what was asked to a spec: presets, TOML and flags are layers of choices, and a later layer wins.

A layer holds only what it says, so that what nobody said can follow from the rest: B and D have the type of A; one
stage is serial and more are prefetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from tmagen.errors import Diagnostic, SpecError
from tmagen.ir import (
    Cluster,
    DType,
    Gemm,
    Layout,
    Pipeline,
    Policy,
    Problem,
    Schedule,
    Shape,
    Target,
    Tile,
)
from tmagen.legality import check

Choices = Mapping[str, Any]
"""What one layer says: the value of some fields of the IR by their dotted names, `pipeline.depth` for one."""

KINDS: Mapping[str, type] = MappingProxyType(
    {
        "target": Target,
        "name": str,
        "problem.a": DType,
        "problem.b": DType,
        "problem.d": DType,
        "problem.acc": DType,
        "problem.layout_a": Layout,
        "problem.layout_b": Layout,
        "problem.layout_d": Layout,
        "problem.shape": Shape,
        "tile.m": int,
        "tile.n": int,
        "tile.k": int,
        "pipeline.depth": int,
        "pipeline.policy": Policy,
        "schedule.persistent": bool,
        "schedule.ctas": int,
        "schedule.l2_group": int,
        "cluster.m": int,
        "cluster.n": int,
    }
)
"""Every field that a layer can choose, in the order of the IR."""

_SECTIONS = MappingProxyType(
    {"problem": Problem, "tile": Tile, "pipeline": Pipeline, "schedule": Schedule, "cluster": Cluster}
)


@dataclass(frozen=True)
class Layer:
    """What one source says, and what of it could not be read."""

    choices: Choices
    diagnostics: tuple[Diagnostic, ...] = ()


def policy_of(depth: int) -> Policy:
    """The policy that goes with ``depth`` stages when none was asked for."""
    return Policy.SERIAL if depth == 1 else Policy.PREFETCH


def _derived(choices: Choices) -> dict[str, Any]:
    """What follows from ``choices`` for the fields that they leave open."""
    derived: dict[str, Any] = {}
    if "problem.a" in choices:
        derived |= dict.fromkeys(("problem.b", "problem.d"), choices["problem.a"])
    if "pipeline.depth" in choices:
        derived["pipeline.policy"] = policy_of(choices["pipeline.depth"])
    elif choices.get("pipeline.policy") is Policy.SERIAL:
        derived["pipeline.depth"] = 1
    return derived


def merged(layers: Iterable[Choices]) -> dict[str, Any]:
    """All choices of ``layers``, the later layer winning.

    Depth and policy are one decision, and so are `persistent` and what belongs to it: a layer that says one of them
    anew makes void what earlier layers said of the other, so that `--pipe-depth 1` is serial whatever the preset was.
    """
    result: dict[str, Any] = {}
    for layer in layers:
        if "pipeline.depth" in layer:
            result.pop("pipeline.policy", None)
        if "pipeline.policy" in layer and policy_of(result.get("pipeline.depth", 2)) is not layer["pipeline.policy"]:
            result.pop("pipeline.depth", None)
        if layer.get("schedule.persistent") is False:
            result.pop("schedule.ctas", None)
            result.pop("schedule.l2_group", None)
        result.update(layer)
    return result


def build(choices: Choices) -> Gemm:
    """The spec of ``choices``; what they leave open follows from the rest, or is the default. It may be illegal."""
    known = {**_derived(choices), **choices}
    sections = {
        section: cls(
            **{
                field.name: known[f"{section}.{field.name}"]
                for field in fields(cls)
                if f"{section}.{field.name}" in known
            }
        )
        for section, cls in _SECTIONS.items()
    }
    return Gemm(**sections, **{field: known[field] for field in ("target", "name") if field in known})


def choices_of(spec: Gemm) -> dict[str, Any]:
    """The fewest choices that :func:`build` makes ``spec`` from."""
    said: dict[str, Any] = {}
    for field in KINDS:
        value, default = value_of(spec, field), value_of(build(said), field)
        if value != default:
            said[field] = value
    if build(said) == spec:
        return said
    # An illegal spec can contradict what would follow from the rest: then every field has to be said.
    return {field: value for field in KINDS if (value := value_of(spec, field)) is not None}


def value_of(spec: Gemm, field: str) -> Any:
    """The value of one of :data:`KINDS` in ``spec``."""
    value: Any = spec
    for part in field.split("."):
        value = getattr(value, part)
    return value


def spec_from(layers: Iterable[Layer]) -> Gemm:
    """The legal spec that ``layers`` ask for, the later layer winning.

    Raises :class:`SpecError` with everything that could not be read, and everything that is illegal in the rest.
    """
    known = list(layers)
    spec = build(merged(layer.choices for layer in known))
    diagnostics = [*(found for layer in known for found in layer.diagnostics), *check(spec)]
    if diagnostics:
        raise SpecError(*diagnostics)
    return spec
