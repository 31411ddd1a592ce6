# SPDX-License-Identifier: Apache-2.0
"""Checks of a run: races over threads and asynchronous work, proxies, barriers, tensor memory, and formal rules.

A checked run executes the same generated code, with functions of `hooks` in the place of those that touch memory and
barriers. `watch` compares accesses by the vector clocks of `clocks` over the shadow memories of `shadow`.
"""

from __future__ import annotations

from tmagen.emu.checks.finding import Finding, Place
from tmagen.emu.checks.registry import FAMILIES, Check, find, known

__all__ = ["FAMILIES", "Check", "Finding", "Place", "find", "known"]
