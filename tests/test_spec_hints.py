# SPDX-License-Identifier: Apache-2.0
"""What to try instead is said in the words that the user wrote: keys of TOML, or flags."""

from __future__ import annotations

import pytest

from tmagen.errors import SpecError
from tmagen.spec import requested


def hints(toml: str | None, **flags: str) -> list[str | None]:
    with pytest.raises(SpecError) as raised:
        requested(toml=toml, flags={name.replace("_", "-"): text for name, text in flags.items()})
    return [diagnostic.hint for diagnostic in raised.value.diagnostics]


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("pipeline.depth = 9", "pipeline.depth = 6"),
        ("pipeline = {depth = 3, policy = 'serial'}", 'pipeline.depth = 1, or pipeline.policy = "prefetch"'),
        ("tile.n = 300", "tile.m = 128, tile.n = 256, tile.k = 64"),
        ("schedule.ctas = 4", "schedule.persistent = true, or no schedule.ctas"),
        ("problem = {a = 'f16', b = 'bf16'}", 'problem.a = "f16"'),
        ("problem.shape = [1, 999999999, 1]", "schedule.persistent = true, or a wider tile"),
        ("tille.n = 3", "[tile]"),
    ],
)
def test_keys_for_toml(toml: str, told: str) -> None:
    assert hints(toml) == [told]


def test_flags_for_what_flags_said() -> None:
    assert hints(None, pipe_depth="9") == ["--pipe-depth 6"]
    assert hints("tile.n = 128", pipe_depth="9") == ["--pipe-depth 6"]
    assert hints("schedule.ctas = 4", pipe_depth="9")[1] == "schedule.persistent = true, or no schedule.ctas"


@pytest.mark.parametrize(
    ("key", "takes"),
    [
        ("problem.a", '"f16" or "bf16"'),
        ("problem.d", '"f16", "bf16" or "f32"'),
        ("problem.acc", '"f32"'),
        ("problem.layout_d", '"row-major"'),
        ("pipeline.policy", '"serial" or "prefetch"'),
    ],
)
def test_words_that_a_key_takes_are_legal_ones(key: str, takes: str) -> None:
    with pytest.raises(SpecError) as raised:
        requested(toml=f"{key} = 'f8'")
    assert raised.value.diagnostics[0].detail == (f"it takes {takes}",)
