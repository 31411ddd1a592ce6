# SPDX-License-Identifier: Apache-2.0
"""Who touched bytes last is told in one order, whatever the addresses of the objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmagen.emu.checks.shadow import Access, Parts, Shadow


def test_accesses_come_in_the_order_of_the_parts() -> None:
    site: Any = object()
    parts = Parts(64)
    shadow = Shadow(parts, None, tensor=False)
    words = [parts.add(at, np.arange(at, at + 4)) for at in range(0, 64, 4)]
    written = [Access("st", site, (0, 0, None), 0, clock, 0, clock) for clock in range(16)]
    for word, access in zip(words, written, strict=True):
        shadow.wrote(word, access)
    of_all = parts.add("all", np.arange(64))
    assert [of_all.parts.index(part) for word in words for part in word.parts] == list(
        map(list(shadow.last_writes(of_all)).index, written)
    )
    for word, access in zip(words, written, strict=True):
        shadow.read(word, access)
    assert list(shadow.last_reads(of_all)) == [shadow.reads[part] for part in of_all.parts]
