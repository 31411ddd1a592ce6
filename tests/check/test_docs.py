# SPDX-License-Identifier: Apache-2.0
"""docs/check.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from tmagen.check import COMPLETIONS, from_toml
from tmagen.check.elements import ELEMENTS
from tmagen.check.expression import FUNCTIONS
from tmagen.check.fills import WORDS
from tmagen.check.read_launch import BUFFER_KEYS, KEYS
from tmagen.check.read_maps import FILLS, INTERLEAVES, MAP_KEYS, PROMOTIONS, SWIZZLES
from tmagen.check.read_params import FORMS

TEXT = (Path(__file__).parent.parent.parent / "docs" / "check.md").read_text()


def test_its_launch_file_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    spec = from_toml(text)
    assert len(spec.params) == 6
    assert [buffer.strides for buffer in spec.buffers] == [(80, 1), (72, 1), (136, 1)]


def test_every_key_and_word_is_there() -> None:
    words = [*KEYS, *BUFFER_KEYS, *MAP_KEYS, *FORMS, *WORDS, *COMPLETIONS, *FUNCTIONS]
    words += [*SWIZZLES, *INTERLEAVES, *PROMOTIONS, *FILLS]
    words += [name for name in ELEMENTS if name[0] not in "su"]
    missing = [word for word in words if not re.search(rf"\b{word}\b", TEXT)]
    assert missing == []
