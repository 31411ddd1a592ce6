# SPDX-License-Identifier: Apache-2.0
"""Specs with a name: the ladder of steps, and variants of its last step that are useful as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tmagen.ir import DType, Gemm, Pipeline, Policy, Problem, Schedule, Shape, Tile


@dataclass(frozen=True)
class Preset:
    """A spec, and one line on what it is for."""

    spec: Gemm
    about: str


_PERSISTENT = Schedule(persistent=True)
_BF16 = Problem(a=DType.BF16, b=DType.BF16, d=DType.BF16)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "step4": Preset(
            Gemm(pipeline=Pipeline(1, Policy.SERIAL)),
            "TMA loads and stores, one stage: load, wait, MMA, wait",
        ),
        "step5": Preset(
            Gemm(),
            "a ring of two stages, filled ahead of the MMA",
        ),
        "step6": Preset(
            Gemm(schedule=_PERSISTENT),
            "step 5 with persistent CTAs and an L2-friendly tile order",
        ),
        "step6-bf16": Preset(
            Gemm(problem=_BF16, schedule=_PERSISTENT),
            "step 6 with bf16 in and out",
        ),
        "step6-f32out": Preset(
            Gemm(problem=Problem(d=DType.F32), schedule=_PERSISTENT),
            "step 6 that keeps D in f32",
        ),
        "step6-depth4": Preset(
            Gemm(pipeline=Pipeline(4), schedule=_PERSISTENT),
            "step 6 with four stages",
        ),
        "step6-wide": Preset(
            Gemm(tile=Tile(128, 256, 64), pipeline=Pipeline(4), schedule=_PERSISTENT),
            "step 6 with tiles of 128x256, the widest MMA, and four stages",
        ),
        "step6-k128": Preset(
            Gemm(tile=Tile(128, 128, 128), schedule=_PERSISTENT),
            "step 6 with stages of 128 K elements: half as many waits",
        ),
        "step6-4096": Preset(
            Gemm(problem=Problem(shape=Shape(4096, 4096, 4096)), schedule=_PERSISTENT),
            "step 6 for 4096x4096x4096 alone",
        ),
    }
)
"""Every preset, the ladder first."""
