# SPDX-License-Identifier: Apache-2.0
"""Looks at an mbarrier that are answered with false though the phase is complete.

mbarrier.try_wait may return false for any reason that the implementation has, and a test_wait that is a little earlier
sees the phase incomplete (PTX ISA, "mbarrier.test_wait, mbarrier.try_wait"). A wait in a loop comes to its answer
later; a program that looks once has to take a false for what it is.
"""

from __future__ import annotations

import random
from typing import Any

from tmagen.emu.state.fragments import Fragment

_MOST = 3


class Refusals:
    """Of one CTA: each look of a warp's lanes at a phase is refused up to three times, as the seed draws."""

    def __init__(self, cta: Any, seed: int) -> None:
        self._random = random.Random(f"{seed} {cta.ctaid} waits")
        self._left: dict[tuple[int, int, int], tuple[int, int]] = {}

    def refuses(self, fragment: Fragment, address: int, phase: int) -> bool:
        """Whether a look at a phase that is complete is answered with false. `phase` is the current one."""
        key = (fragment.warp.index, fragment.mask, address)
        known, left = self._left.get(key, (-1, 0))
        if known != phase:
            left = self._random.randint(0, _MOST)
        self._left[key] = phase, max(0, left - 1)
        return left > 0
